// A server with people whose names are attacks, and what has to hold on its page all the same.

import assert from "node:assert/strict";

import { ADMIN, Caller, browse, serve } from "./support.js";

export const SCRIPT = "<script>document.title='owned'</script>";
export const IMAGE = '"><img src=x onerror=alert(1)>';

/** Starts the server and a browser; the people have searched three times and once. */
export async function attacked() {
  const server = await serve({
    MCP_AUTH_TOKEN: ADMIN,
    USER_TOKENS: `script-token-of-the-tests:${SCRIPT},image-token-of-the-tests:${IMAGE}:2999-12-31`,
  });
  const script = new Caller(server, "script-token-of-the-tests");
  const image = new Caller(server, "image-token-of-the-tests");
  await script.begin();
  await image.begin();
  for (const query of ["one", "two", "three"]) assert.equal(await script.search(query), "answered");
  assert.equal(await image.search("four"), "answered");
  const browser = await browse();
  const stop = async () => {
    await browser.close();
    await server.stop();
  };
  return { server, browser, stop };
}

/** What has to hold on every page, whatever was done on it. */
export async function assertClean(page, seen) {
  assert.deepEqual(seen.errors, []);
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(await page.title(), "exa-mcp-server");
  const { origin } = new URL(page.url());
  const inside = (url) => url.startsWith(`${origin}/`) || url.startsWith("data:");
  assert.deepEqual(seen.requests.filter((url) => !inside(url)), []);
  const hostile = () => document.querySelectorAll("body script, body img, [onerror]").length;
  assert.equal(await page.evaluate(hostile), 0);
}

export const inTable = (page, id) => page.locator(`#${id} tbody tr`);
export const rowOf = (page, text) => inTable(page, "tokens-table").filter({ hasText: text });
