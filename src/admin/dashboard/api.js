// The admin API. The token is in a variable of this file and nowhere else, so it ends with the page.

let token = null;

/** An answer that is no success, in words. */
export class Refusal extends Error {
  constructor(message, { status = 0, signsOut = false } = {}) {
    super(message);
    this.status = status;
    /** Whether it is the token that opens nothing here. */
    this.signsOut = signsOut;
  }
}

export const isSignedIn = () => token !== null;

/** Keeps a token. Headers hold Latin letters only, so another one cannot be right. */
export function remember(text) {
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(text)) {
    throw new Refusal("This is no token: it holds letters that no token has.");
  }
  token = text;
}

export function forget() {
  token = null;
}

/** What the server says of itself to everybody. */
export async function health() {
  return answered(await send("GET", "/health", undefined, {}));
}

export const read = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body ?? {});
export const patch = (path, body) => ask("PATCH", path, body);

/** The path of a token and of what is done with it. */
export const ofToken = (id, action) =>
  `/admin/tokens/${encodeURIComponent(id)}${action ? `/${action}` : ""}`;

async function ask(method, path, body) {
  const asked = token;
  const answer = await send(method, path, body, { Authorization: `Bearer ${asked}` });
  const told = await answered(answer);
  // An answer that comes after the sign-out belongs to nobody.
  if (token !== asked) throw new Refusal("You have signed out.");
  return told;
}

async function send(method, path, body, headers) {
  const options = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
  if (body !== undefined) {
    options.headers = { ...headers, "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  try {
    return await fetch(path, options);
  } catch {
    throw new Refusal("The server cannot be reached. Is it running?");
  }
}

async function answered(answer) {
  const status = answer.status;
  let told = null;
  try {
    told = await answer.json();
  } catch {
    throw new Refusal(`What came is no answer of the server (HTTP ${status}).`, { status });
  }
  if (answer.ok) return told;
  // Only whoever is not let in is asked for another token.
  const signsOut = answer.headers.has("WWW-Authenticate");
  throw new Refusal(inWords(answer, told?.error?.message), { status, signsOut });
}

function inWords(answer, message) {
  const said = typeof message === "string" ? message : `The server answered with HTTP ${answer.status}`;
  const wait = Number(answer.headers.get("Retry-After"));
  const when = wait > 0 ? ` Try again in ${wait} ${wait === 1 ? "second" : "seconds"}` : "";
  const end = /[.!?]$/.test(said) ? "" : ".";
  return `${said}${end}${when}${when ? "." : ""}`;
}
