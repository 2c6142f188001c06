// The page of one entity: its texts, what it is, its statements, and the drawing of what is next to it.
import { get } from "./api.js";
import { drawAround } from "./drawing.js";
import { byId, el, readable } from "./dom.js";
import { entityPage, openPage, say } from "./shell.js";

const PAGE = 200; // statements at once
const article = byId("entity");
const id = new URLSearchParams(location.search).get("id") ?? "";

// An id that is a web address leads there.
export const address = (text) =>
  /^https?:\/\//i.test(text) ? el("a", { href: text, rel: "noreferrer noopener external" }, text) : text;

async function start() {
  await openPage();
  say("");
  const detail = await get("entity", { id, limit: PAGE });
  document.title = `${readable(detail.name)} · satkgc`;
  article.replaceChildren(head(detail), picture(detail), statements(detail));
}

function head(detail) {
  const question = (asked) => `./#${new URLSearchParams({ asked, relation: "", id: detail.id })}`;
  return el("header", { class: "entity-head" },
    el("h1", {}, readable(detail.name)),
    detail.description && el("p", { class: "lede" }, detail.description),
    el("p", { class: "muted id" }, address(detail.id)),
    detail.types.length > 0 && el("p", { class: "types" }, "is a ", ...detail.types.map((type) =>
      el("a", { class: "chip", href: entityPage(type.id), title: `${type.entities.toLocaleString("en")} such entities` }, readable(type.name)))),
    el("p", { class: "entity-links" },
      el("a", { class: "chip", href: question("tail") }, "Ask what follows it"),
      el("a", { class: "chip", href: question("head") }, "Ask what leads to it")));
}

function picture(detail) {
  if (!detail.neighbours.length) return el("p", { class: "muted" }, "The graph holds no statement about it.");
  const width = Math.min(860, Math.max(300, Math.round(article.clientWidth)));
  return el("div", { class: "entity-drawing" }, drawAround(detail, width, (node) => location.assign(entityPage(node.id))));
}

// By relation and direction, most statements first.
function statements(detail) {
  const list = el("div", { class: "statements" });
  const seen = [...detail.neighbours];
  const more = el("button", { class: "link", type: "button", onclick: async () => {
    more.disabled = true;
    try {
      seen.push(...(await get("entity", { id: detail.id, limit: PAGE, offset: seen.length })).neighbours);
      show();
    } catch (error) {
      say(error.message, "error");
    }
    more.disabled = false;
  } });
  const show = () => {
    const groups = Map.groupBy ? Map.groupBy(seen, key) : seen.reduce((all, n) => all.set(key(n), [...(all.get(key(n)) ?? []), n]), new Map());
    list.replaceChildren(...[...groups.values()].sort((a, b) => b.length - a.length).map((group) => part(detail, group)));
    more.hidden = seen.length >= detail.total;
    more.textContent = `More: ${seen.length.toLocaleString("en")} of ${detail.total.toLocaleString("en")} are shown`;
  };
  show();
  return el("section", {}, detail.total > 0 && el("h2", {}, `${detail.total.toLocaleString("en")} ${detail.total === 1 ? "statement" : "statements"}`), list, more);
}

const key = ({ relation, direction }) => JSON.stringify([relation, direction]);

function part(detail, group) {
  const { relation, relation_name: name, direction } = group[0];
  const arrow = direction === "out" ? `— ${readable(name)} →` : `← ${readable(name)} —`;
  return el("section", { class: "statement-group" },
    el("h3", {}, el("span", { class: "via" }, arrow), /^https?:/i.test(relation) && el("small", { class: "id" }, address(relation))),
    el("ul", {}, ...group.map((next) => el("li", {}, el("a", { href: entityPage(next.id) }, readable(next.name))))));
}

start().catch((error) => say(error.message, "error"));
