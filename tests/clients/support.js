// Shared helpers.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

export const here = dirname(fileURLToPath(import.meta.url));
const commandLine =
  process.env.EXA_MCP_SERVER_COMMAND ?? join(here, "../../target/debug/exa-mcp-server");
export const [command, ...args] = commandLine.split(/\s+/).filter(Boolean);
export const calls = JSON.parse(
  process.env.EXA_MCP_TEST_CALLS ?? readFileSync(join(here, "calls.json"), "utf8"),
);

/** The tokens of the users of the shared HTTP server. */
export const tokens = { admin: "admin-of-tests", ann: "token-of-ann", bob: "token-of-bob" };

/** Connects a client that records every received message; `elicit` responds for its user. */
async function attach(transport, elicit) {
  const capabilities = elicit ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities });
  if (elicit) client.setRequestHandler(ElicitRequestSchema, elicit);
  const failures = [];
  client.onerror = (error) => failures.push(error);
  await client.connect(transport);
  const received = [];
  const handle = transport.onmessage;
  transport.onmessage = (message, extra) => {
    received.push(message);
    handle?.(message, extra);
  };
  return { client, transport, received, failures };
}

/** Starts a server for the client and connects over stdio. */
export function connect({ tools, elicit } = {}) {
  const all = [...args, ...(tools ? ["--tools", tools] : [])];
  const transport = new StdioClientTransport({ command, args: all, env: process.env, stderr: "pipe" });
  let log = "";
  transport.stderr.on("data", (data) => {
    log += data;
    // Messages about failed calls are expected; panics are not.
    if (log.includes("panicked at")) throw new Error(`the server panicked: ${log}`);
  });
  return attach(transport, elicit);
}

let started;

/** Returns the address of the shared HTTP server, which starts on first use and exits with this process. */
export function httpServer() {
  started ??= new Promise((resolve, reject) => {
    const env = {
      ...process.env,
      EXA_API_KEYS: "client-tests",
      EXA_MCP_STORE: "memory:",
      MCP_AUTH_TOKEN: tokens.admin,
      USER_TOKENS: `${tokens.ann}:ann:never,${tokens.bob}:bob:2999-12-31`,
    };
    const sets = Object.keys(calls.sets ?? { default: [] }).join();
    const all = [...args, "--tools", sets, "http", "--listen", "127.0.0.1:0"];
    const server = spawn(command, all, { env, stdio: ["ignore", "ignore", "pipe"] });
    process.on("exit", () => server.kill());
    // A process that is killed by a signal would leave the server behind.
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
    let log = "";
    let listens = false;
    server.on("exit", (code, signal) => {
      const error = new Error(`the server ended with ${code ?? signal}: ${log}`);
      // Once the server listens, the promise is resolved, and only an exception fails the tests.
      if (listens) throw error;
      reject(error);
    });
    server.stderr.on("data", (data) => {
      log += data;
      if (log.includes("panicked at")) throw new Error(`the server panicked: ${log}`);
      const [address] = log.match(/http:[/][/][0-9.:]+(?=[/]mcp)/) ?? [];
      if (!address) return;
      listens = true;
      resolve(address);
      // From now on neither the server nor its output keeps this process alive.
      server.unref();
      server.stderr.unref();
    });
  });
  return started;
}

/** Returns the URL of a path on the shared server, restricted to a tool set. */
export async function httpAddress(path, tools = "default") {
  const address = new URL(path, await httpServer());
  address.searchParams.set("tools", tools);
  return address;
}

const withToken = (token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

/** Connects to the shared server over Streamable HTTP. */
export async function connectOverHttp({ tools, elicit, token = tokens.ann } = {}) {
  const address = await httpAddress("/mcp", tools);
  return attach(new StreamableHTTPClientTransport(address, withToken(token)), elicit);
}

/** Connects to the shared server over the HTTP+SSE transport of 2024-11-05. */
export async function connectOverSse({ tools, elicit, token = tokens.ann } = {}) {
  const address = await httpAddress("/sse", tools);
  return attach(new SSEClientTransport(address, withToken(token)), elicit);
}

/** Functions that connect a client, by transport. */
export const connectors = {
  stdio: connect,
  "Streamable HTTP": connectOverHttp,
  "HTTP with SSE": connectOverSse,
};

export const hasCode = (code) => (error) => error.code === code;
