/**
 * Calls a tool of exa-mcp-server and gives what the client gives.
 *
 * With the MCP SDK: `(name, args) => client.callTool({ name, arguments: args })`.
 */
export type CallTool = (name: string, args: Record<string, unknown>) => Promise<unknown>;

/** Results to leave out. What the API cannot do itself, the server does with its answer. */
export interface Filters {
  minScore?: number;
  /** Date or time, for example `2026-01-31`. */
  afterDate?: string;
  /** Date or time, for example `2026-01-31`. */
  beforeDate?: string;
  includeDomains?: string[];
  excludeDomains?: string[];
  titleContains?: string;
  maxResults?: number;
}

/** What the server gives at most; it would otherwise cut answers to what a model can read. */
const MOST_TOKENS = 1_000_000;

/** How the answer is given; beside the arguments of the operation. */
export interface Options {
  /** How much of each result; `full` unless told. Other levels leave fields out. */
  content_level?: "summary" | "standard" | "full";
  /** The fields of each result to keep. */
  fields?: string[];
  filters?: Filters;
  /** Gives about this many tokens at most, up to a million; `metadata.leftOut` tells what is missing. */
  max_tokens?: number;
  /** Lets the server follow all pages of a list, up to its cap. */
  all?: boolean;
  /** Asks the API again, even if the server still has the answer of an equal call. */
  fresh?: boolean;
  /**
   * For operations that start work or look at it: waits up to this long for its end. Without it, the
   * answer comes at once. The client must not give up before.
   */
  wait_seconds?: number;
  /** Answers from an earlier answer, by the `cacheId` of its metadata, without calling the API. */
  cache_id?: string;
  /** Only this result. */
  index?: number;
  /** Leaves out this many results at the start. */
  offset?: number;
  /** At most this many results, where the operation has no argument of this name. */
  limit?: number;
}

/** The options that make sense for every page of a list. */
export type PageOptions = Pick<Options, "content_level" | "fields" | "filters" | "max_tokens" | "fresh">;

/** What the server says about an answer. */
export interface Metadata {
  operation: string;
  /** How many results the API gave. */
  totalResults: number;
  /** How many of them are here. */
  returned: number;
  tokenEstimate: number;
  contentLevel: string;
  /** For the option `cache_id`; null if the server does not keep the answer. */
  cacheId: string | null;
  /** Null where the API does not tell. */
  costDollars: number | null;
  requestId: string | null;
  warnings: unknown[];
  /** Corrections that the server made to the arguments. */
  corrections: string[];
  /** @deprecated Removed in 0.3; use `corrections`. */
  mended?: string[];
  /** The server had the answer of an equal call. */
  cached?: boolean;
  /** What the filters left out, and who applied them. */
  filters?: { [key: string]: unknown };
  /** What `max_tokens` left out. */
  leftOut?: { [key: string]: unknown };
  /** How to get it. */
  more?: string;
  [field: string]: unknown;
}

/** An answer: the list of the API or, for a single object, a list of one. */
export interface Answer<Result> {
  metadata: Metadata;
  results: Result[];
  /** Every other field of the API's answer. */
  [field: string]: unknown;
}

/** What is wrong with an argument. */
export interface Problem {
  field: string;
  problem: string;
}

/** A call that failed; the message says why and what to do. */
export class ExaToolError extends Error {
  readonly operation: string;
  /** As JSON-RPC counts: -32602 for unfit arguments; missing when the server gave none. */
  readonly code: number | undefined;
  readonly problems: Problem[];
  /** All that the server says about it: `whatToDo`, `retryable`, `retryAfter`, `hints`, `example` … */
  readonly detail: Record<string, unknown>;

  constructor(operation: string, detail: Record<string, unknown>) {
    const { code, name, message, problems, whatToDo } = detail;
    const listed = Array.isArray(problems) ? (problems as Problem[]) : [];
    const lines = [typeof message === "string" ? message : `${operation} failed`];
    lines.push(...listed.map(({ field, problem }) => `- ${field}: ${problem}`));
    if (typeof whatToDo === "string") {
      lines.push(whatToDo);
    }
    super(lines.join("\n"));
    this.name = typeof name === "string" ? name : "ExaToolError";
    this.operation = operation;
    this.code = typeof code === "number" ? code : undefined;
    this.problems = listed;
    this.detail = detail;
  }
}

/** The first result: of operations that give a single object, the object. */
export function first<Result>(answer: Answer<Result>): Result {
  const [result] = answer.results;
  if (result === undefined) {
    throw new RangeError("the answer holds no result");
  }
  return result;
}

/** What an argument beside the query is for: the API, or the server. */
const OPTIONS: ReadonlySet<string> = new Set<keyof Options>([
  "content_level",
  "fields",
  "filters",
  "max_tokens",
  "all",
  "fresh",
  "wait_seconds",
  "cache_id",
  "index",
  "offset",
  "limit",
]);

/** Takes a query and what follows it apart, into arguments and options. */
export function withQuery(given: object | string, more: object): [args: object, options: Options] {
  if (typeof given !== "string") {
    return [given, more];
  }
  const entries = Object.entries(more);
  const args = Object.fromEntries(entries.filter(([name]) => !OPTIONS.has(name)));
  const options = Object.fromEntries(entries.filter(([name]) => OPTIONS.has(name)));
  return [{ ...args, query: given }, options];
}

/** Returns a field of a result. */
const field = (result: object, name: string): unknown => (result as Record<string, unknown>)[name];

/** Returns the time of a date; the end of the day, if it tells no time and that is wanted. */
function timeOf(date: Date | string, end = false): number {
  const isDay = typeof date === "string" && /^\d{4}-\d{2}-\d{2}$/.test(date);
  const time = new Date(date).getTime();
  if (Number.isNaN(time)) {
    throw new RangeError(`not a date: ${String(date)}`);
  }
  return isDay && end ? time + 86_399_999 : time;
}

/** The results that were published from one date to another; those without a date are left out. */
export function filterByDate<Result extends object>(
  results: readonly Result[],
  after: Date | string,
  before?: Date | string,
): Result[] {
  const [from, to] = [timeOf(after), before === undefined ? Infinity : timeOf(before, true)];
  return results.filter((result) => {
    const date = field(result, "publishedDate");
    const time = typeof date === "string" ? Date.parse(date) : NaN;
    return time >= from && time <= to;
  });
}

/** The results with at least this score; those without a score are left out. */
export function filterByScore<Result extends object>(results: readonly Result[], minScore: number): Result[] {
  return results.filter((result) => {
    const score = field(result, "score");
    return typeof score === "number" && score >= minScore;
  });
}

/** The results without repetitions of the same address or, without one, of the same `id`. */
export function dedupe<Result extends object>(results: readonly Result[]): Result[] {
  const seen = new Set<string>();
  return results.filter((result) => {
    const key = field(result, "url") ?? field(result, "id");
    if (typeof key !== "string") {
      return true;
    }
    const address = key.replace(/#.*$/, "").replace(/^https?:\/\/(www\.)?/, "").replace(/\/$/, "");
    const isNew = !seen.has(address);
    seen.add(address);
    return isNew;
  });
}

/**
 * A table with a line for each result; nested values are JSON. Without a list of fields, it has all that occur.
 *
 * A text that a spreadsheet would take for a formula gets an apostrophe in front of it.
 */
export function toCsv(results: readonly object[], fields?: readonly string[]): string {
  const columns = fields ?? [...new Set(results.flatMap((result) => Object.keys(result)))];
  const rows = results.map((result) => columns.map((name) => cell(field(result, name))).join(","));
  return [columns.map(cell).join(","), ...rows].map((row) => `${row}\r\n`).join("");
}

function cell(value: unknown): string {
  if (value === undefined || value === null) {
    return "";
  }
  const text = typeof value === "string" ? value.replace(/^(?=[=+\-@\t\r])/, "'") : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** All pages, each fetched when it is wanted: `paginate((cursor) => exa.items.list({ websetId, cursor }))`. */
export async function* paginate<Page extends Answer<unknown>>(
  fetch: (cursor?: string) => Promise<Page>,
): AsyncGenerator<Page, void> {
  let cursor: string | undefined;
  do {
    const page: Page = cursor === undefined ? await fetch() : await fetch(cursor);
    yield page;
    const next = nextCursor(page);
    if (next !== undefined && next === cursor) {
      throw new Error(`the cursor ${cursor} leads back to itself`);
    }
    cursor = next;
  } while (cursor !== undefined);
}

function nextCursor({ hasMore, nextCursor, metadata }: Answer<unknown>): string | undefined {
  const next = nextCursor ?? metadata["nextCursor"];
  return hasMore !== false && typeof next === "string" && next !== "" ? next : undefined;
}

/** Calls an operation through its tool. */
export async function call<A>(
  callTool: CallTool,
  tool: string,
  operation: string,
  args: object,
  options: Options,
): Promise<A> {
  const view = { content_level: "full", max_tokens: MOST_TOKENS, ...options, output_format: "json" };
  const result = await callTool(tool, { operation, args, ...view });
  return answerOf(operation, result) as A;
}

/** Calls a list operation until there are no more pages, and gives its results one by one. */
export async function* each<Result>(
  callTool: CallTool,
  tool: string,
  operation: string,
  args: object,
  options: PageOptions,
): AsyncGenerator<Result, void> {
  const fetch = (cursor?: string): Promise<Answer<Result>> =>
    call(callTool, tool, operation, cursor === undefined ? args : { ...args, cursor }, options);
  for await (const page of paginate(fetch)) {
    for (const result of page.results) {
      yield result;
    }
  }
}

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Takes the answer out of what the client gives, or throws what the server says went wrong. */
function answerOf(operation: string, result: unknown): Json {
  const { isError, structuredContent, content }: Json = isObject(result) ? result : {};
  const text = typeof result === "string" ? result : textOf(content);
  // Some clients hand on only the text, others only the structured content itself.
  const answer = [structuredContent, parsed(text), result].find(isObject) ?? {};
  const { error, metadata, results } = answer;
  if (isError === true || (isObject(error) && results === undefined)) {
    throw new ExaToolError(operation, isObject(error) ? error : { message: text });
  }
  if (!isObject(metadata) || !Array.isArray(results)) {
    const message =
      `${operation} gave an answer without metadata and results; the server is older than this code: ` +
      "bring both to the same version with `exa-mcp-server sdk`";
    throw new ExaToolError(operation, { name: "UNKNOWN_ANSWER", message, answer: result });
  }
  return answer;
}

function textOf(content: unknown): string | undefined {
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => (isObject(block) ? block["text"] : undefined));
  return texts.find((text) => typeof text === "string") as string | undefined;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
