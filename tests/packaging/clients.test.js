// Clients read what `install` writes: the real command lines of Claude Code, Codex and Gemini CLI, without network.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const server = process.env.EXA_MCP_SERVER_COMMAND;
const URL = "http://127.0.0.1:1/mcp";

describe("clients", () => {
  let home;
  beforeEach(() => {
    if (home) rmSync(home, { recursive: true });
    home = mkdtempSync(join(tmpdir(), "clients-"));
  });
  after(() => rmSync(home, { recursive: true }));

  function environment(more = {}) {
    const path = `${join(here, "clients/node_modules/.bin")}:${process.env.PATH}`;
    return { PATH: path, HOME: home, EXA_API_KEY: "key-of-the-test", NO_PROXY: "127.0.0.1", ...more };
  }

  /** Runs a command in the home directory and returns what it writes. */
  function run(command, args, more) {
    const options = { cwd: home, env: environment(more), encoding: "utf8", timeout: 60_000 };
    const { status, stdout, stderr, error } = spawnSync(command, args, options);
    assert.equal(error, undefined);
    assert.equal(status, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
    return stdout + stderr;
  }

  const install = (...args) => run(server, ["install", ...args]);

  function writeFile(path, text) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }

  test("Claude Code starts the program", () => {
    run("claude", ["mcp", "add", "-s", "user", "other", "--", "/nonexistent"]);
    const before = readFileSync(join(home, ".claude.json"), "utf8");
    run(server, ["--sandbox", "install", "claude-code"]);
    const listed = run("claude", ["mcp", "list"]);
    assert.match(listed, /^exa: .*exa-mcp-server --sandbox - .*Connected/m);
    assert.match(listed, /^other: /m);
    install("claude-code", "--name", "live");
    const shown = run("claude", ["mcp", "get", "live"]);
    assert.match(shown, /Scope: User config/);
    assert.match(shown, /EXA_API_KEY=\$\{EXA_API_KEY\}/);
    assert.doesNotMatch(run("claude", ["mcp", "list"]), /Missing environment variables/);
    install("claude-code", "--name", "live", "--remove");
    install("claude-code", "--remove");
    const servers = JSON.parse(readFileSync(join(home, ".claude.json"), "utf8")).mcpServers;
    assert.deepEqual(servers, JSON.parse(before).mcpServers);
  });

  test("Claude Code reads a team server", () => {
    install("claude-code", "--url", URL, "--token", "token-of-the-test");
    const shown = run("claude", ["mcp", "get", "exa"]);
    assert.match(shown, /Type: http/);
    assert.ok(shown.includes(URL), shown);
    assert.match(shown, /Authorization/);
  });

  test("Codex reads the program and a team server", () => {
    writeFile(".codex/config.toml", '# mine\nmodel = "gpt-5.2-codex" # best\n');
    install("codex");
    const local = JSON.parse(execFileSync("codex", ["mcp", "get", "exa", "--json"], { env: environment(), stdio: ["ignore", "pipe", "ignore"] }));
    assert.equal(local.enabled, true);
    assert.deepEqual(
      { command: local.transport.command, args: local.transport.args, env_vars: local.transport.env_vars },
      { command: server, args: [], env_vars: ["EXA_API_KEY"] },
    );
    run(server, ["install", "codex", "--name", "team", "--url", URL], { EXA_MCP_TOKEN: "token-of-the-test" });
    const listed = run("codex", ["mcp", "list"], { EXA_MCP_TOKEN: "token-of-the-test" });
    assert.match(listed, /^team\s+\S+\s+EXA_MCP_TOKEN\s+enabled\s+Bearer token/m);
    install("codex", "--name", "literal", "--url", URL, "--token", "token-of-the-test");
    assert.match(run("codex", ["mcp", "list"]), /^literal\s+\S+\s+-\s+enabled\s+Bearer token/m);
    assert.match(readFileSync(join(home, ".codex/config.toml"), "utf8"), /^# mine\nmodel = "gpt-5.2-codex" # best\n/);
    // Codex can change and remove what was written.
    run("codex", ["mcp", "remove", "literal"]);
    install("codex", "--name", "team", "--remove");
    install("codex", "--remove");
    assert.match(run("codex", ["mcp", "list"]), /No MCP servers configured/);
  });

  test("Gemini CLI starts the program", () => {
    writeFile(".gemini/settings.json", '{\n  // trusted\n  "security": { "folderTrust": { "enabled": false } }\n}\n');
    run(server, ["--sandbox", "install", "gemini"]);
    install("gemini", "--name", "team", "--url", URL, "--token", "token-of-the-test");
    const listed = run("gemini", ["mcp", "list"]);
    assert.match(listed, /exa: .*exa-mcp-server --sandbox \(stdio\) - Connected/);
    assert.match(listed, /team: http:\/\/127\.0\.0\.1:1\/mcp \(http\) - Disconnected/);
  });

  test("the Gemini CLI extension is valid", () => {
    for (const file of ["gemini-extension.json", "skills", "README.md", "LICENSE"]) {
      cpSync(join(here, "../..", file), join(home, "extension", file), { recursive: true });
    }
    assert.match(run("gemini", ["extensions", "validate", join(home, "extension")]), /successfully validated/);
  });

  test("the Claude Code plugin is valid", () => {
    for (const file of [".claude-plugin", "skills"]) {
      cpSync(join(here, "../..", file), join(home, "plugin", file), { recursive: true });
    }
    assert.match(run("claude", ["plugin", "validate", join(home, "plugin")]), /Validation passed/);
  });
});
