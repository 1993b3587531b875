// The content of the page, and signing in.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { IMAGE, SCRIPT, assertClean, startHostileServer, inTable, rowOf } from "./hostile_users.js";
import { ADMIN, Caller, admin, enter, open, serve, signIn } from "./support.js";

let here;

before(async () => {
  here = await startHostileServer();
});

after(() => here?.stop());

describe("signing in", () => {
  for (const path of ["/admin", "/admin/"]) {
    test(`${path} asks for a token and explains why one is rejected`, async () => {
      const { page, recorded } = await open(here.browser.context, here.server, path);
      await signIn(page, "no-such-token");
      const problem = page.locator("#sign-in-problem");
      await problem.getByText("Unauthorized: Invalid or missing authentication token.").waitFor();
      assert.equal(await page.locator("#dashboard").isVisible(), false);
      await signIn(page, "script-token-of-the-tests");
      await problem.getByText("Forbidden: Admin token required.").waitFor();
      await signIn(page, "tökén-☃");
      await problem.getByText("characters that tokens cannot contain").waitFor();
      assert.equal(await page.locator("#dashboard").isVisible(), false);
      // Browsers log rejected requests themselves; there must be nothing else.
      assert.ok(recorded.errors.every((error) => error.startsWith("Failed to load resource")), recorded.errors.join());
      assert.equal(recorded.errors.length, 2);
      recorded.errors.length = 0;
      await assertClean(page, recorded);
      await page.close();
    });
  }

  test("the token is stored in the tab only, and removed after signing out", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    const stored = await page.evaluate(() => ({
      local: JSON.stringify(localStorage),
      session: JSON.stringify(sessionStorage),
      address: location.href,
      history: JSON.stringify(history.state),
      page: document.documentElement.outerHTML + [...document.querySelectorAll("input")].map((input) => input.value),
    }));
    for (const [place, text] of Object.entries(stored)) assert.ok(!text.includes(ADMIN), place);
    assert.deepEqual([stored.local, stored.session], ["{}", "{}"]);
    assert.deepEqual(await here.browser.context.cookies(), []);
    assert.ok(recorded.requests.every((url) => !url.includes(ADMIN)));

    const { page: other } = await open(here.browser.context, here.server);
    await other.getByLabel("Admin token").waitFor();
    assert.equal(await other.locator("#dashboard").isVisible(), false);
    await other.close();

    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Admin token").waitFor();
    assert.equal(await page.locator("#dashboard").isVisible(), false);
    assert.equal(await page.locator("#dashboard tbody tr, #dashboard svg").count(), 0);
    assert.equal(await page.getByLabel("Admin token").inputValue(), "");

    await enter(page);
    await page.reload();
    await page.getByLabel("Admin token").waitFor();
    assert.equal(await page.locator("#dashboard").isVisible(), false);
    await assertClean(page, recorded);
    await page.close();
  });

  test("without tokens there is nothing to administer", async () => {
    const free = await serve({});
    try {
      const { page, recorded } = await open(here.browser.context, free);
      await page.getByRole("heading", { name: "Nothing to administer" }).waitFor();
      assert.equal(await page.getByLabel("Admin token").isVisible(), false);
      assert.deepEqual(recorded.errors, []);
      await page.close();
    } finally {
      await free.stop();
    }
  });
});

describe("content", () => {
  test("charts and tables have the figures of the API, and names are escaped", async () => {
    const { days } = await admin(here.server, "/admin/usage?days=30");
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    const today = days[0];
    const users = today.byUser;
    assert.equal(users[SCRIPT].requests, 4);
    assert.ok(users[SCRIPT].dollars > 0);

    const sum = (dollars) => `$${dollars.toFixed(4).replace(/0{1,2}$/, "")}`;
    const byDay = page.getByRole("img", { name: /^Cost by day/ });
    assert.equal(await byDay.locator(".bar").count(), 30);
    const name = `${today.day}: ${sum(today.dollars)}, ${today.requests} requests`;
    assert.equal(await byDay.locator(".bar-group title").last().textContent(), name);
    const byUser = page.getByRole("img", { name: /^Cost by user/ });
    const labels = await byUser.locator(".name").allTextContents();
    assert.equal(labels.length, Object.keys(users).length);
    const titles = await byUser.locator(".bar-group title").allTextContents();
    assert.equal(titles[0], `${SCRIPT}: ${sum(users[SCRIPT].dollars)}, 4 requests`);
    const lengths = await byUser.locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.width.baseVal.value));
    const share = users[IMAGE].dollars / users[SCRIPT].dollars;
    assert.ok(Math.abs(lengths[1] / lengths[0] - share) < 0.01, `${lengths} ${share}`);

    await page.getByText("By user as a table").click();
    const cells = await inTable(page, "by-user-table").first().locator("td").allTextContents();
    assert.deepEqual(cells, [SCRIPT, "4", sum(users[SCRIPT].dollars)]);
    await page.getByText("By day as a table").click();
    assert.equal(await inTable(page, "by-day-table").count(), 30);

    await page.getByText("Requests", { exact: true }).first().click();
    await page.getByRole("img", { name: /^Requests by day/ }).waitFor();
    await page.getByLabel("Period").selectOption("7");
    await page.locator("#by-day .bar").nth(7).waitFor({ state: "detached" });
    assert.equal(await page.locator("#by-day .bar").count(), 7);
    await assertClean(page, recorded);
    await page.close();
  });

  test("tokens, keys and state match the API", async () => {
    const { tokens } = await admin(here.server, "/admin/tokens");
    const { page, recorded } = await open(here.browser.context, here.server);
    await enter(page);
    assert.equal(await inTable(page, "tokens-table").count(), tokens.filter((token) => token.isActive).length);
    const token = tokens.find((candidate) => candidate.userId === IMAGE);
    const cells = await rowOf(page, IMAGE).locator("td").allTextContents();
    assert.equal(cells[0], token.tokenPrefix);
    assert.deepEqual(cells.slice(1, 4), [IMAGE, "user", "environment"]);
    assert.match(cells[4], /^activeuntil .*2999|3000/);
    assert.equal(cells[5], "2");
    assert.match(cells[8], /none/);
    await rowOf(page, IMAGE).getByRole("button", { name: /^Revoke/ }).click();
    assert.equal(await page.getByRole("dialog").locator("strong").textContent(), IMAGE);
    await page.getByRole("button", { name: "Cancel" }).click();
    const tile = (name) => page.locator(".tile", { hasText: name }).locator("dd");
    assert.match(await tile("Exa keys ready").textContent(), /^1 of 1/);
    assert.match(await tile("Sessions").textContent(), /^2/);
    assert.equal(await inTable(page, "keys").count(), 1);
    const facts = await page.locator("#details").textContent();
    assert.ok(facts.includes(`${SCRIPT} (1)`), facts);
    assert.match(facts, /Storeok.*store\.db/);
    const all = await page.content();
    assert.ok(!all.includes("image-token-of-the-tests"));
    await assertClean(page, recorded);
    await page.close();
  });

  test("the state is polled, but not while the page is hidden", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await page.clock.install();
    await page.reload();
    await enter(page);
    const sessions = page.locator(".tile", { hasText: "Sessions" }).locator("dd");
    const open0 = parseInt(await sessions.textContent(), 10);
    await new Caller(here.server, "image-token-of-the-tests").initialize();
    await page.clock.runFor(5_000);
    await sessions.getByText(String(open0 + 1)).waitFor();

    const hide = (hidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    // A request from that moment may still be running.
    await page.clock.runFor(10_000);
    recorded.requests.length = 0;
    await page.clock.runFor(120_000);
    assert.deepEqual(recorded.requests, []);
    const again = page.waitForRequest(/\/admin\/state$/);
    await hide(false);
    await again;
    await assertClean(page, recorded);
    await page.close();
  });

  test("the page fits a narrow screen and follows the color scheme of the system", async () => {
    const { page, recorded } = await open(here.browser.context, here.server);
    await page.setViewportSize({ width: 360, height: 720 });
    await enter(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${width}`);
    const color = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await color();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await color(), light);
    await assertClean(page, recorded);
    await page.close();
  });
});
