// The page: reads the question from the form and the address, asks the service, hands the answers to the panels.
import { Answers, contradicts } from "./answers.js";
import { about } from "./about.js";
import { get, post, reference } from "./api.js";
import { Collection, download, tsv } from "./collection.js";
import { called, Combobox } from "./combobox.js";
import { byId, el, readable } from "./dom.js";
import { Panel } from "./evidence.js";
import { Facts } from "./facts.js";
import { openPage, say as status } from "./shell.js";

const ALL = ""; // the value of "all relations"
const MOST = 50; // suggestions
const TITLE = document.title;
const sheet = matchMedia("(max-width: 940px)"); // the evidence lies over the answers, as panels.css has it
const form = byId("question");
const state = { relations: [], graph: "", fresh: false, pending: null };

const search = async (q, signal) => (await get("entities", { q, limit: MOST }, signal)).entities;
const combobox = new Combobox(byId("entity"), byId("entity-text"), byId("options"), search, () => ask());
const across = new Combobox(byId("other"), byId("other-text"), byId("other-options"), search, () => ask());
const facts = new Facts(byId("facts"), byId("fact-relation"), byId("fact-other"), byId("fact-options"), search, () => ask(false));
const answers = new Answers(byId("answers"), {
  open: (row) => (panel.show(row, () => close(true)), cover()),
  accept: (row) => collection?.toggle(flat(row)),
  accepted: (row) => collection?.has(row.triple) ?? false,
});
const panel = new Panel(byId("detail"), (node) => go(node));
let collection = null;

const asked = () => new FormData(form).get("asked");
const flat = ({ triple, answer: { score, probability, known } }) => ({ ...triple, score, probability, known });

// What lies under the evidence takes no focus.
function cover() {
  const under = sheet.matches && !byId("detail").hidden;
  for (const part of document.querySelectorAll(".skip, .top, .ask, .column, .foot")) part.inert = under;
}

function close(refocus) {
  const at = answers.open;
  panel.close();
  answers.mark(-1);
  cover();
  if (refocus) document.querySelectorAll(".answer")[at]?.focus();
}

// What is given: an entity of the graph, or new words; null while there is neither.
async function subject(signal) {
  if (state.fresh) {
    const name = byId("new-name").value.trim(), description = byId("new-description").value.trim();
    if (!name) return null;
    await facts.settle((text) => find(facts.combobox, text, "pick one of the suggestions or remove it", signal));
    return { name, description, facts: facts.references, neighbours: facts.neighbours };
  }
  return picked(combobox, "pick one of the suggestions or describe it as new", signal);
}

// The entity of a field, looked up by name if no suggestion was picked; null while it is empty.
async function picked(field, remedy, signal) {
  const text = field.input.value.trim();
  if (!field.picked && text) field.set(await find(field, text, remedy, signal));
  return field.picked;
}

async function find(field, text, remedy, signal) {
  const same = called(text, await search(text, signal));
  if (!same.length) throw new Error(`nothing in the graph is called “${text}”; ${remedy}`);
  if (same.length === 1) return same[0];
  const why = `${same.length === MOST ? `${MOST} or more` : same.length} are called “${text}”: pick one`;
  field.offer(same, why);
  throw new Error(why);
}

async function ask(scroll = true) {
  state.pending?.abort();
  const pending = (state.pending = new AbortController());
  close();
  try {
    const entity = await subject(pending.signal);
    if (!entity) return empty(state.fresh ? "Give the new entity a name." : "Type an entity to begin.");
    const other = asked() === "relation" ? await picked(across, "pick one of the suggestions", pending.signal) : null;
    if (asked() === "relation" && !other) return empty("Type the tail as well.");
    remember(entity, other);
    status(`Asking about ${readable(entity.name)}`, "waiting");
    meaning([]);
    answers.wait();
    byId("examples").hidden = byId("about").hidden = true;
    const rows = await (other ? relationsBetween(entity, other, pending.signal) : complete(entity, pending.signal));
    answers.show(rows, !other && byId("relation").value === ALL);
    status(summary(rows, entity, other));
    meaning(rows);
    if (scroll && innerWidth <= 720) byId("status").scrollIntoView({ block: "start" });
  } catch (error) {
    if (pending.signal.aborted) return; // another question came meanwhile
    empty(error.message, "error");
  }
}

// No answers, and why.
function empty(text, kind) {
  answers.clear();
  meaning([]);
  document.title = TITLE;
  status(text, kind);
}

// What the numbers beside the answers are.
function meaning(rows) {
  const chance = asked() === "relation" ? "a relation connects the two" : `an answer is the missing ${asked()}, if one is missing`;
  byId("meaning").textContent = !rows.length ? "" : rows[0].answer.probability == null
    ? "The number is the model’s score: higher is better. This run has no probabilities."
    : `A percentage says how likely ${chance}.`;
  byId("download-answers").hidden = !rows.length;
}

async function relationsBetween(head, tail, signal) {
  const question = { head: reference(head), tail: reference(tail), k: 15, drop_known: byId("hide-known").checked };
  const found = (await post("complete", question, signal)).answers;
  return found.map((answer) => ({ answer, asked: "relation", triple: { head, relation: { id: answer.id, name: answer.name }, tail } }));
}

// One question, or one for each suggested relation, whose answers are then ranked together.
async function complete(entity, signal) {
  const direction = asked(), given = direction === "tail" ? "head" : "tail";
  const chosen = byId("relation").value;
  const about = reference(entity);
  const relations = chosen === ALL ? await suggestRelations(about, direction, signal) : state.relations.filter((r) => r.id === chosen);
  const k = chosen === ALL ? 5 : 15;
  const filters = { drop_known: byId("hide-known").checked, ...(byId("type").value ? { type: byId("type").value } : {}) };
  const questions = relations.map((r) => ({ [given]: about, relation: r.id, k, ...filters }));
  const { results } = questions.length ? await post("batch", { questions }, signal) : { results: [] };
  const rows = results.flatMap((result, i) => {
    if (result.error) throw new Error(result.error);
    return result.answers.map((answer) => {
      const other = { id: answer.id, name: answer.name, description: answer.description };
      return { answer, asked: direction, triple: { [given]: entity, relation: relations[i], [direction]: other } };
    });
  });
  const worth = ({ answer }) => answer.probability ?? answer.score;
  const against = ({ answer }) => contradicts(answer); // they come last, as in the answers to one question
  return rows.sort((a, b) => against(a) - against(b) || worth(b) - worth(a) || b.answer.score - a.answer.score).slice(0, chosen === ALL ? 25 : 15);
}

// Those that at least one in twenty of the most similar entities has.
async function suggestRelations(entity, direction, signal) {
  const { relations } = await post("suggest-relations", { entity, asked: direction }, signal);
  return relations.filter((r) => r.share >= 0.05).slice(0, 64);
}

function summary(rows, entity, other) {
  const bold = (end) => (end ? el("b", {}, readable(end.name)) : el("b", { class: "hole" }, "?"));
  const chosen = other ? el("i", { class: "hole" }, "?") : el("i", {}, byId("relation").selectedOptions[0]?.textContent);
  const [first, last] = asked() === "head" ? [other, entity] : [entity, other];
  document.title = `${[bold(first), chosen, bold(last)].map((part) => part.textContent).join(" – ")} · satkgc`;
  if (!rows.length) return "No answer is left with these settings.";
  const known = rows.filter((row) => row.answer.known).length;
  const share = known ? `, ${known} of them known` : "";
  return [el("span", { class: "statement" }, bold(first), chosen, bold(last)), ` · ${rows.length} answers${share}`];
}

// The question stands in the address, so that it can be shared and the back button works.
function remember(entity, other) {
  const parts = { asked: asked(), relation: byId("relation").value };
  if (byId("hide-known").checked) parts.only = "new";
  if (byId("type").value && !other) parts.type = byId("type").value;
  if (other) parts.other = other.id;
  if (entity.id) parts.id = entity.id;
  else Object.assign(parts, { name: entity.name, description: entity.description, facts: JSON.stringify(entity.facts) });
  const hash = `#${new URLSearchParams(parts)}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
}

const entityOf = (id) => get("entity", { id, limit: 1 });

async function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!location.hash) return begin();
  if (!parts.has("id") && !parts.has("name")) return; // a place on the page
  form.elements.asked.value = ["head", "relation"].includes(parts.get("asked")) ? parts.get("asked") : "tail";
  const relation = parts.get("relation") ?? ALL, there = relation === ALL || state.relations.some((r) => r.id === relation);
  if (there) byId("relation").value = relation;
  byId("hide-known").checked = parts.get("only") === "new";
  const type = parts.get("type") ?? "";
  if (type && ![...byId("type").options].some((o) => o.value === type)) byId("type").append(el("option", { value: type }, type));
  byId("type").value = type;
  turn();
  describeRelation();
  describe(parts.has("name"));
  byId("new-name").value = parts.get("name") ?? "";
  byId("new-description").value = parts.get("description") ?? "";
  facts.clear();
  close();
  empty("");
  try {
    if (!there) throw new Error(`the graph has no relation “${relation}”`);
    await facts.recall(parts.get("facts") ?? "[]", entityOf);
    if (parts.has("id")) combobox.set(await entityOf(parts.get("id")));
    if (parts.has("other")) across.set(await entityOf(parts.get("other")));
    await ask();
  } catch (error) {
    empty(error.message, "error");
  }
}

// As the page is at first.
function begin() {
  state.pending?.abort();
  for (const field of [combobox, across, facts]) field.clear();
  byId("new-name").value = byId("new-description").value = "";
  describe(false);
  byId("examples").hidden = byId("examples").childElementCount === 0;
  byId("about").hidden = byId("about").childElementCount === 0;
  close();
  empty("Type an entity to begin.");
}

async function go(node) {
  describe(false);
  combobox.set(await entityOf(node.id));
  window.scrollTo({ top: 0 });
  byId("answers").focus({ preventScroll: true }); // what had it goes away
  await ask();
}

// Put the three slots in the order of the statement, with a hole where the answer goes.
function turn() {
  const hole = asked(), slots = ["slot-entity", "slot-relation", "slot-other"];
  byId("triple").append(...(hole === "head" ? slots.reverse() : slots).map(byId));
  byId("triple").dataset.asked = hole;
  byId("slot-relation").classList.toggle("asked", hole === "relation");
  byId("typed").hidden = hole === "relation" || byId("type").options.length < 2;
  byId("slot-other").classList.toggle("asked", hole !== "relation");
  byId("entity-label").textContent = hole === "head" ? "Tail" : "Head";
  byId("other-label").textContent = hole === "head" ? "Head" : "Tail";
}

function describe(fresh) {
  state.fresh = fresh;
  byId("from-graph").hidden = fresh;
  byId("in-words").hidden = !fresh;
  byId("mode").textContent = fresh ? "choose one from the graph" : "describe a new one";
  byId("mode").setAttribute("aria-pressed", String(fresh));
  byId("entity-label").htmlFor = fresh ? "new-name" : "entity";
}

function describeRelation() {
  const chosen = state.relations.find((r) => r.id === byId("relation").value);
  byId("relation-text").textContent = chosen ? `${chosen.triples.toLocaleString("en")} statements` : "those that similar entities have";
}

function wire() {
  form.addEventListener("submit", (event) => (event.preventDefault(), ask()));
  for (const radio of form.elements.asked) radio.addEventListener("change", () => (turn(), ask()));
  for (const id of ["relation", "hide-known", "type"]) byId(id).addEventListener("change", () => (describeRelation(), ask()));
  byId("mode").addEventListener("click", () => {
    describe(!state.fresh);
    byId(state.fresh ? "new-name" : "entity").focus();
  });
  byId("new-description").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) (event.preventDefault(), ask());
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.key === "/" && !typing) (event.preventDefault(), byId(state.fresh ? "new-name" : "entity").focus());
    const field = [combobox, across].find((one) => one.input === event.target);
    if (event.key === "ArrowDown" && field?.picked) {
      event.preventDefault();
      document.querySelector(".answer")?.focus();
    }
    if (event.key === "Escape" && !typing && !byId("detail").hidden) close(true);
    if (!typing && !event.defaultPrevented) answers.key(event);
  });
  document.querySelector(".skip").addEventListener("click", (event) => (event.preventDefault(), byId("answers").focus()));
  byId("download-answers").addEventListener("click", () => download(state.graph, "answers", "tsv", tsv(answers.rows.map(flat))));
  sheet.addEventListener("change", cover);
  window.addEventListener("popstate", recall);
}

async function start() {
  turn();
  const info = await openPage();
  const [{ relations }, { types }] = await Promise.all([get("relations"), get("types")]);
  Object.assign(state, { relations, graph: info.graph });
  byId("links").hidden = sessionStorage.getItem("satkgc.token") !== null; // a link cannot send it
  about(byId("about"), info, relations);
  byId("type").replaceChildren(el("option", { value: "" }, "any"),
    ...types.map((t) => el("option", { value: t.id }, `${readable(t.name)} (${t.entities.toLocaleString("en")})`)));
  turn();
  byId("relation").replaceChildren(el("option", { value: ALL }, "all relations"),
    ...relations.map((r) => el("option", { value: r.id }, readable(r.name))));
  byId("relation").value = relations[0]?.id ?? ALL;
  facts.offer(relations);
  byId("known").hidden = !info.reads_facts;
  describeRelation();
  collection = new Collection(info.graph, () => answers.refresh());
  byId("examples").replaceChildren("Try ", ...info.examples.map((e) =>
    el("button", { class: "chip", type: "button", title: e.description, onclick: () => go(e) }, readable(e.name))));
  wire();
  begin();
  await recall();
  if (!location.hash) byId("entity").focus();
}

start().catch((error) => status(error.message, "error"));
