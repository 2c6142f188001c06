// Accepted statements: kept in this browser, one list for each graph, downloaded as TSV or N-Triples.
import { byId, el, percent, readable } from "./dom.js";

const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const IRI = /^[a-z][a-z0-9+.-]*:[^\s<>"{}|^`\\]+$/i;

// An id that is an IRI stays one; any other gets a name of its own, from which the id can be read back.
const iri = (kind, id) => `<${IRI.test(id) ? id : `urn:satkgc:${kind}:${encodeURIComponent(id)}`}>`;
const literal = (text) =>
  `"${text.replace(/[\\"\n\r\t]/g, (c) => ({ "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c])}"`;
const cell = (text) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// A new entity has no id in the graph: its name stands for it, with a checksum of its description, if it has one.
const sum = (text) => [...text].reduce((h, c) => Math.imul(h ^ c.codePointAt(0), 16777619) >>> 0, 2166136261).toString(36);
const idOf = ({ id, name, description }) =>
  id ?? `urn:satkgc:new:${encodeURIComponent(name)}${description ? `:${sum(description)}` : ""}`;

const number = (value) => value?.toFixed(6) ?? "";
const yes = (value) => (value ? "yes" : "");
const plain = (text) => (/^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text); // or a spreadsheet takes it for a formula
const newText = (part) => (part.id ? "" : (part.description ?? "")); // the graph has the texts of its own
const COLUMNS = { // as in the table of `satkgc propose`, and a few more
  head: (t) => plain(idOf(t.head)), relation: (t) => plain(t.relation.id), tail: (t) => plain(idOf(t.tail)),
  head_name: (t) => plain(t.head.name), relation_name: (t) => plain(t.relation.name), tail_name: (t) => plain(t.tail.name),
  score: (t) => number(t.score), probability: (t) => number(t.probability), accept: (t) => yes(t.accept),
  known: (t) => yes(t.known), head_description: (t) => plain(newText(t.head)),
  tail_description: (t) => plain(newText(t.tail)) };

// What `satkgc accept` reads.
export const tsv = (triples) =>
  [Object.keys(COLUMNS), ...triples.map((t) => Object.values(COLUMNS).map((column) => cell(column(t))))]
    .map((row) => row.join("\t") + "\n").join("");

export function ntriples(triples) {
  const node = (part) => iri("entity", idOf(part)), edge = (t) => iri("relation", t.relation.id);
  const say = (subject, what, text) => text && `${subject} <${RDFS}${what}> ${literal(text)} .`;
  const lines = [
    ...triples.map((t) => `${node(t.head)} ${edge(t)} ${node(t.tail)} .`),
    ...triples.flatMap((t) => [t.head, t.tail]).flatMap((part) =>
      [say(node(part), "label", part.name), say(node(part), "comment", newText(part))]),
    ...triples.map((t) => say(edge(t), "label", t.relation.name))];
  return [...new Set(lines)].filter(Boolean).map((line) => line + "\n").join("");
}

export function download(graph, what, ending, text) {
  const type = ending === "nt" ? "application/n-triples" : "text/tab-separated-values";
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const name = graph.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "graph";
  el("a", { href: url, download: `${name}-${what}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const key = (t) => JSON.stringify([idOf(t.head), t.relation.id, idOf(t.tail)]);

export class Collection {
  constructor(graph, onChange) {
    Object.assign(this, { store: `satkgc.collected.${graph}`, graph, onChange, cleared: [] });
    byId("collected").addEventListener("click", () => byId("collection").showModal());
    byId("collection-close").addEventListener("click", () => byId("collection").close());
    byId("collection-clear").addEventListener("click", () => this.#clear());
    for (const [ending, write] of [["tsv", tsv], ["nt", ntriples]]) {
      byId(`download-${ending}`).addEventListener("click", () =>
        download(graph, "accepted", ending, write(this.triples.map((t) => ({ ...t, accept: true })))));
    }
    window.addEventListener("storage", ({ key }) => [this.store, null].includes(key) && this.#show()); // another tab
    this.#show();
  }

  has(triple) {
    return this.triples.some((other) => key(other) === key(triple));
  }

  toggle(triple) {
    this.#read(); // another tab may have changed it
    this.cleared = [];
    this.#set(this.has(triple) ? this.triples.filter((t) => key(t) !== key(triple)) : [...this.triples, triple]);
  }

  // A second click restores them.
  #clear() {
    this.#read();
    const back = this.cleared.filter((t) => !this.has(t));
    this.cleared = back.length ? [] : this.triples;
    this.#set(back.length ? [...this.triples, ...back] : []);
  }

  #read() {
    try {
      this.triples = JSON.parse(localStorage.getItem(this.store) ?? "[]");
    } catch {
      this.triples = [];
    }
  }

  #set(triples) {
    localStorage.setItem(this.store, JSON.stringify(triples));
    this.#show();
  }

  #show() {
    this.#read();
    const none = this.triples.length === 0, back = this.cleared.length;
    byId("count").textContent = this.triples.length;
    byId("collected").classList.toggle("some", !none);
    byId("collection-empty").hidden = !none;
    for (const id of ["download-tsv", "download-nt"]) byId(id).disabled = none;
    byId("collection-clear").disabled = none && !back;
    byId("collection-clear").textContent = back ? `Restore ${back}` : "Clear";
    byId("collection-list").replaceChildren(
      ...this.triples.map((t, i) =>
        el("li", {}, statement(t), el("span", { class: "muted number" }, t.probability == null ? "" : percent(t.probability)),
          el("button", { class: "quiet", type: "button", onclick: () => this.#remove(t, i),
            "aria-label": `Remove ${[t.head, t.relation, t.tail].map((part) => readable(part.name)).join(" – ")}` }, "×"))));
    this.onChange();
  }

  #remove(triple, i) {
    this.toggle(triple);
    const left = byId("collection-list").querySelectorAll("button");
    (left[Math.min(i, left.length - 1)] ?? byId("collection-close")).focus();
  }
}

// head —relation→ tail, as text.
export const statement = (t) =>
  el("span", { class: "statement" },
    el("b", {}, readable(t.head.name)), el("i", {}, readable(t.relation.name)), el("b", {}, readable(t.tail.name)));
