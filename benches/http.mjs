// Compares the shared server with a minimal rmcp server over HTTP in one interleaved run; writes RESULTS-HTTP.md.
//
//   node http.mjs PROGRAMS [million]     PROGRAMS is a folder with exa-mcp-server, floor_http and load
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { start } from "./lib/backends.mjs";
import { describeMachine } from "./lib/machine.mjs";
import { cell, number, table } from "./lib/report.mjs";
import { median, summary } from "./lib/stats.mjs";

const [, , programs, extent] = process.argv;
const machine = describeMachine();
const execute = promisify(execFile);

const ROUNDS = 7;
const CONNECTIONS = 32;
const CALLS = 6_000;
const FEW = 10;
const MANY = 100_000;
const MESSAGES = 8_000;
const LONG = extent === "million" ? 1_000_000 : 100_000;
const ADMIN = "bench-admin-token";
/** A search that runs once, and then reads of one of its results from the cache. */
const CACHED_READ = '{"query": "fusion energy companies"}|{"cache_id": "#", "index": 0}';

const folder = mkdtempSync(join(tmpdir(), "exa-mcp-http-"));

function ours(name) {
  const variables = { MCP_AUTH_TOKEN: ADMIN, USER_TOKENS: "bench-token:bench", EXA_MCP_STORE: `sqlite:${folder}/${name}.db` };
  return start(join(programs, "exa-mcp-server"), ["--sandbox", "http", "--listen", "127.0.0.1:0"], variables);
}

async function load(server, tool, parameters, calls = CALLS, connections = CONNECTIONS) {
  const address = new URL(server.url).host;
  const options = [address, "bench-token", connections, calls, tool, parameters].map(String);
  return JSON.parse((await execute(join(programs, "load"), options)).stdout);
}

const memory = ({ pid }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;

/** Measures the throughput, and the latency of a single caller. */
async function sideBySide() {
  const server = await ours("side");
  const { responseBytes } = await load(server, "web_search_exa", CACHED_READ, CONNECTIONS);
  const floor = (variables) => start(join(programs, "floor_http"), [], variables);
  const servers = {
    ours: [server, "web_search_exa", CACHED_READ],
    floor: [await floor({}), "hello", "{}"],
    sameSize: [await floor({ FLOOR_BYTES: String(responseBytes) }), "hello", "{}"],
  };
  const names = Object.keys(servers);
  const rounds = Object.fromEntries(names.flatMap((name) => [[name, []], [`${name}Alone`, []]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const index of names.keys()) {
      const name = names[(round + index) % names.length];
      const many = await load(...servers[name]);
      const alone = await load(...servers[name], CALLS / 6, 1);
      if (round > 0) (rounds[name].push(many), rounds[`${name}Alone`].push(alone));
    }
  }
  Object.values(servers).forEach(([{ stop }]) => stop());
  return rounds;
}

async function createTokens(server, count) {
  const create = async () => {
    const response = await fetch(`${server.url}/admin/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: JSON.stringify({ userId: `user-${Math.random()}` }),
    });
    if (response.status !== 201) throw new Error(`no token: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  };
  for (let created = 0; created < count; created += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - created) }, create));
  }
}

/** Measures the same calls with few and with many tokens, interleaved. */
async function tokens() {
  const [few, many] = [await ours("few"), await ours("many")];
  await createTokens(few, FEW);
  await createTokens(many, MANY);
  const times = { few: [], many: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of round % 2 ? ["few", "many"] : ["many", "few"]) {
      const result = await load({ few, many }[name], "web_search_exa", CACHED_READ, CALLS / 6, 1);
      if (round > 0) times[name].push(result.medianMs);
    }
  }
  const sizes = { few: memory(few), many: memory(many) };
  few.stop();
  many.stop();
  return { times, sizes };
}

/** Returns the CPU time of a server so far, in microseconds. The unit of `/proc` is a hundredth of a second. */
function cpuTime({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** Starts a session, and returns a function that sends a notification in it. */
async function notifier(server, headers) {
  const send = async (message, more = {}) => {
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    await response.arrayBuffer();
    return response.headers.get("mcp-session-id");
  };
  const clientInfo = { name: "bench", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const session = await send({ id: 1, method: "initialize", params });
  return () => send({ method: "notifications/initialized" }, { "mcp-session-id": session });
}

/** Measures the CPU time of a notification with and without authentication, interleaved. */
async function authentication() {
  const open = { EXA_MCP_STORE: `sqlite:${folder}/open.db` };
  const servers = {
    authenticated: await ours("authenticated"),
    open: await start(join(programs, "exa-mcp-server"), ["--sandbox", "http", "--listen", "127.0.0.1:0"], open),
  };
  await createTokens(servers.authenticated, 1_000);
  const notify = {
    authenticated: await notifier(servers.authenticated, { authorization: "Bearer bench-token" }),
    open: await notifier(servers.open, {}),
  };
  const times = { authenticated: [], open: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of round % 2 ? ["authenticated", "open"] : ["open", "authenticated"]) {
      const before = cpuTime(servers[name]);
      for (let sent = 0; sent < MESSAGES; sent += 8) await Promise.all(Array.from({ length: 8 }, notify[name]));
      if (round > 0) times[name].push((cpuTime(servers[name]) - before) / MESSAGES);
    }
  }
  Object.values(servers).forEach(({ stop }) => stop());
  return times;
}

/** Measures the memory during a large number of requests. */
async function endurance() {
  const server = await ours("long");
  const steps = [];
  for (let done = 0; done < LONG; done += LONG / 10) {
    await load(server, "web_search_exa", CACHED_READ, LONG / 10);
    steps.push(memory(server));
  }
  server.stop();
  return steps;
}

const side = await sideBySide();
const tokenResults = await tokens();
const authTimes = await authentication();
const steps = await endurance();
rmSync(folder, { recursive: true });

const rate = (results) => summary(results.map(({ callsPerSecond }) => callsPerSecond));
const latency = (results) => summary(results.map(({ medianMs }) => medianMs));
const ratio = (ours, floor) => number(ours.median / floor.median);
const [fast, least, sameSize] = [rate(side.ours), rate(side.floor), rate(side.sameSize)];
const [alone, leastAlone, sameSizeAlone] = [latency(side.oursAlone), latency(side.floorAlone), latency(side.sameSizeAlone)];
const [few, many] = [summary(tokenResults.times.few), summary(tokenResults.times.many)];
const [authenticated, open] = [summary(authTimes.authenticated), summary(authTimes.open)];
const text = `# Benchmark over HTTP

Generated by \`benches/run\`. No test asserts these figures.

Machine: ${machine}.

**ours** is the \`dist\` build in pool mode with a SQLite store: every call carries a token, is checked against its limits, and is
counted in the store before the response is sent. **floor** is a minimal server on the same rmcp, with sessions and JSON
responses. The call of ours reads one result from the cache (${side.ours[0].responseBytes} bytes), that of the floor returns "hello".
**same size** is the floor with a response as long as ours.

${table(
  ["measure", "ours", "floor", "same size", "ours ÷ floor", "ours ÷ same size"],
  [
    [
      `calls per second, ${CONNECTIONS} connections`,
      cell(fast), cell(least), cell(sameSize), `${ratio(fast, least)}×`, `${ratio(fast, sameSize)}×`,
    ],
    [
      "single caller, median, ms",
      cell(alone), cell(leastAlone), cell(sameSizeAlone), `${ratio(alone, leastAlone)}×`, `${ratio(alone, sameSizeAlone)}×`,
    ],
  ],
)}

${table(
  ["measure", `${FEW} tokens`, `${number(MANY)} tokens`, "ratio"],
  [
    ["single caller, median, ms", cell(few), cell(many), `${ratio(many, few)}×`],
    ["memory, MiB", number(tokenResults.sizes.few), number(tokenResults.sizes.many), ""],
  ],
)}

CPU time of the server for a notification, in microseconds: ${cell(authenticated)} with a token (of 1,000), ${cell(open)} without
authentication. Authentication takes the difference, ${number(authenticated.median - open.median)} µs, if that is more than the spread of both.

Memory after each tenth of ${number(LONG)} calls, MiB: ${steps.map(number).join(", ")}
(the median of the last five is ${number(median(steps.slice(5)) / median(steps.slice(0, 5)))} times that of the first five).

${ROUNDS} rounds, interleaved with changing order; in brackets the range from the 10th to the 90th percentile. The driver runs on the
same machine.
`;
writeFileSync(new URL("RESULTS-HTTP.md", import.meta.url), text);
console.log(text);
