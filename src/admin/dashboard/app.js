// Signing in and out, and asking again as time goes by.

import * as api from "./api.js";
import * as audit from "./audit.js";
import * as dialogs from "./dialogs.js";
import { byId, say } from "./dom.js";
import * as live from "./live.js";
import * as tokens from "./tokens.js";
import * as usage from "./usage.js";

/** What goes on now is asked for that often, in milliseconds. */
const PULSE = 4_000;
/** Everything else is asked for with every so many of these. */
const BEATS = 8;

let timer = null;
let beats = 0;

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
  document.addEventListener("visibilitychange", wake);
  // A page that a browser keeps for going back must not keep the token.
  window.addEventListener("pagehide", () => signOut());
  try {
    const { mode } = await api.health();
    show(mode === "passthrough" ? "nothing" : "sign-in");
  } catch (error) {
    show("sign-in");
    complain(error.message);
  }
}

/** Shows one of the parts of the page. */
function show(part) {
  for (const id of ["nothing", "sign-in", "board"]) byId(id).hidden = id !== part;
  for (const id of ["nav", "sign-out", "fresh"]) byId(id).hidden = part !== "board";
  if (part === "sign-in") byId("token").focus();
}

async function signIn(event) {
  event.preventDefault();
  const field = byId("token");
  const button = event.target.querySelector("button");
  problem(null);
  button.disabled = true;
  try {
    api.remember(field.value.trim());
    await tokens.load();
    field.value = "";
    show("board");
    byId("main").focus();
    say("You are signed in.");
    await attempt(refresh);
  } catch (error) {
    api.forget();
    problem(error.message);
    field.select();
  } finally {
    button.disabled = false;
  }
}

/** Forgets the token and everything that it let the page see. */
function signOut(why) {
  if (!api.isSignedIn()) return;
  api.forget();
  clearTimeout(timer);
  dialogs.close();
  for (const part of [live, usage, tokens, audit]) part.clear();
  byId("token").value = "";
  complain(null);
  show("sign-in");
  problem(why ?? null);
  say("You are signed out.");
}

function problem(text) {
  const place = byId("sign-in-problem");
  place.textContent = text ?? "";
  place.hidden = !text;
}

/** Says above everything what does not work now. */
function complain(text) {
  const place = byId("message");
  place.textContent = text ?? "";
  place.className = "notice bad";
  place.hidden = !text;
}

/** Does something that may fail; whoever is not let in any more is signed out. */
async function attempt(deed) {
  try {
    await deed();
    complain(null);
  } catch (error) {
    if (!api.isSignedIn()) return;
    if (error.signsOut) signOut(error.message);
    else complain(error.message);
  }
}

async function loadUsage() {
  await usage.load();
  live.showTiles();
}

/** Asks for everything, and begins to count the time anew. */
async function refresh() {
  clearTimeout(timer);
  beats = 0;
  try {
    await Promise.all([tokens.load(), usage.load()]);
    await Promise.all([live.load(), audit.load()]);
    freshAsOfNow();
  } finally {
    wait();
  }
}

function wait() {
  clearTimeout(timer);
  if (api.isSignedIn()) timer = setTimeout(beat, PULSE);
}

/** Nobody looks at a hidden page, so nothing is asked for it. */
async function beat() {
  if (document.hidden) return;
  beats += 1;
  if (beats >= BEATS) {
    await attempt(refresh);
    return;
  }
  await attempt(async () => {
    await live.load();
    freshAsOfNow();
  });
  wait();
}

function wake() {
  if (!document.hidden && api.isSignedIn()) attempt(refresh);
}

const clock = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });

function freshAsOfNow() {
  byId("fresh").textContent = `Updated ${clock.format(new Date())}`;
}

start();
