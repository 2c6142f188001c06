// The service, as functions that give JSON or throw an Error with its one line.
import { el } from "./dom.js";

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function call(path, options = {}) {
  const token = sessionStorage.getItem("satkgc.token");
  let headers, response;
  try {
    headers = new Headers({ ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) });
  } catch { // no header can hold such a token
    await askForToken(token);
    return call(path, options);
  }
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("the service does not answer; is it still running?", 0);
  }
  if (response.status === 401) {
    // Or another call has got one meanwhile.
    if (sessionStorage.getItem("satkgc.token") === token) await askForToken(token);
    return call(path, options);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ServiceError(body.error ?? `the service answered ${response.status}`, response.status);
  return body;
}

const note = el("p", { class: "token-note", id: "token-note", role: "alert" });
const field = el("input", { class: "field", id: "token", type: "password", "aria-labelledby": "token-title", autocomplete: "off", maxlength: 500 });
const dialog = el("dialog", { class: "sheet", id: "token-dialog", "aria-labelledby": "token-title" },
  el("form", { method: "dialog" }, el("h2", { id: "token-title" }, "This service needs a token"),
    el("p", { class: "muted" }, "It is kept until this tab is closed."), note, field,
    el("div", { class: "sheet-actions" }, el("button", { class: "primary", type: "submit" }, "Continue"))));

// `refused` is the token that was tried, if any.
function askForToken(refused) {
  if (!dialog.isConnected) document.body.append(dialog);
  if (!dialog.open) field.value = note.textContent = "";
  if (refused) note.textContent = "That token was not accepted.";
  sessionStorage.removeItem("satkgc.token");
  dialog.addEventListener("cancel", (event) => event.preventDefault(), { once: true });
  return new Promise((resolve) => {
    const close = () => {
      sessionStorage.setItem("satkgc.token", field.value.trim());
      resolve();
    };
    dialog.addEventListener("close", close, { once: true });
    if (!dialog.open) dialog.showModal();
  });
}

export const get = (path, parameters = {}, signal = undefined) =>
  call(`api/v1/${path}?${new URLSearchParams(parameters)}`, { signal });

export const post = (path, body, signal = undefined) =>
  call(`api/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });

// An entity as the service takes it: its id, or the description of a new one.
export const reference = ({ id, name, description = "", facts = [] }) => id ?? { name, description, facts };

// Wait for the model: the port is open before it is loaded, and /health says so.
export async function untilReady(onWait) {
  for (;;) {
    const health = await fetch("health").then((response) => response.json()).catch(() => ({ status: "unreachable" }));
    if (health.status === "ready") return;
    onWait(health);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
