// The tokens: who has one, what it was used for, and what can be done with it.

import { read } from "./api.js";
import * as dialogs from "./dialogs.js";
import { badge, byId, count, dollars, fill, make, many, moment, table, withMore } from "./dom.js";

/** So many tokens are on a page of the table. */
const PAGE = 50;
/** So long nothing must be typed before it is looked for, in milliseconds. */
const TYPING = 200;

/** What came last, and what was asked for. */
let told = null;
/** The cursor of each page that was turned; the last is that of the page that is shown. */
let turned = [null];
let shown = "";
let searching = null;

/** Reads the page that is shown anew. */
export async function load() {
  await readPage(turned);
}

export function clear() {
  told = null;
  turned = [null];
  shown = "";
  clearTimeout(searching);
  byId("tokens-filter").value = "";
  byId("tokens-count").textContent = "";
  fill(byId("tokens-table"));
  fill(byId("tokens-pages"));
}

export const active = () => told?.stats.activeTokens ?? 0;

/** Whose it is; tokens need not name anybody. */
export function user({ userId, role }) {
  if (userId !== null) return make("span", { class: "user" }, userId);
  return make("span", { class: "quiet" }, role === "admin" ? "admin" : "anonymous");
}

export function start(refresh, attempt) {
  dialogs.start(refresh);
  const again = () => attempt(() => readPage([null]));
  byId("tokens-filter").addEventListener("input", () => {
    clearTimeout(searching);
    searching = setTimeout(again, TYPING);
  });
  byId("tokens-ended").addEventListener("change", again);
  byId("tokens-pages").addEventListener("click", ({ target }) => {
    const pages = { Previous: turned.slice(0, -1), Next: [...turned, told?.nextCursor] }[target.dataset.focus];
    if (pages) attempt(() => readPage(pages));
  });
  byId("create").addEventListener("click", () => dialogs.create());
}

const wanted = () => byId("tokens-filter").value.trim();
const withEnded = () => byId("tokens-ended").checked;

/** What is asked for; the server may have more tokens than a page should hold. */
function question(cursor) {
  const asked = new URLSearchParams({ limit: PAGE, active: !withEnded(), q: wanted() });
  if (cursor !== null) asked.set("cursor", cursor);
  return asked.toString();
}

async function readPage(pages) {
  const asked = question(pages.at(-1));
  const answer = await read(`/admin/tokens?${asked}`).catch((error) => {
    // The tokens of the environment may be others now, and the place in the list gone with them.
    if (error.status === 400 && pages.length > 1) turned = [null];
    throw error;
  });
  // Whoever typed on meanwhile asks for something else.
  if (asked !== question(pages.at(-1))) return;
  turned = pages;
  told = answer;
  // What has not changed stays as it is, so that nothing moves under the hands of the reader.
  const text = JSON.stringify([asked, answer]);
  if (text === shown) return;
  show();
  shown = text;
}

function show() {
  const marked = told.tokens.map((token) => ({ ...token, ended: !token.isActive }));
  const { tokens, active: running } = told.matching;
  const listed = withEnded() ? tokens : running;
  const hidden = tokens - listed;
  byId("tokens-count").textContent =
    many(listed, "token", "tokens") + (hidden > 0 ? `, ${count(hidden)} ended` : "");
  const empty = wanted() ? "No token matches." : "There are no active tokens.";
  fill(byId("tokens-table"), table(columns, marked, { caption: "Tokens", empty }));
  fill(byId("tokens-pages"), ...pageButtons(Math.max(1, Math.ceil(listed / PAGE))));
}

function pageButtons(pages) {
  const page = turned.length;
  const isLast = told.nextCursor === null;
  if (page === 1 && isLast) return [];
  const to = (label, off) =>
    make("button", { type: "button", class: "plain", disabled: off, "data-focus": label }, label);
  const where = make("span", { class: "quiet" }, `Page ${count(page)} of ${count(pages)}`);
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
  { title: "Last used", cell: (token) => moment(token.lastUsedAt, "never") },
  { title: "Limits", cell: (token) => limits(token) },
  { title: "Actions", cell: (token) => actions(token) },
];

function status(token) {
  if (token.revokedAt) return withMore(badge("revoked", "bad"), moment(token.revokedAt));
  if (token.isExpired) return withMore(badge("expired", "dim"), moment(token.expiresAt));
  const until = token.expiresAt ? make("span", {}, "until ", moment(token.expiresAt)) : null;
  return withMore(badge("active", "good"), until);
}

function cost({ usage }) {
  const reserved = usage.reservedToday > 0 ? ` + ${dollars(usage.reservedToday)} reserved` : "";
  const spends = usage.dollarsToday > 0 || reserved;
  const today = spends ? `${dollars(usage.dollarsToday)}${reserved} today` : null;
  return withMore(dollars(usage.dollars), today);
}

const LIMIT_WORDS = [
  ["requestsPerMinute", (value) => `${count(value)} a minute`],
  ["concurrentCalls", (value) => `${count(value)} at once`],
  ["dollarsPerDay", (value) => `${dollars(value)} a day`],
  ["softDollarsPerDay", (value) => `warned at ${dollars(value)} a day`],
  ["dollarsPerMonth", (value) => `${dollars(value)} a month`],
  ["softDollarsPerMonth", (value) => `warned at ${dollars(value)} a month`],
  ["tools", (value) => `only ${value.join(", ")}`],
  ["readOnly", (value) => (value ? "reading only" : null)],
];

function limits(token) {
  const said = [];
  for (const [name, inWords] of LIMIT_WORDS) {
    const value = token.limitsInForce[name];
    const words = value === null || value === undefined ? null : inWords(value);
    const usual = token.limits[name] === null || token.limits[name] === undefined;
    if (words) said.push(make("li", { class: usual ? "quiet" : null }, words, usual ? " (usual)" : null));
  }
  return said.length > 0
    ? make("ul", { class: "limits" }, ...said)
    : make("span", { class: "quiet" }, "none");
}

/** What the server would refuse is not offered: tokens of the environment keep their text and end. */
function actions(token) {
  const own = token.source === "admin";
  const offered = [];
  const offer = (label, deed, kind = "plain") => {
    const whose = `${label} the token of ${token.userId ?? "nobody"}, ${token.tokenPrefix}`;
    const options = { type: "button", class: `${kind} small`, "data-focus": `${label} ${token.id}` };
    const button = make("button", { ...options, "aria-label": whose, click: () => deed(token) }, label);
    offered.push(button);
  };
  if (!token.revokedAt) {
    offer("Limit", dialogs.editLimits);
    if (own) offer("Rotate", dialogs.rotate);
    if (own) offer("Expire", dialogs.expire);
    if (own || token.role !== "admin") offer("Revoke", dialogs.revoke, "danger");
  }
  return make("span", { class: "actions" }, ...offered);
}
