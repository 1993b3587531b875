// The packages of this platform, installed as a user installs them.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { callTool, start } from "./stdio.js";

const packages = process.env.EXA_MCP_PACKAGES;
const files = readdirSync(packages);
const only = (pattern) => {
  const found = files.filter((file) => pattern.test(file));
  assert.equal(found.length, 1, `${pattern} in ${files}`);
  return join(packages, found[0]);
};
const environment = { PATH: process.env.PATH, HOME: process.env.HOME };

describe("npm", () => {
  let folder;
  let launcher;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "npm-"));
    writeFileSync(join(folder, "package.json"), '{"private": true}');
    // The other platforms are not installed here, and their packages need not exist.
    execFileSync(
      "npm",
      ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--omit=optional", ...tarballs()],
      { cwd: folder, stdio: ["ignore", "ignore", "inherit"] },
    );
    launcher = join(folder, "node_modules/.bin/exa-mcp-rs");
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  function tarballs() {
    return files.filter((file) => file.endsWith(".tgz")).map((file) => join(packages, file));
  }

  test("the launcher starts a server that answers and stops on SIGTERM", async () => {
    const server = await start(launcher, ["--sandbox"], { env: environment });
    assert.equal(server.initialized.result.serverInfo.name, "exa-mcp-server");
    const result = await callTool(server, "web_search_exa", { query: "solid-state batteries", numResults: 1 });
    assert.ok(!result.isError, JSON.stringify(result));
    server.child.kill("SIGTERM");
    const { code, signal } = await server.exited;
    assert.equal(signal, null);
    assert.ok(code === 0 || code === 143, `exit code ${code}`);
  });

  test("the launcher ends when its input does", async () => {
    const server = await start(launcher, ["--sandbox"], { env: environment });
    server.child.stdin.end();
    assert.deepEqual(await server.exited, { code: 0, signal: null });
  });

  test("arguments and exit codes pass through", () => {
    const version = execFileSync(launcher, ["--version"], { encoding: "utf8", env: environment });
    assert.match(version, /^exa-mcp-server \d+\.\d+\.\d+/);
    const usage = spawnSync(launcher, ["no-such-command"], { encoding: "utf8", env: environment });
    assert.equal(usage.status, 2);
    assert.match(usage.stderr, /no-such-command/);
  });

  test("hints name the command that was typed", () => {
    const help = execFileSync(launcher, ["call", "search", "--help"], { encoding: "utf8", env: environment });
    assert.match(help, /\n {2}exa-mcp-rs call search /);
    const completions = execFileSync(launcher, ["completions", "bash"], { encoding: "utf8", env: environment });
    assert.match(completions, /\bcomplete .* exa-mcp-rs$/m);
  });

  test("signals reach the program, whose end is passed on", async () => {
    for (const [signal, expected] of [["SIGINT", 0], ["SIGTERM", 0], ["SIGHUP", 129], ["SIGQUIT", 131]]) {
      const server = await start(launcher, ["--sandbox"], { env: environment });
      server.child.kill(signal);
      const end = await server.exited;
      // A launcher that became the program ends by the signal itself.
      const code = end.signal ? 128 + constants.signals[end.signal] : end.code;
      assert.equal(code, expected, signal);
    }
  });

  test("a program for another C library is explained", () => {
    const copy = mkdtempSync(join(tmpdir(), "npm-"));
    cpSync(join(folder, "node_modules"), join(copy, "node_modules"), { recursive: true, verbatimSymlinks: true });
    const platform = readdirSync(join(copy, "node_modules")).find((name) => /^exa-mcp-rs-/.test(name));
    const program = join(copy, "node_modules", platform, "bin/exa-mcp-server");
    const text = readFileSync(program).subarray(0, 4096).toString("latin1");
    writeFileSync(program, text.replace(/(\/[\w.-]+)+\/ld-/, (loader) => loader.replace(/.ld-$/, "X/ld-")), "latin1");
    const failed = spawnSync(join(copy, "node_modules/.bin/exa-mcp-rs"), { encoding: "utf8", env: environment });
    assert.equal(failed.status, 1);
    assert.match(failed.stderr, /needs .*X\/ld.*does not have/);
    chmodSync(program, 0o644);
    const protectedFile = spawnSync(join(copy, "node_modules/.bin/exa-mcp-rs"), { encoding: "utf8", env: environment });
    assert.equal(protectedFile.status, 1);
    assert.match(protectedFile.stderr, /cannot start the program: EACCES/);
    rmSync(copy, { recursive: true });
  });

  test("a missing program is explained", () => {
    const lonely = mkdtempSync(join(tmpdir(), "npm-"));
    const tarball = only(/^exa-mcp-rs-\d.*\.tgz$/);
    execFileSync("tar", ["-C", lonely, "-xzf", tarball]);
    const missing = spawnSync(process.execPath, [join(lonely, "package/bin/launcher.js")], { encoding: "utf8" });
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /exa-mcp-rs-linux-\w+@\d.* is missing.*--omit=optional/);
    const platform = "Object.defineProperty(process, 'platform', { value: 'sunos' });";
    writeFileSync(join(lonely, "sunos.cjs"), platform);
    const unsupported = spawnSync(
      process.execPath,
      ["--require", join(lonely, "sunos.cjs"), join(lonely, "package/bin/launcher.js")],
      { encoding: "utf8" },
    );
    assert.equal(unsupported.status, 1);
    assert.match(unsupported.stderr, /no program for sunos-.*available: .*linux-x64.*cargo install/);
    rmSync(lonely, { recursive: true });
  });

  test("no package has an install script", () => {
    for (const tarball of tarballs()) {
      const manifest = execFileSync("tar", ["-xzOf", tarball, "package/package.json"], { encoding: "utf8" });
      assert.equal(JSON.parse(manifest).scripts, undefined);
    }
  });
});

describe("other packages", () => {
  test("the Debian package installs into a clean root", async () => {
    const root = mkdtempSync(join(tmpdir(), "deb-"));
    for (const folder of ["info", "updates", "triggers"]) mkdirSync(join(root, "var/lib/dpkg", folder), { recursive: true });
    writeFileSync(join(root, "var/lib/dpkg/status"), "");
    writeFileSync(join(root, "var/lib/dpkg/available"), "");
    // The libraries that it depends on are those of the machine.
    execFileSync("dpkg", [`--root=${root}`, "--force-depends", "--install", only(/\.deb$/)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const server = await start(join(root, "usr/bin/exa-mcp-server"), ["--sandbox"], { env: environment });
    server.child.stdin.end();
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    assert.ok(statSync(join(root, "usr/lib/systemd/system/exa-mcp-server.service")).isFile());
    rmSync(root, { recursive: true });
  });

  test("the bundle contains the program that its manifest starts", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcpb-"));
    execFileSync(join(import.meta.dirname ?? ".", "node_modules/.bin/mcpb"), ["unpack", only(/\.mcpb$/), folder], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    assert.equal(manifest.user_config.exa_api_key.sensitive, true);
    const command = manifest.server.mcp_config.command.replace("${__dirname}", folder);
    const server = await start(command, ["--sandbox"], { env: environment });
    server.child.stdin.end();
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    rmSync(folder, { recursive: true });
  });

  test("the archive has the name that cargo binstall expects", () => {
    const archive = only(/\.tar\.gz$/);
    const list = execFileSync("tar", ["-tzf", archive], { encoding: "utf8" }).split("\n");
    const name = archive.match(/exa-mcp-server-[\w-]+(?=\.tar\.gz$)/)[0];
    assert.ok(list.includes(`${name}/exa-mcp-server`), String(list));
    const cargo = readFileSync(join(import.meta.dirname ?? ".", "../../Cargo.toml"), "utf8");
    assert.match(cargo, /pkg-url = ".*\{ name \}-\{ target \}\.tar\.gz"/);
    assert.match(cargo, /bin-dir = "\{ name \}-\{ target \}\/\{ bin \}\{ binary-ext \}"/);
  });
});
