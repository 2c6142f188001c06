// The start page: which graph and model these are, and how good the model is, of each relation.
import { el, readable } from "./dom.js";

const SHOWN = 12; // relations; the others behind a button
const count = (n) => n.toLocaleString("en");

export function about(section, info, relations) {
  section.replaceChildren(
    el("h2", { id: "about-title" }, "What is here"),
    el("div", { class: "about-parts" }, graph(info), model(info)),
    table(info.quality, relations));
}

function graph({ graph, entities, relations, triples }) {
  return card("The graph", graph, [["entities", count(entities)], ["relations", count(relations)], ["statements", count(triples)]]);
}

function model({ model, quality, calibrated, candidates }) {
  const parts = [...model.backbones, ...model.experts.map((name) => `expert ${name}`)];
  const facts = quality
    ? [["MRR", quality.mrr.toFixed(3)], ["first", share(quality.hits_at_1)], ["among ten", share(quality.hits_at_10)]]
    : [];
  const notes = [
    parts.length > 0 && `Made of ${parts.join(", ")}.`,
    !model.finished && "Its training was not finished.",
    quality ? `How ${count(quality.triples)} held-out validation statements are ranked, asked from both ends, among ${quality.candidates}.`
      : "It was never measured: the run has no validation statements, or was not finished.",
    candidates?.right != null && `A question looks at about ${count(Math.round(candidates.candidates))} candidates: ${share(candidates.right)} of the right validation answers are among them.`,
    !calibrated && "Its answers have scores, no probabilities."];
  return card("The model", `${readable(model.kind)}, recipe ${model.recipe}`, facts, notes.filter(Boolean));
}

function card(title, name, facts, notes = []) {
  const fact = ([what, value]) => el("div", {}, el("dt", {}, what), el("dd", { class: "number" }, value));
  return el("div", { class: "card" }, el("h3", {}, title), el("p", { class: "card-name" }, name),
    facts.length > 0 && el("dl", { class: "facts-row" }, ...facts.map(fact)), ...notes.map((note) => el("p", { class: "muted" }, note)));
}

const share = (value) => `${(100 * value).toFixed(0)} %`;

// Relations, those with most statements first; what was never asked in validation has no figures.
function table(quality, relations) {
  if (!quality) return "";
  const measured = new Map(quality.relations.map((r) => [r.id, r]));
  const row = ({ id, name, triples }, i) => {
    const found = measured.get(id);
    const figures = found
      ? [el("td", { class: "number" }, count(found.triples)), el("td", { class: "number" }, found.mrr.toFixed(3)),
        el("td", { class: "wide" }, el("span", { class: "share", "--size": `${100 * found.mrr}%`, "aria-hidden": "true" })),
        el("td", { class: "number" }, share(found.hits_at_1)), el("td", { class: "number" }, share(found.hits_at_10))]
      : [el("td", { class: "number" }, "0"), ...["", "", "", ""].map(() => el("td"))];
    return el("tr", { hidden: i >= SHOWN }, el("th", { scope: "row" }, readable(name)), el("td", { class: "number" }, count(triples)), ...figures);
  };
  const heads = ["relation", "statements", "held out", "MRR", "", "first", "among ten"];
  const body = el("tbody", {}, ...relations.map(row));
  const all = el("button", { class: "link", type: "button", onclick: () => {
    for (const one of body.children) one.hidden = false;
    all.remove();
  } }, `All ${count(relations.length)} relations`);
  return el("div", { class: "scroll" },
    el("table", { class: "quality" }, el("caption", {}, "How good, relation by relation"),
      el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i === 4 ? "wide" : "" }, head)))), body),
    relations.length > SHOWN && all);
}
