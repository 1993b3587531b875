// Tasks with the TypeScript SDK.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

import { hasCode, connectors } from "./support.js";

const call = (instructions) => ({
  name: "exa_api",
  arguments: { operation: "research.create", args: { instructions } },
});

const webset = {
  name: "manage_websets",
  arguments: { operation: "websets.create", args: { search: { query: "banks", count: 2 } } },
};

function life(transportName, open) {
  describe(transportName, () => {
    let session;
    let tasks;

    before(async () => {
      session = await open();
      tasks = session.client.experimental.tasks;
      // The client learns from the list which tools support tasks.
      await session.client.listTools();
    });

    after(async () => {
      assert.deepEqual(session.failures, []);
      await session.client.close();
    });

    test("the server declares tasks", () => {
      const { tasks: known } = session.client.getServerCapabilities();
      assert.deepEqual(known, { list: {}, cancel: {}, requests: { tools: { call: {} } } });
    });

    test("a call is started, polled and completed", async () => {
      const steps = [];
      const onprogress = (step) => steps.push(step);
      const seen = [];
      let id;
      for await (const message of tasks.callToolStream(webset, CallToolResultSchema, { onprogress })) {
        seen.push(message.type);
        if (message.type === "taskCreated") id = message.task.taskId;
        if (message.type === "taskStatus") assert.equal(message.task.taskId, id);
        if (message.type === "error") assert.fail(message.error);
        if (message.type === "result") {
          assert.equal(message.result.isError, false);
          assert.equal(message.result.structuredContent.results[0].status, "idle");
          const related = message.result._meta["io.modelcontextprotocol/related-task"];
          assert.equal(related.taskId, id);
        }
      }
      assert.equal(seen[0], "taskCreated");
      assert.equal(seen.at(-1), "result");
      assert.ok(seen.includes("taskStatus"));
      assert.ok(steps.length > 0, "no progress");
      assert.ok(steps.every((step, at) => at === 0 || step.progress > steps[at - 1].progress));
      assert.equal(steps.at(-1).total, 2);
      const end = await tasks.getTask(id);
      assert.equal(end.status, "completed");
      await assert.rejects(tasks.cancelTask(id), hasCode(-32602));
    });

    test("a task is cancelled", async () => {
      const stream = tasks.callToolStream(call("never to be read"), CallToolResultSchema, {
        task: { ttl: 120_000 },
      });
      const { value: created } = await stream.next();
      assert.equal(created.type, "taskCreated");
      assert.equal(created.task.ttl, 120_000);
      const { taskId } = created.task;
      const cancelled = await tasks.cancelTask(taskId);
      assert.equal(cancelled.status, "cancelled");
      const rest = [];
      for await (const message of stream) rest.push(message.type);
      assert.equal(rest.at(-1), "error");
      assert.equal((await tasks.getTask(taskId)).status, "cancelled");
      await assert.rejects(tasks.getTaskResult(taskId, CallToolResultSchema), hasCode(-32602));
    });

    test("a task asks its user and continues", async () => {
      const asked = [];
      let websetId;
      const elicit = ({ params }) => {
        asked.push(params);
        return { action: "accept", content: { websetId } };
      };
      const { client, failures } = await open({ elicit });
      await client.listTools();
      const args = { search: { query: "ships", count: 1 } };
      const arguments_ = { operation: "websets.create", args, wait_seconds: 0 };
      const made = await client.callTool({ name: "manage_websets", arguments: arguments_ });
      websetId = made.structuredContent.results[0].id;
      const search = { operation: "searches.create", args: { query: "ferries", count: 1 } };
      const stream = client.experimental.tasks.callToolStream(
        { name: "manage_websets", arguments: search },
        CallToolResultSchema,
      );
      let created;
      let last;
      for await (const message of stream) {
        if (message.type === "taskCreated") created = message.task;
        last = message;
      }
      assert.equal(last.type, "result", last.error);
      assert.equal(last.result.isError, false);
      assert.equal(asked.length, 1);
      assert.deepEqual(asked[0].requestedSchema.required, ["websetId"]);
      const related = asked[0]._meta["io.modelcontextprotocol/related-task"];
      assert.equal(related.taskId, created.taskId);
      assert.deepEqual(failures, []);
      await client.close();
    });

    test("a failed call is a failed task", async () => {
      const stream = tasks.callToolStream(call(""), CallToolResultSchema, { task: {} });
      const messages = [];
      for await (const message of stream) messages.push(message);
      assert.equal(messages.at(-1).type, "error");
      const { taskId } = messages[0].task;
      assert.equal((await tasks.getTask(taskId)).status, "failed");
      const result = await tasks.getTaskResult(taskId, CallToolResultSchema);
      assert.equal(result.isError, true);
    });

    test("all tasks are listed", async () => {
      const listing = { name: "exa_api", arguments: { operation: "list_operations" } };
      const begin = () => tasks.callToolStream(listing, CallToolResultSchema, { task: {} }).next();
      const begun = await Promise.all(Array.from({ length: 60 }, begin));
      const ids = new Set(begun.map(({ value }) => value.task.taskId));
      const listed = [];
      let cursor;
      do {
        const page = await tasks.listTasks(cursor);
        listed.push(...page.tasks.map(({ taskId }) => taskId));
        cursor = page.nextCursor;
      } while (cursor);
      assert.equal(new Set(listed).size, listed.length);
      assert.ok([...ids].every((id) => listed.includes(id)));
      await assert.rejects(tasks.listTasks("nowhere"), hasCode(-32602));
    });

    test("unknown tasks are errors", async () => {
      await assert.rejects(tasks.getTask("nope"), hasCode(-32602));
      const search = { name: "web_search_exa", arguments: { query: "x" } };
      const stream = tasks.callToolStream(search, CallToolResultSchema, { task: {} });
      const { value } = await stream.next();
      assert.equal(value.type, "error");
      assert.equal(value.error.code, -32601);
      // Without a task the same call returns immediately.
      const plain = await session.client.callTool(search);
      assert.equal(plain.isError, false);
    });
  });
}

// Most of the time is spent waiting for upstream.
describe("tasks of the TypeScript SDK", { concurrency: true }, () => {
  for (const [transportName, open] of Object.entries(connectors)) life(transportName, open);
});
