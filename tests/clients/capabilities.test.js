// Sampling, elicitation, roots and logging with the TypeScript SDK.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/sdk/types.js";

import { args, calls, command } from "./support.js";

/** Connects a client with handlers for the server's requests, and records the requests. */
async function connect({ options = [], env = {}, sample, elicit, roots } = {}) {
  const all = [...args, "--tools", "default,assist", ...options];
  const environment = { ...process.env, ...env };
  const transport = new StdioClientTransport({ command, args: all, env: environment });
  const capabilities = {};
  if (sample) capabilities.sampling = { tools: {} };
  if (elicit) capabilities.elicitation = { form: {}, url: {} };
  if (roots) capabilities.roots = { listChanged: true };
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities });
  const requests = [];
  const handler = (schema, answer) =>
    client.setRequestHandler(schema, (request) => {
      requests.push(request);
      return answer(request.params);
    });
  if (sample) handler(CreateMessageRequestSchema, sample);
  if (elicit) handler(ElicitRequestSchema, elicit);
  if (roots) handler(ListRootsRequestSchema, roots);
  await client.connect(transport);
  return { client, requests };
}

const suggest = { name: "suggest_enrichments", arguments: { description: "AI startups" } };
const getWebset = { name: "manage_websets", arguments: { operation: "websets.get" } };

/** Returns the response of a model that calls the tool. */
const toolUseResponse = (params) => ({
  role: "assistant",
  model: "test-model",
  stopReason: "toolUse",
  content: [
    {
      type: "tool_use",
      id: "call-1",
      name: params.tools[0].name,
      input: { suggestions: [{ description: "CEO", format: "text", why: "Whom to write to" }] },
    },
  ],
});

describe("sampling", () => {
  test("the model calls the tool", async () => {
    const { client, requests } = await connect({ sample: toolUseResponse });
    const { structuredContent } = await client.callTool(suggest);
    assert.equal(structuredContent.source, "client_model_with_tool");
    assert.equal(structuredContent.model, "test-model");
    assert.equal(structuredContent.results[0].description, "CEO");
    assert.equal(requests[0].params.toolChoice.mode, "required");
    await client.close();
  });

  test("a rejection leads to built-in suggestions", async () => {
    const sample = () => {
      throw Object.assign(new Error("User rejected sampling request"), { code: -1 });
    };
    const { client, requests } = await connect({ sample });
    const { structuredContent } = await client.callTool(suggest);
    assert.equal(structuredContent.source, "built_in");
    assert.equal(requests.length, 1);
    await client.close();
  });
});

describe("elicitation", () => {
  test("a missing argument is filled in", async () => {
    const elicit = () => ({ action: "accept", content: { websetId: "ws_of_nobody" } });
    const { client, requests } = await connect({ elicit });
    const result = await client.callTool(getWebset);
    assert.match(result.content[0].text, /ws_of_nobody/);
    assert.deepEqual(requests[0].params.requestedSchema.required, ["websetId"]);
    await client.close();
  });

  for (const action of ["decline", "cancel"]) {
    test(`${action} ends the call`, async () => {
      const { client } = await connect({ elicit: () => ({ action }) });
      const result = await client.callTool(getWebset);
      assert.equal(result.isError, true);
      assert.equal(result.structuredContent.error.reason, "input_required");
      assert.ok(result.structuredContent.error.retryWith);
      await client.close();
    });
  }

  test("deletions are confirmed", async () => {
    const answers = [false, true];
    const elicit = () => ({ action: "accept", content: { confirm: answers.shift() } });
    const { client, requests } = await connect({ elicit, env: { EXA_MCP_CONFIRM_DELETES: "true" } });
    const args = { operation: "websets.delete", args: { websetId: "ws_of_nobody" } };
    const call = () => client.callTool({ name: "manage_websets", arguments: args });
    assert.equal((await call()).structuredContent.error.name, "OPERATION_CANCELLED");
    assert.equal((await call()).structuredContent.error.name, "RESOURCE_NOT_FOUND");
    assert.equal(requests.length, 2);
    await client.close();
  });
});

/** Enters a key on the page, as a browser would. */
async function enter(url, key) {
  const page = await (await fetch(url)).text();
  const [, token] = page.match(/name="token" value="([^"]+)"/);
  const answer = await fetch(url, {
    method: "POST",
    headers: { origin: new URL(url).origin },
    body: new URLSearchParams({ token, key }),
  });
  assert.equal(answer.status, 200);
}

describe("a missing key", () => {
  const env = { EXA_API_KEY: "", EXA_API_KEYS: "" };

  test("is entered on a page while the call waits", async () => {
    const elicit = async ({ mode, url }) => {
      assert.equal(mode, "url");
      await enter(url, "any-key-will-do");
      return { action: "accept" };
    };
    const { client, requests } = await connect({ elicit, env });
    const result = await client.callTool(calls.good);
    assert.equal(result.isError, false, result.content[0].text);
    assert.equal(requests.length, 1);
    await client.close();
  });

  test("that is late causes the error of the protocol", async () => {
    const elicit = () => ({ action: "accept" });
    const late = { ...env, EXA_MCP_CLIENT_TIMEOUT: "1" };
    const { client } = await connect({ elicit, env: late });
    const completed = new Promise((resolve) => {
      client.setNotificationHandler(ElicitationCompleteNotificationSchema, resolve);
    });
    const error = await client.callTool(calls.good).catch((error) => error);
    assert.ok(error instanceof UrlElicitationRequiredError, String(error));
    const [{ url, elicitationId }] = error.elicitations;
    await enter(url, "any-key-will-do");
    assert.equal((await completed).params.elicitationId, elicitationId);
    assert.equal((await client.callTool(calls.good)).isError, false);
    await client.close();
  });
});

describe("roots", () => {
  test("a file inside a root is imported, and after a change no longer", async () => {
    const folder = mkdtempSync(join(tmpdir(), "exa roots "));
    writeFileSync(join(folder, "list.csv"), "name,url\nAcme,https://acme.example\n");
    let open = [folder];
    const roots = () => ({ roots: open.map((it) => ({ uri: pathToFileURL(it).href })) });
    const { client, requests } = await connect({ roots });
    const filePath = join(folder, "list.csv");
    const args = { title: "Companies", filePath, entity: { type: "company" } };
    const call = () =>
      client.callTool({
        name: "manage_websets",
        arguments: { operation: "imports.create", args },
      });
    const imported = await call();
    assert.equal(imported.isError, false, imported.content[0].text);
    open = [];
    await client.sendRootsListChanged();
    assert.equal((await call()).isError, true);
    assert.equal(requests.length, 2);
    await client.close();
    rmSync(folder, { recursive: true });
  });
});

describe("logging", () => {
  test("messages are sent once a level is set", async () => {
    const { client } = await connect();
    const messages = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      messages.push(params);
    });
    await client.callTool(calls.good);
    await client.ping();
    assert.deepEqual(messages, []);
    await client.setLoggingLevel("debug");
    await client.callTool({ ...calls.good, arguments: { ...calls.good.arguments, fresh: true } });
    await client.ping();
    assert.ok(messages.some(({ data }) => data.message === "answered"));
    assert.ok(messages.every(({ logger }) => logger === "exa-mcp-server"));
    await client.close();
  });
});
