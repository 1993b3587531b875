// A server with users whose names are attacks, and the invariants of its page.

import assert from "node:assert/strict";

import { ADMIN, Caller, browse, serve } from "./support.js";

export const SCRIPT = "<script>document.title='owned'</script>";
export const IMAGE = '"><img src=x onerror=alert(1)>';

/** Starts the server and a browser; one user has made three searches, the other one. */
export async function startHostileServer() {
  const server = await serve({
    MCP_AUTH_TOKEN: ADMIN,
    USER_TOKENS: `script-token-of-the-tests:${SCRIPT},image-token-of-the-tests:${IMAGE}:2999-12-31`,
  });
  const script = new Caller(server, "script-token-of-the-tests");
  const image = new Caller(server, "image-token-of-the-tests");
  await script.initialize();
  await image.initialize();
  for (const query of ["one", "two", "three"]) assert.equal(await script.search(query), "ok");
  assert.equal(await image.search("four"), "ok");
  const browser = await browse();
  const stop = async () => {
    await browser.close();
    await server.stop();
  };
  return { server, browser, stop };
}

/** Asserts the invariants of every page. */
export async function assertClean(page, recorded) {
  assert.deepEqual(recorded.errors, []);
  assert.deepEqual(recorded.dialogs, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(await page.title(), "exa-mcp-server");
  const { origin } = new URL(page.url());
  const inside = (url) => url.startsWith(`${origin}/`) || url.startsWith("data:");
  assert.deepEqual(recorded.requests.filter((url) => !inside(url)), []);
  const hostile = () => document.querySelectorAll("body script, body img, [onerror]").length;
  assert.equal(await page.evaluate(hostile), 0);
}

export const inTable = (page, id) => page.locator(`#${id} tbody tr`);
export const rowOf = (page, text) => inTable(page, "tokens-table").filter({ hasText: text });
