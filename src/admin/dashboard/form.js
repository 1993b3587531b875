// Fields of forms. Each is a line to show and a function that gives what was entered.

import { make } from "./dom.js";

function labelled(label, input, hint) {
  const note = hint ? make("span", { class: "hint", id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return make("div", { class: "field" }, make("label", { for: input.id }, label), input, note);
}

/** Text; nothing is `null`. */
export function text(label, attributes, hint) {
  const input = make("input", { type: "text", spellcheck: "false", ...attributes });
  return { input, line: labelled(label, input, hint), value: () => input.value.trim() || null };
}

/** One of several; `options` are pairs of value and words. */
export function choice(label, id, options, chosen) {
  const listed = options.map(([value, words]) =>
    make("option", { value, selected: value === chosen }, words),
  );
  const input = make("select", { id }, ...listed);
  return { input, line: labelled(label, input), value: () => input.value };
}

/** A moment, entered in the time of the reader; nothing is `null`. */
export function time(label, id, hint, iso) {
  const input = make("input", { type: "datetime-local", id });
  if (iso) input.value = local(new Date(iso));
  const value = () => (input.value ? new Date(input.value).toISOString() : null);
  return { input, line: labelled(label, input, hint), value };
}

function local(at) {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Something that is out of the way until it is wanted. */
export function folded(label, content) {
  return make("details", { class: "folded" }, make("summary", {}, label), content);
}

const NUMBERS = [
  ["requestsPerMinute", "Requests a minute", "1"],
  ["concurrentCalls", "Calls at once", "1"],
  ["dollarsPerDay", "Dollars a day", "any"],
  ["softDollarsPerDay", "Warn at dollars a day", "any"],
  ["dollarsPerMonth", "Dollars a month", "any"],
  ["softDollarsPerMonth", "Warn at dollars a month", "any"],
];

/** All limits of a token: its own, and where it has none the usual ones as a hint. */
export function limits(own, inForce) {
  const fields = NUMBERS.map(([name, label, step]) => number(name, label, step, own, inForce));
  fields.push(tools(own, inForce), readOnly(own, inForce));
  const line = make("div", { class: "grid-of-fields" }, ...fields.map((field) => field.line));
  const value = () => Object.fromEntries(fields.map((field) => [field.name, field.value()]));
  return { line, value };
}

function number(name, label, step, own, inForce) {
  const usual = inForce[name] === null || inForce[name] === undefined ? "no limit" : `${inForce[name]} (usual)`;
  const input = make("input", {
    type: "number",
    id: `limit-${name}`,
    min: step === "1" ? 1 : 0,
    step,
    value: own[name],
    placeholder: usual,
  });
  const value = () => (input.value === "" ? null : Number(input.value));
  return { name, line: labelled(label, input), value };
}

function tools(own, inForce) {
  const usual = inForce.tools ? `${inForce.tools.join(", ")} (usual)` : "all";
  const id = "limit-tools";
  const field = text("Tools and sets", { id, placeholder: usual }, "Names with commas between them.");
  field.input.value = (own.tools ?? []).join(", ");
  const names = () => field.input.value.split(",").map((name) => name.trim());
  const value = () => {
    const listed = names().filter(Boolean);
    return listed.length > 0 ? listed : null;
  };
  return { name: "tools", line: field.line, value };
}

function readOnly(own, inForce) {
  const usual = own.readOnly === null && inForce.readOnly ? "As usual: yes" : "As usual";
  const options = [
    ["usual", usual],
    ["yes", "Yes: nothing may be changed"],
    ["no", "No"],
  ];
  const chosen = { true: "yes", false: "no" }[String(own.readOnly)] ?? "usual";
  const field = choice("Reading only", "limit-readOnly", options, chosen);
  const values = { usual: null, yes: true, no: false };
  return { name: "readOnly", line: field.line, value: () => values[field.value()] };
}
