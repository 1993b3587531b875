// Other people's converters, from the tools of every set to the function declarations of model APIs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { createGoogle } from "@ai-sdk/google";
import { createMCPClient } from "@ai-sdk/mcp";
import { StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAI } from "@ai-sdk/openai";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { generateText } from "ai";

import { args, command, here } from "./support.js";

const sets = JSON.parse(readFileSync(join(here, "../../codegen-snapshots/sets.json"), "utf8"));
const names = [...new Set(Object.values(sets).flat())].sort();
const target = { command, args: [...args, "--tools", Object.keys(sets).join(",")], env: process.env };

/** Returns the body of the request that a provider of the AI SDK would send for these tools. */
async function requestOf(provider, model, tools) {
  let body;
  const refuse = async (_, init) => {
    body = JSON.parse(init.body);
    return new Response("{}", { status: 400 });
  };
  const request = { model: provider({ apiKey: "none", fetch: refuse })(model), tools };
  await assert.rejects(generateText({ ...request, prompt: "hello", maxRetries: 0 }));
  assert.ok(body, "a request was made");
  return body;
}

test("the AI SDK converts every tool", async (context) => {
  const client = await createMCPClient({ transport: new StdioMCPTransport(target) });
  context.after(() => client.close());
  const tools = await client.tools();
  assert.deepEqual(Object.keys(tools).sort(), names);

  const openai = await requestOf(createOpenAI, "gpt-5", tools);
  assert.deepEqual(openai.tools.map(({ name }) => name).sort(), names);

  const google = await requestOf(createGoogle, "gemini-2.5-pro", tools);
  const declarations = google.tools.flatMap((tool) => tool.functionDeclarations);
  assert.deepEqual(declarations.map(({ name }) => name).sort(), names);
  for (const { name, parameters, parametersJsonSchema } of declarations) {
    const { filters } = (parameters ?? parametersJsonSchema)?.properties ?? {};
    if (filters) assert.ok(filters.properties.includeDomains, name);
  }
});

test("the second TypeScript SDK lists and calls every kind of tool", async (context) => {
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ ...target, stderr: "ignore" }));
  context.after(() => client.close());
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name).sort(), names);
  for (const { name, inputSchema } of tools) {
    assert.equal(inputSchema.type, "object", name);
    assert.ok(inputSchema.properties, name);
  }
  const call = { name: "web_search_exa", arguments: { query: "solid-state batteries" } };
  const { isError, content } = await client.callTool(call);
  assert.ok(!isError, JSON.stringify(content));
});
