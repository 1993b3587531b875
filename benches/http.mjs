// The shared server beside a minimal rmcp server over HTTP, in one interleaved run; writes RESULTS-HTTP.md.
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
const ADMIN = "the-token-of-the-admin";
/** A search that is asked once, and then looked at in the cache, one result at a time. */
const LOOK = '{"query": "fusion energy companies"}|{"cache_id": "#", "index": 0}';

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

/** Throughput side by side, and the latency of one caller. */
async function sideBySide() {
  const server = await ours("side");
  const { answerBytes } = await load(server, "web_search_exa", LOOK, CONNECTIONS);
  const floor = (variables) => start(join(programs, "floor_http"), [], variables);
  const servers = {
    ours: [server, "web_search_exa", LOOK],
    floor: [await floor({}), "hello", "{}"],
    alike: [await floor({ FLOOR_BYTES: String(answerBytes) }), "hello", "{}"],
  };
  const names = Object.keys(servers);
  const rounds = Object.fromEntries(names.flatMap((name) => [[name, []], [`${name}Alone`, []]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const place of names.keys()) {
      const name = names[(round + place) % names.length];
      const many = await load(...servers[name]);
      const alone = await load(...servers[name], CALLS / 6, 1);
      if (round > 0) (rounds[name].push(many), rounds[`${name}Alone`].push(alone));
    }
  }
  Object.values(servers).forEach(([{ stop }]) => stop());
  return rounds;
}

async function makeTokens(server, count) {
  const make = async () => {
    const answer = await fetch(`${server.url}/admin/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: JSON.stringify({ userId: `user-${Math.random()}` }),
    });
    if (answer.status !== 201) throw new Error(`no token: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  for (let made = 0; made < count; made += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - made) }, make));
  }
}

/** The same calls with few and with many tokens, interleaved. */
async function tokens() {
  const [few, many] = [await ours("few"), await ours("many")];
  await makeTokens(few, FEW);
  await makeTokens(many, MANY);
  const times = { few: [], many: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of round % 2 ? ["few", "many"] : ["many", "few"]) {
      const figures = await load({ few, many }[name], "web_search_exa", LOOK, CALLS / 6, 1);
      if (round > 0) times[name].push(figures.medianMs);
    }
  }
  const sizes = { few: memory(few), many: memory(many) };
  few.stop();
  many.stop();
  return { times, sizes };
}

/** Processor time of a server so far, in microseconds. The unit of `/proc` is a hundredth of a second. */
function processor({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** Begins a session, and gives what sends a message in it that is neither answered nor counted. */
async function notifier(server, headers) {
  const send = async (message, more = {}) => {
    const answer = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    return answer.headers.get("mcp-session-id");
  };
  const clientInfo = { name: "bench", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const session = await send({ id: 1, method: "initialize", params });
  return () => send({ method: "notifications/initialized" }, { "mcp-session-id": session });
}

/** What a server does for a message that does nothing, with tokens and without, interleaved. */
async function authentication() {
  const open = { EXA_MCP_STORE: `sqlite:${folder}/open.db` };
  const servers = {
    shown: await ours("shown"),
    open: await start(join(programs, "exa-mcp-server"), ["--sandbox", "http", "--listen", "127.0.0.1:0"], open),
  };
  await makeTokens(servers.shown, 1_000);
  const notify = {
    shown: await notifier(servers.shown, { authorization: "Bearer bench-token" }),
    open: await notifier(servers.open, {}),
  };
  const times = { shown: [], open: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of round % 2 ? ["shown", "open"] : ["open", "shown"]) {
      const before = processor(servers[name]);
      for (let sent = 0; sent < MESSAGES; sent += 8) await Promise.all(Array.from({ length: 8 }, notify[name]));
      if (round > 0) times[name].push((processor(servers[name]) - before) / MESSAGES);
    }
  }
  Object.values(servers).forEach(({ stop }) => stop());
  return times;
}

/** Memory while very many requests go by. */
async function endurance() {
  const server = await ours("long");
  const steps = [];
  for (let done = 0; done < LONG; done += LONG / 10) {
    await load(server, "web_search_exa", LOOK, LONG / 10);
    steps.push(memory(server));
  }
  server.stop();
  return steps;
}

const side = await sideBySide();
const crowd = await tokens();
const showing = await authentication();
const steps = await endurance();
rmSync(folder, { recursive: true });

const rate = (figures) => summary(figures.map(({ callsASecond }) => callsASecond));
const wait = (figures) => summary(figures.map(({ medianMs }) => medianMs));
const ratio = (ours, floor) => number(ours.median / floor.median);
const [fast, least, alike] = [rate(side.ours), rate(side.floor), rate(side.alike)];
const [alone, leastAlone, alikeAlone] = [wait(side.oursAlone), wait(side.floorAlone), wait(side.alikeAlone)];
const [few, many] = [summary(crowd.times.few), summary(crowd.times.many)];
const [shown, open] = [summary(showing.shown), summary(showing.open)];
const text = `# Benchmark over HTTP

Written by \`benches/run\`; not edited by hand, and asserted by no test.

Machine: ${machine}.

**ours** is the release build in pool mode with a SQLite store: every call shows a token, is checked against its limits, and is
counted in the store before its answer leaves. **floor** is the least that a server on the same rmcp can be, with sessions and
answers in JSON. The call of ours is a look at one result in the cache (${side.ours[0].answerBytes} bytes), that of the floor says hello.
**alike** is the floor with an answer as long as ours, kept in memory.

${table(
  ["measure", "ours", "floor", "alike", "ours ÷ floor", "ours ÷ alike"],
  [
    [
      `calls a second, ${CONNECTIONS} connections`,
      cell(fast), cell(least), cell(alike), `${ratio(fast, least)}×`, `${ratio(fast, alike)}×`,
    ],
    [
      "one caller, median, ms",
      cell(alone), cell(leastAlone), cell(alikeAlone), `${ratio(alone, leastAlone)}×`, `${ratio(alone, alikeAlone)}×`,
    ],
  ],
)}

${table(
  ["measure", `${FEW} tokens`, `${number(MANY)} tokens`, "ratio"],
  [
    ["one caller, median, ms", cell(few), cell(many), `${ratio(many, few)}×`],
    ["memory, MiB", number(crowd.sizes.few), number(crowd.sizes.many), ""],
  ],
)}

Processor time of the server for a message that does nothing, in microseconds: ${cell(shown)} where a token is shown (1,000
tokens), ${cell(open)} where none is needed. What authentication takes is the difference, ${number(shown.median - open.median)} µs, as far as it is
more than the spread of both.

Memory while ${number(LONG)} calls go by, after each tenth, MiB: ${steps.map(number).join(", ")}
(the median of the last five is ${number(median(steps.slice(5)) / median(steps.slice(0, 5)))} times that of the first five).

${ROUNDS} rounds, interleaved with changing order; in brackets the range that holds eight of ten. The driver runs on the same machine.
`;
writeFileSync(new URL("RESULTS-HTTP.md", import.meta.url), text);
console.log(text);
