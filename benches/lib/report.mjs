// The figures as Markdown.
import { median, quantile, summary } from "./stats.mjs";

const OURS = "ours, default";
const FLOOR = "floor";
const OFFICIAL = "official, default";

/** Three digits that matter. */
export const number = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();

export const cell = ({ median, low, high }) =>
  low === high ? number(median) : `${number(median)} (${number(low)}–${number(high)})`;

export const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** One measure of the servers. Less is better, unless `more` is set. */
class Measure {
  constructor(label, valuesOf, { more = false } = {}) {
    this.label = label;
    [this.ours, this.floor, this.official] = [OURS, FLOOR, OFFICIAL].map(valuesOf).map((v) => v && summary(v));
    const [few, many] = more ? [this.official, this.ours] : [this.ours, this.official];
    this.advantage = many.median / few.median;
  }

  /** Ours in relation to the floor, by the medians or another part of the summary. */
  ofFloor(part = "median") {
    return this.ours[part] / this.floor[part];
  }

  row() {
    const { label, ours, floor, official, advantage } = this;
    const [least, ratio] = floor ? [cell(floor), `${number(this.ofFloor())}×`] : ["–", "–"];
    return [label, cell(ours), least, cell(official), ratio, `**${number(advantage)}×**`];
  }
}

function measures({ start, idle, mock, sandbox, sizes, calls }) {
  const take = (figures, value) => (name) => figures[name]?.map(value);
  const size = { [OURS]: [sizes.ours], [FLOOR]: [sizes.floor], [OFFICIAL]: [sizes.official] };
  const [one, many] = calls.mock;
  return {
    initialize: new Measure("start to the answer of initialize, ms", take(start, (f) => f.initialize)),
    tools: new Measure("start to the answer of tools/list, ms", take(start, (f) => f.tools)),
    idle: new Measure("memory when idle, MB", take(idle, (f) => f.resident)),
    after: new Measure(`memory after ${one} calls, MB`, take(mock, (f) => f.afterCalls.resident)),
    peak: new Measure(`highest memory, ${many} calls with 32 in flight, MB`, take(mock, (f) => f.afterBurst.peak)),
    latency: new Measure("search call, median, ms", take(mock, (f) => median(f.latencies))),
    tail: new Measure("search call, 95th percentile, ms", take(mock, (f) => quantile(f.latencies, 0.95))),
    rate: new Measure("calls a second, 32 in flight", take(mock, (f) => f.perSecond), { more: true }),
    processor: new Measure("processor time a call, 32 in flight, ms", take(mock, (f) => f.processorMs)),
    sandbox: new Measure("search call with the sandbox, median, ms", take(sandbox, (f) => median(f.latencies))),
    sandboxRate: new Measure("calls a second with the sandbox, 32 in flight", take(sandbox, (f) => f.perSecond), { more: true }),
    size: new Measure("program on disk, MB", (name) => size[name]),
  };
}

function targets(of, tokens, cache) {
  const tokensOf = (name) => tokens.find((set) => set.name === name).tokens;
  const line = (text, value, met, unit = "") => [text, `${number(value)}${unit}`, met ? "met" : "**not met**"];
  const most = (text, value, limit, unit) => line(text, value, value <= limit, unit);
  const least = (text, value, limit, unit) => line(text, value, value >= limit, unit);
  return [
    most("start to tools/list at most 1.5 times the floor's", of.tools.ofFloor(), 1.5, "×"),
    most("the same for the fastest tenth, which other work on the machine disturbs least", of.tools.ofFloor("low"), 1.5, "×"),
    least("start to tools/list at least 30 times faster than the official server's", of.tools.advantage, 30, "×"),
    most("idle memory at most 12 MB", of.idle.ours.median, 12, " MB"),
    least("with 32 in flight at least 4 times the official server's calls a second", of.rate.advantage, 4, "×"),
    most("a look at a kept answer at most 2 ms, 95th percentile", quantile(cache.latencies, 0.95), 2, " ms"),
    most(
      `after ${number(cache.searches)} different searches at most the ${number(cache.bytes / 1e6)} MB of the cache and 20 MB`,
      cache.memory.peak, cache.bytes / 1e6 + 20, " MB",
    ),
    most("default set at most 1,800 tokens", tokensOf("ours, default"), 1800),
    most("toolhost set at most 1,000 tokens", tokensOf("ours, toolhost"), 1000),
  ];
}

export function report(results) {
  const { machine, rounds, calls, answerBytes, start, tokens, cache } = results;
  const of = measures(results);
  const date = new Date().toISOString().slice(0, 10);
  const starts = Object.entries(start).map(([name, figures]) => [name, cell(summary(figures.map((f) => f.tools)))]);
  return `# Benchmark

Written by \`benches/run\` on ${date}; not edited by hand, and asserted by no test.

Machine: ${machine}.

**ours** is the `dist` build with its default tools; **floor** is the least that a server on the same rmcp can be, with one
tool that answers "hello" and makes no HTTP request; **official** is \`exa-mcp-server\` 3.4.1 from npm, run by node directly.

## Three servers

${table(["measure", "ours", "floor", "official", "ours ÷ floor", "better than official"], Object.values(of).map((measure) => measure.row()))}

Medians of ${rounds.start} starts, ${rounds.idle} idle servers and ${rounds.calls} servers under calls each, interleaved in one run with rotating order; in brackets the
range that holds eight of ten. A search call is \`web_search_exa\` for 10 results. Behind ours and official, an HTTP server gives
always the same ${number(answerBytes / 1000)} kB, so that the MCP server is what is measured; the sandbox rows show our sandbox there instead, which
takes most of the time itself. ${calls.mock[0]} calls one by one (${calls.sandbox[0]} with the sandbox), then ${calls.mock[1]} (${calls.sandbox[1]}) with always 32 in flight. Memory is VmRSS and
VmHWM, 1 MB = 10⁶ bytes. The official program is its bundle and the node executable. Its calls to the Exa API are redirected
by a preload (not used for start and idle memory) that also refuses its analytics posts at once, which is faster than any
answer to them; its log goes to /dev/null.

Ours asks with \`fresh: true\`, because it would answer the same question from its cache.

## Kept answers

A look at a kept answer of ${number(answerBytes / 1000)} kB, all levels and formats in turns: median ${number(median(cache.latencies))} ms, 95th percentile ${number(quantile(cache.latencies, 0.95))} ms
(${number(cache.looks)} looks). After ${number(cache.searches)} different searches with a cache of ${number(cache.bytes / 1e6)} MB: ${number(cache.memory.resident)} MB resident, ${number(cache.memory.peak)} MB at most.

## Start to tools/list by tool set

${table(["server", "ms"], starts)}

## Tokens of tools/list

${table(["server", "tools", "tokens (o200k)"], tokens.map(({ name, tools, tokens }) => [name, tools, number(tokens)]))}

The default set reaches all 69 operations of the Exa API; the official server's 12 tools reach a part of its search API.

## Targets

${table(["target", "measured", ""], targets(of, tokens, cache))}
`;
}
