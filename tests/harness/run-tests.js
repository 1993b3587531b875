// Runs test files of node and fails unless everything in them passed.
// Usage: node run-tests.js FILE...
//
// The exit code of `node --test` does not say that: it is 0 after a failed hook, for a file without tests,
// and for a file that exits before its last test.

import { resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

/** How long one file may take, in milliseconds. */
const DEADLINE = Number(process.env.TEST_FILE_TIMEOUT ?? 600_000);

const files = process.argv.slice(2).map((file) => resolve(file));
const passed = new Map(files.map((file) => [file, 0]));
const problems = [];

// Test files inherit it; what they start is not changed by it.
const guard = new URL("guard.js", import.meta.url).href;
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} --import=${guard}`.trim();

const named = ({ name, file, line }) => `${name} (${file ?? "unknown file"}:${line ?? 0})`;
const isFile = ({ name }) => files.includes(resolve(name));

/** How many tests and suites have ended, by file and nesting. Those of a suite end before it. */
const ended = new Map();

/** Counts an ended test or suite. Returns how many a suite consists of. */
function count({ file, nesting }) {
  const own = `${file}:${nesting}`;
  const inner = `${file}:${nesting + 1}`;
  ended.set(own, (ended.get(own) ?? 0) + 1);
  const parts = ended.get(inner) ?? 0;
  ended.delete(inner);
  return parts;
}

function pass(data) {
  const parts = count(data);
  if (data.details?.type === "suite" && parts === 0) problems.push(`no test in the suite: ${named(data)}`);
  if (data.skip !== undefined) problems.push(`skipped: ${named(data)}`);
  else if (data.todo !== undefined) problems.push(`marked as to do: ${named(data)}`);
  else if (data.details?.type !== "suite" && !isFile(data) && data.file !== undefined) {
    passed.set(resolve(data.file), (passed.get(resolve(data.file)) ?? 0) + 1);
  }
}

const events = run({ files, concurrency: true, timeout: DEADLINE });
events.on("test:pass", pass);
events.on("test:fail", (data) => {
  count(data);
  problems.push(`failed: ${named(data)}`);
});
events.compose(new spec()).pipe(process.stdout);
await new Promise((done, fail) => events.once("end", done).once("error", fail));

if (files.length === 0) problems.push("no test file was given");
for (const [file, count] of passed) if (count === 0) problems.push(`no test passed in ${file}`);
const total = [...passed.values()].reduce((sum, count) => sum + count, 0);
// The reporter flushes its output before this is printed.
await new Promise((done) => setImmediate(done));
for (const problem of problems) console.error(problem);
console.error(`${total} tests passed in ${files.length} files, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
