// Forty requests in the words of users, with the calls that a model writes who knows only the default `tools/list`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { connect, here } from "./support.js";

/** How many must be right at the first try. */
const TARGET = 38;

const trial = JSON.parse(readFileSync(join(here, "trial.json"), "utf8"));

/** Makes what the requests refer to as "this run" or "this webset"; returns the identifiers. */
async function prepare(client) {
  const create = async (name, operation, args) => {
    const call = { name, arguments: { operation, args, output_format: "json" } };
    const { content } = await client.callTool(call);
    const { results } = JSON.parse(content[0].text);
    return results[0].id;
  };
  const webset = await create("manage_websets", "websets.create", { search: { query: "makers of drones", count: 2 } });
  const cadence = { cron: "0 9 * * 1" };
  const behavior = { type: "search", config: { count: 5 } };
  const search = { query: "drones" };
  return {
    webset,
    monitor: await create("manage_websets", "monitors.create", { websetId: webset, cadence, behavior }),
    run: await create("exa_api", "agent.runs.create", { query: "Research drones" }),
    searchMonitor: await create("exa_api", "search_monitors.create", {
      search,
      webhook: { url: "https://hooks.example.com/prepared" },
    }),
  };
}

test("a model that knows only tools/list is right at the first try", async (context) => {
  const { client } = await connect();
  context.after(() => client.close());
  assert.equal(trial.length, 40);
  const ids = await prepare(client);
  const failures = [];
  for (const { request, tool, arguments: given } of trial) {
    const text = JSON.stringify(given).replace(/\$(\w+)/g, (whole, name) => ids[name] ?? whole);
    const { isError, content } = await client.callTool({ name: tool, arguments: JSON.parse(text) });
    const answer = content.map((part) => part.text ?? "").join("\n");
    // A corrected call is right; one that the server warns about did not do what was asked. The price of what repeats
    // is no such warning.
    if (isError || /^Warning: (?!it repeats)/m.test(answer)) failures.push(`${request}: ${answer.slice(0, 300)}`);
  }
  const right = trial.length - failures.length;
  context.diagnostic(`${right} of ${trial.length} calls were right`);
  assert.ok(right >= TARGET, failures.join("\n\n"));
});
