// Stand-ins for the Exa API behind the servers.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { environment } from "./drive.mjs";

/** Our sandbox: a realistic backend that validates requests and generates data. */
export const sandbox = (release) =>
  start(join(release, "exa-mcp-server"), ["sandbox", "--listen", "127.0.0.1:0"]);

/** Sends the response of a sandbox search to every request. */
export async function mock(release, sandbox, folder) {
  const response = await fetch(`${sandbox.url}/search`, {
    method: "POST",
    headers: { "x-api-key": "bench-key", "content-type": "application/json" },
    body: JSON.stringify({
      query: "fusion energy companies",
      type: "auto",
      numResults: 10,
      contents: { highlights: true },
    }),
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`the sandbox rejected a search: ${body}`);
  const file = join(folder, "response.json");
  writeFileSync(file, body);
  return { ...(await start(join(release, "mock"), [file])), bytes: body.length };
}

/** Starts a program and waits until it prints its URL. */
export function start(program, options, variables = {}) {
  const child = spawn(program, options, { env: environment(variables) });
  const stop = () => child.kill();
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${program} exited with ${code}`)));
    const listen = (text) => {
      const [url] = /http:\/\/[\d.:]+\d/.exec(text) ?? [];
      if (url) resolve({ url, stop, pid: child.pid });
    };
    child.stdout.setEncoding("utf8").on("data", listen);
    child.stderr.setEncoding("utf8").on("data", listen);
  });
}
