// The table of tokens with usage, limits and actions.

import { read } from "./api.js";
import * as dialogs from "./dialogs.js";
import { badge, byId, count, dollars, fill, make, plural, timestamp, table, withDetail } from "./dom.js";

/** The number of tokens per page. */
const PAGE_SIZE = 50;
/** The delay between typing and searching, in milliseconds. */
const SEARCH_DELAY = 200;

/** The last response. */
let data = null;
/** The cursors of the pages up to the current one. */
let cursors = [null];
let rendered = "";
let searchTimer = null;

/** Reloads the current page. */
export async function load() {
  await readPage(cursors);
}

export function clear() {
  data = null;
  cursors = [null];
  rendered = "";
  clearTimeout(searchTimer);
  byId("tokens-filter").value = "";
  byId("tokens-count").textContent = "";
  fill(byId("tokens-table"));
  fill(byId("tokens-pages"));
}

export const active = () => data?.stats.activeTokens ?? 0;

/** Shows the user of a token, which may have none. */
export function user({ userId, role }) {
  if (userId !== null) return make("span", { class: "user" }, userId);
  return make("span", { class: "muted" }, role === "admin" ? "admin" : "anonymous");
}

export function start(refresh, attempt) {
  dialogs.start(refresh);
  const reload = () => attempt(() => readPage([null]));
  byId("tokens-filter").addEventListener("input", () => {
    clearTimeout(searchTimer);
    searchTimer = setTimeout(reload, SEARCH_DELAY);
  });
  byId("tokens-inactive").addEventListener("change", reload);
  byId("tokens-pages").addEventListener("click", ({ target }) => {
    const pages = { Previous: cursors.slice(0, -1), Next: [...cursors, data?.nextCursor] }[target.dataset.focus];
    if (pages) attempt(() => readPage(pages));
  });
  byId("create").addEventListener("click", () => dialogs.create());
}

const searchText = () => byId("tokens-filter").value.trim();
const showsInactive = () => byId("tokens-inactive").checked;

/** Returns the query for a page. */
function queryString(cursor) {
  const query = new URLSearchParams({ limit: PAGE_SIZE, active: !showsInactive(), q: searchText() });
  if (cursor !== null) query.set("cursor", cursor);
  return query.toString();
}

async function readPage(pages) {
  const query = queryString(pages.at(-1));
  const response = await read(`/admin/tokens?${query}`).catch((error) => {
    // The cursor may be invalid because the tokens of the environment have changed.
    if (error.status === 400 && pages.length > 1) cursors = [null];
    throw error;
  });
  // The search text has changed in the meantime.
  if (query !== queryString(pages.at(-1))) return;
  cursors = pages;
  data = response;
  // Unchanged content is not rendered again, so that nothing moves while the user works with it.
  const text = JSON.stringify([query, response]);
  if (text === rendered) return;
  show();
  rendered = text;
}

function show() {
  const rows = data.tokens.map((token) => ({ ...token, inactive: !token.isActive }));
  const { tokens, active: activeCount } = data.matching;
  const shownCount = showsInactive() ? tokens : activeCount;
  const hidden = tokens - shownCount;
  byId("tokens-count").textContent =
    plural(shownCount, "token", "tokens") + (hidden > 0 ? `, ${count(hidden)} inactive` : "");
  const empty = searchText() ? "No token matches." : "No active tokens.";
  fill(byId("tokens-table"), table(columns, rows, { caption: "Tokens", empty }));
  fill(byId("tokens-pages"), ...pageButtons(Math.max(1, Math.ceil(shownCount / PAGE_SIZE))));
}

function pageButtons(pages) {
  const page = cursors.length;
  const isLast = data.nextCursor === null;
  if (page === 1 && isLast) return [];
  const to = (label, off) =>
    make("button", { type: "button", class: "plain", disabled: off, "data-focus": label }, label);
  const where = make("span", { class: "muted" }, `Page ${count(page)} of ${count(pages)}`);
  return [to("Previous", page === 1), where, to("Next", isLast)];
}

const columns = [
  { title: "Token", cell: (token) => make("code", {}, token.tokenPrefix) },
  { title: "User", cell: (token) => user(token) },
  { title: "Role", cell: (token) => token.role },
  { title: "Source", cell: (token) => token.source },
  { title: "Status", cell: (token) => status(token) },
  { title: "Requests", number: true, cell: (token) => count(token.usageCount) },
  { title: "Cost", number: true, cell: (token) => cost(token) },
  { title: "Last used", cell: (token) => timestamp(token.lastUsedAt, "never") },
  { title: "Limits", cell: (token) => limits(token) },
  { title: "Actions", cell: (token) => actions(token) },
];

function status(token) {
  if (token.revokedAt) return withDetail(badge("revoked", "bad"), timestamp(token.revokedAt));
  if (token.isExpired) return withDetail(badge("expired", "neutral"), timestamp(token.expiresAt));
  const until = token.expiresAt ? make("span", {}, "until ", timestamp(token.expiresAt)) : null;
  return withDetail(badge("active", "good"), until);
}

function cost({ usage }) {
  const reserved = usage.reservedToday > 0 ? ` + ${dollars(usage.reservedToday)} reserved` : "";
  const spends = usage.dollarsToday > 0 || reserved;
  const today = spends ? `${dollars(usage.dollarsToday)}${reserved} today` : null;
  return withDetail(dollars(usage.dollars), today);
}

const LIMIT_LABELS = [
  ["requestsPerMinute", (value) => `${count(value)} per minute`],
  ["concurrentCalls", (value) => `${count(value)} concurrent calls`],
  ["dollarsPerDay", (value) => `${dollars(value)} per day`],
  ["softDollarsPerDay", (value) => `warning at ${dollars(value)} per day`],
  ["dollarsPerMonth", (value) => `${dollars(value)} per month`],
  ["softDollarsPerMonth", (value) => `warning at ${dollars(value)} per month`],
  ["tools", (value) => `only ${value.join(", ")}`],
  ["readOnly", (value) => (value ? "read-only" : null)],
];

function limits(token) {
  const items = [];
  for (const [name, format] of LIMIT_LABELS) {
    const value = token.limitsInForce[name];
    const text = value === null || value === undefined ? null : format(value);
    const isDefault = token.limits[name] === null || token.limits[name] === undefined;
    if (text) items.push(make("li", { class: isDefault ? "muted" : null }, text, isDefault ? " (default)" : null));
  }
  return items.length > 0
    ? make("ul", { class: "limits" }, ...items)
    : make("span", { class: "muted" }, "none");
}

/** Returns the allowed actions: value and expiry of tokens from the environment cannot be changed. */
function actions(token) {
  const isEditable = token.source === "admin";
  const buttons = [];
  const addButton = (label, action, kind = "plain") => {
    const description = `${label} the token of ${token.userId ?? "no user"}, ${token.tokenPrefix}`;
    const options = { type: "button", class: `${kind} small`, "data-focus": `${label} ${token.id}` };
    const button = make("button", { ...options, "aria-label": description, click: () => action(token) }, label);
    buttons.push(button);
  };
  if (!token.revokedAt) {
    addButton("Limit", dialogs.editLimits);
    if (isEditable) addButton("Rotate", dialogs.rotate);
    if (isEditable) addButton("Expire", dialogs.expire);
    if (isEditable || token.role !== "admin") addButton("Revoke", dialogs.revoke, "danger");
  }
  return make("span", { class: "actions" }, ...buttons);
}
