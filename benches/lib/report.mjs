// The results as Markdown.
import { median, quantile, summary } from "./stats.mjs";

const OURS = "ours, default";
const FLOOR = "floor";
const MINIMAL = "minimal";
const OFFICIAL = "official, default";

/** Formats a number with three significant digits. */
export const number = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();

export const cell = ({ median, low, high }) =>
  low === high ? number(median) : `${number(median)} (${number(low)}–${number(high)})`;

export const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** One measure of the servers. Lower is better, unless `more` is set. */
class Measure {
  constructor(label, valuesOf, { more = false } = {}) {
    this.label = label;
    [this.ours, this.floor, this.minimal, this.official] = [OURS, FLOOR, MINIMAL, OFFICIAL].map(valuesOf).map((v) => v && summary(v));
    const [few, many] = more ? [this.official, this.ours] : [this.ours, this.official];
    this.advantage = many.median / few.median;
  }

  /** Returns the ratio of ours to another server, by the median or another part of the summary. */
  of(other, part = "median") {
    return this.ours[part] / other[part];
  }

  row() {
    const { label, ours, floor, minimal, official, advantage } = this;
    const [least, overFloor] = floor ? [cell(floor), `${number(this.of(floor))}×`] : ["–", "–"];
    const [small, overMinimal] = minimal ? [cell(minimal), `${number(this.of(minimal))}×`] : ["–", "–"];
    return [label, cell(ours), least, small, cell(official), overFloor, overMinimal, `**${number(advantage)}×**`];
  }
}

function measures({ start, idle, mock, sandbox, sizes, calls }) {
  const take = (figures, value) => (name) => figures[name]?.map(value);
  const size = { [OURS]: [sizes.ours], [FLOOR]: [sizes.floor], [MINIMAL]: [sizes.minimal], [OFFICIAL]: [sizes.official] };
  const [one, many] = calls.mock;
  return {
    initialize: new Measure("start to the response of initialize, ms", take(start, (f) => f.initialize)),
    tools: new Measure("start to the response of tools/list, ms", take(start, (f) => f.tools)),
    idle: new Measure("memory when idle, MB", take(idle, (f) => f.resident)),
    after: new Measure(`memory after ${one} calls, MB`, take(mock, (f) => f.afterCalls.resident)),
    peak: new Measure(`peak memory, ${many} calls with 32 in flight, MB`, take(mock, (f) => f.afterBurst.peak)),
    latency: new Measure("search call, median, ms", take(mock, (f) => median(f.latencies))),
    tail: new Measure("search call, 95th percentile, ms", take(mock, (f) => quantile(f.latencies, 0.95))),
    rate: new Measure("calls per second, 32 in flight", take(mock, (f) => f.perSecond), { more: true }),
    cpu: new Measure("CPU time per call, 32 in flight, ms", take(mock, (f) => f.cpuMs)),
    sandbox: new Measure("search call with the sandbox, median, ms", take(sandbox, (f) => median(f.latencies))),
    sandboxRate: new Measure("calls per second with the sandbox, 32 in flight", take(sandbox, (f) => f.perSecond), { more: true }),
    size: new Measure("program on disk, MB", (name) => size[name]),
  };
}

function targets(of, tokens, cache) {
  const tokensOf = (name) => tokens.find((set) => set.name === name).tokens;
  const line = (text, value, met, unit = "") => [text, `${number(value)}${unit}`, met ? "met" : "**not met**"];
  const most = (text, value, limit, unit) => line(text, value, value <= limit, unit);
  const least = (text, value, limit, unit) => line(text, value, value >= limit, unit);
  return [
    most("start to tools/list at most 1.3 times the minimal server's", of.tools.of(of.tools.minimal), 1.3, "×"),
    most(
      "the same for the 10th percentile, which other load on the machine affects least",
      of.tools.of(of.tools.minimal, "low"), 1.3, "×",
    ),
    least("start to tools/list at least 50 times faster than the official server's", of.tools.advantage, 50, "×"),
    most("idle memory at most 10 MB", of.idle.ours.median, 10, " MB"),
    least("with 32 in flight at least 4 times the official server's calls per second", of.rate.advantage, 4, "×"),
    most("read of a cached result at most 2 ms, 95th percentile", quantile(cache.latencies, 0.95), 2, " ms"),
    most(
      `peak memory after ${number(cache.searches)} different searches at most ${number(cache.bytes / 1e6)} MB for the cache plus 20 MB`,
      cache.memory.peak, cache.bytes / 1e6 + 20, " MB",
    ),
    most("default set at most 2,000 tokens", tokensOf("ours, default"), 2000),
    most("toolhost set at most 1,000 tokens", tokensOf("ours, toolhost"), 1000),
  ];
}

export function report(results) {
  const { machine, rounds, calls, responseBytes, start, tokens, cache } = results;
  const of = measures(results);
  const date = new Date().toISOString().slice(0, 10);
  const starts = Object.entries(start).map(([name, figures]) => [name, cell(summary(figures.map((f) => f.tools)))]);
  return `# Benchmark

Generated by \`benches/run\` on ${date}. No test asserts these figures.

Machine: ${machine}.

**ours** is the \`dist\` build with its default tools; **floor** is the fastest start that the same rmcp
offers: one thread, no unwinding, optimized for speed, and one tool that returns "hello"; **minimal** is an ordinary rmcp
server with two small tools, the default runtime and rmcp's own transport, built with the same profile as ours;
**official** is \`exa-mcp-server\` 3.4.1 from npm, run by node directly.

## Four servers

${table(["measure", "ours", "floor", "minimal", "official", "ours ÷ floor", "ours ÷ minimal", "better than official"], Object.values(of).map((measure) => measure.row()))}

Medians of ${rounds.start} starts, ${rounds.idle} idle servers and ${rounds.calls} servers under load, interleaved in one run with rotating order; in brackets
the range from the 10th to the 90th percentile. A search call is \`web_search_exa\` for 10 results. Behind ours and official,
an HTTP server always returns the same ${number(responseBytes / 1000)} kB, so that only the MCP server is measured; in the sandbox rows, our sandbox is
the backend and takes most of the time. Each server gets ${calls.mock[0]} sequential calls (${calls.sandbox[0]} with the sandbox), then ${calls.mock[1]} (${calls.sandbox[1]}) with 32
in flight. Memory is VmRSS and VmHWM, 1 MB = 10⁶ bytes. The size of the official program is its bundle plus the node
executable. A preload (not used for start and idle memory) redirects its calls to the Exa API and makes its analytics posts
fail at once, which is faster than any response; its log goes to /dev/null.

Ours searches with \`fresh: true\`, because it would otherwise return the cached result.

## Cached results

Reading a cached result of ${number(responseBytes / 1000)} kB in all levels and formats: median ${number(median(cache.latencies))} ms, 95th percentile ${number(quantile(cache.latencies, 0.95))} ms
(${number(cache.reads)} reads). After ${number(cache.searches)} different searches with a cache of ${number(cache.bytes / 1e6)} MB: ${number(cache.memory.resident)} MB resident, ${number(cache.memory.peak)} MB at the peak.

## Start to tools/list by tool set

${table(["server", "ms"], starts)}

## Tokens of tools/list

${table(["server", "tools", "tokens (o200k)"], tokens.map(({ name, tools, tokens }) => [name, tools, number(tokens)]))}

The default set covers all operations of the Exa API; the official server's 12 tools cover a part of its search API.

## Targets

${table(["target", "measured", ""], targets(of, tokens, cache))}
`;
}
