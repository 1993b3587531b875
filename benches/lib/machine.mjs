// Describes the machine without identifying it.
import { execFileSync } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";

export function describeMachine() {
  const [{ model }] = cpus();
  return [
    `${cpus().length} cores (${model.trim()})`,
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `${type()} ${release()}`,
    `node ${process.versions.node}`,
    execFileSync("rustc", ["--version"], { encoding: "utf8" }).trim(),
    `load average before the run ${loadavg()[0].toFixed(1)}`,
  ].join(", ");
}
