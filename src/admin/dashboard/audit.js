// The audit log, newest first.

import { read } from "./api.js";
import { badge, byId, count, fill, make, timestamp, table, withDetail } from "./dom.js";
import { user } from "./tokens.js";

const PAGE_SIZE = 25;

/** The `before` values of the pages up to the current one. */
let cursors = [null];
let next = null;

const ACTIONS = {
  "token.create": "Token created",
  "token.change": "Token updated",
  "token.rotate": "Token rotated",
  "token.expire": "Token expiry set",
  "token.revoke": "Token revoked",
  "denied.missing": "Denied: no token",
  "denied.unknown": "Denied: unknown token",
  "denied.expired": "Denied: expired token",
  "denied.revoked": "Denied: revoked token",
  "denied.not_admin": "Denied: not an admin",
  "denied.throttled": "Denied: too plural wrong tokens",
  "denied.limit": "Denied: limit exceeded",
  "denied.host": "Denied: host not allowed",
  "denied.origin": "Denied: origin not allowed",
};

export function start(attempt) {
  byId("audit-older").addEventListener("click", () => attempt(older));
  byId("audit-newer").addEventListener("click", () => attempt(newer));
}

/** Reloads the current page. */
export async function load() {
  await readPage(cursors);
}

export function clear() {
  cursors = [null];
  next = null;
  fill(byId("audit-table"));
}

const older = () => readPage([...cursors, next]);
const newer = () => readPage(cursors.slice(0, -1));

async function readPage(pages) {
  const before = pages.at(-1);
  const data = await read(`/admin/audit?limit=${PAGE_SIZE}${before === null ? "" : `&before=${before}`}`);
  cursors = pages;
  next = data.next;
  const content = table(columns, data.entries, { caption: "Audit log", empty: "No entries yet." });
  fill(byId("audit-table"), content);
  byId("audit-older").disabled = next === null;
  byId("audit-newer").disabled = cursors.length === 1;
}

const columns = [
  { title: "When", cell: (entry) => timestamp(entry.at) },
  { title: "Action", cell: (entry) => action(entry) },
  { title: "By", cell: (entry) => actor(entry) },
  { title: "Token", cell: (entry) => token(entry) },
  { title: "Detail", cell: (entry) => make("span", { class: "detail" }, detail(entry.detail)) },
  { title: "Address", cell: (entry) => entry.address ?? "–" },
  { title: "Count", number: true, cell: (entry) => count(Math.max(1, entry.count)) },
];

function action(entry) {
  const label = ACTIONS[entry.action] ?? entry.action;
  return badge(label, entry.action.startsWith("denied.") ? "warning" : "neutral");
}

function actor(entry) {
  if (entry.actor === null) return "–";
  return user({ userId: entry.actorUser, role: "admin" });
}

/** Shows a token by its user, or by its id if the server no longer knows it. */
function token({ target, targetToken }) {
  if (target === null) return "–";
  if (targetToken === null) return make("code", { title: target }, `${target.slice(0, 8)}…`);
  return withDetail(user(targetToken), targetToken.tokenPrefix);
}

/** Formats the details as `name: value`, without empty values. */
function detail(value) {
  if (value === null || typeof value !== "object") return value === null ? "–" : String(value);
  if (Array.isArray(value)) return value.join(", ");
  const entries = Object.entries(value).map(([name, part]) => [name, detail(part)]);
  const data = entries.filter(([, text]) => text !== "–");
  return data.map(([name, text]) => `${name}: ${text}`).join("; ") || "–";
}
