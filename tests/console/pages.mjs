// Opens every page of the console and the portal in Chromium: no error on the browser's console, nothing wider than the window, no violation
// that axe-core finds. `NODE_PATH` must lead to playwright-core and axe-core; SCREENSHOTS names a folder for images.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { startMock } from "./mock.mjs";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const folder = process.env.SCREENSHOTS;
const CONSOLE = ["", "gallery", "tasks", "tasks/task_1", "tasks/task_2", "chats", "chats/chat_1", "playground", "playground?mode=chat", "users", "users/user_1", "keys", "keys/key_1", "books", "channels", "channels/openai-main", "models", "events", "nodes", "settings/tokens", "settings/admins", "settings/sessions", "settings/alerts", "settings/budgets", "connect"];
const PORTAL = ["", "tasks", "tasks/task_1", "chats", "keys", "books", "playground", "connect"];
/** Every width, theme and language is in one of the two looks that axe-core checks; of the others the width and the browser's console are checked. */
const LOOKS = [
  { name: "wide-light-en", width: 1440, theme: "light", language: "en", axe: true }, { name: "narrow-dark-zh", width: 360, theme: "dark", language: "zh", axe: true },
  { name: "wide-dark-zh", width: 1440, theme: "dark", language: "zh", axe: false }, { name: "narrow-light-en", width: 360, theme: "light", language: "en", axe: false },
];

const failures = [];
const expect = (holds, what) => holds || failures.push(what);

/** Reports the messages on the page's console, from then on. */
function listen(page, name) {
  page.on("console", (message) => message.type() === "error" && !/status of 4(01|03|09)/.test(message.text()) && !message.location().url.endsWith("/unopened/health") && failures.push(`${name()}: ${message.text()}`));
  page.on("pageerror", (error) => failures.push(`${name()}: ${error.message}`));
}

async function checkPage(page, name, look) {
  await page.waitForLoadState("networkidle");
  await page.waitForFunction(() => !document.querySelector(".loading"));
  if (look.axe) {
    await page.addScriptTag({ url: "/axe.js" });
    const violations = await page.evaluate(async () => (await globalThis.axe.run({ resultTypes: ["violations"], selectors: false, runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] })).violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`));
    violations.forEach((violation) => failures.push(`${name}: axe ${violation}`));
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(wide <= 0, `${name}: ${wide} px wider than the window`);
  if (folder) await page.screenshot({ path: `${folder}/${name.replace(/\W+/g, "-")}.png`, fullPage: true });
}

/** The journeys of one role: sign-in, a form with an error at its field, a secret shown once, a second request for the password. */
async function checkForms(page, url) {
  await page.goto(`${url}/console/users`);
  await page.getByRole("button", { name: "New user" }).first().click();
  await page.getByLabel("Name").last().fill("bob");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator(".field-error").waitFor();
  expect((await page.locator(".field-error").textContent()).includes("taken"), "the error is not shown at its field");
  await page.keyboard.press("Escape");
  await page.goto(`${url}/console/keys`);
  await page.getByRole("button", { name: "New key" }).first().click();
  await page.locator("dialog input[name=user_id]").fill("user_1");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("sk-secret").waitFor();
  await page.getByRole("button", { name: "I have copied it" }).click();
  await page.goto(`${url}/console/keys/key_3`);
  await page.getByRole("button", { name: "Edit", exact: true }).first().click();
  await page.locator("dialog input[name=rpm]").fill("7");
  const [patch] = await Promise.all([page.waitForRequest((request) => request.method() === "PATCH"), page.getByRole("button", { name: "Save" }).click()]);
  expect(!("expires_at" in JSON.parse(patch.postData())), `an edit of another field sends ${patch.postData()}`);
  await page.goto(`${url}/console/`);
  await page.getByRole("link", { name: "unopened" }).waitFor();
  await page.goto(`${url}/console/users/user_1`);
  await page.getByRole("button", { name: "Add credit" }).click();
  await page.locator("dialog input[name=amount]").fill("5");
  await page.locator("dialog input[name=reason]").fill("test");
  await page.locator("dialog").getByRole("button", { name: "Add credit" }).click();
  await page.locator("dialog input[type=password]").fill("correct horse battery");
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.waitForFunction(() => !document.querySelector("dialog"));
  expect(!(await page.getByText("<b>").count()) || !(await page.locator("h1 b").count()), "a user's name is read as HTML");
}

async function signIn(page, url, name) {
  await page.goto(`${url}/console/`);
  await page.locator("input[name=name]").fill(name);
  await page.locator("input[name=password]").fill("correct horse battery");
  await page.locator("button[type=submit]").click();
  await page.locator("main#main h1").waitFor();
  await page.waitForFunction(() => document.querySelector("nav"));
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

async function checkLook(look) {
  // The same header as the gateway's: the browser keeps the files, and their compiled form.
  const caching = { "cache-control": "max-age=3600" };
  const mock = await startMock(0, { caching, scripts: { "/axe.js": axe } });
  const context = await browser.newContext({ viewport: { width: look.width, height: 900 }, locale: "en-GB" });
  await context.addInitScript(({ theme, language }) => {
    localStorage.setItem("tollgate_theme", theme);
    localStorage.setItem("tollgate_language", language);
  }, look);
  const page = await context.newPage();
  let now = "";
  listen(page, () => `${look.name} ${now}`);
  now = "sign-in";
  await page.goto(`${mock.url}/console/`);
  await page.locator("form").waitFor();
  await checkPage(page, `${look.name} sign-in`, look);
  await signIn(page, mock.url, look.width === 360 ? "viewer" : "owner");
  for (const path of CONSOLE) {
    now = `console/${path}`;
    await page.goto(`${mock.url}/console/${path}`);
    await page.locator("main h1").waitFor();
    await checkPage(page, `${look.name} ${now}`, look);
  }
  for (const path of PORTAL) {
    now = `portal/${path}`;
    await page.goto(`${mock.url}/portal/${path}`);
    await page.locator("main h1").waitFor();
    await checkPage(page, `${look.name} ${now}`, look);
  }
  now = "forms";
  if (look.name === "wide-light-en") {
    await checkForms(page, mock.url).catch((error) => failures.push(`forms: ${error.message}`));
  }
  await context.close();
  mock.stop();
}

// The looks are checked side by side, because much of the time is waiting.
await Promise.all(LOOKS.map(checkLook));
await browser.close();
failures.forEach((failure) => console.error(failure));
console.log(failures.length ? `${failures.length} failures` : `${LOOKS.length * (CONSOLE.length + PORTAL.length + 1)} pages are as they should be`);
process.exit(failures.length ? 1 : 0);
