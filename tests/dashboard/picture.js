// Takes the screenshot for the documentation: a team after a few weeks.
// Usage: node picture.js FILE.png [SCHEME [WIDTH [HEIGHT]]]

import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { ADMIN, Caller, admin, browse, enter, here, open, serve, start } from "./support.js";

const [file, colorScheme = "light", width = "1280", height = "1430"] = process.argv.slice(2);
const TEAM = { "ana.silva": 9, "ben.okafor": 6, "dana.novak": 3, ci: 1 };
const LIMITS = {
  "ana.silva": { requestsPerMinute: 120, dollarsPerDay: 10 },
  "ben.okafor": { requestsPerMinute: 60 },
  "dana.novak": { dollarsPerMonth: 25, softDollarsPerMonth: 20 },
  ci: { concurrentCalls: 2, tools: ["web_search_exa"], readOnly: true },
};

/** Returns reproducible figures: more on working days, with some variation. */
function past(ids) {
  const counts = [];
  for (let ago = 29; ago > 0; ago -= 1) {
    const date = new Date(Date.now() - ago * 86_400_000);
    const day = `day:${date.toISOString().slice(0, 10)}`;
    const weekend = [0, 6].includes(date.getUTCDay());
    Object.entries(TEAM).forEach(([user, share], at) => {
      const wave = 1 + 0.35 * Math.sin(ago * 1.3 + at * 2.1);
      const requests = Math.round(share * (weekend ? 3 : 16) * wave);
      const spent = { requests, microdollars: requests * 5_700, tokens: requests * 1_900 };
      for (const [name, value] of Object.entries(spent)) counts.push([day, name, value], [ids[user], name, value]);
      counts.push([day, `user:${user}:requests`, requests], [day, `user:${user}:microdollars`, requests * 5_700]);
    });
  }
  return counts;
}

async function live(server) {
  const ids = {};
  for (const [user, share] of Object.entries(TEAM)) {
    const tokenRequest = { userId: user, limits: LIMITS[user] ?? {}, expiresAt: user === "dana.novak" ? "2999-12-31" : null };
    const { id, token } = await admin(server, "/admin/tokens", tokenRequest);
    ids[user] = id;
    const caller = new Caller(server, token);
    await caller.initialize();
    for (let number = 0; number < share * 2; number += 1) await caller.search(`${user} ${number}`);
  }
  const gone = await admin(server, "/admin/tokens", { userId: "former.intern" });
  await admin(server, `/admin/tokens/${gone.id}/revoke`, {});
  await new Caller(server, gone.token).initialize();
  execFileSync("python3", [join(here, "history.py"), server.store], { input: JSON.stringify(past(ids)) });
}

// An embedded sandbox has one key of its own; a team has several.
const sandbox = await start(["sandbox", "--listen", "127.0.0.1:0"], {});
const variables = {
  MCP_AUTH_TOKEN: ADMIN,
  EXA_BASE_URL: sandbox.origin,
  EXA_API_KEYS: "exa-key-one-of-the-team,exa-key-two-of-the-team,exa-key-three-of-the-team",
};
const server = await serve(variables, []);
const browser = await browse({ colorScheme, viewport: { width: Number(width), height: Number(height) } });
try {
  await live(server);
  const { page } = await open(browser.context, server);
  await enter(page);
  await page.screenshot({ path: file });
} finally {
  await browser.close();
  await server.stop();
  await sandbox.stop();
}
