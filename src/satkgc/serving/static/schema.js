// A JSON schema as an outline that people read: fields with their types, limits and what they are for.
import { el } from "./dom.js";

const DEEP = 4; // levels; below them a type's name has to do

// named: whether the name of an object's type is said before its fields.
export function outline(schema, description, depth = 0, named = depth > 0) {
  const { name, resolved } = resolve(schema, description);
  const fields = Object.entries(resolved.properties ?? {});
  if (!fields.length || depth >= DEEP) {
    const inner = innerObject(resolved, description);
    return inner && depth < DEEP ? el("div", {}, el("span", { class: "type" }, typeName(schema, description)), outline(inner, description, depth + 1, false))
      : el("span", { class: "type" }, typeName(schema, description), limits(resolved));
  }
  const required = new Set(resolved.required ?? []);
  const row = ([field, inner]) => el("li", {}, el("code", {}, field), required.has(field) && el("span", { class: "mark-known" }, "required"), " ",
    inner.description && el("span", { class: "muted" }, `${inner.description} `), outline(inner, description, depth + 1));
  return el("div", { class: "outline" }, name && named && el("span", { class: "type" }, name), el("ul", { class: "fields" }, ...fields.map(row)));
}

function resolve(schema, description) {
  if (!schema.$ref) return { name: null, resolved: schema };
  const name = schema.$ref.split("/").at(-1);
  return { name, resolved: description.components.schemas[name] };
}

// The object inside a list, or the one kind of several that has fields.
function innerObject(schema, description) {
  const several = schema.items ? [schema.items] : (schema.anyOf ?? schema.oneOf ?? []);
  return several.find((one) => {
    const { resolved } = resolve(one, description);
    return resolved.properties || (resolved.items && innerObject(resolved, description));
  });
}

function typeName(schema, description) {
  const { name, resolved } = resolve(schema, description);
  if (resolved.enum) return resolved.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (resolved.const !== undefined) return JSON.stringify(resolved.const);
  if (name) return name;
  if (resolved.type === "array") return `list of ${typeName(resolved.items ?? {}, description)}`;
  const several = resolved.anyOf ?? resolved.oneOf;
  return several ? several.map((one) => typeName(one, description)).join(" | ") : (resolved.type ?? "anything");
}

function limits(schema) {
  const said = [["minimum", "at least"], ["maximum", "at most"], ["maxLength", "characters at most"], ["maxItems", "entries at most"]]
    .filter(([name]) => schema[name] !== undefined).map(([name, words]) => `${words} ${schema[name]}`);
  if (schema.default !== undefined && schema.default !== null) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.length ? ` (${said.join(", ")})` : "";
}
