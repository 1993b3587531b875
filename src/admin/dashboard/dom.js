// Elements and words. Everything from the server becomes text nodes or attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with attributes (functions become listeners) and children, of which `null` is none. */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same in a drawing. */
export function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces what is in an element; whatever had the focus by its `data-focus` has it again. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) && document.activeElement.dataset.focus;
  element.replaceChildren(...children);
  if (!focused) return;
  const again = [...element.querySelectorAll("[data-focus]")];
  again.find((candidate) => candidate.dataset.focus === focused)?.focus();
}

/** A table; columns are `{title, cell, number}`, and `cell` gives text or an element. */
export function table(columns, rows, { caption, empty = "Nothing yet." } = {}) {
  if (rows.length === 0) return make("p", { class: "empty" }, empty);
  const kind = (column) => (column.number ? "number" : null);
  const heads = columns.map((column) =>
    make("th", { scope: "col", class: kind(column) }, column.title),
  );
  const line = (row) =>
    make(
      "tr",
      { class: row.ended ? "ended" : null },
      ...columns.map((column) =>
        make("td", { class: kind(column), "data-title": column.title }, column.cell(row)),
      ),
    );
  return make(
    "table",
    {},
    caption ? make("caption", { class: "away" }, caption) : null,
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows.map(line)),
  );
}

/** A term and what there is to say about it. */
export function fact(term, ...said) {
  return make("div", {}, make("dt", {}, term), make("dd", {}, ...said));
}

/** A small coloured word; `tone` is good, fair, bad or dim. */
export function badge(word, tone) {
  return make("span", { class: `badge ${tone}` }, word);
}

/** Tells those who do not see the page. */
export function say(text) {
  byId("said").textContent = text;
}

const whole = new Intl.NumberFormat("en");
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const fine = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 });

export const count = (number) => whole.format(number ?? 0);

/** Dollars; small sums with more digits, since a search costs less than a cent. */
export function dollars(sum) {
  const value = sum ?? 0;
  return `$${(Math.abs(value) < 1 ? fine : cents).format(value)}`;
}

/** Something of which there are so many. */
export const many = (number, one, more) => `${count(number)} ${number === 1 ? one : more}`;

const day = { month: "short", day: "numeric" };
const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const thisYear = new Intl.DateTimeFormat("en", { ...day, ...time });
const anyYear = new Intl.DateTimeFormat("en", { ...day, year: "numeric" });

/** A moment in the time of the reader; those far away by their day alone. */
export function moment(iso, none = "–") {
  const at = iso ? new Date(iso) : null;
  if (!at || Number.isNaN(at.getTime())) return none;
  const near = at.getFullYear() === new Date().getFullYear();
  return make("time", { datetime: iso, title: iso }, (near ? thisYear : anyYear).format(at));
}

/** Something, with a little more about it below. */
export function withMore(first, more) {
  return make("span", {}, first, more ? make("span", { class: "quiet below" }, more) : null);
}

/** How long something took or takes. */
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
  const said = `${Math.floor(seconds / size)} ${unit}`;
  const next = parts[first + 1];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return rest > 0 ? `${said} ${rest} ${next[1]}` : said;
}
