// A text field with suggestions, after the ARIA combobox pattern: focus stays in the field, arrows move the choice.
import { el, readable, shorten } from "./dom.js";

// Those with this name, or the one with this id.
export function called(text, entities) {
  const one = entities.find((e) => e.id === text);
  return one ? [one] : entities.filter((e) => readable(e.name).toLowerCase() === text.toLowerCase());
}

export class Combobox {
  // search(text, signal) gives a promise of entities; onPick(entity) gets the choice.
  constructor(input, text, list, search, onPick) {
    Object.assign(this, { input, text, list, search, onPick, picked: null, options: [], active: -1, timer: 0, pending: null });
    input.addEventListener("input", () => this.#typed());
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("focus", () => input.select());
    input.addEventListener("blur", () => this.close());
    // A press would take the focus, and with it the list, before the click arrives.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  set(entity) {
    this.picked = entity;
    this.input.value = readable(entity.name);
    this.text.textContent = entity.description ?? "";
    this.close();
  }

  clear() {
    this.picked = null;
    this.input.value = this.text.textContent = "";
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.pending?.abort();
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  // Let the user choose, and say why.
  offer(entities, why) {
    this.input.focus();
    this.#show(entities, why);
  }

  #typed() {
    this.picked = null;
    this.options = []; // the list belongs to another text
    this.active = -1;
    this.text.textContent = "";
    clearTimeout(this.timer);
    this.pending?.abort();
    const text = this.input.value.trim();
    if (!text) return this.close();
    this.timer = setTimeout(() => this.#suggest(text), 110);
  }

  async #suggest(text) {
    this.pending = new AbortController();
    try {
      this.#show(await this.search(text, this.pending.signal));
    } catch (error) {
      if (error.name !== "AbortError") this.#show([], error.message);
    }
  }

  #show(entities, message = entities.length ? "" : "nothing in the graph is called that") {
    this.options = entities;
    this.active = -1;
    const items = entities.map((entity, i) =>
      el("li", { id: `${this.list.id}-${i}`, role: "option", "aria-selected": "false", onclick: () => this.#pick(entity) },
        el("span", { class: "option-name" }, readable(entity.name)),
        el("span", { class: "option-text" }, shorten(entity.description || entity.id, 90))));
    this.list.replaceChildren(...(message ? [el("li", { class: "none" }, message)] : []), ...items);
    this.list.hidden = false;
    this.list.scrollTop = 0;
    this.input.setAttribute("aria-expanded", "true");
  }

  #key(event) {
    if (this.list.hidden) {
      // With an entity picked, the arrow belongs to the answers below.
      if (event.key !== "ArrowDown" || this.picked || !this.input.value.trim()) return;
      event.preventDefault();
      this.#suggest(this.input.value.trim());
      return;
    }
    if (event.key === "ArrowDown") this.#move(this.active + 1);
    else if (event.key === "ArrowUp") this.#move(this.active - 1);
    else if (event.key === "Enter" && this.#meant) this.#pick(this.#meant);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(to) {
    if (!this.options.length) return;
    this.active = (to + this.options.length) % this.options.length;
    const items = [...this.list.querySelectorAll("[role=option]")];
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === this.active)));
    items[this.active].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
  }

  // What Enter takes: the one that the arrows reached, else the first, unless several have exactly this name.
  get #meant() {
    const several = called(this.input.value.trim(), this.options).length > 1;
    return this.options[this.active] ?? (several ? undefined : this.options[0]);
  }

  #pick(entity) {
    this.set(entity);
    this.onPick(entity);
  }
}
