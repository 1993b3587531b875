// DOM helpers and formatting. Data from the server becomes text nodes or attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Creates an element with attributes (functions become listeners) and children (`null` is skipped). */
export function make(name, attributes = {}, ...children) {
  return populate(document.createElement(name), attributes, children);
}

/** Creates an SVG element in the same way. */
export function draw(name, attributes = {}, ...children) {
  return populate(document.createElementNS(SVG, name), attributes, children);
}

function populate(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces the children of an element and restores the focus by `data-focus`. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) && document.activeElement.dataset.focus;
  element.replaceChildren(...children);
  if (!focused) return;
  const candidates = [...element.querySelectorAll("[data-focus]")];
  candidates.find((candidate) => candidate.dataset.focus === focused)?.focus();
}

/** Creates a table. Columns are `{title, cell, number}`, where `cell` returns text or an element. */
export function table(columns, rows, { caption, empty = "Nothing yet." } = {}) {
  if (rows.length === 0) return make("p", { class: "empty" }, empty);
  const kind = (column) => (column.number ? "number" : null);
  const heads = columns.map((column) =>
    make("th", { scope: "col", class: kind(column) }, column.title),
  );
  const line = (row) =>
    make(
      "tr",
      { class: row.inactive ? "inactive" : null },
      ...columns.map((column) =>
        make("td", { class: kind(column), "data-title": column.title }, column.cell(row)),
      ),
    );
  return make(
    "table",
    {},
    caption ? make("caption", { class: "visually-hidden" }, caption) : null,
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows.map(line)),
  );
}

/** Creates a term with its description. */
export function detail(term, ...content) {
  return make("div", {}, make("dt", {}, term), make("dd", {}, ...content));
}

/** Creates a badge; `tone` is good, warning, bad or neutral. */
export function badge(word, tone) {
  return make("span", { class: `badge ${tone}` }, word);
}

/** Announces a text to screen readers. */
export function announce(text) {
  byId("announcements").textContent = text;
}

const integer = new Intl.NumberFormat("en");
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const fraction = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 });

export const count = (number) => integer.format(number ?? 0);

/** Formats dollars; small amounts with more digits, since a search costs less than a cent. */
export function dollars(sum) {
  const value = sum ?? 0;
  return `$${(Math.abs(value) < 1 ? fraction : cents).format(value)}`;
}

/** Formats a count with its noun. */
export const plural = (number, one, more) => `${count(number)} ${number === 1 ? one : more}`;

const day = { month: "short", day: "numeric" };
const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const thisYear = new Intl.DateTimeFormat("en", { ...day, ...time });
const anyYear = new Intl.DateTimeFormat("en", { ...day, year: "numeric" });

/** Formats a time in the local time zone; other years without the time of day. */
export function timestamp(iso, none = "–") {
  const at = iso ? new Date(iso) : null;
  if (!at || Number.isNaN(at.getTime())) return none;
  const near = at.getFullYear() === new Date().getFullYear();
  return make("time", { datetime: iso, title: iso }, (near ? thisYear : anyYear).format(at));
}

/** Shows a value with a detail below it. */
export function withDetail(first, more) {
  return make("span", {}, first, more ? make("span", { class: "muted below" }, more) : null);
}

/** Formats a duration. */
export function duration(seconds) {
  const parts = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [size, unit] = parts[first];
  const text = `${Math.floor(seconds / size)} ${unit}`;
  const next = parts[first + 1];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return rest > 0 ? `${text} ${rest} ${next[1]}` : text;
}
