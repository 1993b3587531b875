// Actions on the page, and errors.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { assertClean, startHostileServer, inTable, rowOf } from "./hostile_users.js";
import { ADMIN, Caller, admin, enter, open, serve, signIn } from "./support.js";

let here;

before(async () => {
  here = await startHostileServer();
});

after(() => here?.stop());

describe("managing tokens", () => {
  test("a token is created, limited and revoked", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("User", { exact: true }).fill("ann <b>");
    await page.getByLabel("Expires").fill("2999-12-31T12:00");
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Requests per minute").fill("1000");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = await page.locator("#secret").inputValue();
    assert.match(secret, /^exa_mcp_/);
    await here.browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: here.server.origin });
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByText("Copied.").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.locator("#secret").waitFor({ state: "detached" });
    assert.ok(!(await page.content()).includes(secret));

    const ann = new Caller(here.server, secret);
    assert.equal((await ann.initialize()).status, 200);
    assert.equal(await ann.search("a search of ann"), "ok");

    const row = rowOf(page, "ann <b>");
    await row.getByText("1,000 per minute").waitFor();
    await row.getByRole("button", { name: /^Limit/ }).click();
    await page.getByLabel("Requests per minute").fill("");
    await page.getByLabel("Dollars per day", { exact: true }).fill("2.5");
    await page.getByLabel("Tools and sets").fill("web_search_exa, no_such_tool");
    await page.getByRole("button", { name: "Save limits" }).click();
    await page.locator("dialog .problem").getByText("no_such_tool").waitFor();
    assert.match(recorded.errors.pop(), /400/);
    await page.getByLabel("Tools and sets").fill("web_search_exa");
    await page.getByRole("button", { name: "Save limits" }).click();
    await row.getByText("$2.50 per day").waitFor();
    const limits = await limitsOf("ann <b>");
    assert.equal(limits.requestsPerMinute, null);
    assert.equal(limits.dollarsPerDay, 2.5);
    assert.deepEqual(limits.tools, ["web_search_exa"]);
    const entry = inTable(page, "audit-table").filter({ hasText: "Token updated" }).first();
    assert.match(await entry.textContent(), /ann <b>.*dollarsPerDay: 2\.5/);

    await row.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await ann.search("another search of ann"), "ok");
    await row.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
    const refused = await ann.initialize();
    assert.deepEqual(refused, { status: 403, message: "Forbidden: Token has been revoked" });
    await page.getByLabel("Show inactive tokens").check();
    await row.getByText("revoked").waitFor();
    assert.equal(await row.getByRole("button").count(), 0);
    await inTable(page, "audit-table").filter({ hasText: "Token revoked" }).first().waitFor();
    await assertClean(page, recorded);
    await page.close();
  });

  test("a token is rotated and expired", async () => {
    const made = await admin(here.server, "/admin/tokens", { userId: "bob" });
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    const row = rowOf(page, "bob");
    await row.getByRole("button", { name: /^Rotate/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    const secret = await page.locator("#secret").inputValue();
    await page.getByRole("button", { name: "I have saved it" }).click();
    assert.equal((await new Caller(here.server, made.token).initialize()).status, 401);
    assert.equal((await new Caller(here.server, secret).initialize()).status, 200);

    await row.getByRole("button", { name: /^Expire/ }).click();
    await page.getByLabel("Expires").selectOption("at");
    await page.getByLabel("Time").fill("2999-01-01T00:00");
    await page.getByRole("button", { name: "Set expiry" }).click();
    await row.getByText(/until/).waitFor();
    assert.equal((await new Caller(here.server, secret).initialize()).status, 200);
    await row.getByRole("button", { name: /^Expire/ }).click();
    await page.getByRole("button", { name: "Set expiry" }).click();
    await row.waitFor({ state: "detached" });
    assert.equal((await new Caller(here.server, secret).initialize()).status, 403);
    await assertClean(page, recorded);
    await page.close();
  });

  test("the keyboard is sufficient", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await page.getByLabel("Admin token").waitFor();
    await page.keyboard.type(ADMIN);
    await page.keyboard.press("Enter");
    await page.locator("#tokens-table table").waitFor();
    const create = page.getByRole("button", { name: "New token" });
    await create.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("cy");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.waitForFunction(() => document.activeElement.id === "create");
    await page.keyboard.press("Enter");
    assert.equal(await page.getByLabel("User", { exact: true }).inputValue(), "");
    await page.keyboard.type("cy");
    await page.keyboard.press("Enter");
    await page.locator("#secret").waitFor();
    await assertClean(page, recorded);
    await page.close();
  });

  test("many tokens and entries are paginated", async () => {
    for (let number = 0; number < 60; number += 1) {
      await admin(here.server, "/admin/tokens", { userId: `many-${String(number).padStart(2, "0")}` });
    }
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    assert.equal(await inTable(page, "tokens-table").count(), 50);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("Page 2 of 2").waitFor();
    assert.equal(await page.getByRole("button", { name: "Next" }).isDisabled(), true);
    await page.getByRole("button", { name: "Previous" }).click();
    await page.getByText("Page 1 of 2").waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("Page 2 of 2").waitFor();
    await page.getByLabel("Find a user or token").fill("many-07");
    await rowOf(page, "many-07").waitFor();
    assert.equal(await inTable(page, "tokens-table").count(), 1);

    const rows = inTable(page, "audit-table");
    assert.equal(await rows.count(), 25);
    assert.match(await rows.first().textContent(), /many-59/);
    assert.equal(await page.getByRole("button", { name: "Newer" }).isDisabled(), true);
    await page.getByRole("button", { name: "Older" }).click();
    await rows.first().getByText("many-34", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Newer" }).click();
    await rows.first().getByText("many-59", { exact: true }).waitFor();
    await assertClean(page, recorded);
    await page.close();
  });
});

describe("many tokens", () => {
  test("twelve thousand tokens are searched and paginated without loading all of them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "dashboard-crowd-"));
    const config = join(folder, "config.toml");
    const tokens = Array.from({ length: 12_000 }, (_, number) => `'crowd-${number}:person-${number}:never'`);
    writeFileSync(config, `user_tokens = [${tokens.join(",\n")}]`, { mode: 0o600 });
    const crowd = await serve({ MCP_AUTH_TOKEN: ADMIN, EXA_MCP_CONFIG: config });
    try {
      const { page, recorded } = await open(here.browser.context, crowd);
      await enter(page);
      await page.getByText("12,001 tokens").waitFor();
      await page.getByText("Page 1 of 241").waitFor();
      assert.equal(await inTable(page, "tokens-table").count(), 50);
      for (const number of [2, 3]) {
        await page.getByRole("button", { name: "Next" }).click();
        await page.getByText(`Page ${number} of 241`).waitFor();
      }
      assert.match(await inTable(page, "tokens-table").first().textContent(), /person-99/);
      await page.getByLabel("Find a user or token").fill("PERSON-1199");
      await page.getByText("11 tokens").waitFor();
      await rowOf(page, "person-11999").waitFor();
      assert.equal(await inTable(page, "tokens-table").count(), 11);
      assert.match(await page.locator(".tile", { hasText: "Tokens" }).locator("dd").textContent(), /^12,001/);
      const lists = recorded.requests.filter((url) => /admin.tokens([?]|$)/.test(url));
      assert.ok(lists.length > 0 && lists.every((url) => url.includes("limit=50")), lists.join("\n"));
      await assertClean(page, recorded);
      await page.close();
    } finally {
      await crowd.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("errors", () => {
  test("injected scripts and requests to other servers are blocked", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.owned = true";
      const image = document.createElement("div");
      image.innerHTML = "<img src='data:,' onerror='window.owned = true'><b style='color: red'>x</b>";
      document.body.append(script, image);
    });
    const elsewhere = await page.evaluate(() =>
      fetch("http://127.0.0.2:1/").then(() => "sent", () => "refused"),
    );
    assert.equal(elsewhere, "refused");
    await page.waitForFunction(() => window.violations.includes("script-src-attr"));
    const violations = await page.evaluate(() => [...new Set(window.violations)].sort());
    assert.deepEqual(violations, ["connect-src", "script-src-attr", "script-src-elem", "style-src-attr"]);
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.equal(await page.title(), "exa-mcp-server");
    assert.ok(recorded.errors.every((error) => /Content Security Policy|fetch/i.test(error)), recorded.errors.join("\n"));
    await page.close();
  });

  test("a revoked admin is signed out, and an unreachable server is reported", async () => {
    const own = await serve({ MCP_AUTH_TOKEN: ADMIN });
    const { token, id } = await admin(own, "/admin/tokens", { userId: "dee", role: "admin" });
    const { page } = await open(here.browser.context, own);
    await page.clock.install();
    await page.reload();
    await signIn(page, token);
    await page.locator("#audit-table tbody").waitFor();
    await admin(own, `/admin/tokens/${id}/revoke`, {});
    await page.clock.runFor(5_000);
    await page.locator("#sign-in-problem").getByText("Forbidden: Token has been revoked.").waitFor();
    assert.equal(await page.locator("#dashboard").isVisible(), false);
    await enter(page);
    await own.stop();
    await page.clock.runFor(5_000);
    await page.locator("#message").getByText("The server cannot be reached.").waitFor();
    await page.close();
  });
});

async function limitsOf(user) {
  const { tokens } = await admin(here.server, "/admin/tokens");
  return tokens.find((token) => token.userId === user).limits;
}
