// What an admin does with tokens, each in a dialog of its own.

import { ofToken, patch, post } from "./api.js";
import { byId, fill, make, say } from "./dom.js";
import * as form from "./form.js";

let refresh = async () => {};
/** The button that opened the dialog, by its `data-focus`, since tables are made anew. */
let opener = null;

export function start(afterwards) {
  refresh = afterwards;
  const dialog = byId("dialog");
  dialog.addEventListener("cancel", (event) => {
    // A slip of the finger must not lose a secret.
    if (byId("secret")) event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    // A secret must not stay behind in a closed dialog.
    fill(dialog);
    const again = [...document.querySelectorAll("[data-focus]")];
    const button = again.find((candidate) => candidate.dataset.focus === opener);
    (button ?? byId("create")).focus();
  });
}

export function close() {
  byId("dialog").close();
}

/**
 * Opens a form. `deed` does what the form is for; what it throws is shown, and the form stays open.
 * What it gives is the secret of a token to be shown, or nothing.
 */
function open({ title, fields, button, kind = "primary", deed, done }) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const send = make("button", { type: "submit", class: kind }, button);
  const cancel = make("button", { type: "button", class: "plain", click: close }, "Cancel");
  const submit = async (event) => {
    event.preventDefault();
    problem.hidden = true;
    send.disabled = true;
    try {
      const secret = await deed();
      // Shown before anything else is asked for: it cannot be asked for again.
      if (secret) showSecret(secret);
      else close();
      say(done);
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

const whose = (token) =>
  make(
    "p",
    {},
    "Token ",
    make("code", {}, token.tokenPrefix),
    " of ",
    make("strong", {}, token.userId ?? "nobody in particular"),
    ".",
  );

export function create() {
  const sharing = "All tokens of one user share notes, tasks and kept answers.";
  const user = form.text("User", { id: "new-user", maxlength: 128 }, sharing);
  const role = form.choice("Role", "new-role", [
    ["user", "User: may use the tools"],
    ["admin", "Admin: may use the tools and this page"],
  ]);
  const end = form.time("Ends", "new-end", "Empty: never.");
  const limits = form.limits({}, {});
  open({
    title: "New token",
    button: "Create token",
    fields: [user.line, role.line, end.line, form.folded("Limits", limits.line)],
    done: "The token was made.",
    deed: async () => {
      const wish = { role: role.value(), expiresAt: end.value(), limits: limits.value() };
      return post("/admin/tokens", { ...wish, userId: user.value() });
    },
  });
}

export function editLimits(token) {
  const limits = form.limits(token.limits, token.limitsInForce);
  open({
    title: "Limits",
    button: "Save limits",
    fields: [whose(token), limits.line],
    done: "The limits were changed.",
    deed: async () => {
      await patch(ofToken(token.id), { limits: limits.value() });
    },
  });
}

export function rotate(token) {
  const grace = form.choice("The old text ends", "grace", [
    ["0", "at once"],
    ["600", "in 10 minutes"],
    ["3600", "in one hour"],
  ]);
  open({
    title: "Rotate token",
    button: "Rotate",
    fields: [whose(token), make("p", {}, "It gets a new text. Use and limits stay."), grace.line],
    done: "The token has a new text.",
    deed: () => post(ofToken(token.id, "rotate"), { graceSeconds: Number(grace.value()) }),
  });
}

export function expire(token) {
  const when = form.choice("Ends", "end-kind", [
    ["now", "Now"],
    ["at", "At the time below"],
    ["never", "Never"],
  ]);
  const end = form.time("Time", "end-at", null, token.expiresAt);
  const needed = () => {
    end.line.hidden = when.value() !== "at";
    end.input.required = when.value() === "at";
  };
  when.input.addEventListener("change", needed);
  needed();
  open({
    title: "End of the token",
    button: "Set the end",
    fields: [whose(token), when.line, end.line],
    done: "The end of the token was set.",
    deed: async () => {
      const wishes = { now: {}, never: { expiresAt: null }, at: { expiresAt: end.value() } };
      await post(ofToken(token.id, "expire"), wishes[when.value()]);
    },
  });
}

export function revoke(token) {
  const warning = "Whoever uses it is refused from now on. This cannot be taken back.";
  open({
    title: "Revoke token?",
    button: "Revoke",
    kind: "danger",
    fields: [whose(token), make("p", {}, warning)],
    done: "The token was revoked.",
    deed: async () => {
      await post(ofToken(token.id, "revoke"));
    },
  });
}

/** Shows the text of a token, which the server will not tell again. */
function showSecret({ token, userId }) {
  const said = make("span", { class: "quiet", role: "status" });
  const text = make("input", { id: "secret", type: "text", readonly: true, "aria-label": "The token" });
  text.value = token;
  const copy = make("button", { type: "button", class: "plain", id: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    said.textContent = (await copied(text)) ? "Copied." : "Select the text and copy it.";
  });
  const end = make("button", { type: "button", class: "primary", click: close }, "I have kept it");
  const content = make(
    "div",
    {},
    make("p", {}, "The token of ", make("strong", {}, userId ?? "nobody in particular"), " is shown this once:"),
    make("div", { class: "secret" }, text, copy),
    said,
    make("div", { class: "buttons" }, end),
  );
  show("Keep this token", content);
  text.select();
}

/** Copies; where the page came without encryption, browsers have only the old way. */
async function copied(input) {
  try {
    await navigator.clipboard.writeText(input.value);
    return true;
  } catch {
    input.select();
    return document.execCommand("copy");
  }
}
