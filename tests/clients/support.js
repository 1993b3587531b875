// What the tests share.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

export const here = dirname(fileURLToPath(import.meta.url));
const commandLine =
  process.env.EXA_MCP_SERVER_COMMAND ?? join(here, "../../target/debug/exa-mcp-server");
export const [command, ...args] = commandLine.split(/\s+/).filter(Boolean);
export const calls = JSON.parse(
  process.env.EXA_MCP_TEST_CALLS ?? readFileSync(join(here, "calls.json"), "utf8"),
);

/** Connects a client that also keeps every message it receives. */
export async function connect(...options) {
  const all = [...args, ...options];
  const transport = new StdioClientTransport({ command, args: all, env: process.env });
  const client = new Client({ name: "test", version: "1.0.0" });
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

export const hasCode = (code) => (error) => error.code === code;
