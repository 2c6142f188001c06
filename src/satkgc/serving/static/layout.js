// Where the nodes of a small drawing go: springs, repulsion, and labels that do not lie on each other.

// nodes: [{id, width, height, fixed?: {x, y}}], edges: [[i, j]]; gives [{x, y}] inside width × height.
// longest: an edge is about so long where there is room. taken: boxes like fixed nodes, but of no other force, where no node may lie.
// The same graph always gives the same drawing: the start is a circle, nothing is random.
export function layout(nodes, edges, width, height, taken = [], { rounds = 320, longest = 95 } = {}) {
  const n = nodes.length;
  const ideal = Math.min(longest, 0.8 * Math.sqrt((width * height) / Math.max(n, 1)));
  const at = nodes.map((node, i) => node.fixed
    ? { ...node.fixed }
    : { x: width / 2 + 0.4 * width * Math.cos(2.4 * i), y: height / 2 + 0.4 * height * Math.sin(2.4 * i) });
  const boxes = [...nodes, ...taken], spots = [...at, ...taken.map((box) => box.fixed)];
  for (let round = 0; round < rounds; round++) {
    const heat = 0.1 * Math.min(width, height) * (1 - round / rounds) ** 1.5 + 0.5;
    const move = nodes.map(() => ({ x: 0, y: 0 }));
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) repel(at[i], at[j], move[i], move[j], ideal);
    }
    for (const [i, j] of edges) attract(at[i], at[j], move[i], move[j], ideal);
    for (let i = 0; i < n; i++) {
      if (nodes[i].fixed) continue;
      const { x, y } = move[i];
      const far = Math.hypot(x, y) || 1;
      at[i].x += (x / far) * Math.min(far, heat);
      at[i].y += (y / far) * Math.min(far, heat);
    }
    if (round > rounds / 3) separate(boxes, spots);
    nodes.forEach((node, i) => keepInside(node, at[i], width, height));
  }
  // Without the springs, until nothing overlaps (or the picture is too full for that).
  for (let pass = 1; pass <= 300 && separate(boxes, spots, pass % 6 === 0); pass++) {
    nodes.forEach((node, i) => keepInside(node, at[i], width, height));
  }
  return at;
}

function repel(a, b, moveA, moveB, ideal) {
  const dx = a.x - b.x || 0.01, dy = a.y - b.y || 0.01;
  const square = dx * dx + dy * dy;
  const push = (ideal * ideal) / square;
  moveA.x += dx * push; moveA.y += dy * push;
  moveB.x -= dx * push; moveB.y -= dy * push;
}

function attract(a, b, moveA, moveB, ideal) {
  const dx = a.x - b.x, dy = a.y - b.y;
  const pull = Math.hypot(dx, dy) / ideal;
  moveA.x -= dx * pull; moveA.y -= dy * pull;
  moveB.x += dx * pull; moveB.y += dy * pull;
}

// Push overlapping boxes apart along the axis where the overlap is smaller, or, `across`, along the other, which frees
// those that are held between a fixed box and the edge. Says whether there were any.
function separate(nodes, at, across = false) {
  let any = false;
  for (let i = 0; i < nodes.length; i++) {
    for (let j = i + 1; j < nodes.length; j++) {
      const dx = at[j].x - at[i].x, dy = at[j].y - at[i].y;
      const overX = (nodes[i].width + nodes[j].width) / 2 + 6 - Math.abs(dx);
      const overY = (nodes[i].height + nodes[j].height) / 2 + 3 - Math.abs(dy);
      if (overX <= 0.5 || overY <= 0.5 || (nodes[i].fixed && nodes[j].fixed)) continue;
      any = true;
      const alongX = overX < overY !== across;
      const way = (alongX ? dx : dy) < 0 ? -1 : 1;
      const shift = (alongX ? overX : overY) * way;
      const shares = nodes[i].fixed ? [0, 1] : nodes[j].fixed ? [1, 0] : [0.5, 0.5];
      at[i][alongX ? "x" : "y"] -= shift * shares[0];
      at[j][alongX ? "x" : "y"] += shift * shares[1];
    }
  }
  return any;
}

function keepInside(node, place, width, height) {
  const halfX = node.width / 2 + 4, halfY = node.height / 2 + 4;
  place.x = Math.min(Math.max(place.x, halfX), width - halfX);
  place.y = Math.min(Math.max(place.y, halfY), height - halfY);
}
