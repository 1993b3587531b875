// A program as an agent would write it, against the generated modules.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import { Exa, ExaToolError, dedupe, filterByDate, filterByScore, first, paginate, toCsv } from "./out/exa/index.js";
import type { CallTool, agent, websets } from "./out/exa/index.js";

declare const process: { argv: string[] };
declare const console: { log(text: string): void };

function check(holds: boolean, what: string): void {
  if (!holds) {
    throw new Error(`does not hold: ${what}`);
  }
}

async function failure(call: Promise<unknown>): Promise<ExaToolError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ExaToolError) {
      return error;
    }
    throw error;
  }
  throw new Error("the call did not fail");
}

/** Code that must not compile; it is never called. */
export function mistakes(exa: Exa): unknown[] {
  return [
    // @ts-expect-error a typo in the name of an argument
    () => exa.search({ query: "x", numResult: 3 }),
    // @ts-expect-error a required argument is missing
    () => exa.items.list({}),
    // @ts-expect-error no such value
    () => exa.search({ query: "x", type: "quick" }),
    // @ts-expect-error a typo in a nested object
    () => exa.websets.create({ search: { querry: "x" } }),
    // @ts-expect-error no such option
    () => exa.search({ query: "x" }, { level: "full" }),
    // @ts-expect-error a typo in what follows the query
    () => exa.search("x", { numResult: 3 }),
    // @ts-expect-error the query comes twice
    () => exa.search("x", { query: "y" }),
    // @ts-expect-error an identifier is text
    async () => first(await exa.websets.get({ websetId: "x" })).id + 1 === 2,
  ];
}

/** The types of the API's objects are exported. */
export const describeRun = (run: agent.runs.AgentRun): string => `${run.id} is ${run.status}`;

async function create(exa: Exa): Promise<websets.Webset> {
  const args: websets.CreateArgs = {
    search: { query: "makers of batteries", count: 3, entity: { type: "company" } },
    enrichments: [{ description: "number of employees", format: "number" }],
    import: [],
  };
  const created = await exa.websets.create(args);
  check(created.metadata.operation === "websets.create", "the metadata name the operation");
  check(created.isComplete === false, "the work goes on");
  return first(created);
}

async function list(exa: Exa): Promise<void> {
  const made = [await create(exa), await create(exa), await create(exa)];
  const ids = made.map(({ id }) => id);
  const seen: string[] = [];
  for await (const webset of exa.websets.listAll({ limit: 1 })) {
    seen.push(webset.id);
  }
  check(ids.every((id) => seen.includes(id)), "all pages give all websets");
  check(new Set(seen).size === seen.length, "no webset comes twice");
  let pages = 0;
  for await (const page of paginate((cursor) => exa.websets.list({ limit: 1, ...(cursor && { cursor }) }))) {
    check(page.results.length === 1, "a page of one holds one");
    pages += 1;
  }
  check(pages === seen.length, "there are as many pages as websets");
}

async function items(exa: Exa): Promise<void> {
  const { id: websetId, status } = await create(exa);
  check(status === "running" || status === "pending", "the work has begun");
  let page = await exa.items.list({ websetId });
  for (let turn = 0; turn < 5_000 && page.results.length === 0; turn += 1) {
    page = await exa.items.list({ websetId }, { fresh: true });
  }
  check(page.results.length > 0, "items arrive");
  for (const item of page.results) {
    check(item.websetId === websetId && item.object === "webset_item", "an item of the webset");
  }
  check(page.hasMore === false, "the other fields of the answer stand beside the results");
}

async function search(exa: Exa): Promise<void> {
  const contents = { text: { maxCharacters: 500 }, highlights: true };
  const found = await exa.search({ query: "batteries", numResults: 3, type: "auto", contents });
  check(found.results.length === 3, "three results");
  check(found.results.every(({ url }) => url?.startsWith("http")), "every result has an address");
  const short = await exa.search({ query: "batteries", numResults: 3 }, { fields: ["url"], limit: 2 });
  check(short.results.length === 2, "the option limit holds");
  check(short.results.every((result) => Object.keys(result).join() === "url"), "only the field asked for");
}

async function helpers(exa: Exa): Promise<void> {
  const { results } = await exa.search("batteries", { numResults: 5, fields: ["url", "title", "publishedDate"] });
  check(results.length === 5, "arguments follow the query");
  check(results.every((result) => !("id" in result)), "options follow the query");
  const answered = await exa.answer("What is a battery?");
  check(answered.metadata.operation === "answer", "every operation with a query takes it alone");

  check(dedupe([...results, ...results]).length === results.length, "no address comes twice");
  const pages = [{ url: "https://www.a.example/" }, { url: "http://a.example#top" }, { title: "no address" }];
  check(dedupe(pages).length === 2, "one page has several addresses");

  const dates = results.map(({ publishedDate }) => publishedDate ?? "").filter(Boolean).sort();
  const [oldest = "", newest = ""] = [dates[0], dates.at(-1)];
  check(filterByDate(results, oldest, newest).length === dates.length, "the limits count");
  check(filterByDate(results, new Date("2999-01-01")).length === 0, "nothing is from the future");
  const noon = [{ publishedDate: "2026-01-31T12:00:00.000Z" }, { publishedDate: null }];
  check(filterByDate(noon, "2026-01-31", "2026-01-31").length === 1, "a day lasts until its end");

  const scored = [{ score: 0.5 }, { score: 0.2 }, { score: null }, {}];
  check(filterByScore(scored, 0.5).length === 1, "the least score counts");

  const table = toCsv([{ a: 'x "y", z', b: [1] }, { a: "=1+1", c: null }]);
  check(table === 'a,b,c\r\n"x ""y"", z",[1],\r\n\'=1+1,,\r\n', `the table is ${table}`);
  check(toCsv(results, ["title"]).split("\r\n").length === results.length + 2, "a line for each result");
}

async function errors(exa: Exa, structured: boolean): Promise<void> {
  const missing = await failure(exa.websets.get({ websetId: "no-such-webset" }));
  const args = { query: "x", numResults: "many" } as unknown as { query: string };
  const unfit = await failure(exa.search(args));
  check(missing.operation === "websets.get", "the error names the operation");
  check(unfit.message.includes("numResults"), "the message tells the problem");
  if (structured) {
    check(missing.code === -32003 && missing.name === "RESOURCE_NOT_FOUND", "the code of what is not there");
    check(unfit.code === -32602 && unfit.problems[0]?.field === "numResults", "the problems of unfit arguments");
  }
}

type Result = { content: { text: string }[]; structuredContent?: unknown; isError?: boolean };

/** The ways in which clients pass on results. */
const ways: Record<string, (result: Result) => unknown> = {
  "as it is": (result) => result,
  "without structured content": ({ content, isError }) => ({ content, isError }),
  "structured content alone": ({ structuredContent }) => structuredContent,
};

const [command = "", ...options] = process.argv.slice(2);
const client = new Client({ name: "program", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args: options }));
for (const [name, way] of Object.entries(ways)) {
  const callTool: CallTool = async (tool, args) =>
    way((await client.callTool({ name: tool, arguments: args })) as Result);
  const exa = new Exa(callTool);
  await list(exa);
  await items(exa);
  await search(exa);
  await helpers(exa);
  await errors(exa, name !== "without structured content");
  console.log(`${name}: fine`);
}
await client.close();
