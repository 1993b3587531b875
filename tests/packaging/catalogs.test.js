// The Homebrew formula and the entry of Docker's catalog, with what a release fills in.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { loadPrism } from "@ruby/prism";

import { callTool, start } from "./stdio.js";

const here = dirname(fileURLToPath(import.meta.url));
const packaging = join(here, "../../packaging");
const targets = JSON.parse(readFileSync(join(packaging, "targets.json"), "utf8")).include;

describe("Homebrew", () => {
  let folder;
  before(() => (folder = mkdtempSync(join(tmpdir(), "homebrew-"))));
  after(() => rmSync(folder, { recursive: true }));

  const sum = (target) => Buffer.from(target).toString("hex").padEnd(64, "0").slice(0, 64);
  function formula(included) {
    const lines = included.map(({ target }) => `${sum(target)}  exa-mcp-server-${target}.tar.gz\n`);
    const sums = join(folder, "SHA256SUMS");
    writeFileSync(sums, lines.join("") + `${sum("x")}  exa-mcp-server_0.1.0_amd64.deb\n`);
    return spawnSync(join(packaging, "formula"), [sums], { encoding: "utf8" });
  }

  test("the formula has the checksum of each platform and is valid Ruby", async () => {
    const { status, stdout, stderr } = formula(targets);
    assert.equal(status, 0, stderr);
    const parse = await loadPrism();
    assert.deepEqual(parse(stdout).errors, []);
    assert.notDeepEqual(parse(stdout.replace(/end\n$/, "")).errors, [], "the parser finds mistakes");
    const pairs = [...stdout.matchAll(/url "(.*)"\n +sha256 "([0-9a-f]{64})"/g)];
    assert.equal(pairs.length, 4);
    for (const [, url, found] of pairs) {
      const target = url.match(/exa-mcp-server-([\w-]+)\.tar\.gz$/)[1];
      assert.equal(found, sum(target));
    }
    const description = stdout.match(/desc "(.*)"/)[1];
    assert.ok(description.length <= 80 && !/^(an?|the) /i.test(description), description);
  });

  test("a missing checksum is an error", () => {
    const { status, stderr } = formula(targets.slice(1));
    assert.equal(status, 1);
    assert.match(stderr, /no checksum for: @exa-mcp-server-x86_64-unknown-linux-gnu/);
  });
});

describe("Docker", () => {
  const text = readFileSync(join(packaging, "docker/exa-mcp-server/server.yaml"), "utf8");

  test("the entry fits the registry", () => {
    const folder = mkdtempSync(join(tmpdir(), "docker-"));
    const check = (content) => {
      writeFileSync(join(folder, "server.yaml"), content);
      const schema = join(here, "docker-server.schema.json");
      return spawnSync(join(here, "venv/bin/check-jsonschema"), ["--schemafile", schema, join(folder, "server.yaml")], { encoding: "utf8" });
    };
    const filled = check(text.replace("@COMMIT@", "0123456789abcdef0123456789abcdef01234567"));
    assert.equal(filled.status, 0, filled.stdout + filled.stderr);
    assert.notEqual(check(text).status, 0, "the commit is not filled in");
    rmSync(folder, { recursive: true });
  });

  // The image starts a server over HTTP unless it has arguments.
  test("its arguments start a server over stdio", async () => {
    const command = JSON.parse(text.match(/command: (\[.*\])/)[1]);
    assert.ok(command.length > 0);
    const server = await start(process.env.EXA_MCP_SERVER_COMMAND, ["--sandbox", ...command]);
    const result = await callTool(server, "web_search_exa", { query: "solid-state batteries", numResults: 1 });
    assert.ok(!result.isError);
    server.child.stdin.end();
    assert.equal((await server.exited).code, 0);
  });

  test("tools are listed without a key, as Docker's builders do", async () => {
    const environment = { PATH: process.env.PATH, HOME: "/nonexistent" };
    const server = await start(process.env.EXA_MCP_SERVER_COMMAND, [], { env: environment });
    const { result } = await server.request("tools/list", {});
    assert.ok(result.tools.length > 0);
    server.child.stdin.end();
    await server.exited;
  });
});

test("the formula that is checked in is a template", () => {
  const text = execFileSync("cat", [join(packaging, "homebrew/exa-mcp-server.rb")], { encoding: "utf8" });
  assert.match(text, /sha256 "@exa-mcp-server-/);
});
