// Form fields. Each has an element (`line`) and a function that returns its value.

import { make } from "./dom.js";

function labeled(label, input, hint) {
  const note = hint ? make("span", { class: "hint", id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return make("div", { class: "field" }, make("label", { for: input.id }, label), input, note);
}

/** A text field; empty is `null`. */
export function text(label, attributes, hint) {
  const input = make("input", { type: "text", spellcheck: "false", ...attributes });
  return { input, line: labeled(label, input, hint), value: () => input.value.trim() || null };
}

/** A selection; `options` are pairs of value and text. */
export function select(label, id, options, chosen) {
  const items = options.map(([value, text]) =>
    make("option", { value, selected: value === chosen }, text),
  );
  const input = make("select", { id }, ...items);
  return { input, line: labeled(label, input), value: () => input.value };
}

/** A time in the local time zone; empty is `null`. */
export function time(label, id, hint, iso) {
  const input = make("input", { type: "datetime-local", id });
  if (iso) input.value = local(new Date(iso));
  const value = () => (input.value ? new Date(input.value).toISOString() : null);
  return { input, line: labeled(label, input, hint), value };
}

function local(at) {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** A section that is initially collapsed. */
export function collapsed(label, content) {
  return make("details", { class: "collapsed" }, make("summary", {}, label), content);
}

const NUMBER_LIMITS = [
  ["requestsPerMinute", "Requests per minute", "1"],
  ["concurrentCalls", "Concurrent calls", "1"],
  ["dollarsPerDay", "Dollars per day", "any"],
  ["softDollarsPerDay", "Warn at dollars per day", "any"],
  ["dollarsPerMonth", "Dollars per month", "any"],
  ["softDollarsPerMonth", "Warn at dollars per month", "any"],
];

/** All limits of a token, with the effective defaults as placeholders. */
export function limits(own, effective) {
  const fields = NUMBER_LIMITS.map(([name, label, step]) => number(name, label, step, own, effective));
  fields.push(tools(own, effective), readOnly(own, effective));
  const line = make("div", { class: "grid-of-fields" }, ...fields.map((field) => field.line));
  const value = () => Object.fromEntries(fields.map((field) => [field.name, field.value()]));
  return { line, value };
}

function number(name, label, step, own, effective) {
  const fallback = effective[name] === null || effective[name] === undefined ? "no limit" : `${effective[name]} (default)`;
  const input = make("input", {
    type: "number",
    id: `limit-${name}`,
    min: step === "1" ? 1 : 0,
    step,
    value: own[name],
    placeholder: fallback,
  });
  const value = () => (input.value === "" ? null : Number(input.value));
  return { name, line: labeled(label, input), value };
}

function tools(own, effective) {
  const fallback = effective.tools ? `${effective.tools.join(", ")} (default)` : "all";
  const id = "limit-tools";
  const field = text("Tools and sets", { id, placeholder: fallback }, "Comma-separated names.");
  field.input.value = (own.tools ?? []).join(", ");
  const names = () => field.input.value.split(",").map((name) => name.trim());
  const value = () => {
    const items = names().filter(Boolean);
    return items.length > 0 ? items : null;
  };
  return { name: "tools", line: field.line, value };
}

function readOnly(own, effective) {
  const fallback = own.readOnly === null && effective.readOnly ? "Default: yes" : "Default";
  const options = [
    ["default", fallback],
    ["yes", "Yes: no changes allowed"],
    ["no", "No"],
  ];
  const chosen = { true: "yes", false: "no" }[String(own.readOnly)] ?? "default";
  const field = select("Read-only", "limit-readOnly", options, chosen);
  const values = { default: null, yes: true, no: false };
  return { name: "readOnly", line: field.line, value: () => values[field.value()] };
}
