// The generated TypeScript modules: do they compile, and does a program that uses them run?

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

// The modules must work with the default form of structured content.
delete process.env.EXA_MCP_STRUCTURED;

const here = dirname(fileURLToPath(import.meta.url));
const commandLine =
  process.env.EXA_MCP_SERVER_COMMAND ?? join(here, "../../target/debug/exa-mcp-server");
const [command, ...args] = commandLine.split(/\s+/).filter(Boolean);
const tree = join(here, "sdk/out/exa");
const compiled = join(here, "sdk/out/js");

function run(program, ...options) {
  return new Promise((resolve) => {
    execFile(program, options, { cwd: here, timeout: 300_000 }, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? 1) : 0, text: stdout + stderr });
    });
  });
}

const compile = (...options) =>
  run(join(here, "node_modules/.bin/tsc"), "--strict", "--target", "es2022", "--module", "nodenext", ...options);

before(async () => {
  rmSync(tree, { recursive: true, force: true });
  rmSync(compiled, { recursive: true, force: true });
  const written = await run(command, ...args, "sdk", "--lang", "typescript", "--out", tree);
  assert.equal(written.code, 0, written.text);
});

test("the modules compile by themselves", async () => {
  const result = await compile("--noEmit", "--noUnusedLocals", "--types", "", join(tree, "index.ts"));
  assert.equal(result.code, 0, result.text);
});

test("the example of the documentation compiles", async () => {
  const [, example] = readFileSync(join(here, "../../docs/sdk.md"), "utf8").match(/^```ts\n(.*?)^```/ms);
  const client = "declare const client: { callTool(call: object): Promise<unknown> };\n";
  const log = "declare const console: { log(text: unknown): void };\n";
  const file = join(here, "sdk/out/example.ts");
  writeFileSync(file, client + log + example);
  const result = await compile("--noEmit", "--types", "", file);
  assert.equal(result.code, 0, result.text);
});

test("a program written against them runs", { timeout: 300_000 }, async () => {
  // The types of the MCP SDK want those of node, which the program itself does not need.
  const built = await compile("--skipLibCheck", "--outDir", compiled, join(here, "sdk/program.ts"));
  assert.equal(built.code, 0, built.text);
  const ran = await run(process.execPath, join(compiled, "program.js"), command, ...args, "--sandbox");
  assert.equal(ran.code, 0, ran.text);
  assert.equal(ran.text.match(/: fine$/gm).length, 3, ran.text);
});
