// What every page has: the theme, the line about the graph, the way to the other pages.
import { get, untilReady } from "./api.js";
import { byId } from "./dom.js";

// Wait for the model and fill the head of the page; gives what the service says of itself.
export async function openPage() {
  theme();
  await untilReady(({ status }) => say({ loading: "The model is loading", failed: "The model could not be loaded." }[status]
    ?? "The service does not answer.", status === "loading" ? "waiting" : "error"));
  const info = await get("info");
  const count = (n, what) => `${n.toLocaleString("en")} ${what}`;
  byId("run").textContent = [info.graph, count(info.entities, "entities"), count(info.relations, "relations"),
    count(info.triples, "statements")].join(" · ");
  byId("to-review").hidden = !info.review;
  return info;
}

export function say(text, kind = "") {
  byId("status").className = `status ${kind}`;
  byId("status").replaceChildren(...(Array.isArray(text) ? text : [text]));
}

// Whether a key belongs to a field, or to the browser.
export const typing = (event) =>
  event.ctrlKey || event.metaKey || event.altKey || Boolean(event.target.closest("input:not([type=radio]), textarea, select, dialog"));

export const entityPage = (id) => `entity?${new URLSearchParams({ id })}`;

function theme() {
  const root = document.documentElement;
  root.dataset.theme = localStorage.getItem("satkgc.theme") ?? "";
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("satkgc.theme", root.dataset.theme);
  });
}
