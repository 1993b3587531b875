// A shared server with the TypeScript SDK.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

import {
  calls,
  connectOverHttp,
  connectOverSse,
  hasCode,
  httpServer,
  tokens,
} from "./support.js";

const create = (args) => ({
  name: "manage_websets",
  arguments: { operation: "websets.create", args },
});

/** Requests one of the server's own pages. */
async function page(path, token) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(new URL(path, await httpServer()), { headers });
  assert.equal(response.status, 200, path);
  return response.json();
}

const connectors = { "Streamable HTTP": connectOverHttp, "HTTP with SSE": connectOverSse };

for (const [transportName, open] of Object.entries(connectors)) {
  describe(transportName, () => {
    let ann;
    let bob;

    before(async () => {
      ann = await open();
      bob = await open({ token: tokens.bob });
    });

    after(async () => {
      // The SDK forgets a call before it reads progress that arrives together with the response.
      const late = ({ message }) => message.includes("progress notification for an unknown token");
      const failures = [...ann.failures, ...bob.failures].filter((failure) => !late(failure));
      assert.deepEqual(failures, []);
      await Promise.all([ann.client.close(), bob.client.close()]);
    });

    test("an invalid token is rejected", async () => {
      for (const token of ["wrong", "", tokens.ann.toUpperCase()]) {
        await assert.rejects(open({ token }), hasCode(401));
      }
    });

    test("progress is reported while a call waits", async () => {
      const steps = [];
      const call = create({ search: { query: "banks", count: 2 }, wait_seconds: 30 });
      const result = await ann.client.callTool(call, undefined, {
        onprogress: (step) => steps.push(step),
      });
      assert.equal(result.structuredContent.results[0].status, "idle");
      assert.ok(steps.length > 0, "no progress");
      assert.ok(steps.every((step, at) => at === 0 || step.progress > steps[at - 1].progress));
      const kinds = ann.received.map(({ method }) => method ?? "answer");
      assert.equal(kinds.at(-1), "answer", "progress after the end");
    });

    test("users cannot access each other's data", async () => {
      await ann.client.listTools();
      const { tasks } = ann.client.experimental;
      const call = create({ search: { query: "banks", count: 1 } });
      const { value } = await tasks.callToolStream(call, CallToolResultSchema, { task: {} }).next();
      const { taskId } = value.task;
      const others = bob.client.experimental.tasks;
      await assert.rejects(others.getTask(taskId), hasCode(-32602));
      await assert.rejects(others.cancelTask(taskId), hasCode(-32602));
      const listed = (await others.listTasks()).tasks.map((task) => task.taskId);
      assert.ok(!listed.includes(taskId));
      assert.equal((await tasks.cancelTask(taskId)).status, "cancelled");
    });

    test("calls are counted per user", async () => {
      const counted = () =>
        Promise.all([page("/mcp/usage", tokens.ann), page("/mcp/usage", tokens.bob)]);
      const before = await counted();
      for (let call = 0; call < 3; call += 1) await bob.client.callTool(calls.good);
      const after = await counted();
      const more = after.map(({ usageCount }, at) => usageCount - before[at].usageCount);
      assert.deepEqual(more, [0, 3]);
      const { stats } = await page("/admin/tokens", tokens.admin);
      assert.ok(stats.totalUsage >= after[0].usageCount + after[1].usageCount);
    });
  });
}

test("a session that its client ended no longer exists", async () => {
  const { client, transport } = await connectOverHttp();
  await client.listTools();
  const { sessionId } = transport;
  assert.ok(sessionId);
  await transport.terminateSession();
  await client.close();
  const headers = {
    Authorization: `Bearer ${tokens.ann}`,
    "Content-Type": "application/json",
    "Mcp-Session-Id": sessionId,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const address = new URL("/mcp", await httpServer());
  const response = await fetch(address, { method: "POST", headers, body });
  assert.equal(response.status, 404);
});
