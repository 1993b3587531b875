// The server with the TypeScript SDK and the Inspector's command line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import {
  args,
  calls,
  command,
  connect,
  hasCode,
  here,
  httpAddress,
  tokens,
  connectors,
} from "./support.js";

for (const [transportName, open] of Object.entries(connectors)) {
  describe(`TypeScript SDK, ${transportName}`, () => {
    let session;

    before(async () => {
      session = await open();
    });

    after(async () => {
      assert.deepEqual(session.failures, []);
      await session.client.close();
    });

    test("initialize returns name, version and capabilities", () => {
      const { client } = session;
      const server = client.getServerVersion();
      assert.equal(server.name, "exa-mcp-server");
      assert.match(server.version, /^\d+\.\d+\.\d+/);
      assert.ok(server.title);
      assert.ok(client.getInstructions());
      const capabilities = ["completions", "extensions", "logging", "prompts", "resources", "tasks", "tools"];
      assert.deepEqual(Object.keys(client.getServerCapabilities()).sort(), capabilities);
    });

    test("all tools are listed", async () => {
      const { tools, nextCursor } = await session.client.listTools();
      assert.ok(tools.some(({ name }) => name === calls.good.name));
      assert.equal(nextCursor, undefined);
      for (const tool of tools) {
        assert.ok(tool.title && tool.description, tool.name);
        assert.equal(tool.inputSchema.type, "object", tool.name);
        assert.equal(typeof tool.annotations.readOnlyHint, "boolean", tool.name);
      }
    });

    test("a call returns text and structured content", async () => {
      const result = await session.client.callTool(calls.good);
      assert.equal(result.isError, false);
      assert.equal(result.content[0].type, "text");
      assert.equal(typeof result.structuredContent, "object");
    });

    test("a failed call is a result with isError", async () => {
      const result = await session.client.callTool(calls.bad);
      assert.equal(result.isError, true);
      assert.ok(result.content[0].text);
    });

    test("unknown names are errors with the right code", async () => {
      const { client } = session;
      const near = `${calls.good.name}x`;
      await assert.rejects(client.callTool({ name: near, arguments: {} }), (error) => {
        assert.equal(error.code, -32602);
        assert.ok(error.data.nearest.includes(calls.good.name));
        return true;
      });
      await assert.rejects(client.listTools({ cursor: "nowhere" }), hasCode(-32602));
      await assert.rejects(client.listResources({ cursor: "nowhere" }), hasCode(-32602));
      await assert.rejects(client.getPrompt({ name: "no_such_prompt" }), hasCode(-32602));
    });

    test("pings, log levels and progress tokens are accepted", async () => {
      const { client } = session;
      await client.ping();
      await client.setLoggingLevel("warning");
      await client.callTool(calls.good, undefined, { onprogress: () => {} });
    });

    test("many calls run concurrently", async () => {
      const running = Array.from({ length: 64 }, () => session.client.callTool(calls.good));
      const results = await Promise.all(running);
      assert.ok(results.every(({ isError }) => isError === false));
    });

    test("a cancelled call gets no response", { skip: !calls.slow }, async () => {
      const { client, received } = session;
      const abort = new AbortController();
      const call = client.callTool(calls.slow, undefined, { signal: abort.signal });
      await sleep(100);
      const answers = () => received.filter(({ id }) => id !== undefined).length;
      const seen = answers();
      abort.abort("no longer wanted");
      await assert.rejects(call);
      await client.ping();
      assert.equal(answers(), seen + 1, "nothing but the answer to the ping");
    });

    for (const [set, examples] of Object.entries(calls.sets ?? {})) {
      test(`tools of the set ${set} succeed`, async () => {
        const { client } = await open({ tools: set });
        for (const example of examples) {
          const result = await client.callTool(example);
          assert.equal(result.isError, false, `${example.name}: ${result.content[0].text}`);
        }
        await client.close();
      });
    }
  });
}

describe("shutdown", () => {
  test("the server exits when its input is closed", async () => {
    const { client } = await connect();
    await client.callTool(calls.good);
    const start = Date.now();
    await client.close();
    // The SDK would send a signal after two seconds.
    assert.ok(Date.now() - start < 1500);
  });

  test("a running call does not delay the shutdown", { skip: !calls.slow }, async () => {
    const { client } = await connect();
    const call = client.callTool(calls.slow);
    await sleep(100);
    await Promise.all([assert.rejects(call), client.close()]);
  });
});

/** The Inspector's arguments for each transport. */
const targets = {
  stdio: () => {
    // The Inspector passes on only the variables that are listed.
    const variables = ["EXA_BASE_URL", "EXA_API_KEY", "NO_PROXY"].filter((name) => process.env[name]);
    const environment = variables.flatMap((name) => ["-e", `${name}=${process.env[name]}`]);
    return [...environment, command, ...args];
  },
  "Streamable HTTP": async (token = tokens.ann) => {
    const { href } = await httpAddress("/mcp");
    return [href, "--transport", "http", "--header", `Authorization: Bearer ${token}`];
  },
};

/** Runs the Inspector's command line, which needs a recent node. */
function inspect(target, era, ...options) {
  const bin = join(here, "node_modules/.bin");
  const inspector = [join(bin, "mcp-inspector"), "--cli", ...target];
  const all = [...inspector, "--protocol-era", era, "--quiet", ...options];
  return new Promise((resolve) => {
    execFile(join(bin, "node"), all, { timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, stdout, stderr });
    });
  });
}

const inspections = [
  ...["legacy", "auto", "modern"].map((era) => ["stdio", era]),
  ...["legacy", "modern"].map((era) => ["Streamable HTTP", era]),
];

for (const [transportName, era] of inspections) {
  describe(`Inspector, ${transportName}, ${era}`, { concurrency: true }, () => {
    let target;

    before(async () => {
      target = await targets[transportName]();
    });

    const call = ({ name, arguments: given }) => {
      const json = JSON.stringify(given ?? {});
      const tool = ["--tool-name", name, "--tool-args-json", json];
      return inspect(target, era, "--method", "tools/call", ...tool);
    };

    test("lists tools with portable schemas", async () => {
      const listed = await inspect(target, era, "--method", "tools/list", "--strict");
      assert.equal(listed.code, 0, listed.stderr);
      const { tools } = JSON.parse(listed.stdout);
      assert.ok(tools.some(({ name }) => name === calls.good.name));
    });

    test("calls", async () => {
      const called = await call(calls.good);
      assert.equal(called.code, 0, called.stderr);
      assert.equal(JSON.parse(called.stdout).isError, false);
    });

    test("reports failures", async () => {
      const failed = await call(calls.bad);
      assert.notEqual(failed.code, 0);
      assert.equal(JSON.parse(failed.stdout).isError, true);
      const unknown = await call({ name: "no_such_tool" });
      assert.notEqual(unknown.code, 0);
      assert.match(unknown.stderr, /no_such_tool/);
    });
  });
}

for (const era of ["legacy", "modern"]) {
  test(`the Inspector reports an invalid token, ${era}`, async () => {
    const target = await targets["Streamable HTTP"]("wrong");
    const refused = await inspect(target, era, "--method", "tools/list");
    assert.notEqual(refused.code, 0);
    assert.equal(JSON.parse(refused.stderr).error.code, "auth_required");
  });
}
