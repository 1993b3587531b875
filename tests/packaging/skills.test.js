// Follows each skill step by step: every JSON block is a tool call that must succeed in the sandbox.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { callTool, start } from "./stdio.js";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../../skills");

/** Returns the tool calls of a skill in their order. */
function steps(name) {
  const text = readFileSync(join(folder, name, "SKILL.md"), "utf8");
  const blocks = [...text.matchAll(/```json\n([\s\S]*?)```/g)];
  return blocks.map(([, block]) => block.trim());
}

/** Returns all that a result shows, in which the ids of later steps are found. */
function shownText(result) {
  return JSON.stringify(result.structuredContent ?? {}) + result.content.map(({ text }) => text ?? "").join("\n");
}

const PATTERNS = {
  WEBSET_ID: /\b(webset_\w+|ws_\w+)/,
  RUN_ID: /\b(agent_run_\w+)/,
  MONITOR_ID: /\b(monitor_\w+|mon_\w+|sm_\w+)/,
};

for (const name of readdirSync(folder)) {
  test(`the steps of ${name} work`, { timeout: 120_000 }, async () => {
    const server = await start(process.env.EXA_MCP_SERVER_COMMAND, ["--sandbox"]);
    const calls = steps(name);
    assert.ok(calls.length >= 2, "a skill shows its calls");
    const known = {};
    let text = "";
    if (name === "export-to-csv") {
      const result = await callTool(server, "manage_websets", {
        operation: "websets.create",
        args: { search: { query: "AI startups in Berlin", count: 3 } },
        wait_seconds: 60,
      });
      known.WEBSET_ID = shownText(result).match(PATTERNS.WEBSET_ID)[1];
    }
    for (const block of calls) {
      const call = JSON.parse(block.replace(/\b[A-Z]+_ID\b/g, (key) => known[key] ?? key));
      const result = await callTool(server, call.name, call.arguments);
      assert.ok(!result.isError, `${block}\n${JSON.stringify(result)}`);
      text = shownText(result);
      for (const [key, pattern] of Object.entries(PATTERNS)) {
        known[key] ??= text.match(pattern)?.[1];
        if (known[key] === undefined) delete known[key];
      }
    }
    // The skill describes the lines to write.
    if (name === "export-to-csv") assert.match(text, /\n#,id,.*\n1,item_/);
    server.child.stdin.end();
    await server.exited;
  });
}
