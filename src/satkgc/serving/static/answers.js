// The ranked answers: a bar for each, known ones marked, a plus to accept the others.
import { byId, el, percent, readable } from "./dom.js";

const OBJECTIONS = { mirrored: "said already", implied: "said already", cyclic: "cycle", second_value: "second value", wrong_type: "wrong type" };

// Why the graph's own logic speaks against an answer, or has it already.
const objection = ({ kind, reason }) =>
  el("span", { class: `mark-known${OBJECTIONS[kind] === "said already" ? "" : " mark-against"}`, title: reason }, OBJECTIONS[kind] ?? readable(kind));

export const contradicts = ({ objection: against }) => Boolean(against) && !["mirrored", "implied"].includes(against.kind);

export class Answers {
  // rows: {triple, answer, asked}; on.open(row) shows evidence, on.accept(row) collects, accepted(row) says whether it is.
  constructor(list, on) {
    Object.assign(this, { list, on, rows: [], open: -1 });
  }

  show(rows, withRelation) {
    this.rows = rows;
    this.open = -1;
    // Bars are probabilities where the run has them; else scores, stretched over what is shown.
    const scores = rows.map((row) => row.answer.score);
    const low = Math.min(...scores), span = Math.max(...scores) - low || 1;
    const length = ({ probability, score }) => probability ?? 0.15 + (0.85 * (score - low)) / span;
    this.list.replaceChildren(...rows.map((row, i) => this.#item(row, i, withRelation, length(row.answer))));
  }

  wait(count = 6) {
    this.rows = [];
    const ghost = () => el("li", { class: "ghost", "aria-hidden": "true" }, el("span"), el("span"));
    this.list.replaceChildren(...Array.from({ length: count }, ghost));
  }

  clear() {
    this.rows = [];
    this.list.replaceChildren();
  }

  refresh() {
    for (const button of this.list.querySelectorAll("button.accept")) this.#mark(button, this.rows[button.value]);
  }

  mark(i) {
    this.open = i;
    [...this.list.children].forEach((item, j) => item.classList.toggle("open", j === i));
    [...this.list.querySelectorAll(".answer")].forEach((b, j) => b.setAttribute("aria-expanded", String(j === i)));
  }

  #item(row, i, withRelation, length) {
    const { answer } = row;
    const accept = answer.known ? el("span", { class: "accept" }) // it is no news to the graph
      : el("button", { class: "accept", type: "button", value: i, onclick: () => this.on.accept(row) });
    if (!answer.known) this.#mark(accept, row);
    return el("li", { "--i": i, class: answer.known ? "known" : "" },
      el("button", { class: "answer", type: "button", "aria-expanded": "false", "aria-controls": "detail",
          onclick: () => this.#show(i) },
        el("span", { class: "rank" }, String(i + 1)),
        el("span", { class: "who" },
          withRelation && el("span", { class: "tag" }, readable(row.triple.relation.name)),
          el("span", { class: "name" }, readable(answer.name)),
          answer.known && el("span", { class: "mark-known" }, "known"),
          answer.objection && objection(answer.objection)),
        el("span", { class: "value number" },
          answer.probability == null ? answer.score.toFixed(3) : percent(answer.probability)),
        el("span", { class: "text" }, answer.description || answer.id),
        el("span", { class: "bar", "aria-hidden": "true" }, el("span", { "--length": Math.max(0.004, length).toFixed(4) }))),
      accept);
  }

  #mark(button, row) {
    const accepted = this.on.accepted(row);
    button.textContent = accepted ? "✓" : "+";
    button.setAttribute("aria-pressed", String(accepted));
    button.setAttribute("aria-label", `${accepted ? "Drop" : "Accept"} ${readable(row.answer.name)}`);
  }

  #accept(row) {
    if (!row.answer.known) this.on.accept(row);
  }

  #show(i) {
    this.mark(i);
    this.list.children[i].scrollIntoView({ block: "nearest" });
    this.on.open(this.rows[i]);
  }

  // Wherever the focus is, but for fields: after a click it is in the evidence, and the answer is the one that is open.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const buttons = [...this.list.querySelectorAll(".answer")], row = event.target.closest("li");
    const inside = this.list.contains(event.target), shown = !inside && this.open >= 0;
    const at = shown ? this.open : [...this.list.children].indexOf(row);
    if (!inside && !shown) return;
    const move = (to) => (shown ? this.#show(to) : buttons[to].focus());
    if (event.key === "ArrowDown" && at + 1 < buttons.length) move(at + 1);
    else if (event.key === "ArrowUp" && at > 0) move(at - 1);
    else if (event.key === "ArrowUp" && inside) byId("entity").focus();
    else if (event.key === "a" && at >= 0) this.#accept(this.rows[at]);
    else return;
    event.preventDefault();
  }
}
