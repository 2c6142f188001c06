// What is known about a new entity: statements, each picked from the graph and removed by a button.
import { Combobox } from "./combobox.js";
import { el, readable } from "./dom.js";

const arrow = (relation, side) => (side === "head" ? `— ${readable(relation.name)}\u00a0→` : `←\u00a0${readable(relation.name)} —`);

export class Facts {
  // search is the combobox's; onChange() is called when a fact is added or removed.
  constructor(list, select, input, options, search, onChange) {
    Object.assign(this, { list, select, onChange, relations: [], known: [] });
    this.combobox = new Combobox(input, el("p"), options, search, (other) => (this.#add(other), this.onChange()));
  }

  offer(relations) {
    this.relations = relations;
    const group = (side, label) => el("optgroup", { label }, ...relations.map((r) =>
      el("option", { value: JSON.stringify([r.id, side]) }, arrow(r, side))));
    this.select.replaceChildren(group("head", "it is the head"), group("tail", "it is the tail"));
  }

  // As the service takes them.
  get references() {
    return this.known.map(({ relation, side, other }) => ({ relation: relation.id, side, other: other.id }));
  }

  // As the service shows neighbours.
  get neighbours() {
    return this.known.map(({ relation, side, other }) => ({ relation: relation.id, relation_name: relation.name,
      direction: side === "head" ? "out" : "in", id: other.id, name: other.name }));
  }

  // Add what was typed and not picked, if find(text), a promise, knows which entity that is.
  async settle(find) {
    const text = this.combobox.input.value.trim();
    if (text) this.#add(await find(text));
  }

  clear() {
    this.known = [];
    this.combobox.clear();
    this.#show();
  }

  // The references of an address; entity(id) gives a promise of one. What cannot be read is an error, and nothing is kept.
  async recall(text, entity) {
    const references = read(text).map(({ relation, side, other }) =>
      ({ relation: this.relations.find((r) => r.id === relation), side, other }));
    if (references.some((fact) => !fact.relation)) throw unreadable();
    const before = this.known;
    const others = await Promise.all(references.map((fact) => entity(fact.other)));
    if (this.known === before) references.forEach((fact, i) => this.#add(others[i], fact)); // or another address came meanwhile
  }

  #add(other, { relation, side } = this.#chosen()) {
    const same = (fact) => fact.relation === relation && fact.side === side && fact.other.id === other.id;
    if (!this.known.some(same)) this.known.push({ relation, side, other });
    this.combobox.clear();
    this.#show();
  }

  #chosen() {
    const [id, side] = JSON.parse(this.select.value);
    return { relation: this.relations.find((r) => r.id === id), side };
  }

  #remove(fact) {
    this.known = this.known.filter((one) => one !== fact);
    this.#show();
    this.onChange();
    this.combobox.input.focus();
  }

  #show() {
    this.list.replaceChildren(...this.known.map((fact) =>
      el("li", {}, el("span", { class: "via" }, arrow(fact.relation, fact.side)), readable(fact.other.name),
        el("button", { type: "button", "aria-label": `Remove ${readable(fact.other.name)}`, onclick: () => this.#remove(fact) },
          "×"))));
  }
}

const unreadable = () => new Error("the facts in this address cannot be read");

function read(text) {
  try {
    const facts = JSON.parse(text);
    const whole = ({ relation, side, other }) => typeof relation === "string" && typeof other === "string" && ["head", "tail"].includes(side);
    if (Array.isArray(facts) && facts.every(whole)) return facts;
  } catch { /* said below */ }
  throw unreadable();
}
