// Dialogs for creating and changing tokens.

import { tokenPath, patch, post } from "./api.js";
import { byId, fill, make, announce } from "./dom.js";
import * as form from "./form.js";

let refresh = async () => {};
/** The `data-focus` of the button that opened the dialog. The button itself may be re-rendered. */
let opener = null;

export function start(onChange) {
  refresh = onChange;
  const dialog = byId("dialog");
  dialog.addEventListener("cancel", (event) => {
    // An accidental Escape must not lose a secret.
    if (byId("secret")) event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    // A closed dialog must not retain a secret.
    fill(dialog);
    const candidates = [...document.querySelectorAll("[data-focus]")];
    const button = candidates.find((candidate) => candidate.dataset.focus === opener);
    (button ?? byId("create")).focus();
  });
}

export function close() {
  byId("dialog").close();
}

/**
 * Opens a form. `action` runs on submit; its error is shown, and the form stays open. It may return a token whose
 * value is shown.
 */
function open({ title, fields, button, kind = "primary", action, done }) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const send = make("button", { type: "submit", class: kind }, button);
  const cancel = make("button", { type: "button", class: "plain", click: close }, "Cancel");
  const submit = async (event) => {
    event.preventDefault();
    problem.hidden = true;
    send.disabled = true;
    try {
      const secret = await action();
      // Show the secret first: the server never returns it again.
      if (secret) showSecret(secret);
      else close();
      announce(done);
      refresh();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    } finally {
      send.disabled = false;
    }
  };
  const line = make("div", { class: "buttons" }, cancel, send);
  show(title, make("form", { submit, autocomplete: "off" }, ...fields, problem, line));
}

function show(title, content) {
  const dialog = byId("dialog");
  if (!dialog.open) opener = document.activeElement?.dataset.focus ?? null;
  fill(dialog, make("h2", { id: "dialog-title" }, title), content);
  if (!dialog.open) dialog.showModal();
}

const tokenLine = (token) =>
  make(
    "p",
    {},
    "Token ",
    make("code", {}, token.tokenPrefix),
    " of ",
    make("strong", {}, token.userId ?? "no user"),
    ".",
  );

export function create() {
  const sharing = "All tokens of one user share notes, tasks and cached results.";
  const user = form.text("User", { id: "new-user", maxlength: 128 }, sharing);
  const role = form.select("Role", "new-role", [
    ["user", "User: may use the tools"],
    ["admin", "Admin: may use the tools and this page"],
  ]);
  const expiry = form.time("Expires", "new-expiry", "Leave empty for no expiry.");
  const limits = form.limits({}, {});
  open({
    title: "New token",
    button: "Create token",
    fields: [user.line, role.line, expiry.line, form.collapsed("Limits", limits.line)],
    done: "Token created.",
    action: async () => {
      const fields = { role: role.value(), expiresAt: expiry.value(), limits: limits.value() };
      return post("/admin/tokens", { ...fields, userId: user.value() });
    },
  });
}

export function editLimits(token) {
  const limits = form.limits(token.limits, token.limitsInForce);
  open({
    title: "Limits",
    button: "Save limits",
    fields: [tokenLine(token), limits.line],
    done: "Limits updated.",
    action: async () => {
      await patch(tokenPath(token.id), { limits: limits.value() });
    },
  });
}

export function rotate(token) {
  const grace = form.select("Old value stays valid", "grace", [
    ["0", "No"],
    ["600", "For 10 minutes"],
    ["3600", "For one hour"],
  ]);
  open({
    title: "Rotate token",
    button: "Rotate",
    fields: [tokenLine(token), make("p", {}, "The token gets a new value. Usage and limits stay the same."), grace.line],
    done: "Token rotated.",
    action: () => post(tokenPath(token.id, "rotate"), { graceSeconds: Number(grace.value()) }),
  });
}

export function expire(token) {
  const when = form.select("Expires", "expiry-kind", [
    ["now", "Now"],
    ["at", "At a specific time"],
    ["never", "Never"],
  ]);
  const expiry = form.time("Time", "expiry-at", null, token.expiresAt);
  const updateTimeField = () => {
    expiry.line.hidden = when.value() !== "at";
    expiry.input.required = when.value() === "at";
  };
  when.input.addEventListener("change", updateTimeField);
  updateTimeField();
  open({
    title: "Token expiry",
    button: "Set expiry",
    fields: [tokenLine(token), when.line, expiry.line],
    done: "Expiry updated.",
    action: async () => {
      const bodies = { now: {}, never: { expiresAt: null }, at: { expiresAt: expiry.value() } };
      await post(tokenPath(token.id, "expire"), bodies[when.value()]);
    },
  });
}

export function revoke(token) {
  const warning = "Clients that use it are rejected immediately. This cannot be undone.";
  open({
    title: "Revoke token?",
    button: "Revoke",
    kind: "danger",
    fields: [tokenLine(token), make("p", {}, warning)],
    done: "Token revoked.",
    action: async () => {
      await post(tokenPath(token.id, "revoke"));
    },
  });
}

/** Shows the value of a token, which the server never returns again. */
function showSecret({ token, userId }) {
  const status = make("span", { class: "muted", role: "status" });
  const text = make("input", { id: "secret", type: "text", readonly: true, "aria-label": "The token" });
  text.value = token;
  const copy = make("button", { type: "button", class: "plain", id: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    status.textContent = (await copyText(text)) ? "Copied." : "Select the token and copy it.";
  });
  const done = make("button", { type: "button", class: "primary", click: close }, "I have saved it");
  const content = make(
    "div",
    {},
    make("p", {}, "The token of ", make("strong", {}, userId ?? "no user"), " is shown only once:"),
    make("div", { class: "secret" }, text, copy),
    status,
    make("div", { class: "buttons" }, done),
  );
  show("Save this token", content);
  text.select();
}

/** Copies the text. Without HTTPS, browsers only support `execCommand`. */
async function copyText(input) {
  try {
    await navigator.clipboard.writeText(input.value);
    return true;
  } catch {
    input.select();
    return document.execCommand("copy");
  }
}
