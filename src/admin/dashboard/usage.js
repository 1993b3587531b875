// Usage by day and by user.

import { read } from "./api.js";
import { columns, rows } from "./charts.js";
import { byId, count, dollars, fill, make, plural, table } from "./dom.js";

/** The maximum number of users with their own bar. */
const MAX_USERS = 12;

const MEASURES = {
  dollars: { name: "Cost", show: dollars, smallest: 0.001 },
  requests: { name: "Requests", show: count, smallest: 4 },
};

let days = [];

export async function load() {
  const response = await read(`/admin/usage?days=${byId("days").value}`);
  days = [...response.days].reverse();
  show();
}

export function clear() {
  days = [];
  for (const id of ["by-day", "by-user", "by-day-table", "by-user-table"]) fill(byId(id));
}

/** Returns the usage of today (UTC). */
export const today = () => days.at(-1);

/** Returns the usage of the whole period. */
export const period = () => ({ days: days.length, ...sum(days) });

export function show() {
  const checked = document.querySelector("input[name=measure]:checked");
  const measure = MEASURES[checked.value];
  const users = byUser();
  showDays(checked.value, measure);
  showUsers(checked.value, measure, users);
  fill(byId("by-day-table"), dayTable());
  fill(byId("by-user-table"), userTable(users));
}

function sum(parts) {
  const total = (name) => parts.reduce((all, part) => all + (part[name] ?? 0), 0);
  return { requests: total("requests"), dollars: total("dollars"), errors: total("errors") };
}

/** Returns the usage per user, highest cost first. */
function byUser() {
  const users = new Map();
  for (const day of days) {
    for (const [user, used] of Object.entries(day.byUser)) {
      users.set(user, [...(users.get(user) ?? []), used]);
    }
  }
  const all = [...users].map(([user, parts]) => ({ user, ...sum(parts) }));
  return all.sort((one, other) => other.dollars - one.dollars || other.requests - one.requests);
}

const describe = (part) => `${dollars(part.dollars)}, ${plural(part.requests, "request", "requests")}`;

function showDays(field, measure) {
  const name = `${measure.name} by day`;
  byId("by-day-title").textContent = name;
  const bars = days.map((day) => ({
    label: dayLabel(day.day),
    value: day[field],
    title: `${day.day}: ${describe(day)}`,
  }));
  const all = sum(days);
  const summary = `${measure.show(all[field])} in ${plural(days.length, "day", "days")}.`;
  columns(byId("by-day"), bars, { ...measure, name, summary });
}

function showUsers(field, measure, users) {
  const name = `${measure.name} by user`;
  byId("by-user-title").textContent = name;
  const ordered = [...users].sort((one, other) => other[field] - one[field]);
  const shown = ordered.slice(0, MAX_USERS);
  const others = ordered.slice(MAX_USERS);
  if (others.length > 0) {
    shown.push({ user: plural(others.length, "other", "others"), ...sum(others) });
  }
  if (shown.length === 0) {
    fill(byId("by-user"), make("p", { class: "empty" }, "No usage in this period."));
    return;
  }
  const bars = shown.map((entry) => ({
    label: entry.user,
    value: entry[field],
    title: `${entry.user}: ${describe(entry)}`,
  }));
  const first = shown[0];
  const summary = `${plural(users.length, "user", "users")}; most: ${first.user} with ${describe(first)}.`;
  rows(byId("by-user"), bars, { ...measure, name, summary });
}

const dayNames = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const dayLabel = (day) => dayNames.format(new Date(`${day}T00:00:00Z`));

function dayTable() {
  const dayColumns = [
    { title: "Day (UTC)", cell: (day) => day.day },
    { title: "Requests", number: true, cell: (day) => count(day.requests) },
    { title: "Errors", number: true, cell: (day) => count(day.errors) },
    { title: "Cached", number: true, cell: (day) => count(day.cacheHits) },
    { title: "Unpriced", number: true, cell: (day) => count(day.unpricedCalls) },
    { title: "Tokens returned", number: true, cell: (day) => count(day.tokens) },
    { title: "Cost", number: true, cell: (day) => dollars(day.dollars) },
  ];
  return table(dayColumns, [...days].reverse(), { caption: "Usage by day" });
}

function userTable(users) {
  const userColumns = [
    { title: "User", cell: (entry) => entry.user },
    { title: "Requests", number: true, cell: (entry) => count(entry.requests) },
    { title: "Cost", number: true, cell: (entry) => dollars(entry.dollars) },
  ];
  return table(userColumns, users, { caption: "Usage by user" });
}
