// What was used, by day and by person.

import { read } from "./api.js";
import { columns, rows } from "./charts.js";
import { byId, count, dollars, fill, make, many, table } from "./dom.js";

/** So many people have a bar of their own. */
const MOST_PEOPLE = 12;

const MEASURES = {
  dollars: { name: "Cost", show: dollars, smallest: 0.001 },
  requests: { name: "Requests", show: count, smallest: 4 },
};

let days = [];

export async function load() {
  const told = await read(`/admin/usage?days=${byId("days").value}`);
  days = [...told.days].reverse();
  show();
}

export function clear() {
  days = [];
  for (const id of ["by-day", "by-person", "by-day-table", "by-person-table"]) fill(byId(id));
}

/** What was used today, by UTC. */
export const today = () => days.at(-1);

/** What was used in the whole period. */
export const period = () => ({ days: days.length, ...sum(days) });

export function show() {
  const checked = document.querySelector("input[name=measure]:checked");
  const measure = MEASURES[checked.value];
  const people = byPerson();
  showDays(checked.value, measure);
  showPeople(checked.value, measure, people);
  fill(byId("by-day-table"), dayTable());
  fill(byId("by-person-table"), personTable(people));
}

function sum(parts) {
  const total = (name) => parts.reduce((all, part) => all + (part[name] ?? 0), 0);
  return { requests: total("requests"), dollars: total("dollars"), errors: total("errors") };
}

/** The people with what they used, whoever spent most first. */
function byPerson() {
  const people = new Map();
  for (const day of days) {
    for (const [user, used] of Object.entries(day.byUser)) {
      people.set(user, [...(people.get(user) ?? []), used]);
    }
  }
  const all = [...people].map(([user, parts]) => ({ user, ...sum(parts) }));
  return all.sort((one, other) => other.dollars - one.dollars || other.requests - one.requests);
}

const used = (part) => `${dollars(part.dollars)}, ${many(part.requests, "request", "requests")}`;

function showDays(field, measure) {
  const name = `${measure.name} by day`;
  byId("by-day-title").textContent = name;
  const bars = days.map((day) => ({
    label: dayLabel(day.day),
    value: day[field],
    title: `${day.day}: ${used(day)}`,
  }));
  const all = sum(days);
  const summary = `${measure.show(all[field])} in ${many(days.length, "day", "days")}.`;
  columns(byId("by-day"), bars, { ...measure, name, summary });
}

function showPeople(field, measure, people) {
  const name = `${measure.name} by person`;
  byId("by-person-title").textContent = name;
  const ordered = [...people].sort((one, other) => other[field] - one[field]);
  const shown = ordered.slice(0, MOST_PEOPLE);
  const others = ordered.slice(MOST_PEOPLE);
  if (others.length > 0) {
    shown.push({ user: many(others.length, "other", "others"), ...sum(others) });
  }
  if (shown.length === 0) {
    fill(byId("by-person"), make("p", { class: "empty" }, "Nobody has used anything in this time."));
    return;
  }
  const bars = shown.map((person) => ({
    label: person.user,
    value: person[field],
    title: `${person.user}: ${used(person)}`,
  }));
  const first = shown[0];
  const summary = `${many(people.length, "person", "people")}; most: ${first.user} with ${used(first)}.`;
  rows(byId("by-person"), bars, { ...measure, name, summary });
}

const dayNames = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const dayLabel = (day) => dayNames.format(new Date(`${day}T00:00:00Z`));

function dayTable() {
  const columnsOfDays = [
    { title: "Day (UTC)", cell: (day) => day.day },
    { title: "Requests", number: true, cell: (day) => count(day.requests) },
    { title: "Errors", number: true, cell: (day) => count(day.errors) },
    { title: "From the cache", number: true, cell: (day) => count(day.cacheHits) },
    { title: "Without a price", number: true, cell: (day) => count(day.unpricedCalls) },
    { title: "Tokens returned", number: true, cell: (day) => count(day.tokens) },
    { title: "Cost", number: true, cell: (day) => dollars(day.dollars) },
  ];
  return table(columnsOfDays, [...days].reverse(), { caption: "Usage by day" });
}

function personTable(people) {
  const columnsOfPeople = [
    { title: "Person", cell: (person) => person.user },
    { title: "Requests", number: true, cell: (person) => count(person.requests) },
    { title: "Cost", number: true, cell: (person) => dollars(person.dollars) },
  ];
  return table(columnsOfPeople, people, { caption: "Usage by person" });
}
