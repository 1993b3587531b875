// What goes on now: keys, tasks, sessions and the store.

import { post, read } from "./api.js";
import { badge, byId, count, dollars, duration, fact, fill, make, many, say, table } from "./dom.js";
import * as tokens from "./tokens.js";
import * as usage from "./usage.js";

/** So many people are named of those with a session. */
const MOST_NAMES = 6;

const KEY_TONES = { ready: "good", half_open: "fair", cooling_down: "fair", failing: "bad" };
const KEY_WORDS = { half_open: "half open", cooling_down: "cooling down" };

let state = null;
let attempt = async () => {};

/** Takes the function that does what may fail and shows why it did. */
export function start(attempting) {
  attempt = attempting;
}

export async function load() {
  const [told, keys] = await Promise.all([read("/admin/state"), read("/admin/keys")]);
  state = told;
  showTiles();
  fill(byId("facts"), ...facts());
  fill(byId("keys"), keyTable(keys.keys));
}

export function clear() {
  state = null;
  for (const id of ["tiles", "facts", "keys"]) fill(byId(id));
}

/** The figures at the top, of everything that is known so far. */
export function showTiles() {
  if (!state) return;
  const today = usage.today();
  const period = usage.period();
  const { keys, sessions, tasks } = state;
  const tiles = [
    tile("Cost today", dollars(today?.dollars), `${dollars(period.dollars)} in ${period.days} days`),
    tile("Requests today", count(today?.requests), `${count(period.requests)} in ${period.days} days`),
    tile("Sessions", count(sessions.open), "open on this server"),
    tile("Tasks", count(tasks.working), "at work"),
    tile("Exa keys ready", `${count(keys.ready)} of ${count(keys.total)}`, troubles(keys), tone(keys)),
    tile("Tokens", count(tokens.active()), "active"),
  ];
  fill(byId("tiles"), ...tiles);
}

function tile(name, value, more, kind = "") {
  const said = make("dd", { class: kind }, value, make("span", { class: "quiet" }, more));
  return make("div", { class: "card tile" }, make("dt", {}, name), said);
}

function troubles({ cooling_down: cooling, half_open: halfOpen, failing }) {
  const said = [];
  if (cooling > 0) said.push(`${count(cooling)} cooling down`);
  if (halfOpen > 0) said.push(`${count(halfOpen)} half open`);
  if (failing > 0) said.push(`${count(failing)} failing`);
  return said.join(", ") || "none failing";
}

const tone = (keys) => (keys.failing > 0 || (keys.total > 0 && keys.ready === 0) ? "bad" : "");

function facts() {
  const { sessions, tasks, store, uptimeSeconds, version } = state;
  const { status, place, problem } = store;
  const well = badge(status === "ok" ? "ok" : "unavailable", status === "ok" ? "good" : "bad");
  const where = problem ?? `${place}${store.shared ? ", shared with other servers" : ""}`;
  const { working, ...over } = tasks;
  const inStates = Object.entries({ working, ...over }).map(([name, number]) => `${count(number)} ${name}`);
  return [
    fact("Sessions", many(sessions.open, "open session", "open sessions"), people(sessions.byUser)),
    fact("Tasks", inStates.join(", ")),
    fact("Store", well, make("span", { class: "quiet after" }, where)),
    fact("Running for", duration(uptimeSeconds)),
    fact("Version", version),
  ];
}

function people(byUser) {
  const ordered = Object.entries(byUser).sort(([, one], [, other]) => other - one);
  if (ordered.length === 0) return null;
  const named = ordered.slice(0, MOST_NAMES).map(([user, number]) => `${user} (${count(number)})`);
  const others = ordered.length - named.length;
  if (others > 0) named.push(`and ${many(others, "other", "others")}`);
  return make("span", { class: "quiet after" }, named.join(", "));
}

function keyTable(keys) {
  const columns = [
    { title: "Key", cell: (key) => make("code", {}, key.prefix) },
    { title: "State", cell: (key) => badge(KEY_WORDS[key.state] ?? key.state, KEY_TONES[key.state] ?? "dim") },
    { title: "Calls", number: true, cell: (key) => count(key.calls) },
    { title: "In flight", number: true, cell: (key) => count(key.inFlight) },
    { title: "Ready in", number: true, cell: (key) => (key.readyInSeconds ? duration(key.readyInSeconds) : "–") },
    { title: "Failures in a row", number: true, cell: (key) => count(key.failures) },
    { title: "Last problem", cell: (key) => key.lastProblem ?? "–" },
    { title: "Actions", cell: (key) => resetButton(key) },
  ];
  return table(columns, keys, { empty: "This server has no Exa key of its own." });
}

/** A key that is ready has nothing to be forgiven. */
function resetButton(key) {
  if (key.state === "ready") return "–";
  const reset = () =>
    attempt(async () => {
      await post(`/admin/keys/${encodeURIComponent(key.id)}/reset`);
      say("The key is used again.");
      await load();
    });
  const options = { type: "button", class: "plain small", "data-focus": `Reset ${key.id}`, click: reset };
  return make("button", { ...options, "aria-label": `Reset the key ${key.prefix}` }, "Reset");
}
