// Shared helpers: a server with a sandbox, its users, and a browser.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

export const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.EXA_MCP_SERVER_COMMAND ?? join(here, "../../target/debug/exa-mcp-server");
const browserProgram = process.env.CHROMIUM ?? "/usr/bin/chromium";

export const ADMIN = "the-admin-secret-of-the-dashboard-tests";

/** Starts a server, by default with its own sandbox. */
export async function serve(variables, before = ["--sandbox"]) {
  const folder = mkdtempSync(join(tmpdir(), "dashboard-store-"));
  const store = join(folder, "store.db");
  const env = { HOME: folder, EXA_MCP_STORE: "sqlite:store.db", ...variables };
  const started = await start([...before, "http", "--listen", "127.0.0.1:0"], env, folder);
  const stop = async () => {
    await started.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { origin: started.origin, store, stop };
}

/** Starts the program and waits until it listens. */
export function start(options, variables, cwd) {
  const env = { PATH: process.env.PATH, ...variables };
  const child = spawn(program, options, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let stopped = false;
  const stop = () => {
    stopped = true;
    child.kill();
    return ended;
  };
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr.on("data", (data) => {
      log += data;
      // An embedded sandbox may print its URL first; the server's has a path.
      const path = options.includes("http") ? "/mcp" : "";
      const found = new RegExp(`(http://[0-9.]+:[0-9]+)${path}\\b`).exec(log);
      if (!found) return;
      listens = true;
      resolve({ origin: found[1], stop });
    });
    let listens = false;
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      const error = new Error(`the program ended with ${code ?? signal}: ${log}`);
      // Once the program listens, the promise is resolved, and only an exception fails the tests.
      if (listens && !stopped) throw error;
      reject(error);
    });
  });
}

/** Sends a request to the admin API. */
export async function admin(server, path, body) {
  const headers = { Authorization: `Bearer ${ADMIN}`, "Content-Type": "application/json" };
  const options = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
  const response = await fetch(server.origin + path, options);
  return response.json();
}

/** A user with a token who calls tools. */
export class Caller {
  constructor(server, token) {
    this.url = `${server.origin}/mcp`;
    this.headers = {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json",
    };
  }

  /** Starts a session; returns the status and the error message. */
  async initialize() {
    const clientInfo = { name: "test", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const response = await this.post({ id: 1, method: "initialize", params });
    const body = await response.json();
    const session = response.headers.get("mcp-session-id");
    if (session) this.headers["Mcp-Session-Id"] = session;
    if (session) await this.post({ method: "notifications/initialized" });
    return { status: response.status, message: body.error?.message };
  }

  /** Searches once. All searches must differ, because cached ones are free. */
  async search(query) {
    const params = { name: "web_search_exa", arguments: { query, numResults: 1 } };
    const response = await this.post({ id: 2, method: "tools/call", params });
    const body = await response.json();
    return body.result?.isError === false ? "ok" : (body.error?.message ?? "failed");
  }

  post(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    return fetch(this.url, { method: "POST", headers: this.headers, body });
  }
}

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a browser with a new profile. */
export async function browse(options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "dashboard-browser-"));
  const settings = { executablePath: browserProgram, headless: true, args: FLAGS, ...options };
  const context = await chromium.launchPersistentContext(folder, settings);
  const close = async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { context, close };
}

/** Opens the page and records requests, errors and dialogs. */
export async function open(context, server, path = "/admin") {
  const page = await context.newPage();
  const recorded = { requests: [], errors: [], dialogs: [] };
  page.on("request", (request) => recorded.requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && recorded.errors.push(message.text()));
  page.on("pageerror", (error) => recorded.errors.push(String(error)));
  page.on("dialog", (dialog) => {
    recorded.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  await page.addInitScript(() => {
    window.violations = [];
    const record = (event) => window.violations.push(event.effectiveDirective);
    document.addEventListener("securitypolicyviolation", record);
  });
  await page.goto(server.origin + path);
  return { page, recorded };
}

export async function signIn(page, token = ADMIN) {
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Signs in and waits until the page is complete. */
export async function enter(page) {
  await signIn(page);
  await page.getByRole("img", { name: /^Cost by day/ }).waitFor();
  await page.locator("#audit-table table, #audit-table .empty").first().waitFor();
}
