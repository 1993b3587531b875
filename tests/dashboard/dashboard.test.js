// The dashboard in a real browser, with people whose names are attacks.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { ADMIN, Caller, admin, browse, enter, open, serve, signIn } from "./support.js";

const SCRIPT = "<script>document.title='owned'</script>";
const IMAGE = '"><img src=x onerror=alert(1)>';

let server;
let browser;

before(async () => {
  server = await serve({
    MCP_AUTH_TOKEN: ADMIN,
    USER_TOKENS: `script-token-of-the-tests:${SCRIPT},image-token-of-the-tests:${IMAGE}:2999-12-31`,
  });
  const [script, image] = ["script-token-of-the-tests", "image-token-of-the-tests"].map(
    (token) => new Caller(server, token),
  );
  await script.begin();
  await image.begin();
  for (const query of ["one", "two", "three"]) assert.equal(await script.search(query), "answered");
  assert.equal(await image.search("four"), "answered");
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** What has to hold on every page, whatever was done on it. */
async function assertClean(page, seen) {
  assert.deepEqual(seen.errors, []);
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(await page.title(), "exa-mcp-server");
  const outside = seen.requests.filter((url) => !url.startsWith(`${server.origin}/`) && !url.startsWith("data:"));
  assert.deepEqual(outside, []);
  const hostile = await page.evaluate(() => document.querySelectorAll("body script, body img, [onerror]").length);
  assert.equal(hostile, 0);
}

const inTable = (page, id) => page.locator(`#${id} tbody tr`);
const rowOf = (page, text) => inTable(page, "tokens-table").filter({ hasText: text });

describe("signing in", () => {
  for (const path of ["/admin", "/admin/"]) {
    test(`${path} asks for a token and says why one is no good`, async () => {
      const { page, seen } = await open(browser.context, server, path);
      await signIn(page, "no-such-token");
      const problem = page.locator("#sign-in-problem");
      await problem.getByText("Unauthorized: Invalid or missing authentication token.").waitFor();
      assert.equal(await page.locator("#board").isVisible(), false);
      await signIn(page, "script-token-of-the-tests");
      await problem.getByText("Forbidden: Admin token required.").waitFor();
      await signIn(page, "tökén-☃");
      await problem.getByText("letters that no token has").waitFor();
      assert.equal(await page.locator("#board").isVisible(), false);
      // Browsers tell of refused requests by themselves; there is nothing else.
      assert.ok(seen.errors.every((error) => error.startsWith("Failed to load resource")), seen.errors.join());
      assert.equal(seen.errors.length, 2);
      seen.errors.length = 0;
      await assertClean(page, seen);
      await page.close();
    });
  }

  test("the token is in the tab alone, and gone after signing out", async () => {
    const { page, seen } = await open(browser.context, server);
    await enter(page);
    const kept = await page.evaluate(() => ({
      local: JSON.stringify(localStorage),
      session: JSON.stringify(sessionStorage),
      address: location.href,
      history: JSON.stringify(history.state),
      page: document.documentElement.outerHTML + [...document.querySelectorAll("input")].map((input) => input.value),
    }));
    for (const [place, text] of Object.entries(kept)) assert.ok(!text.includes(ADMIN), place);
    assert.deepEqual([kept.local, kept.session], ["{}", "{}"]);
    assert.deepEqual(await browser.context.cookies(), []);
    assert.ok(seen.requests.every((url) => !url.includes(ADMIN)));

    const { page: other } = await open(browser.context, server);
    await other.getByLabel("Admin token").waitFor();
    assert.equal(await other.locator("#board").isVisible(), false);
    await other.close();

    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Admin token").waitFor();
    assert.equal(await page.locator("#board").isVisible(), false);
    assert.equal(await page.locator("#board tbody tr, #board svg").count(), 0);
    assert.equal(await page.getByLabel("Admin token").inputValue(), "");

    await enter(page);
    await page.reload();
    await page.getByLabel("Admin token").waitFor();
    assert.equal(await page.locator("#board").isVisible(), false);
    await assertClean(page, seen);
    await page.close();
  });

  test("without tokens there is nothing to administer", async () => {
    const free = await serve({});
    try {
      const { page, seen } = await open(browser.context, free);
      await page.getByRole("heading", { name: "Nothing to administer" }).waitFor();
      assert.equal(await page.getByLabel("Admin token").isVisible(), false);
      assert.deepEqual(seen.errors, []);
      await page.close();
    } finally {
      await free.stop();
    }
  });
});

describe("what is shown", () => {
  test("charts and tables have the figures of the API, and names stay names", async () => {
    const { days } = await admin(server, "/admin/usage?days=30");
    const { page, seen } = await open(browser.context, server);
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
    const byPerson = page.getByRole("img", { name: /^Cost by person/ });
    const labels = await byPerson.locator(".name").allTextContents();
    assert.equal(labels.length, Object.keys(users).length);
    const titles = await byPerson.locator(".bar-group title").allTextContents();
    assert.equal(titles[0], `${SCRIPT}: ${sum(users[SCRIPT].dollars)}, 4 requests`);
    const lengths = await byPerson.locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.width.baseVal.value));
    const share = users[IMAGE].dollars / users[SCRIPT].dollars;
    assert.ok(Math.abs(lengths[1] / lengths[0] - share) < 0.01, `${lengths} ${share}`);

    await page.getByText("By person as a table").click();
    const cells = await inTable(page, "by-person-table").first().locator("td").allTextContents();
    assert.deepEqual(cells, [SCRIPT, "4", sum(users[SCRIPT].dollars)]);
    await page.getByText("By day as a table").click();
    assert.equal(await inTable(page, "by-day-table").count(), 30);

    await page.getByText("Requests", { exact: true }).first().click();
    await page.getByRole("img", { name: /^Requests by day/ }).waitFor();
    await page.getByLabel("Period").selectOption("7");
    await page.locator("#by-day .bar").nth(7).waitFor({ state: "detached" });
    assert.equal(await page.locator("#by-day .bar").count(), 7);
    await assertClean(page, seen);
    await page.close();
  });

  test("tokens, keys and state are as the API says", async () => {
    const { tokens } = await admin(server, "/admin/tokens");
    const { page, seen } = await open(browser.context, server);
    await enter(page);
    assert.equal(await inTable(page, "tokens-table").count(), tokens.filter((token) => token.isActive).length);
    const token = tokens.find((candidate) => candidate.userId === IMAGE);
    const cells = await rowOf(page, IMAGE).locator("td").allTextContents();
    assert.equal(cells[0], token.tokenPrefix);
    assert.deepEqual(cells.slice(1, 4), [IMAGE, "user", "environment"]);
    assert.match(cells[4], /^activeuntil .*2999|3000/);
    assert.equal(cells[5], "2");
    assert.match(cells[8], /none/);
    const tile = (name) => page.locator(".tile", { hasText: name }).locator("dd");
    assert.match(await tile("Exa keys ready").textContent(), /^1 of 1/);
    assert.match(await tile("Sessions").textContent(), /^2/);
    assert.equal(await inTable(page, "keys").count(), 1);
    const facts = await page.locator("#facts").textContent();
    assert.ok(facts.includes(`${SCRIPT} (1)`), facts);
    assert.match(facts, /Storeok.*store\.db/);
    const all = await page.content();
    assert.ok(!all.includes("image-token-of-the-tests"));
    await assertClean(page, seen);
    await page.close();
  });

  test("what goes on is asked for again, but not while nobody looks", async () => {
    const { page, seen } = await open(browser.context, server);
    await page.clock.install();
    await page.reload();
    await enter(page);
    const sessions = page.locator(".tile", { hasText: "Sessions" }).locator("dd");
    const open0 = parseInt(await sessions.textContent(), 10);
    await new Caller(server, "image-token-of-the-tests").begin();
    await page.clock.runFor(5_000);
    await sessions.getByText(String(open0 + 1)).waitFor();

    const hide = (hidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    seen.requests.length = 0;
    await page.clock.runFor(120_000);
    assert.deepEqual(seen.requests, []);
    const again = page.waitForRequest(/\/admin\/state$/);
    await hide(false);
    await again;
    await assertClean(page, seen);
    await page.close();
  });

  test("it fits a narrow screen and follows the colours of the system", async () => {
    const { page, seen } = await open(browser.context, server);
    await page.setViewportSize({ width: 360, height: 720 });
    await enter(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${width}`);
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await colour();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await colour(), light);
    await assertClean(page, seen);
    await page.close();
  });
});

describe("looking after tokens", () => {
  test("a token is made, limited, and revoked", async () => {
    const { page, seen } = await open(browser.context, server);
    await enter(page);
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("User").fill("ann <b>");
    await page.getByLabel("Ends").fill("2999-12-31T12:00");
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Requests a minute").fill("1000");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = await page.locator("#secret").inputValue();
    assert.match(secret, /^exa_mcp_/);
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.origin });
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByText("Copied.").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
    await page.getByRole("button", { name: "I have kept it" }).click();
    await page.locator("#secret").waitFor({ state: "detached" });
    assert.ok(!(await page.content()).includes(secret));

    const ann = new Caller(server, secret);
    assert.equal((await ann.begin()).status, 200);
    assert.equal(await ann.search("a search of ann"), "answered");

    const row = rowOf(page, "ann <b>");
    await row.getByText("1,000 requests a minute").waitFor();
    await row.getByRole("button", { name: /^Limit/ }).click();
    await page.getByLabel("Requests a minute").fill("");
    await page.getByLabel("Dollars a day", { exact: true }).fill("2.5");
    await page.getByLabel("Tools and sets").fill("web_search_exa, no_such_tool");
    await page.getByRole("button", { name: "Save limits" }).click();
    await page.locator("dialog .problem").getByText("no_such_tool").waitFor();
    assert.match(seen.errors.pop(), /400/);
    await page.getByLabel("Tools and sets").fill("web_search_exa");
    await page.getByRole("button", { name: "Save limits" }).click();
    await row.getByText("$2.50 a day").waitFor();
    const limits = await limitsOf("ann <b>");
    assert.equal(limits.requestsPerMinute, null);
    assert.equal(limits.dollarsPerDay, 2.5);
    assert.deepEqual(limits.tools, ["web_search_exa"]);
    const entry = inTable(page, "audit-table").filter({ hasText: "Token changed" }).first();
    assert.match(await entry.textContent(), /ann <b>.*dollarsPerDay: 2\.5/);

    await row.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await ann.search("another search of ann"), "answered");
    await row.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
    const refused = await ann.begin();
    assert.deepEqual(refused, { status: 403, message: "Forbidden: Token has been revoked" });
    await page.getByLabel("Show ended ones").check();
    await row.getByText("revoked").waitFor();
    assert.equal(await row.getByRole("button").count(), 0);
    await inTable(page, "audit-table").filter({ hasText: "Token revoked" }).first().waitFor();
    await assertClean(page, seen);
    await page.close();
  });

  test("a token is rotated, and ended", async () => {
    const made = await admin(server, "/admin/tokens", { userId: "bob" });
    const { page, seen } = await open(browser.context, server);
    await enter(page);
    const row = rowOf(page, "bob");
    await row.getByRole("button", { name: /^Rotate/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    const secret = await page.locator("#secret").inputValue();
    await page.getByRole("button", { name: "I have kept it" }).click();
    assert.equal((await new Caller(server, made.token).begin()).status, 401);
    assert.equal((await new Caller(server, secret).begin()).status, 200);

    await row.getByRole("button", { name: /^Expire/ }).click();
    await page.getByLabel("Ends").selectOption("at");
    await page.getByLabel("Time").fill("2999-01-01T00:00");
    await page.getByRole("button", { name: "Set the end" }).click();
    await row.getByText(/until/).waitFor();
    assert.equal((await new Caller(server, secret).begin()).status, 200);
    await row.getByRole("button", { name: /^Expire/ }).click();
    await page.getByRole("button", { name: "Set the end" }).click();
    await row.waitFor({ state: "detached" });
    assert.equal((await new Caller(server, secret).begin()).status, 403);
    await assertClean(page, seen);
    await page.close();
  });

  test("a keyboard is enough", async () => {
    const { page, seen } = await open(browser.context, server);
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
    assert.equal(await page.getByLabel("User").inputValue(), "");
    await page.keyboard.type("cy");
    await page.keyboard.press("Enter");
    await page.locator("#secret").waitFor();
    await assertClean(page, seen);
    await page.close();
  });

  test("many tokens and entries come page by page", async () => {
    for (let number = 0; number < 60; number += 1) {
      await admin(server, "/admin/tokens", { userId: `many-${String(number).padStart(2, "0")}` });
    }
    const { page, seen } = await open(browser.context, server);
    await enter(page);
    assert.equal(await inTable(page, "tokens-table").count(), 50);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("Page 2 of 2").waitFor();
    await page.getByLabel("Find a person or token").fill("many-07");
    await rowOf(page, "many-07").waitFor();
    assert.equal(await inTable(page, "tokens-table").count(), 1);

    const rows = inTable(page, "audit-table");
    assert.equal(await rows.count(), 25);
    assert.match(await rows.first().textContent(), /many-59/);
    assert.equal(await page.getByRole("button", { name: "Newer" }).isDisabled(), true);
    await page.getByRole("button", { name: "Older" }).click();
    await rows.first().getByText("many-34 (").waitFor();
    await page.getByRole("button", { name: "Newer" }).click();
    await rows.first().getByText("many-59 (").waitFor();
    await assertClean(page, seen);
    await page.close();
  });
});

describe("what goes wrong", () => {
  test("script that gets into the page is refused, and so are other servers", async () => {
    const { page, seen } = await open(browser.context, server);
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
    assert.ok(seen.errors.every((error) => /Content Security Policy|fetch/i.test(error)), seen.errors.join("\n"));
    await page.close();
  });

  test("a revoked admin is signed out, and a server that is gone is said to be", async () => {
    const own = await serve({ MCP_AUTH_TOKEN: ADMIN });
    const { token, id } = await admin(own, "/admin/tokens", { userId: "dee", role: "admin" });
    const { page } = await open(browser.context, own);
    await page.clock.install();
    await page.reload();
    await signIn(page, token);
    await page.locator("#audit-table tbody").waitFor();
    await admin(own, `/admin/tokens/${id}/revoke`, {});
    await page.clock.runFor(5_000);
    await page.locator("#sign-in-problem").getByText("Forbidden: Token has been revoked.").waitFor();
    assert.equal(await page.locator("#board").isVisible(), false);
    await enter(page);
    await own.stop();
    await page.clock.runFor(5_000);
    await page.locator("#message").getByText("The server cannot be reached.").waitFor();
    await page.close();
  });
});

async function limitsOf(user) {
  const { tokens } = await admin(server, "/admin/tokens");
  return tokens.find((token) => token.userId === user).limits;
}
