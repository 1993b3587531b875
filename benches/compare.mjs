// Measures all servers and writes RESULTS.md: `node compare.mjs FOLDER_WITH_THE_PROGRAMS`.
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { mock, sandbox } from "./lib/backends.mjs";
import { drive, interleave } from "./lib/drive.mjs";
import { describeMachine } from "./lib/machine.mjs";
import { report } from "./lib/report.mjs";
import { OFFICIAL, floor, minimal, official, ours, withCache, withHelloCall, withSearchCall } from "./lib/servers.mjs";

const ROUNDS = { start: 100, idle: 5, calls: 7 };
// Sequential calls, then calls with 32 in flight. The sandbox is slower than our server, so it gets fewer.
const CALLS = { mock: [500, 2000], sandbox: [200, 500] };
// Reads of one cached result, and different searches with a cache of this size.
const CACHE = { reads: 2000, searches: 100_000, bytes: 8_000_000 };

const release = process.argv[2];
const driver = join(release, "drive");
const log = (text) => console.error(`== ${text}`);

const measureCalls = (servers, [calls, burst]) =>
  interleave(servers, ROUNDS.calls, ({ call: [tool, args], ...server }) =>
    drive(driver, server, "calls", calls, burst, tool, JSON.stringify(args)),
  );

async function countTools(servers) {
  const sets = [];
  for (const server of servers) {
    const list = await drive(driver, server, "list");
    sets.push({ name: server.name, tools: list.tools.length, tokens: countTokens(JSON.stringify(list)) });
  }
  return sets;
}

function sizes() {
  const megabytes = (file) => statSync(file).size / 1e6;
  return {
    ours: megabytes(join(release, "exa-mcp-server")),
    floor: megabytes(join(release, "floor")),
    minimal: megabytes(join(release, "minimal")),
    official: megabytes(OFFICIAL) + megabytes(process.execPath),
  };
}

const sets = ["default", "toolhost", "classic", "granular"].map((set) => ours(release, set));
const folder = mkdtempSync(join(tmpdir(), "bench-"));
const backends = [];
try {
  const results = { machine: describeMachine(), rounds: ROUNDS, calls: CALLS, sizes: sizes() };
  log("tokens");
  results.tokens = await countTools([...sets, official(), official(true)]);
  log("start-up");
  const compared = [ours(release), floor(release), minimal(release), official()];
  const started = [...compared, official(true), ours(release, "granular")];
  results.start = await interleave(started, ROUNDS.start, (server) => drive(driver, server, "start"));
  log("memory");
  results.idle = await interleave(compared, ROUNDS.idle, (server) => drive(driver, server, "idle"));

  const real = await sandbox(release);
  backends.push(real);
  const fixed = await mock(release, real, folder);
  backends.push(fixed);
  results.responseBytes = fixed.bytes;
  log("calls with a fixed response");
  results.mock = await measureCalls([...withSearchCall(release, fixed.url), withHelloCall(release)], CALLS.mock);
  log("calls with the sandbox");
  results.sandbox = await measureCalls(withSearchCall(release, real.url), CALLS.sandbox);

  log("the cache");
  const server = withCache(release, fixed.url, CACHE.bytes);
  const search = JSON.stringify({ operation: "search", args: { query: "fusion energy companies" } });
  const cached = await drive(driver, server, "cached", CACHE.reads, "exa_api", search);
  const many = JSON.stringify({ query: "search number #" });
  const memory = await drive(driver, server, "many", CACHE.searches, "web_search_exa", many);
  results.cache = { ...CACHE, latencies: cached.latencies, memory };

  const text = report(results);
  writeFileSync(new URL("RESULTS.md", import.meta.url), text);
  console.log(text);
} finally {
  backends.forEach(({ stop }) => stop());
  rmSync(folder, { recursive: true });
}
