// Accepted statements: kept in this browser, one list for each graph, downloaded as TSV or N-Triples.
import { byId, el, percent, readable } from "./dom.js";

const LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>";
const IRI = /^[a-z][a-z0-9+.-]*:[^\s<>"{}|^`\\]+$/i;

// An id that is an IRI stays one; any other gets a name of its own, from which the id can be read back.
const iri = (kind, id) => `<${IRI.test(id) ? id : `urn:satkgc:${kind}:${encodeURIComponent(id)}`}>`;
const literal = (text) =>
  `"${text.replace(/[\\"\n\r\t]/g, (c) => ({ "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c])}"`;
const cell = (text) => text.replace(/[\t\r\n]+/g, " ");
const idOf = (part) => part.id ?? `new:${part.name}`;
const node = (part) => (part.id ? iri("entity", part.id) : iri("new", part.name));

export const tsv = (triples) =>
  triples.map((t) => [idOf(t.head), t.relation.id, idOf(t.tail)].map(cell).join("\t") + "\n").join("");

export function ntriples(triples) {
  const lines = triples.map((t) => `${node(t.head)} ${iri("relation", t.relation.id)} ${node(t.tail)} .`);
  // A new entity has no id in the graph: its name goes along, or nobody could tell what was meant.
  const fresh = triples.flatMap((t) => [t.head, t.tail]).filter((part) => !part.id);
  lines.push(...fresh.map((part) => `${node(part)} ${LABEL} ${literal(part.name)} .`));
  return [...new Set(lines)].map((line) => line + "\n").join("");
}

const key = (t) => JSON.stringify([idOf(t.head), t.relation.id, idOf(t.tail)]);

export class Collection {
  constructor(graph, onChange) {
    Object.assign(this, { store: `satkgc.collected.${graph}`, graph, onChange });
    try {
      this.triples = JSON.parse(localStorage.getItem(this.store) ?? "[]");
    } catch {
      this.triples = [];
    }
    byId("collected").addEventListener("click", () => byId("collection").showModal());
    byId("collection-close").addEventListener("click", () => byId("collection").close());
    byId("collection-clear").addEventListener("click", () => this.#set([]));
    byId("download-tsv").addEventListener("click", () => this.#download(tsv, "tsv", "text/tab-separated-values"));
    byId("download-nt").addEventListener("click", () => this.#download(ntriples, "nt", "application/n-triples"));
    this.#render();
  }

  has(triple) {
    return this.triples.some((other) => key(other) === key(triple));
  }

  toggle(triple) {
    this.#set(this.has(triple) ? this.triples.filter((t) => key(t) !== key(triple)) : [...this.triples, triple]);
  }

  #set(triples) {
    this.triples = triples;
    localStorage.setItem(this.store, JSON.stringify(triples));
    this.#render();
    this.onChange();
  }

  #render() {
    const none = this.triples.length === 0;
    byId("count").textContent = this.triples.length;
    byId("collected").classList.toggle("some", !none);
    byId("collection-empty").hidden = !none;
    for (const id of ["download-tsv", "download-nt", "collection-clear"]) byId(id).disabled = none;
    byId("collection-list").replaceChildren(
      ...this.triples.map((t) =>
        el("li", {}, statement(t), el("span", { class: "muted number" }, t.probability == null ? "" : percent(t.probability)),
          el("button", { class: "quiet", type: "button", "aria-label": "Remove", onclick: () => this.toggle(t) }, "×"))));
  }

  #download(write, ending, type) {
    const url = URL.createObjectURL(new Blob([write(this.triples)], { type: `${type};charset=utf-8` }));
    const name = this.graph.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "graph";
    el("a", { href: url, download: `${name}-accepted.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
}

// head —relation→ tail, as text.
export const statement = (t) =>
  el("span", { class: "statement" },
    el("b", {}, readable(t.head.name)), el("i", {}, readable(t.relation.name)), el("b", {}, readable(t.tail.name)));
