// Client for the admin API. The token is stored only in a variable of this module, so it is gone with the page.

let token = null;

/** A failed request. */
export class ApiError extends Error {
  constructor(message, { status = 0, signsOut = false } = {}) {
    super(message);
    this.status = status;
    /** Whether the token was rejected. */
    this.signsOut = signsOut;
  }
}

export const isSignedIn = () => token !== null;

/** Stores a token. HTTP headers only allow Latin-1 characters, so a token with others is invalid. */
export function setToken(text) {
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(text)) {
    throw new ApiError("Invalid token: it contains characters that tokens cannot contain.");
  }
  token = text;
}

export function clearToken() {
  token = null;
}

/** Returns the public health of the server. */
export async function health() {
  return parseResponse(await send("GET", "/health", undefined, {}));
}

export const read = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body ?? {});
export const patch = (path, body) => request("PATCH", path, body);

/** Returns the path of a token or of an action on it. */
export const tokenPath = (id, action) =>
  `/admin/tokens/${encodeURIComponent(id)}${action ? `/${action}` : ""}`;

async function request(method, path, body) {
  const sentToken = token;
  const response = await send(method, path, body, { Authorization: `Bearer ${sentToken}` });
  const data = await parseResponse(response);
  // Discard a response that arrives after the user signed out.
  if (token !== sentToken) throw new ApiError("You have signed out.");
  return data;
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
    throw new ApiError("The server cannot be reached. Is it running?");
  }
}

async function parseResponse(response) {
  const status = response.status;
  let data = null;
  try {
    data = await response.json();
  } catch {
    throw new ApiError(`Unexpected response (HTTP ${status}).`, { status });
  }
  if (response.ok) return data;
  // Only a rejected token signs the user out.
  const signsOut = response.headers.has("WWW-Authenticate");
  throw new ApiError(errorMessage(response, data?.error?.message), { status, signsOut });
}

function errorMessage(response, message) {
  const text = typeof message === "string" ? message : `The server responded with HTTP ${response.status}`;
  const wait = Number(response.headers.get("Retry-After"));
  const when = wait > 0 ? ` Try again in ${wait} ${wait === 1 ? "second" : "seconds"}` : "";
  const end = /[.!?]$/.test(text) ? "" : ".";
  return `${text}${end}${when}${when ? "." : ""}`;
}
