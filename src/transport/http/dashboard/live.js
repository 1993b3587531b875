// What goes on now: keys, tasks, sessions and the store.

import { read } from "./api.js";
import { badge, byId, count, dollars, duration, fact, fill, make, many, table } from "./dom.js";
import * as tokens from "./tokens.js";
import * as usage from "./usage.js";

/** So many people are named of those with a session. */
const MOST_NAMES = 6;

const KEY_TONES = { ready: "good", resting: "fair", refused: "bad" };

let state = null;

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

function troubles({ resting, refused }) {
  const said = [];
  if (resting > 0) said.push(`${count(resting)} resting`);
  if (refused > 0) said.push(`${count(refused)} refused`);
  return said.join(", ") || "none resting";
}

const tone = (keys) => (keys.total > 0 && keys.ready === 0 ? "bad" : "");

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
    { title: "State", cell: (key) => badge(key.state, KEY_TONES[key.state] ?? "dim") },
    { title: "Calls", number: true, cell: (key) => count(key.calls) },
    { title: "In flight", number: true, cell: (key) => count(key.inFlight) },
    { title: "Ready in", number: true, cell: (key) => (key.readyInSeconds ? duration(key.readyInSeconds) : "–") },
    { title: "Last problem", cell: (key) => key.lastProblem ?? "–" },
  ];
  return table(columns, keys, { empty: "This server has no Exa key of its own." });
}
