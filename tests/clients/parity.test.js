// The same calls with exa-js and with the server result in the same requests.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Exa } from "exa-js";

import { cases, differences } from "./parity-cases.js";
import { args, command } from "./support.js";

/** The headers that depend on the arguments. */
const HEADERS = ["exa-beta", "x-exa-websets-priority", "idempotency-key"];

/** How many calls run at the same time. */
const PARALLEL = 2;

/** The first request of every caller, by the first segment of its path. */
const requests = new Map();
let server;

/** Answers every request with what ends a call, a job, a list and an upload. */
function respond(response) {
  const { address, port } = server.address();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify({
      id: "x",
      status: "completed",
      data: [],
      results: [],
      answer: "",
      uploadUrl: `http://${address}:${port}/upload`,
    }),
  );
}

async function record(request, response) {
  const parts = await Array.fromAsync(request);
  const [, caller, path] = request.url.match(/^[/]([^/]+)(.*)$/);
  const url = new URL(path, "http://exa");
  const body = Buffer.concat(parts).toString();
  if (!requests.has(caller) && path) {
    const headers = HEADERS.map((name) => [name, request.headers[name]]);
    requests.set(caller, {
      method: request.method,
      path: decodeURIComponent(url.pathname),
      query: [...url.searchParams].sort(),
      headers: Object.fromEntries(headers.filter(([, value]) => value !== undefined)),
      body: body && JSON.parse(body),
    });
  }
  respond(response);
}

before(async () => {
  server = createServer((request, response) => void record(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
});

after(() => server.close());

function address(caller) {
  const { address, port } = server.address();
  return `http://${address}:${port}/${caller}`;
}

/** Makes a call with the SDK and returns its request. */
async function withSdk(index, { method, call }) {
  const names = method.split(".");
  const last = names.pop();
  const client = names.reduce((owner, name) => owner[name], new Exa("key", address(`sdk${index}`)));
  const result = await client[last](...structuredClone(call));
  // A stream is requested when it is read.
  if (result?.[Symbol.asyncIterator]) await result.next();
  return requests.get(`sdk${index}`);
}

/** Makes a call with the server's command line and returns its request, or why there is none. */
async function withServer(index, { operation, own }) {
  const all = [...args, "call", operation, JSON.stringify(own)];
  const env = { ...process.env, EXA_BASE_URL: address(`own${index}`), EXA_API_KEY: "key" };
  const program = spawn(command, all, { env, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  program.stderr.on("data", (data) => {
    log += data;
  });
  await new Promise((resolve) => program.on("close", resolve));
  return requests.get(`own${index}`) ?? log;
}

test("requests are those of exa-js", async (t) => {
  const all = cases();
  const unequal = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < all.length; index = next++) {
      const [sdk, own] = [await withSdk(index, all[index]), await withServer(index, all[index])];
      assert.ok(sdk, `exa-js sends nothing for ${JSON.stringify(all[index])}`);
      try {
        assert.deepEqual(own, sdk);
      } catch {
        unequal.push({ ...all[index], sdk, sent: own });
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  t.diagnostic(`${all.length - unequal.length} of ${all.length} requests are equal`);
  // Each difference has a reason, and shows in the request as described.
  const unexplained = unequal.filter(
    (found) => !differences.some(({ applies, shows }) => applies(found) && shows(found)),
  );
  assert.deepEqual(unexplained, []);
  for (const { reason, applies } of differences) {
    assert.ok(unequal.some(applies), `there is no such difference any more: ${reason}`);
  }
});
