// The neighbourhood of a triple: both ends, what is next to them, the paths between, and the proposed edge.
import { readable, shorten, svg } from "./dom.js";
import { label } from "./labels.js";
import { layout } from "./layout.js";

export const FRESH = "\u0000new"; // the id of a new entity's node, which no entity of a graph has

// triple: {head, relation, tail}; details: entity details of the ends; path: steps or null; strong: [{steps, weight}].
export function draw(triple, details, path, known, width, onPick, strong = []) {
  const graph = collect(triple, details, path, strong, width < 480 ? 6 : 9);
  const ends = [triple.head.id ?? FRESH, triple.tail.id ?? FRESH];
  const title = `The neighbourhood of ${readable(triple.head.name)} and ${readable(triple.tail.name)}`;
  const fixed = [[0.26, 0.46], [0.74, 0.54]], asks = ends[0] === ends[1] ? null : readable(triple.relation.name);
  return picture(graph, ends, fixed, asks, { title, width, known, onPick, say: "Ask about" });
}

// An entity in the middle of what is next to it.
export function drawAround(detail, width, onPick) {
  const nodes = new Map([[detail.id, { id: detail.id, name: readable(detail.name) }]]), edges = new Map();
  for (const next of varied(detail.neighbours, width < 480 ? 8 : 16)) {
    if (!nodes.has(next.id)) nodes.set(next.id, { id: next.id, name: readable(next.name) });
    const [from, to] = next.direction === "out" ? [detail.id, next.id] : [next.id, detail.id];
    edges.set(JSON.stringify([from, to]), { from, to, label: readable(next.relation_name), weight: 0 });
  }
  const graph = { nodes: [...nodes.values()], edges: [...edges.values()].filter((e) => e.from !== e.to) };
  const title = `The neighbourhood of ${readable(detail.name)}`;
  return picture(graph, [detail.id], [[0.5, 0.5]], null, { title, width, known: true, onPick, say: "Go to" });
}

// ends stand at these parts of width and height; asks is the label of an edge between two of them that needs room.
function picture(graph, ends, fixed, asks, { title, width, known, onPick, say }) {
  const height = Math.min(asks === null ? 460 : 380, 150 + 16 * graph.nodes.length);
  const nodes = graph.nodes.map((node) => size(node, ends, fixed, width, height));
  const index = new Map(nodes.map((node, i) => [node.id, i]));
  const taken = asks === null ? [] : asked(nodes[index.get(ends[0])], nodes[index.get(ends[1])], asks);
  const places = layout(nodes, graph.edges.map((e) => [index.get(e.from), index.get(e.to)]), width, height, taken, { longest: asks === null ? 150 : 95 });
  const place = (id) => places[index.get(id)];

  const drawn = svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title });
  drawn.append(arrow("arrow", "edge-end"), arrow("arrow-accent", "edge-end accent"));
  const lines = graph.edges.map((edge) =>
    line(edge, nodes[index.get(edge.from)], place(edge.from), nodes[index.get(edge.to)], place(edge.to), known));
  const boxes = nodes.map((node, i) => ({ ...places[i], width: node.width, height: node.height }));
  label(lines, boxes, { width, height });
  const named = ({ group }) => Number(group.classList.contains("named")); // drawn later, or another line crosses the name
  drawn.append(...lines.sort((one, other) => named(one) - named(other)).map(({ group }) => group), ...nodes.map((node, i) => dot(node, places[i], ends, onPick, say)));
  hover(drawn);
  return drawn;
}

function collect({ head, relation, tail }, details, path, strong, limit) {
  const nodes = new Map(), edges = new Map();
  const node = (id, name) => nodes.has(id) || nodes.set(id, { id, name: readable(name) });
  const edge = (from, to, label, kind, weight = 0) => {
    const key = JSON.stringify([from, to, label]), before = edges.get(key);
    edges.set(key, { from, to, label: readable(label), kind: kind ?? before?.kind, weight: Math.max(weight, before?.weight ?? 0) });
  };
  const follow = (steps, kind, weight) => {
    for (const step of steps) {
      const source = step.source || FRESH, target = step.target || FRESH; // new text has no id
      node(source, step.source_name);
      node(target, step.target_name);
      const [from, to] = step.direction === "out" ? [source, target] : [target, source];
      edge(from, to, step.relation_name, kind, weight);
    }
  };
  const a = head.id ?? FRESH, b = tail.id ?? FRESH;
  node(a, head.name);
  node(b, tail.name);
  follow(path ?? [], "path");
  const few = nodes.size;
  for (const { steps, weight } of strong) follow(steps, undefined, weight / strong[0].weight);
  const banded = new Set(); // one band between two nodes, the widest, whichever relations join them
  for (const one of [...edges.values()].sort((x, y) => y.weight - x.weight)) {
    const pair = JSON.stringify([one.from, one.to].sort());
    if (banded.has(pair)) one.weight = 0;
    banded.add(pair);
  }
  const room = Math.max(2, limit - Math.ceil((nodes.size - few) / 2)); // the paths' own nodes take some of it
  for (const detail of details) {
    for (const next of varied(detail.neighbours, room)) {
      node(next.id, next.name);
      const [from, to] = next.direction === "out" ? [detail.id, next.id] : [next.id, detail.id];
      edge(from, to, next.relation_name);
    }
  }
  edge(a, b, relation.name, "asked");
  return { nodes: [...nodes.values()], edges: [...edges.values()].filter((e) => e.from !== e.to) };
}

// Up to `limit` neighbours, in turn from each relation and direction, so that one frequent relation is not all there is.
function varied(neighbours, limit) {
  const groups = new Map();
  for (const next of neighbours) {
    const key = next.relation + next.direction;
    groups.set(key, [...(groups.get(key) ?? []), next]);
  }
  const turns = [...groups.values()].flatMap((group) => group.map((next, turn) => ({ next, turn })));
  return turns.sort((a, b) => a.turn - b.turn).slice(0, limit).map(({ next }) => next);
}

function size(node, ends, places, width, height) {
  const end = ends.indexOf(node.id);
  const label = shorten(node.name, end < 0 ? 20 : 24);
  const fixed = end < 0 ? undefined : { x: width * places[end][0], y: height * places[end][1] };
  const [letter, radius, tall] = end < 0 ? [6, 4, 28] : [7.6, 7, 36];
  return { ...node, label, fixed, radius, width: Math.max(24, label.length * letter), height: tall };
}

const arrow = (id, style) =>
  svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { class: style, d: "M0 .8 7 4 0 7.2z" }));

// A node's place is the middle of its box: the dot is at the top, the label below it.
const dotY = (node) => -node.height / 2 + node.radius + 2;

const BOW = -0.14; // of the asked edge, upwards

// The space that the asked edge and its label take between the two ends.
function asked(head, tail, label) {
  const [x1, y1, x2, y2] = [head.fixed.x, head.fixed.y + dotY(head), tail.fixed.x, tail.fixed.y + dotY(tail)];
  const at = (t) => ({ x: x1 + t * (x2 - x1), y: y1 + t * (y2 - y1) + 2 * t * (1 - t) * BOW * (x2 - x1) });
  const line = [0.25, 0.375, 0.5, 0.625, 0.75].map((t) => ({ fixed: at(t), width: (x2 - x1) / 8, height: 12 }));
  const { x, y } = at(0.5);
  return [...line, { fixed: { x, y: y - 9 }, width: 6.5 * label.length, height: 16 }];
}

// How far from the dot an edge in direction (ux, uy) may come near: not onto the label.
function clear(node, ux, uy) {
  const near = node.radius + 4, below = node.height - node.radius - 1, half = node.width / 2 + 3;
  const meetsLabel = uy > 0 && (near * Math.abs(ux)) / uy < half;
  return meetsLabel ? Math.max(near, Math.min(below / uy, half / Math.max(Math.abs(ux), 1e-6))) : near;
}

function line(edge, source, from, target, to, known) {
  const fromY = from.y + dotY(source), toY = to.y + dotY(target);
  const dx = to.x - from.x, dy = toY - fromY, far = Math.hypot(dx, dy) || 1;
  const bend = edge.kind === "asked" ? BOW * Math.sign(dx || 1) : 0; // bowed upwards, so that it never hides another
  const mx = (from.x + to.x) / 2 - dy * bend, my = (fromY + toY) / 2 + dx * bend;
  const start = Math.hypot(mx - from.x, my - fromY) || 1, end = Math.hypot(mx - to.x, my - toY) || 1;
  const [ux, uy, vx, vy] = [(mx - from.x) / start, (my - fromY) / start, (mx - to.x) / end, (my - toY) / end];
  const leave = Math.min(clear(source, ux, uy), 0.4 * far), arrive = Math.min(clear(target, vx, vy), 0.4 * far);
  const [x1, y1, x2, y2] = [from.x + ux * leave, fromY + uy * leave, to.x + vx * arrive, toY + vy * arrive];
  const kind = edge.kind === "asked" && known ? "asked held" : (edge.kind ?? "");
  const accent = edge.kind ? "arrow-accent" : "arrow";
  const statement = `${source.name} – ${edge.label} – ${target.name}`, d = `M${x1} ${y1}Q${mx} ${my} ${x2} ${y2}`;
  const text = svg("text", { x: (x1 + x2) / 4 + mx / 2, y: (y1 + y2) / 4 + my / 2 - 5 }, shorten(edge.label, 30));
  const group = svg("g", { class: `edge ${kind}`, "data-ends": JSON.stringify([edge.from, edge.to]), role: "img", "aria-label": statement },
    edge.weight > 0 && svg("path", { class: "band", d, "--weight": edge.weight }),
    svg("path", { d, "marker-end": `url(#${accent})` }),
    text, svg("title", {}, statement));
  return { group, text, edge, curve: [[x1, y1], [mx, my], [x2, y2]] };
}

function dot(node, { x, y }, ends, onPick, say) {
  const pick = node.id === FRESH ? undefined : () => onPick(node);
  return svg("g", { class: ends.includes(node.id) ? "node end" : "node", transform: `translate(${x} ${y})`, "data-id": node.id,
      tabindex: pick && "0", role: pick && "button", "aria-label": pick && `${say} ${node.name}`, onclick: pick,
      onkeydown: pick && ((event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), pick())) },
    svg("circle", { cy: dotY(node), r: node.radius }),
    svg("text", { y: node.height / 2 - 5 }, node.label),
    svg("title", {}, node.name));
}

// The edges of the node under the pointer or in focus show their relations, all of them; the others step back.
function hover(picture) {
  const light = (event) => {
    const id = event.target.closest?.(".node")?.dataset.id;
    picture.classList.toggle("lit", id !== undefined);
    for (const edge of picture.querySelectorAll(".edge")) {
      edge.classList.toggle("near", id !== undefined && JSON.parse(edge.dataset.ends).includes(id));
    }
  };
  for (const kind of ["pointerover", "focusin", "pointerleave", "focusout"]) picture.addEventListener(kind, light);
}
