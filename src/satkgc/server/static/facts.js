// What is known of a new entity: statements about it, each picked from the graph and taken back by a button.
import { Combobox } from "./combobox.js";
import { el, readable } from "./dom.js";

const arrow = (relation, side) => (side === "head" ? `— ${readable(relation.name)} →` : `← ${readable(relation.name)} —`);

export class Facts {
  // search is the combobox's; onChange() is told when a fact was added or taken back.
  constructor(list, select, input, options, search, onChange) {
    Object.assign(this, { list, select, onChange, relations: [], known: [] });
    this.combobox = new Combobox(input, el("p"), options, search, (other) => this.#add(other));
  }

  offer(relations) {
    this.relations = relations;
    const option = (side) => (r) => el("option", { value: JSON.stringify([r.id, side]) }, arrow(r, side));
    this.select.replaceChildren(...relations.map(option("head")), ...relations.map(option("tail")));
  }

  // As the service takes them.
  get references() {
    return this.known.map(({ relation, side, other }) => ({ relation: relation.id, side, other: other.id }));
  }

  // The other way round: entity(id) gives a promise of one.
  async recall(references, entity) {
    const facts = references.map(async ({ relation, side, other }) =>
      ({ relation: this.relations.find((r) => r.id === relation), side, other: await entity(other) }));
    this.known = (await Promise.all(facts)).filter((fact) => fact.relation);
    this.#show();
  }

  #add(other) {
    const [id, side] = JSON.parse(this.select.value);
    const same = (fact) => fact.relation.id === id && fact.side === side && fact.other.id === other.id;
    if (!this.known.some(same)) this.known.push({ relation: this.relations.find((r) => r.id === id), side, other });
    this.combobox.clear();
    this.#show();
    this.onChange();
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
        el("button", { type: "button", "aria-label": `Take back ${readable(fact.other.name)}`, onclick: () => this.#remove(fact) },
          "×"))));
  }
}
