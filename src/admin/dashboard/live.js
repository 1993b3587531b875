// The live state: keys, tasks, sessions and the store.

import { post, read } from "./api.js";
import { badge, byId, count, dollars, duration, detail, fill, make, plural, announce, table } from "./dom.js";
import * as tokens from "./tokens.js";
import * as usage from "./usage.js";

/** The maximum number of users listed by name. */
const MAX_NAMES = 6;

const KEY_TONES = { ready: "good", half_open: "warning", cooling_down: "warning", failing: "bad" };
const KEY_LABELS = { half_open: "half open", cooling_down: "cooling down" };

let state = null;
let attempt = async () => {};

/** Sets the function that runs actions and shows their errors. */
export function start(runAttempt) {
  attempt = runAttempt;
}

export async function load() {
  const [data, keys] = await Promise.all([read("/admin/state"), read("/admin/keys")]);
  state = data;
  showTiles();
  fill(byId("details"), ...details());
  fill(byId("keys"), keyTable(keys.keys));
}

export function clear() {
  state = null;
  for (const id of ["tiles", "details", "keys"]) fill(byId(id));
}

/** Shows the tiles at the top. */
export function showTiles() {
  if (!state) return;
  const today = usage.today();
  const period = usage.period();
  const { keys, sessions, tasks } = state;
  const tiles = [
    tile("Cost today", dollars(today?.dollars), `${dollars(period.dollars)} in ${period.days} days`),
    tile("Requests today", count(today?.requests), `${count(period.requests)} in ${period.days} days`),
    tile("Sessions", count(sessions.open), "open on this server"),
    tile("Tasks", count(tasks.working), "running"),
    tile("Exa keys ready", `${count(keys.ready)} of ${count(keys.total)}`, keyProblems(keys), tone(keys)),
    tile("Tokens", count(tokens.active()), "active"),
  ];
  fill(byId("tiles"), ...tiles);
}

function tile(name, value, detailText, kind = "") {
  const parts = make("dd", { class: kind }, value, make("span", { class: "muted" }, detailText));
  return make("div", { class: "card tile" }, make("dt", {}, name), parts);
}

function keyProblems({ cooling_down: cooling, half_open: halfOpen, failing }) {
  const parts = [];
  if (cooling > 0) parts.push(`${count(cooling)} cooling down`);
  if (halfOpen > 0) parts.push(`${count(halfOpen)} half open`);
  if (failing > 0) parts.push(`${count(failing)} failing`);
  return parts.join(", ") || "none failing";
}

const tone = (keys) => (keys.failing > 0 || (keys.total > 0 && keys.ready === 0) ? "bad" : "");

function details() {
  const { sessions, tasks, store, uptimeSeconds, version } = state;
  const { status, location, problem } = store;
  const statusBadge = badge(status === "ok" ? "ok" : "unavailable", status === "ok" ? "good" : "bad");
  const where = problem ?? `${location}${store.shared ? ", shared with other servers" : ""}`;
  const { working, ...finished } = tasks;
  const counts = Object.entries({ working, ...finished }).map(([name, number]) => `${count(number)} ${name}`);
  return [
    detail("Sessions", plural(sessions.open, "open session", "open sessions"), userList(sessions.byUser)),
    detail("Tasks", counts.join(", ")),
    detail("Store", statusBadge, make("span", { class: "muted after" }, where)),
    detail("Uptime", duration(uptimeSeconds)),
    detail("Version", version),
  ];
}

function userList(byUser) {
  const ordered = Object.entries(byUser).sort(([, one], [, other]) => other - one);
  if (ordered.length === 0) return null;
  const named = ordered.slice(0, MAX_NAMES).map(([user, number]) => `${user} (${count(number)})`);
  const others = ordered.length - named.length;
  if (others > 0) named.push(`and ${plural(others, "other", "others")}`);
  return make("span", { class: "muted after" }, named.join(", "));
}

function keyTable(keys) {
  const columns = [
    { title: "Key", cell: (key) => make("code", {}, key.prefix) },
    { title: "State", cell: (key) => badge(KEY_LABELS[key.state] ?? key.state, KEY_TONES[key.state] ?? "neutral") },
    { title: "Calls", number: true, cell: (key) => count(key.calls) },
    { title: "In flight", number: true, cell: (key) => count(key.inFlight) },
    { title: "Ready in", number: true, cell: (key) => (key.readyInSeconds ? duration(key.readyInSeconds) : "–") },
    { title: "Consecutive failures", number: true, cell: (key) => count(key.failures) },
    { title: "Last problem", cell: (key) => key.lastProblem ?? "–" },
    { title: "Actions", cell: (key) => resetButton(key) },
  ];
  return table(columns, keys, { empty: "This server has no Exa API key." });
}

/** A key that is ready needs no reset. */
function resetButton(key) {
  if (key.state === "ready") return "–";
  const reset = () =>
    attempt(async () => {
      await post(`/admin/keys/${encodeURIComponent(key.id)}/reset`);
      announce("Key reset.");
      await load();
    });
  const options = { type: "button", class: "plain small", "data-focus": `Reset ${key.id}`, click: reset };
  return make("button", { ...options, "aria-label": `Reset the key ${key.prefix}` }, "Reset");
}
