// Runs the driver, which measures one server once, and repeats it fairly.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** What every measured process sees: no proxy, no key, no settings of the person who measures. */
export const environment = (more = {}) => ({ PATH: process.env.PATH, HOME: process.env.HOME, ...more });

/** One measurement of one server. */
export async function drive(driver, server, mode, ...options) {
  const { stdout } = await execute(driver, [mode, ...options, ...server.command], {
    env: environment(server.env),
    maxBuffer: 1 << 26,
  });
  return JSON.parse(stdout);
}

/**
 * Measures every server once a round and gives the figures by name. The order shifts from round to
 * round, so that neither a busy moment of the machine nor the neighbour in the order hits one server
 * alone. A round before the first fills the caches and does not count.
 */
export async function interleave(servers, rounds, measure) {
  const figures = Object.fromEntries(servers.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (let place = 0; place < servers.length; place++) {
      const server = servers[(round + place) % servers.length];
      const figure = await measure(server);
      if (round > 0) figures[server.name].push(figure);
    }
  }
  return figures;
}
