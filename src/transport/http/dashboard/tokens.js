// The tokens: who has one, what it was used for, and what can be done with it.

import { read } from "./api.js";
import * as dialogs from "./dialogs.js";
import { badge, byId, count, dollars, fill, make, many, moment, table, withMore } from "./dom.js";

/** So many tokens are on a page of the table. */
const PAGE = 50;

let all = [];
let page = 0;
let shown = "";

export async function load() {
  const told = await read("/admin/tokens");
  // What has not changed stays as it is, so that nothing moves under the hands of the reader.
  const text = JSON.stringify(told.tokens);
  if (text === shown) return;
  all = told.tokens;
  show();
  shown = text;
}

export function clear() {
  all = [];
  page = 0;
  shown = "";
  byId("tokens-filter").value = "";
  byId("tokens-count").textContent = "";
  fill(byId("tokens-table"));
  fill(byId("tokens-pages"));
}

export const active = () => all.filter((token) => token.isActive).length;

/** The token of an id, if it is known. */
export const find = (id) => all.find((token) => token.id === id);

/** Whose it is; tokens need not name anybody. */
export function user({ userId, role }) {
  if (userId !== null) return make("span", { class: "user" }, userId);
  return make("span", { class: "quiet" }, role === "admin" ? "admin" : "anonymous");
}

export function start(refresh) {
  dialogs.start(refresh);
  const again = () => {
    page = 0;
    show();
  };
  byId("tokens-filter").addEventListener("input", again);
  byId("tokens-ended").addEventListener("change", again);
  byId("create").addEventListener("click", () => dialogs.create());
}

function show() {
  const wanted = byId("tokens-filter").value.trim().toLowerCase();
  const matches = (text) => (text ?? "").toLowerCase().includes(wanted);
  const fitting = all.filter((token) => matches(token.userId) || matches(token.tokenPrefix));
  const withEnded = byId("tokens-ended").checked;
  const listed = fitting.filter((token) => withEnded || token.isActive);
  const pages = Math.max(1, Math.ceil(listed.length / PAGE));
  page = Math.min(page, pages - 1);
  const rows = listed.slice(page * PAGE, (page + 1) * PAGE);
  const marked = rows.map((token) => ({ ...token, ended: !token.isActive }));
  const hidden = fitting.length - listed.length;
  byId("tokens-count").textContent =
    many(listed.length, "token", "tokens") + (hidden > 0 ? `, ${count(hidden)} ended` : "");
  const empty = wanted ? "No token matches." : "There are no active tokens.";
  fill(byId("tokens-table"), table(columns, marked, { caption: "Tokens", empty }));
  fill(byId("tokens-pages"), ...pageButtons(pages));
}

function pageButtons(pages) {
  if (pages === 1) return [];
  const to = (label, target) => {
    const turn = () => {
      page = target;
      show();
    };
    const off = target < 0 || target >= pages;
    return make("button", { type: "button", class: "plain", disabled: off, click: turn, "data-focus": label }, label);
  };
  const where = make("span", { class: "quiet" }, `Page ${page + 1} of ${pages}`);
  return [to("Previous", page - 1), where, to("Next", page + 1)];
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
  const today = usage.dollarsToday > 0 ? `${dollars(usage.dollarsToday)} today` : null;
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
