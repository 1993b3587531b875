// What the tests share.

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

/** Whose token is whose on the server that HTTP clients share. */
export const tokens = { admin: "admin-of-tests", ann: "token-of-ann", bob: "token-of-bob" };

/** Connects a client that also keeps every message it receives; `elicit` answers for its user. */
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

/** Starts a server of its own for the client and talks to it over standard input and output. */
export function connect({ tools, elicit } = {}) {
  const all = [...args, ...(tools ? ["--tools", tools] : [])];
  const transport = new StdioClientTransport({ command, args: all, env: process.env, stderr: "pipe" });
  let said = "";
  transport.stderr.on("data", (data) => {
    said += data;
    // What it says of failed calls is expected, that is not.
    if (said.includes("panicked at")) throw new Error(`the server panicked: ${said}`);
  });
  return attach(transport, elicit);
}

let started;

/** The address of a server over HTTP, started when it is first asked for; it ends with this process. */
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
    // A process that is ended from outside would leave the server behind.
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
    let said = "";
    let listens = false;
    server.on("exit", (code, signal) => {
      const error = new Error(`the server ended with ${code ?? signal}: ${said}`);
      // Once it listens nobody waits for it, and only an exception fails the tests.
      if (listens) throw error;
      reject(error);
    });
    server.stderr.on("data", (data) => {
      said += data;
      if (said.includes("panicked at")) throw new Error(`the server panicked: ${said}`);
      const [address] = said.match(/http:[/][/][0-9.:]+(?=[/]mcp)/) ?? [];
      if (!address) return;
      listens = true;
      resolve(address);
      // From now on neither the server nor what it says keeps this process alive.
      server.unref();
      server.stderr.unref();
    });
  });
  return started;
}

/** The address of a path on that server, which narrows its tools down to a set. */
export async function httpAddress(path, tools = "default") {
  const address = new URL(path, await httpServer());
  address.searchParams.set("tools", tools);
  return address;
}

const bearing = (token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

/** Talks to the shared server over Streamable HTTP. */
export async function connectOverHttp({ tools, elicit, token = tokens.ann } = {}) {
  const address = await httpAddress("/mcp", tools);
  return attach(new StreamableHTTPClientTransport(address, bearing(token)), elicit);
}

/** Talks to the shared server over the transport of 2024-11-05. */
export async function connectOverSse({ tools, elicit, token = tokens.ann } = {}) {
  const address = await httpAddress("/sse", tools);
  return attach(new SSEClientTransport(address, bearing(token)), elicit);
}

/** The ways to reach a server. */
export const ways = {
  stdio: connect,
  "Streamable HTTP": connectOverHttp,
  "HTTP with SSE": connectOverSse,
};

export const hasCode = (code) => (error) => error.code === code;
