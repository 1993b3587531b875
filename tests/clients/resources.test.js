// Resources, prompts, completion and notes with the TypeScript SDK.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { connect, hasCode } from "./support.js";

/** Waits for the next notification of a kind. */
function next(client, schema) {
  return new Promise((resolve) => client.setNotificationHandler(schema, resolve));
}

/** Creates a webset and returns its URI. */
async function webset(client, externalId) {
  const args = { search: { query: "databases" }, externalId };
  const call = { operation: "websets.create", args };
  await client.callTool({ name: "manage_websets", arguments: call });
  return `exa://websets/${externalId}`;
}

describe("TypeScript SDK", () => {
  let client;
  let failures;

  before(async () => {
    ({ client, failures } = await connect({ tools: "default,notes" }));
  });

  after(async () => {
    assert.deepEqual(failures, []);
    await client.close();
  });

  test("resources are listed page by page and read", async () => {
    const uris = [];
    let cursor;
    do {
      const page = await client.listResources({ cursor });
      uris.push(...page.resources.map(({ uri }) => uri));
      cursor = page.nextCursor;
    } while (cursor);
    const operations = uris.filter((uri) => uri.startsWith("exa://operations/"));
    const dispatchers = (await client.listTools()).tools.map(
      ({ inputSchema }) => inputSchema.properties.operation?.enum ?? [],
    );
    const names = dispatchers.flat().filter((name) => !["describe", "list_operations"].includes(name));
    assert.ok(names.length >= 76, `only ${names.length} operations`);
    assert.deepEqual(operations.toSorted(), names.map((name) => `exa://operations/${name}`).toSorted());
    const { contents } = await client.readResource({ uri: "exa://operations/search" });
    assert.equal(contents[0].mimeType, "application/json");
    assert.equal(JSON.parse(contents[0].text).inputSchema.type, "object");
    await assert.rejects(client.readResource({ uri: "exa://operations/x" }), hasCode(-32002));
  });

  test("templates are listed", async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    const patterns = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
    assert.ok(patterns.includes("exa://results/{cacheId}/{index}"));
    assert.ok(patterns.includes("note:///{id}"));
  });

  test("a cached result is a resource", async () => {
    const search = { query: "heat pumps", numResults: 2 };
    const answer = await client.callTool({ name: "web_search_exa", arguments: search });
    const { cacheId } = answer.structuredContent.metadata;
    const whole = await client.readResource({ uri: `exa://results/${cacheId}` });
    const part = await client.readResource({ uri: `exa://results/${cacheId}/1` });
    assert.equal(whole.contents[0].mimeType, "text/markdown");
    assert.ok(part.contents[0].text.length < whole.contents[0].text.length);
  });

  test("a note changes the list and is read", async () => {
    const changed = next(client, ResourceListChangedNotificationSchema);
    const note = { title: "Heat pumps", content: "They work.", sourceUrls: ["https://example.com/"] };
    const result = await client.callTool({ name: "create_note", arguments: note });
    assert.equal(result.isError, false);
    const [, link] = result.content;
    assert.equal(link.type, "resource_link");
    await changed;
    const { contents } = await client.readResource({ uri: link.uri });
    assert.equal(contents[0].text, "They work.");
    const { resources } = await client.listResources();
    assert.ok(resources.some(({ uri }) => uri === link.uri));
  });

  test("a subscriber is notified when a webset changes", async () => {
    const uri = await webset(client, `ts-${process.pid}`);
    await client.subscribeResource({ uri });
    const updated = next(client, ResourceUpdatedNotificationSchema);
    const args = { websetId: `ts-${process.pid}` };
    await client.callTool({ name: "manage_websets", arguments: { operation: "websets.cancel", args } });
    assert.equal((await updated).params.uri, uri);
    await client.unsubscribeResource({ uri });
    const { contents } = await client.readResource({ uri });
    assert.equal(JSON.parse(contents[0].text).externalId, args.websetId);
  });

  test("prompts are listed and filled in", async () => {
    const { prompts } = await client.listPrompts();
    const names = prompts.map(({ name }) => name);
    assert.deepEqual(names, ["research_topic", "build_webset", "compare_companies", "summarize_notes"]);
    const topic = { topic: "heat pumps", depth: "quick" };
    const { messages } = await client.getPrompt({ name: "research_topic", arguments: topic });
    assert.match(messages[0].content.text, /heat pumps[^]*`web_search_exa`/);
    const notes = await client.getPrompt({ name: "summarize_notes", arguments: {} });
    assert.ok(notes.messages.some(({ content }) => content.type === "resource"));
    await assert.rejects(client.getPrompt({ name: "research_topic", arguments: {} }), (error) => {
      assert.equal(error.code, -32602);
      assert.match(error.message, /`topic` is required/);
      return true;
    });
  });

  test("arguments are completed", async () => {
    const depth = await client.complete({
      ref: { type: "ref/prompt", name: "research_topic" },
      argument: { name: "depth", value: "q" },
    });
    assert.deepEqual(depth.completion, { values: ["quick"], total: 1, hasMore: false });
    const operations = await client.complete({
      ref: { type: "ref/resource", uri: "exa://operations/{name}" },
      argument: { name: "name", value: "websets.c" },
    });
    assert.deepEqual(operations.completion.values, ["websets.cancel", "websets.create"]);
    const name = `completed-${process.pid}`;
    await webset(client, name);
    const websets = await client.complete({
      ref: { type: "ref/resource", uri: "exa://websets/{websetId}" },
      argument: { name: "websetId", value: name },
    });
    assert.equal(websets.completion.values.length, 1);
  });
});
