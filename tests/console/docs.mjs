// The documentation of the real gateway in Chromium: every page light and wide, one of each kind also dark and narrow; search, copying, keyboard, no
// scripts.
// TOLLGATE is the program; NODE_PATH must lead to playwright-core and axe-core; SCREENSHOTS names a folder for images.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startGateway } from "./start_gateway.mjs";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const screenshots = process.env.SCREENSHOTS;
/** Pages of which a screenshot is kept, and which are checked in both looks and with their contrast. */
const SHOWN = ["", "/guides/first-hour", "/tasks", "/models/seedream-5-lite", "/errors", "/chat/fields", "/api"];
const FIRST_LOOK = { width: 1440, scheme: "light" };
/** Colours do not depend on the width, so each of both is checked once. */
const OTHER_LOOK = { width: 360, scheme: "dark" };
/** Typical search terms, and the result that must be first. */
const SEARCHES = [
  ["seedream 5 lite", "/docs/models/seedream-5-lite"], ["refund", "/docs/money#refunds"], ["webhook signature", "/docs/webhooks#verify-the-signature"],
  ["first hour", "/docs/guides/first-hour"], ["idempotency", "/docs/tasks#idempotency"], ["litellm", "/docs/guides/migrate#litellm"],
];

const failures = [];
const expect = (holds, what) => holds || failures.push(what);
const folder = mkdtempSync(path.join(tmpdir(), "tollgate-docs-"));
const gateway = await startGateway(folder);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** Opens a page. Errors on its console and requests to other sites are failures. */
async function newPage(options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(20_000);
  page.on("console", (message) => message.type() === "error" && failures.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => failures.push(`${page.url()}: ${error.message}`));
  page.on("request", (request) => request.url().startsWith(gateway.url) || failures.push(`${page.url()} requests ${request.url()}`));
  return page;
}

/** Waits until the page of the API is drawn, which needs the OpenAPI document. */
async function settle(page) {
  await page.waitForLoadState("load");
  if (page.url().endsWith("/docs/api")) await page.locator("#families details").first().waitFor();
}

const ALL_RULES = { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] };
/** Computing the contrast takes most of the time. All pages have the same colours, so it is only done for the pages of [SHOWN]. */
const WITHOUT_CONTRAST = { ...ALL_RULES, rules: { "color-contrast": { enabled: false } } };
/** The rules that depend on width and colours. */
const RULES_OF_A_LOOK = { runOnly: { type: "rule", values: ["color-contrast", "scrollable-region-focusable", "target-size"] } };

async function checkPage(page, name, rules = ALL_RULES) {
  await page.evaluate(axe);
  const violations = await page.evaluate(async (rules) => (await globalThis.axe.run({ resultTypes: ["violations"], selectors: false, ...rules })).violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`), rules);
  violations.forEach((violation) => failures.push(`${name}: axe ${violation}`));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(wide <= 0, `${name}: ${wide} px wider than the window`);
}

const keepImage = (page, address, { width, scheme }) => screenshots && page.screenshot({ path: `${screenshots}/docs${address.replaceAll("/", "-")}-${width}-${scheme}.png` });

/** Opens every page by its links, in one look. */
async function checkAllPages() {
  const page = await newPage({ viewport: { width: FIRST_LOOK.width, height: 800 }, colorScheme: FIRST_LOOK.scheme });
  await page.goto(`${gateway.url}/docs`);
  const links = () => page.locator("a[href^='/docs']").evaluateAll((all) => all.map((link) => link.getAttribute("href").split("#")[0]));
  const waiting = new Set(await links());
  /** For each page, the page to which "Next" leads. */
  const following = new Map();
  for (const address of waiting) {
    const response = await page.goto(gateway.url + address);
    expect(response.status() === 200, `${address} returns ${response.status()}`);
    await settle(page);
    const isShown = SHOWN.includes(address.slice("/docs".length));
    await checkPage(page, address, isShown ? ALL_RULES : WITHOUT_CONTRAST);
    const next = page.locator("a[rel=next]");
    if (await next.count()) following.set(address, await next.getAttribute("href"));
    if (isShown) await keepImage(page, address.slice("/docs".length), FIRST_LOOK);
    for (const next of await links()) waiting.add(next);
  }
  expect(waiting.size > 60, `only these pages are linked: ${[...waiting].join(" ")}`);
  // From the first page to the last by "Next".
  const inOrder = new Set();
  for (let address = "/docs"; address && !inOrder.has(address); address = following.get(address)) inOrder.add(address);
  expect(inOrder.size === waiting.size - 1, `${inOrder.size} pages follow each other, ${waiting.size} are linked`);
  await page.close();
  return waiting.size;
}

async function checkOtherLook() {
  const page = await newPage({ viewport: { width: OTHER_LOOK.width, height: 800 }, colorScheme: OTHER_LOOK.scheme });
  for (const address of SHOWN) {
    await page.goto(`${gateway.url}/docs${address}`);
    await settle(page);
    await checkPage(page, `/docs${address} ${OTHER_LOOK.width} ${OTHER_LOOK.scheme}`, RULES_OF_A_LOOK);
    await keepImage(page, address, OTHER_LOOK);
  }
  await page.close();
}

async function checkSearch() {
  const page = await newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${gateway.url}/docs/speech`);
  for (const [query, address] of SEARCHES) {
    await page.locator("h1").click();
    await page.keyboard.press("/");
    await page.keyboard.type(query);
    await page.locator(`[role=option][data-address="${address}"]`).first().waitFor().catch(() => {});
    const found = await page.locator("[role=option]").evaluateAll((all) => all.map((option) => option.dataset.address));
    expect(found[0] === address, `"${query}" finds ${found.join(" ")}`);
    if (query === "refund") {
      await checkPage(page, "results");
      if (screenshots) await page.screenshot({ path: `${screenshots}/docs-search.png` });
      expect((await page.locator("[role=option]").first().textContent()).includes("Money"), "a result does not say its section");
    }
    await page.locator("input[type=search]").fill("");
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type("refund");
  await page.locator("[role=option]").nth(1).waitFor();
  const second = await page.locator("[role=option]").nth(1).getAttribute("data-address");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(gateway.url + second);
  await page.keyboard.press("/");
  await page.keyboard.type("xyzzyxyzzy");
  await page.getByText("Nothing found.").waitFor();
  await page.close();
}

async function checkSwitchAndCopy() {
  const context = await browser.newContext({ colorScheme: "light", permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.goto(`${gateway.url}/docs/guides/first-hour`);
  const light = await background();
  await page.getByRole("button", { name: "Dark", exact: true }).click();
  const dark = await background();
  expect(light !== dark, "the switch changes no colour");
  await page.goto(`${gateway.url}/docs/tasks`);
  expect((await background()) === dark, "the choice is not remembered");
  await page.goto(`${gateway.url}/docs/api`);
  expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "dark", "the page of the API has another colour");
  await page.goto(`${gateway.url}/docs/guides/first-hour`);
  await page.getByRole("button", { name: "Copy the code" }).first().click();
  expect((await page.evaluate(() => navigator.clipboard.readText())).trim() === "tollgate serve", "the code is not copied");
  await context.close();
}

/** Generates an image and a video with the form on the API's page. */
async function checkTryIt() {
  const tollgate = (...words) => execFileSync(process.env.TOLLGATE, [...words, "--data-dir", folder], { cwd: folder, encoding: "utf8" });
  tollgate("user", "create", "ann", "--unlimited");
  const key = /sk-\S+/.exec(tollgate("key", "create", "--user", "ann", "--name", "docs"))[0];
  const page = await newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${gateway.url}/docs/api`);
  await page.locator("#key").fill(key);
  for (const [model, kind] of [["gpt-image-2-official", "img"], ["sora-2", "video"]]) {
    await page.locator("#model").selectOption(model);
    await page.locator("#field-prompt").fill("A lighthouse at dawn");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.locator(`#results ${kind}`).waitFor({ timeout: 60_000 });
    expect((await page.locator("#state").textContent()) === "Completed", `${model} ends as ${await page.locator("#state").textContent()}`);
  }
  await page.close();
}

/** Without scripts the text, the navigation and the menu of narrow windows are there. */
async function checkWithoutScripts() {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${gateway.url}/docs/tasks`);
  expect(!(await page.locator("nav.pages").isVisible()), "the menu is open");
  await page.getByRole("link", { name: "Menu", exact: true }).click();
  await page.locator("nav.pages summary", { hasText: "Money" }).click();
  if (screenshots) await page.screenshot({ path: `${screenshots}/docs-menu.png` });
  await page.locator("nav.pages").getByRole("link", { name: "Prices", exact: true }).click();
  expect((await page.locator("h1").textContent()) === "Prices", "the menu does not lead to the page");
  expect(!(await page.getByRole("button").count()), "there are buttons that do nothing");
  await context.close();
}

try {
  const count = await checkAllPages();
  await checkOtherLook();
  await checkSearch();
  await checkSwitchAndCopy();
  await checkTryIt();
  await checkWithoutScripts();
  if (!failures.length) console.log(`${count} pages of the documentation are as they should be`);
} finally {
  await browser.close();
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
}
for (const failure of failures) console.error(failure);
process.exitCode = failures.length ? 1 : 0;
