// Runs the suite's scenarios for every version and compares the failures with the expected ones.
// Usage: node check.js ADDRESS DIRECTORY_FOR_RESULTS [SCENARIO]

import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// The tests of this program use another suite.
const suite =
  process.env.CONFORMANCE_SUITE ??
  join(here, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const failures = process.env.CONFORMANCE_EXPECTED ?? join(here, "expected-failures.json");
const [address, directory, only] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(failures, "utf8"));

const SKILLS = /^ {2}- (sep-2640-\S+)/gm;
/** The extensions, which belong to no version, with the names of their scenarios and further options. */
const EXTENSIONS = {
  "tasks extension": { pattern: /^ {2}- (tasks-\S+)/gm, options: [] },
  "skills extension": { pattern: SKILLS, options: [] },
  // The suite otherwise checks only the newest version.
  "skills extension, 2025-11-25": { pattern: SKILLS, options: ["--spec-version", "2025-11-25", "--force"] },
  "skills extension, 2025-06-18": { pattern: SKILLS, options: ["--spec-version", "2025-06-18", "--force"] },
};
/** The reason of skipped checks of what an earlier version does not have. */
const NOT_APPLICABLE = /^not applicable on negotiated protocol /;
/** Scenarios that cannot be checked. */
const NOT_OURS = {
  "tasks-status-notifications": "has no checks yet",
};

/** Runs the suite's program. Its exit code only repeats the results. */
function conformance(...options) {
  return new Promise((resolve) => {
    const limits = { maxBuffer: 64 << 20 };
    execFile(process.execPath, [suite, ...options], limits, (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}

/** Returns the suite's scenarios for a version, including pending ones. */
async function scenariosOf(version) {
  const which = version in EXTENSIONS ? [] : ["--spec-version", version];
  const listed = await conformance("list", "--server", ...which);
  const pattern = EXTENSIONS[version]?.pattern ?? /^ {2}- (\S+)/gm;
  const names = [...listed.matchAll(pattern)].map(([, name]) => name);
  return names.filter((name) => !(name in NOT_OURS) && (!only || name === only));
}

/** Runs the scenarios and returns the output of the suite. */
async function play(version, scenarios, results) {
  const where = ["--url", address, "-o", results];
  if (version in EXTENSIONS) {
    const { options } = EXTENSIONS[version];
    // Each scenario mostly waits for tasks.
    const said = scenarios.map((name) => conformance("server", "--scenario", name, ...where, ...options));
    return (await Promise.all(said)).join("\n");
  }
  if (scenarios.length === 0) return "";
  const which = only ? ["--scenario", only] : ["--suite", "all"];
  return conformance("server", ...which, ...where, "--spec-version", version);
}

/** Returns the checks of a scenario; its directory is named after it and the time. */
function checksOf(scenario, results) {
  const named = new RegExp(`^server-${scenario}-\\d{4}-\\d\\d-\\d\\dT`);
  const found = existsSync(results) ? readdirSync(results).filter((name) => named.test(name)) : [];
  const file = found.length === 1 && join(results, found[0], "checks.json");
  return file && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
}

/** Runs a version and returns the number of unexpected results. */
async function run(version) {
  const scenarios = await scenariosOf(version);
  const results = join(directory, version);
  const log = await play(version, scenarios, results);

  let passed = 0;
  const failed = new Map();
  for (const scenario of scenarios) {
    const checks = checksOf(scenario, results);
    const good = checks.filter(({ status }) => status === "SUCCESS");
    passed += good.length;
    // Warnings are about recommendations, which this server follows.
    const bad = checks.filter(
      ({ status, errorMessage }) =>
        !["SUCCESS", "INFO"].includes(status) &&
        !(status === "SKIPPED" && NOT_APPLICABLE.test(errorMessage ?? "")),
    );
    for (const { id, status, errorMessage } of bad) {
      failed.set(`${scenario}:${id}`, `${status}: ${errorMessage ?? ""}`);
    }
    if (good.length + bad.length === 0) failed.set(`${scenario}:result`, "it came to no result");
  }

  const known = expected[version];
  const unexpected = [...failed].filter(([name]) => !(name in known));
  const stale = only ? [] : Object.keys(known).filter((name) => !failed.has(name));
  for (const [name, why] of unexpected) console.log(`  failed: ${name}: ${why}`);
  for (const name of stale) console.log(`  no longer fails, or no longer exists: ${name}`);
  const none = scenarios.length === 0 && !only;
  if (none || unexpected.some(([name]) => name.endsWith(":result"))) console.log(log);
  const counts = `${scenarios.length} scenarios, ${passed} checks passed, ${failed.size} failed`;
  console.log(`${version}: ${counts} (${Object.keys(known).length} expected)`);
  return { wrong: unexpected.length + stale.length + Number(none), passed };
}

let wrong = 0;
let passed = 0;
for (const version of Object.keys(expected)) {
  const result = await run(version);
  wrong += result.wrong;
  passed += result.passed;
}
if (passed === 0) console.log(only ? `nothing passed in ${only}` : "nothing passed");
process.exitCode = wrong === 0 && passed > 0 ? 0 : 1;
