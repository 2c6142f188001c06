// A text field with suggestions, after the ARIA combobox pattern: focus stays in the field, arrows move the choice.
import { el, readable, shorten } from "./dom.js";

export class Combobox {
  // search(text, signal) gives a promise of entities; onPick(entity) is told what was chosen.
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

  #typed() {
    this.picked = null;
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

  #show(entities, message = "nothing in the graph is called that") {
    this.options = entities;
    this.active = -1;
    const items = entities.map((entity, i) =>
      el("li", { id: `${this.list.id}-${i}`, role: "option", "aria-selected": "false", onclick: () => this.#pick(i) },
        el("span", { class: "option-name" }, readable(entity.name)),
        el("span", { class: "option-text" }, shorten(entity.description || entity.id, 90))));
    this.list.replaceChildren(...(items.length ? items : [el("li", { class: "none" }, message)]));
    this.list.hidden = false;
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
    else if (event.key === "Enter" && this.options.length) this.#pick(Math.max(0, this.active));
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(to) {
    if (!this.options.length) return;
    this.active = (to + this.options.length) % this.options.length;
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === this.active)));
    this.list.children[this.active].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
  }

  #pick(i) {
    const entity = this.options[i];
    this.set(entity);
    this.onPick(entity);
  }
}
