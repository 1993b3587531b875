// Runs the driver, which measures one server once, in interleaved rounds.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** The environment of every measured process: no proxy, key or settings of the current user. */
export const environment = (more = {}) => ({ PATH: process.env.PATH, HOME: process.env.HOME, ...more });

/** Measures one server once. */
export async function drive(driver, server, mode, ...options) {
  const { stdout } = await execute(driver, [mode, ...options, ...server.command], {
    env: environment(server.env),
    maxBuffer: 1 << 26,
  });
  return JSON.parse(stdout);
}

/**
 * Measures every server once per round and returns the results by name. The order rotates, so that
 * neither a busy moment of the machine nor the previous server affects the same server every time. An
 * additional first round fills the caches and does not count.
 */
export async function interleave(servers, rounds, measure) {
  const results = Object.fromEntries(servers.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (let index = 0; index < servers.length; index++) {
      const server = servers[(round + index) % servers.length];
      const result = await measure(server);
      if (round > 0) results[server.name].push(result);
    }
  }
  return results;
}
