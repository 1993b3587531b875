// Sign-in, sign-out and periodic refresh.

import * as api from "./api.js";
import * as audit from "./audit.js";
import * as dialogs from "./dialogs.js";
import { byId, announce } from "./dom.js";
import * as live from "./live.js";
import * as tokens from "./tokens.js";
import * as usage from "./usage.js";

/** How often the live state is polled, in milliseconds. */
const POLL_INTERVAL = 4_000;
/** Everything else is refreshed once per this many polls. */
const POLLS_PER_REFRESH = 8;

let timer = null;
let polls = 0;

async function start() {
  byId("sign-in-form").addEventListener("submit", signIn);
  byId("sign-out").addEventListener("click", () => signOut());
  byId("days").addEventListener("change", () => attempt(loadUsage));
  for (const choice of document.querySelectorAll("input[name=measure]")) {
    choice.addEventListener("change", usage.show);
  }
  tokens.start(() => attempt(refresh), attempt);
  audit.start(attempt);
  live.start(attempt);
  document.addEventListener("visibilitychange", refreshIfVisible);
  // A page in the browser's back/forward cache must not retain the token.
  window.addEventListener("pagehide", () => signOut());
  try {
    const { mode } = await api.health();
    show(mode === "passthrough" ? "no-tokens" : "sign-in");
  } catch (error) {
    show("sign-in");
    showError(error.message);
  }
}

/** Shows one part of the page. */
function show(part) {
  for (const id of ["no-tokens", "sign-in", "dashboard"]) byId(id).hidden = id !== part;
  for (const id of ["nav", "sign-out", "updated"]) byId(id).hidden = part !== "dashboard";
  if (part === "sign-in") byId("token").focus();
}

async function signIn(event) {
  event.preventDefault();
  const field = byId("token");
  const button = event.target.querySelector("button");
  showSignInError(null);
  button.disabled = true;
  try {
    api.setToken(field.value.trim());
    await tokens.load();
    field.value = "";
    show("dashboard");
    byId("main").focus();
    announce("You are signed in.");
    await attempt(refresh);
  } catch (error) {
    api.clearToken();
    showSignInError(error.message);
    field.select();
  } finally {
    button.disabled = false;
  }
}

/** Clears the token and all data. */
function signOut(why) {
  if (!api.isSignedIn()) return;
  api.clearToken();
  clearTimeout(timer);
  dialogs.close();
  for (const part of [live, usage, tokens, audit]) part.clear();
  byId("token").value = "";
  showError(null);
  show("sign-in");
  showSignInError(why ?? null);
  announce("You are signed out.");
}

function showSignInError(text) {
  const element = byId("sign-in-problem");
  element.textContent = text ?? "";
  element.hidden = !text;
}

/** Shows an error at the top of the page, or hides it. */
function showError(text) {
  const element = byId("message");
  element.textContent = text ?? "";
  element.className = "notice bad";
  element.hidden = !text;
}

/** Runs an action that may fail. A rejected token signs the user out. */
async function attempt(action) {
  try {
    await action();
    showError(null);
  } catch (error) {
    if (!api.isSignedIn()) return;
    if (error.signsOut) signOut(error.message);
    else showError(error.message);
  }
}

async function loadUsage() {
  await usage.load();
  live.showTiles();
}

/** Reloads everything and restarts polling. */
async function refresh() {
  clearTimeout(timer);
  polls = 0;
  try {
    await Promise.all([tokens.load(), usage.load()]);
    await Promise.all([live.load(), audit.load()]);
    showUpdateTime();
  } finally {
    schedulePoll();
  }
}

function schedulePoll() {
  clearTimeout(timer);
  if (api.isSignedIn()) timer = setTimeout(poll, POLL_INTERVAL);
}

/** Polls the live state, unless the page is hidden. */
async function poll() {
  if (document.hidden) return;
  polls += 1;
  if (polls >= POLLS_PER_REFRESH) {
    await attempt(refresh);
    return;
  }
  await attempt(async () => {
    await live.load();
    showUpdateTime();
  });
  schedulePoll();
}

function refreshIfVisible() {
  if (!document.hidden && api.isSignedIn()) attempt(refresh);
}

const clock = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });

function showUpdateTime() {
  byId("updated").textContent = `Updated ${clock.format(new Date())}`;
}

start();
