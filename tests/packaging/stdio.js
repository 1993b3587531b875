// A client of a stdio server that does no more than the tests need.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Starts a server and initializes it. */
export async function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...options });
  const exited = new Promise((done) => child.once("exit", (code, signal) => done({ code, signal })));
  let log = "";
  child.stderr.on("data", (data) => (log += data));
  const waiting = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.id !== undefined && !message.method) waiting.get(message.id)?.(message);
  });
  let next = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const request = (method, params) => {
    const id = ++next;
    const reply = new Promise((done) => waiting.set(id, done));
    send({ id, method, params });
    const ended = exited.then(({ code }) => {
      throw new Error(`the server ended with ${code} during ${method}: ${log}`);
    });
    return Promise.race([reply, ended]);
  };
  const initialized = await request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "packaging-tests", version: "1.0.0" },
  });
  send({ method: "notifications/initialized" });
  return { child, exited, request, initialized, log: () => log };
}

/** Calls a tool and returns its result. */
export async function callTool(server, name, args) {
  const { result, error } = await server.request("tools/call", { name, arguments: args });
  if (error) throw new Error(`${name}: ${JSON.stringify(error)}`);
  return result;
}
