// Elements without markup strings: whatever the graph holds reaches the page as text and can never run.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export const byId = (id) => document.getElementById(id);

export const readable = (name) => name.replaceAll("_", " ").trim();

// One decimal where it matters, at both ends; never 0 % or 100 %, which nobody knows.
export function percent(p) {
  if (p < 0.001) return "<0.1 %";
  if (p >= 0.9995) return ">99.9 %";
  return `${(100 * p).toFixed(p < 0.0995 || p >= 0.995 ? 1 : 0)} %`;
}

export function shorten(text, length) {
  return text.length <= length ? text : text.slice(0, length - 1).trimEnd() + "…";
}
