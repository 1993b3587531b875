// What happened, page by page, the newest first.

import { read } from "./api.js";
import { badge, byId, count, fill, make, moment, table, withMore } from "./dom.js";
import { user } from "./tokens.js";

const PAGE = 25;

/** The `before` of each page that was turned; the last is that of the page that is shown. */
let turned = [null];
let next = null;

const DEEDS = {
  "token.create": "Token made",
  "token.change": "Token changed",
  "token.rotate": "Token rotated",
  "token.expire": "End of token set",
  "token.revoke": "Token revoked",
  "denied.missing": "Denied: no token",
  "denied.unknown": "Denied: unknown token",
  "denied.expired": "Denied: expired token",
  "denied.revoked": "Denied: revoked token",
  "denied.not_admin": "Denied: no admin",
  "denied.throttled": "Denied: too many wrong tokens",
  "denied.limit": "Denied: limit reached",
  "denied.host": "Denied: foreign host",
  "denied.origin": "Denied: foreign page",
};

export function start(turn) {
  byId("audit-older").addEventListener("click", () => turn(older));
  byId("audit-newer").addEventListener("click", () => turn(newer));
}

/** Reads the page that is shown anew. */
export async function load() {
  await readPage(turned);
}

export function clear() {
  turned = [null];
  next = null;
  fill(byId("audit-table"));
}

const older = () => readPage([...turned, next]);
const newer = () => readPage(turned.slice(0, -1));

async function readPage(pages) {
  const before = pages.at(-1);
  const told = await read(`/admin/audit?limit=${PAGE}${before === null ? "" : `&before=${before}`}`);
  turned = pages;
  next = told.next;
  const shown = table(columns, told.entries, { caption: "Audit log", empty: "Nothing has happened yet." });
  fill(byId("audit-table"), shown);
  byId("audit-older").disabled = next === null;
  byId("audit-newer").disabled = turned.length === 1;
}

const columns = [
  { title: "When", cell: (entry) => moment(entry.at) },
  { title: "What", cell: (entry) => action(entry) },
  { title: "By", cell: (entry) => actor(entry) },
  { title: "Token concerned", cell: (entry) => token(entry) },
  { title: "Detail", cell: (entry) => make("span", { class: "detail" }, detail(entry.detail)) },
  { title: "Address", cell: (entry) => entry.address ?? "–" },
  { title: "Times", number: true, cell: (entry) => count(Math.max(1, entry.count)) },
];

function action(entry) {
  const words = DEEDS[entry.action] ?? entry.action;
  return badge(words, entry.action.startsWith("denied.") ? "fair" : "dim");
}

function actor(entry) {
  if (entry.actor === null) return "–";
  return user({ userId: entry.actorUser, role: "admin" });
}

/** A token by its user, or by its id where the server does not know it any more. */
function token({ target, targetToken }) {
  if (target === null) return "–";
  if (targetToken === null) return make("code", { title: target }, `${target.slice(0, 8)}…`);
  return withMore(user(targetToken), targetToken.tokenPrefix);
}

/** What was changed, as `name: value`; what was left empty is left out. */
function detail(value) {
  if (value === null || typeof value !== "object") return value === null ? "–" : String(value);
  if (Array.isArray(value)) return value.join(", ");
  const said = Object.entries(value).map(([name, part]) => [name, detail(part)]);
  const told = said.filter(([, text]) => text !== "–");
  return told.map(([name, text]) => `${name}: ${text}`).join("; ") || "–";
}
