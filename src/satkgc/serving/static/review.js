// The review: proposals one after the other, decided by key or button. A decision counts when the service has kept it.
import { get, post, untilReady } from "./api.js";
import { download, statement, tsv } from "./collection.js";
import { byId, el, percent, readable } from "./dom.js";
import { linked, Panel } from "./evidence.js";
import { entityPage, openPage, say, typing } from "./shell.js";

const LOADED = 60; // rows in the list; more come when few are left
const FEW = 10;
const VERDICTS = { accept: "Accept", reject: "Reject", skip: "Skip" };
const KEYS = { a: "accept", r: "reject", s: "skip" };
const DONE = { accept: "accepted", reject: "rejected", skip: "skipped" };
const state = { graph: "", rows: [], at: 0, total: 0, decisions: 0, saving: null };
const panel = new Panel(byId("detail"), (node) => location.assign(entityPage(node.id)));

const ids = ({ head, relation, tail }) => ({ head, relation, tail });
const same = (a, b) => a && b && JSON.stringify(ids(a)) === JSON.stringify(ids(b));
const triple = (row) => ({
  head: { id: row.head, name: row.head_name, description: row.head_description }, relation: { id: row.relation, name: row.relation_name },
  tail: { id: row.tail, name: row.tail_name, description: row.tail_description } });
const shown = () => document.querySelector("[name=verdict]:checked").value;
const value = (row) => (row.probability == null ? row.score.toFixed(3) : percent(row.probability));

// What this tab decided and may take back, kept until it is closed.
const history = {
  get store() { return `satkgc.decided.${state.graph}`; },
  read() { return JSON.parse(sessionStorage.getItem(this.store) ?? "[]"); },
  write(rows) { sessionStorage.setItem(this.store, JSON.stringify(rows.slice(-500))); },
};

async function load(keep = state.rows[state.at]) {
  const relation = byId("relation").value, { decisions } = state;
  const page = await get("proposals", { verdict: shown(), limit: LOADED, ...(relation ? { relation } : {}) });
  await state.saving;
  if (decisions !== state.decisions) return load(keep); // decided while it was under way: it may be of before
  Object.assign(state, { rows: page.proposals, total: page.total });
  state.at = Math.max(0, state.rows.findIndex((row) => same(row, keep)));
  progress(page.progress);
  offer(page.relations, relation);
  show();
}

function offer(relations, chosen) {
  const open = relations.reduce((sum, r) => sum + r.open, 0);
  const option = (id, name, left) => el("option", { value: id }, `${name} (${left.toLocaleString("en")} left)`);
  byId("relation").replaceChildren(option("", "all relations", open), ...relations.map((r) => option(r.id, readable(r.name), r.open)));
  byId("relation").value = chosen;
}

function progress({ open, ...decided }) {
  const done = decided.accept + decided.reject + decided.skip, all = done + open;
  byId("progress").setAttribute("aria-valuemax", all);
  byId("progress").setAttribute("aria-valuenow", done);
  byId("progress").replaceChildren(...Object.keys(DONE).map((verdict) =>
    el("span", { class: `done-${verdict}`, "--size": `${(100 * decided[verdict]) / all}%` })));
  byId("progress-text").textContent = `${done.toLocaleString("en")} of ${all.toLocaleString("en")} decided: ` +
    Object.entries(DONE).map(([verdict, word]) => `${decided[verdict].toLocaleString("en")} ${word}`).join(", ");
}

function show() {
  const row = state.rows[state.at];
  byId("queue").replaceChildren(...state.rows.map((one, i) =>
    el("li", { class: i === state.at ? "current" : "" },
      el("button", { type: "button", "aria-current": i === state.at ? "true" : undefined, onclick: () => look(i) },
        statement(triple(one)), el("span", { class: "number muted" }, value(one))))));
  byId("queue").children[state.at]?.scrollIntoView({ block: "nearest" });
  if (row) panel.fill({ triple: triple(row), answer: { known: false, score: row.score, probability: row.probability }, asked: "tail" }, head(row));
  else panel.close();
  if (!row) say(shown() === "open" ? "All of these are decided." : "There are none.");
}

function head(row) {
  const { head, tail } = triple(row);
  const text = (end) => end.description && el("p", {}, el("b", {}, readable(end.name)), ` ${end.description}`);
  const button = ([verdict, word]) =>
    el("button", { class: `decide decide-${verdict}`, type: "button", "aria-pressed": String(row.verdict === verdict), onclick: () => decide(verdict) },
      word, el("kbd", {}, word[0].toLowerCase()));
  return el("header", { class: "proposal" },
    el("h2", {}, linked(triple(row))),
    el("p", { class: "muted" }, row.probability == null ? `score ${value(row)}` : `${value(row)} as the missing tail or head`,
      row.verdict !== "open" && `; ${DONE[row.verdict]}`),
    el("div", { class: "proposal-texts" }, text(head), text(tail)),
    el("div", { class: "decisions" }, ...Object.entries(VERDICTS).map(button),
      el("button", { class: "decide", type: "button", disabled: history.read().length === 0, onclick: undo }, "Undo", el("kbd", {}, "u"))));
}

function look(at) {
  state.at = Math.min(Math.max(at, 0), state.rows.length - 1);
  show();
}

// One at a time: the next is looked at when this one is kept.
async function decide(verdict, row = state.rows[state.at]) {
  if (!row || state.saving || row.verdict === verdict) return;
  if (!(await save(row, verdict))) return;
  history.write([...history.read(), row]);
  say([`${DONE[verdict][0].toUpperCase()}${DONE[verdict].slice(1)}: `, statement(triple(row))]);
  state.rows = state.rows.filter((one) => !same(one, row));
  state.at = Math.min(state.at, Math.max(0, state.rows.length - 1));
  if (state.rows.length < Math.min(FEW, state.total)) await reload();
  else show();
}

async function undo() {
  const rows = history.read(), row = rows.at(-1);
  if (!row || state.saving || !(await save(row, row.verdict))) return;
  history.write(rows.slice(0, -1));
  say(["Taken back: ", statement(triple(row))]);
  state.rows = state.rows.filter((one) => !same(one, row));
  if (row.verdict === shown()) state.rows.splice(state.at, 0, row);
  show();
}

function save(row, verdict) {
  state.decisions += 1;
  state.saving = send(row, verdict).finally(() => { state.saving = null; });
  return state.saving;
}

// Whether the service has it. If it cannot be reached, nothing has changed here, and the page says when it is back.
async function send(row, verdict) {
  try {
    const answer = await post("decisions", { ...ids(row), verdict });
    progress(answer.progress);
    offer(answer.relations, byId("relation").value);
    return true;
  } catch (error) {
    say(`Not kept: ${error.message}`, "error");
    if ([0, 503].includes(error.status)) untilReady(() => {}).then(() => say("The service is back: decide again."));
    return false;
  }
}

const reload = (keep) => load(keep).catch((error) => say(error.message, "error"));

async function downloadAccepted() {
  const rows = [];
  for (let total = 1; rows.length < total; ) {
    const page = await get("proposals", { verdict: "accept", limit: 200, offset: rows.length });
    total = page.proposals.length ? page.total : 0;
    rows.push(...page.proposals);
  }
  const accepted = rows.map((row) => ({ ...triple(row), score: row.score, probability: row.probability, accept: true }));
  download(state.graph, "accepted", "tsv", tsv(accepted));
}

function wire() {
  byId("relation").addEventListener("change", () => (byId("relation").blur(), reload(null)));
  for (const radio of document.querySelectorAll("[name=verdict]")) radio.addEventListener("change", () => (say(""), reload(null)));
  byId("download").addEventListener("click", () => downloadAccepted().catch((error) => say(error.message, "error")));
  window.addEventListener("focus", () => state.saving || reload()); // another tab may have decided meanwhile
  document.addEventListener("keydown", (event) => {
    if (typing(event) || event.repeat) return;
    if (event.key in KEYS) decide(KEYS[event.key]);
    else if (event.key === "u") undo();
    else if (event.key === "ArrowDown" && event.target.type !== "radio") look(state.at + 1);
    else if (event.key === "ArrowUp" && event.target.type !== "radio") look(state.at - 1);
    else return;
    event.preventDefault();
  });
}

async function start() {
  const info = await openPage();
  if (!info.review) return say("There is nothing to review: start the service with --proposals FILE, a table of satkgc propose.");
  state.graph = info.graph;
  byId("relation").replaceChildren(el("option", { value: "" }, "all relations"));
  say("");
  wire();
  await load(null);
}

start().catch((error) => say(error.message, "error"));
