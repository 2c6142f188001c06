// The API as the service describes it: every request with its parameters, its body, its answer, and a way to try it.
import { call, get } from "./api.js";
import { byId, el } from "./dom.js";
import { outline } from "./schema.js";
import { openPage, say } from "./shell.js";

async function start() {
  await openPage();
  say("");
  const description = await get("openapi.json");
  byId("description").hidden = sessionStorage.getItem("satkgc.token") !== null; // a link cannot send it
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => show(path, method, operation, description)));
  byId("operations").replaceChildren(...operations);
}

function show(path, method, operation, description) {
  const body = operation.requestBody?.content["application/json"];
  const answer = operation.responses["200"]?.content?.["application/json"];
  const statuses = Object.entries(operation.responses).filter(([status]) => status !== "200");
  return el("details", { class: "operation" },
    el("summary", {}, el("b", { class: "method" }, method.toUpperCase()), el("code", {}, path), el("span", { class: "muted" }, operation.summary ?? "")),
    el("p", {}, operation.description ?? ""),
    ...parameters(operation.parameters ?? [], description),
    ...(body ? [el("h3", {}, "Body"), outline(body.schema, description)] : []),
    ...(answer ? [el("h3", {}, "Answer"), outline(answer.schema, description)] : []),
    el("p", { class: "muted" }, "Otherwise: ", statuses.map(([status, { description: why }]) => `${status} ${why.toLowerCase()}`).join("; ")),
    tryIt(path, method, operation, body));
}

function parameters(all, description) {
  if (!all.length) return [];
  const row = (p) => el("li", {}, el("code", {}, p.name), p.required && el("span", { class: "mark-known" }, "required"),
    el("span", { class: "muted" }, ` ${p.description ?? ""} `), outline(p.schema, description));
  return [el("h3", {}, "Parameters"), el("ul", { class: "fields" }, ...all.map(row))];
}

function tryIt(path, method, operation, body) {
  const fields = (operation.parameters ?? []).map((p) =>
    el("input", { class: "field", name: p.name, placeholder: p.name, "aria-label": p.name, value: p.example ?? p.schema.examples?.[0] ?? "" }));
  const examples = Object.values(body?.examples ?? {});
  const text = body && el("textarea", { class: "field code", rows: 8, "aria-label": "Body", spellcheck: "false" });
  const fill = (example) => (text.value = JSON.stringify(example?.value ?? {}, null, 2));
  const choice = examples.length > 1 && el("select", { class: "select", "aria-label": "Example", onchange: (e) => fill(examples[e.target.value]) },
    ...examples.map((example, i) => el("option", { value: i }, example.summary)));
  if (text) fill(examples[0]);
  const out = el("pre", { class: "code", tabindex: "0", role: "status", hidden: true });
  const send = async (event) => {
    event.preventDefault();
    const query = new URLSearchParams(fields.filter((f) => f.value !== "").map((f) => [f.name, f.value]));
    const options = text ? { method: "POST", headers: { "Content-Type": "application/json" }, body: text.value } : {};
    out.hidden = false;
    out.textContent = "…";
    try {
      const answer = await call(path.slice(1) + (fields.length ? `?${query}` : ""), options);
      out.textContent = typeof answer === "string" ? answer : JSON.stringify(answer, null, 2);
    } catch (error) {
      out.textContent = `${error.status || ""} ${error.message}`.trim();
    }
  };
  return el("form", { class: "try", onsubmit: send, autocomplete: "off" }, choice, ...fields, text,
    el("button", { class: "primary", type: "submit" }, method === "get" ? "Get it" : "Send it"), out);
}

start().catch((error) => say(error.message, "error"));
