// The panel beside the answers: why the model says so.
import { get, post, reference } from "./api.js";
import { draw, FRESH } from "./drawing.js";
import { el, percent, readable, svg } from "./dom.js";
import { entityPage } from "./shell.js";

const part = (title, note, ...content) =>
  el("section", { class: "part" }, el("h3", {}, title), note && el("p", { class: "muted" }, note), ...content);

export class Panel {
  constructor(panel, onPick) {
    Object.assign(this, { panel, onPick, pending: null });
  }

  close() {
    this.pending?.abort();
    this.panel.hidden = true;
  }

  async show(row, onClose) {
    const { triple, answer } = row;
    const head = el("header", {},
      el("button", { class: "quiet close", type: "button", "aria-label": "Close the evidence", onclick: onClose }, "×"),
      el("h2", {}, linked(triple)),
      el("p", { class: "muted" }, answer.known ? "The graph holds this statement." : "The graph does not hold this statement."));
    const shown = this.fill(row, head);
    this.panel.focus({ preventScroll: true });
    await shown;
  }

  // The evidence below a head of the caller's own.
  async fill({ triple, answer, asked }, ...head) {
    this.pending?.abort();
    const pending = (this.pending = new AbortController());
    const body = el("div", {}, el("p", { class: "status waiting" }, "Looking for evidence"));
    this.panel.replaceChildren(...head, body);
    this.panel.hidden = false;
    this.panel.scrollTop = 0;
    try {
      const neighbours = (end) =>
        end.id ? get("entity", { id: end.id, limit: 60 }, pending.signal) : { id: FRESH, neighbours: end.neighbours ?? [] };
      const [evidence, ...details] = await Promise.all([
        post("evidence", { head: reference(triple.head), relation: triple.relation.id, tail: reference(triple.tail), asked },
          pending.signal),
        neighbours(triple.head), neighbours(triple.tail)]);
      const width = Math.max(300, Math.round(this.panel.clientWidth - 2));
      body.replaceChildren(
        draw(triple, details, evidence.path, answer.known, width, this.onPick, evidence.strong_paths),
        legend(answer.known, evidence.strong_paths.length > 0),
        ...against(evidence), ...experts(evidence), ...strongPaths(evidence), similar(evidence, triple), path(evidence), texts(evidence));
    } catch (error) {
      if (error.name === "AbortError") return;
      body.replaceChildren(el("p", { class: "status error" }, error.message));
    }
  }
}

// A name that leads to the page of its entity; a new one has none.
const page = ({ id, name }) => (id ? el("a", { href: entityPage(id) }, readable(name)) : readable(name));

export const linked = (t) =>
  el("span", { class: "statement" }, el("b", {}, page(t.head)), el("i", {}, readable(t.relation.name)), el("b", {}, page(t.tail)));

function legend(known, strong) {
  const sample = (kind, text, band) => el("span", {}, svg("svg", { viewBox: "0 0 26 8", width: 26, height: 8, "aria-hidden": "true" },
    svg("g", { class: `edge ${kind}` }, band && svg("path", { class: "band", d: "M0 4H26", "--weight": 1 }), svg("path", { d: "M0 4H26" }))), text);
  return el("p", { class: "legend muted" },
    sample(known ? "asked held" : "asked", known ? "this statement" : "this statement (dashed: not in the graph)"),
    sample("path", "the shortest path"), strong && sample("", "the paths that count (wider: more)", true),
    sample("", "what else the graph holds"));
}

// What the graph's own logic says against the statement, or why it is nothing new.
function against({ objection }) {
  if (!objection) return [];
  const title = ["mirrored", "implied"].includes(objection.kind) ? "The graph says so already" : "The graph speaks against it";
  return [part(title, objection.reason)];
}

// Of a fused model: how much of the answer is whose doing. A bar to the left is an expert that speaks against it.
function experts({ experts, asked }) {
  if (!experts?.length) return [];
  const one = ({ name, share, rank }) => {
    const said = share === null ? "nothing to say" : `${share <= -0.005 ? "−" : ""}${Math.round(100 * Math.abs(share))} %`;
    const bar = el("span", { class: share < 0 ? "share against" : "share", "--size": `${100 * Math.abs(share ?? 0)}%`, "aria-hidden": "true" });
    return el("li", {}, el("span", {}, readable(name)), bar, el("span", { class: "number" }, said),
      el("span", { class: "muted number" }, rank === null ? "" : `rank ${rank}`));
  };
  const what = asked === "relation" ? "the tail" : "the answer";
  return [part("Who says so", `what each expert adds to ${what}, against the other candidates; its rank by that expert alone`,
    el("ol", { class: "experts" }, ...experts.map(one)))];
}

function similar({ similar }, triple) {
  if (!similar.length) return part("Closest known statements", "None: no other statement has this relation, or this model does not tell which entities are alike.");
  const one = (s) =>
    el("li", {}, linked({ head: { id: s.head, name: s.head_name }, relation: triple.relation, tail: { id: s.tail, name: s.tail_name } }),
      el("span", { class: "muted number", title: "cosine of the two heads" }, s.similarity.toFixed(2)));
  return part("Closest known statements", "of this relation, by the similarity of their heads",
    el("ol", { class: "similar" }, ...similar.map(one)));
}

function stops(steps) {
  const stop = (id, name) => el("span", { class: "stop" }, page({ id, name }));
  const step = (s) => [
    el("span", { class: "via" }, s.direction === "out" ? `— ${readable(s.relation_name)} →` : `← ${readable(s.relation_name)} —`),
    stop(s.target, s.target_name)];
  return el("p", { class: "path" }, stop(steps[0].source, steps[0].source_name), ...steps.flatMap(step));
}

function path({ path }) {
  if (!path?.length) return part("Shortest path", "No path in the training graph connects the two.");
  const steps = path.length === 1 ? "one step" : `${path.length} steps`;
  return part("Shortest path", `${steps} in the training graph, without the statement itself`, stops(path));
}

// Of a path model, alone or as an expert: what its score rests on.
function strongPaths({ strong_paths: paths, asked }) {
  if (!paths.length) return [];
  const one = ({ steps, weight }) => el("li", {}, stops(steps),
    el("p", { class: "weight" },
      el("span", { class: "share", "--size": `${(100 * weight) / paths[0].weight}%`, "aria-hidden": "true" }),
      el("span", { class: "muted number" }, `−${weight.toFixed(2)} without it`)));
  const what = asked === "relation" ? "the tail" : "the answer";
  return [part("Paths that count",
    `what the path model follows to ${what}, the strongest first, and about what its own score loses without the path: 0.7 less halves the odds`,
    el("ol", { class: "strong" }, ...paths.map(one)))];
}

// Without the marks that begin and end a text for the model; the one between its segments becomes a dash.
export const plain = (text) =>
  text.replace(/^(\[CLS\]|<s>)\s*|\s*(\[SEP\]|<\/s>)\s*$/g, "").replace(/\s*(\[SEP\]|<\/s>(\s*<\/s>)*)\s*/g, " — ");

function texts({ asked, query_text, entity_text, score, probability }) {
  const trust = probability == null ? "" : `, ${percent(probability)} as the missing ${asked}`;
  const both = asked === "relation" ? " (the mean of asking for the tail, shown here, and for the head)" : "";
  const number = `score ${score.toFixed(3)}${both}${trust}`;
  if (!query_text) return part("Score", number); // the model reads no texts
  return part("Texts compared", number,
    el("div", { class: "texts" },
      el("blockquote", {}, el("cite", {}, "question"), plain(query_text)),
      el("blockquote", {}, el("cite", {}, "answer"), plain(entity_text))));
}
