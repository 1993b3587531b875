// Compares the tokens of answers with those of the official server, on the same data of the Exa API, and writes
// TOKENS.md. `node tokens.mjs FOLDER`: the folder has our program.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { environment } from "./lib/drive.mjs";
import { official, ours, OFFICIAL } from "./lib/servers.mjs";

const WORDS = "fusion energy companies build reactors that heat plasma until its nuclei merge and release power".split(" ");

/** Returns prose of about so many characters, always the same for a seed. */
function prose(seed, characters) {
  let text = "";
  let state = seed * 7919 + 13;
  for (let sentence = 0; text.length < characters; sentence++) {
    const words = [];
    for (let word = 0; word < 9 + (state % 9); word++) {
      state = (state * 1103515245 + 12345) % 2147483648;
      words.push(WORDS[state % WORDS.length]);
    }
    const [first, ...rest] = words.join(" ");
    text += `${first.toUpperCase()}${rest.join("")}.${sentence % 5 === 4 ? "\n\n" : " "}`;
  }
  return text.slice(0, characters).trim();
}

const page = (number, contents) => {
  const url = `https://site${number}.example.com/articles/2026/${number}/fusion-energy-companies`;
  return {
    id: url,
    url,
    title: `What fusion energy companies build, part ${number}`,
    publishedDate: `2026-03-${String(number + 1).padStart(2, "0")}T08:30:00.000Z`,
    author: `Author ${number}`,
    image: `https://site${number}.example.com/image.png`,
    favicon: `https://site${number}.example.com/favicon.ico`,
    ...contents,
  };
};

const highlights = (number) => ({
  highlights: [prose(number, 180), prose(number + 50, 180), prose(number + 99, 160)],
  highlightScores: [0.51, 0.42, 0.33],
});

/** Markdown of about so many characters. */
const markdown = (seed, characters) =>
  Array.from(
    { length: Math.ceil(characters / 300) },
    (_, part) => `## Part ${part}\n\n${prose(seed + part, 200)}\n\n- **one** item\n- [another](https://example.com/${part})`,
  ).join("\n\n");

/** A page as its address describes it: with Markdown, or without author and date. */
function read(url, number, length) {
  const text = url.includes("markdown") ? markdown(number, length) : prose(number, length);
  const { publishedDate, author, ...rest } = page(number, { text });
  return { ...rest, ...(!url.includes("bare") && { publishedDate, author }), id: url, url };
}

/** The Exa API: as many results as requested, with highlights or text. */
const backend = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const { urls = [], numResults = 10, contents = {}, text } = JSON.parse(body || "{}");
  const length = (text?.maxCharacters ?? contents.text?.maxCharacters) || 3000;
  const answer = { requestId: "b5947044c4b78efa9552a7c89b306d95", costDollars: { total: 0.007 } };
  if (request.url === "/contents") {
    const isGone = (url) => url.includes("gone");
    answer.results = urls
      .filter((url) => !isGone(url))
      .map((url, number) => read(url, number, length));
    answer.statuses = urls.map((id) =>
      isGone(id)
        ? { id, status: "error", error: { tag: "CRAWL_NOT_FOUND", httpStatusCode: 404 } }
        : { id, status: "success", source: "cached" },
    );
  } else {
    const parts = (number) => ({
      score: 0.34567 + number / 1000,
      ...(contents.highlights && highlights(number)),
      ...(contents.text && { text: prose(number, length) }),
    });
    answer.results = Array.from({ length: numResults }, (_, number) => page(number, parts(number)));
    if (JSON.parse(body).type?.startsWith("deep")) answer.output = { content: prose(3, 1200), grounding: [] };
  }
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
});

const fetchOf = (...urls) => ["web_fetch_exa", { urls: urls.map((name) => `https://${name}.example.com/page`) }];
const query = "fusion energy companies";
const CALLS = {
  "search, 5 results": ["web_search_exa", { query, numResults: 5 }],
  "search, 10 results": ["web_search_exa", { query, numResults: 10 }],
  "fetch, 1 page": fetchOf("a"),
  "fetch, 2 pages": fetchOf("a", "b"),
  "fetch, 2 pages and a failure": fetchOf("a", "b", "gone"),
  "fetch, a page and 2 failures": fetchOf("c", "gone", "gone2"),
  "fetch, 3 failures": fetchOf("gone3", "gone4", "gone5"),
  "fetch, 1 page of Markdown": fetchOf("markdown"),
  "fetch, 2 pages of Markdown": fetchOf("markdown-a", "markdown-b"),
  "fetch, 1 page without author and date": fetchOf("blog.bare-site"),
  "fetch, 2 pages without author and date": fetchOf("bare-a", "bare-b"),
  "fetch, 5 pages without author and date": fetchOf("bare-c", "bare-d", "bare-e", "bare-f", "bare-g"),
  advanced: ["web_search_advanced_exa", { query, numResults: 5, enableHighlights: true, textMaxCharacters: 1000 }],
  company: ["company_research_exa", { companyName: "Acme", numResults: 5 }],
  people: ["people_search_exa", { query, numResults: 5 }],
  code: ["get_code_context_exa", { query, numResults: 5 }],
  deep: ["deep_search_exa", { objective: query, numResults: 5 }],
};

/** Makes the calls in one session of a server; returns the texts. */
async function answers({ command: [program, ...options], env }) {
  const child = spawn(program, options, { env: environment(env), stdio: ["pipe", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let last = 0;
  const send = (method, params, id) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method, params, ...(id && { id }) })}\n`);
  const request = async (method, params) => {
    const id = ++last;
    send(method, params, id);
    for (;;) {
      const { value } = await lines.next();
      const message = JSON.parse(value);
      if (message.id === id) return message.result ?? Promise.reject(new Error(value));
    }
  };
  const clientInfo = { name: "tokens", version: "1" };
  await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  send("notifications/initialized", {});
  const texts = {};
  for (const [name, [tool, args]] of Object.entries(CALLS)) {
    const { content } = await request("tools/call", { name: tool, arguments: args });
    texts[name] = content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
  }
  child.kill();
  return texts;
}

/** The share of the words of the source text that an answer has, relative to another answer. */
const kept = (text, other) => {
  const words = (of) => of.split(/[^a-z]+/).filter((word) => WORDS.includes(word)).length;
  return words(other) === 0 ? 1 : words(text) / words(other);
};

await new Promise((resolve) => backend.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${backend.address().port}`;
const us = ours(process.argv[2], "classic");
const them = official(true);
const redirect = new URL("redirect.mjs", import.meta.url).pathname;
const own = await answers({ ...us, env: { ...us.env, EXA_BASE_URL: url } });
const theirs = await answers({
  command: [process.execPath, "--import", redirect, OFFICIAL],
  env: { ...them.env, BENCH_BACKEND: url },
});
backend.close();
if (process.argv[3]) for (const name of Object.keys(CALLS)) console.log(`=== ${name}\n${own[name]}\n--- official\n${theirs[name]}`);

const rows = Object.keys(CALLS).map((name) => {
  const [mine, other] = [countTokens(own[name]), countTokens(theirs[name])];
  const share = `${Math.round(kept(own[name], theirs[name]) * 100)} %`;
  return `| ${name} | ${mine} | ${other} | ${(mine / other).toFixed(2)} | ${share} |`;
});
const table = `# Tokens of answers

Written by \`node tokens.mjs FOLDER\`: the text of the same call to both servers with the same data of the Exa API, in
o200k tokens. The last column is the share of the source text that our answer has, relative to the official one.

Our answers also have the marks around untrusted text (14 tokens) and, of searches, the price, a score and how to read
the whole texts from the cache. Pages that are read say the price only above one cent. A page that is read alone has no
URL, because the caller gave it. The labels that we leave out (8 tokens a page with author and date, 3 without) make up
for the marks of several pages; two to four pages without author and date are 3 to 9 tokens longer, and a single one
with an address of fewer than ten tokens up to 5. A page with HTML or images is put into a code block, which takes 4
tokens.

| call | ours | official | ratio | text kept |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
writeFileSync(new URL("TOKENS.md", import.meta.url), table);
console.log(table);
