// Sign-in by a real OpenID provider: every role of the console, a password entered again in the provider's window, and the portal.
// TOLLGATE is the program; NODE_PATH must lead to playwright-core, axe-core and oidc-provider.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { startGateway } from "./start_gateway.mjs";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const failures = [];
const expect = (holds, what) => holds || failures.push(what);

// The provider's address is in the gateway's configuration, and the gateway's in the provider's.
let handleRequest = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => handleRequest(request, response));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const folder = mkdtempSync(path.join(tmpdir(), "tollgate-oidc-"));
writeFileSync(path.join(folder, "tollgate.toml"), `[oidc]
issuer = "${issuer}"
client_id = "tollgate"
client_secret = "a secret of the test"
label = "Company account"
role_claim = "groups"
roles = { owner = "owner", operator = "operator", finance = "finance", support = "support", viewer = "viewer", staff = "user" }
`, { mode: 0o600 });
const gateway = await startGateway(folder);
console.warn = console.info = () => {}; // The provider warns that its pages, keys and times are only for tests.
const provider = new Provider(issuer, {
  clients: [{ client_id: "tollgate", client_secret: "a secret of the test", redirect_uris: [`${gateway.url}/oidc/callback`] }],
  // An account NAME has the group of that name, up to the first hyphen.
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id, groups: [id.split("-")[0]] }) }),
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
  pkce: { required: () => true },
  cookies: { keys: ["a key of the test"] },
});
handleRequest = provider.callback();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** A page in a separate browser, in which nobody is signed in. */
async function newPage() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => failures.push(error.message));
  page.on("console", (message) => /Content Security Policy|MIME/.test(message.text()) && failures.push(message.text()));
  return page;
}

/** Fills in the provider's pages: name and password, then consent if the provider requests it. */
async function enterPassword(page, name, until) {
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  const consent = page.locator("button", { hasText: "Continue" });
  if (!(await until(page))) await consent.click({ timeout: 5_000 }).catch(() => {});
}

const isBack = (page) => page.waitForURL(`${gateway.url}/**`, { timeout: 1_500 }).then(() => true, () => false);

async function signIn(page, start, name) {
  await page.goto(gateway.url + start);
  await page.locator("a", { hasText: "Company account" }).click();
  await enterPassword(page, name, isBack);
  await page.waitForURL(`${gateway.url}/**`);
}

async function check(page, what) {
  await page.evaluate(axe);
  const violations = await page.evaluate(async () => (await globalThis.axe.run({ resultTypes: ["violations"], selectors: false })).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 150)}`));
  violations.forEach((violation) => failures.push(`${what}: axe ${violation}`));
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/oidc-${what}.png`, fullPage: true });
}

const ROLES = {
  owner: { sees: ["Users", "Channels", "Nodes"], misses: [], users: "New user", channels: "New channel" },
  operator: { sees: ["Users", "Channels", "Nodes"], misses: [], users: "New user", channels: "New channel" },
  finance: { sees: ["Users", "Ledger"], misses: ["Nodes"], users: null, channels: null },
  support: { sees: ["Users", "Tasks"], misses: ["Events", "Nodes"], users: null, channels: null },
  viewer: { sees: ["Users", "Nodes", "Events"], misses: [], users: null, channels: null },
};

try {
  const front = await newPage();
  await front.goto(`${gateway.url}/console/`);
  await front.locator("a", { hasText: "Company account" }).waitFor();
  await check(front, "sign-in");
  for (const [role, { sees, misses, users, channels }] of Object.entries(ROLES)) {
    const page = await newPage();
    await signIn(page, "/console/users", `${role}-ann`);
    expect(page.url() === `${gateway.url}/console/users`, `${role}: the sign-in leads to ${page.url()}`);
    await page.locator(".who", { hasText: role }).waitFor();
    await page.locator("main h1").waitFor();
    const links = await page.locator("nav a").allTextContents();
    for (const name of sees) expect(links.includes(name), `${role} has no link to ${name}: ${links}`);
    for (const name of misses) expect(!links.includes(name), `${role} has a link to ${name}`);
    for (const [address, button] of [["users", users], ["channels", channels]]) {
      await page.goto(`${gateway.url}/console/${address}`);
      await page.locator("main h1").waitFor();
      await page.waitForLoadState("networkidle");
      const buttons = await page.locator("main button:enabled").allTextContents();
      const may = buttons.some((text) => /^New (user|channel)$/.test(text.trim()));
      expect(may === (button !== null), `${role}: the buttons of ${address} are ${buttons}`);
    }
    await check(page, role);
    await page.context().close();
  }

  // Moving money needs the provider's password again, in a separate window; the form stays open.
  const owner = await newPage();
  await signIn(owner, "/console/users", "owner-ann");
  const press = (name) => owner.getByRole("button", { name, exact: true }).last().click();
  await press("New user");
  await owner.locator("dialog input[name=name]").fill("bob");
  await press("Create");
  await owner.getByRole("heading", { name: "bob" }).waitFor();
  await press("Add credit");
  await owner.locator("dialog input[name=amount]").fill("7.5");
  await owner.locator("dialog input[name=reason]").fill("test");
  await press("Add credit");
  await owner.getByRole("heading", { name: "Enter your password again" }).waitFor();
  const [popup] = await Promise.all([owner.waitForEvent("popup"), press("Continue with Company account")]);
  await popup.locator("input[name=login]").waitFor();
  await check(owner, "password-again");
  const closed = popup.waitForEvent("close");
  await enterPassword(popup, "owner-ann", (page) => Promise.race([page.waitForEvent("close").then(() => true), new Promise((done) => setTimeout(() => done(false), 1_500))])).catch(() => {});
  await closed;
  await owner.locator(".properties").getByText("7.5").waitFor();

  // An account without a role gets a message.
  const nobody = await newPage();
  await signIn(nobody, "/console/", "nobody");
  await nobody.getByText("Your account has no role on this gateway").waitFor();
  await check(nobody, "no-role");
  await nobody.getByText("Other ways to sign in").click();
  await nobody.locator("input[name=password]").waitFor();

  const staff = await newPage();
  await signIn(staff, "/portal/keys", "staff-carl");
  expect(staff.url() === `${gateway.url}/portal/keys`, `the portal's sign-in leads to ${staff.url()}`);
  await staff.locator(".who", { hasText: "staff-carl" }).waitFor();
  await staff.locator("td", { hasText: "Portal" }).first().waitFor();
  await check(staff, "portal");
} catch (error) {
  failures.push(error.stack);
  // Where each page is and what it shows, because the error names only the element that did not appear.
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    const text = await page.locator("body").innerText({ timeout: 5_000 }).catch(({ message }) => message);
    failures.push(`${page.url()} shows:\n${text.slice(0, 1_000)}`);
  }
} finally {
  await browser.close();
  await gateway.stop();
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
failures.forEach((failure) => console.error(failure));
console.log(failures.length ? `${failures.length} failures` : "sign-in by an OpenID provider works with every role");
process.exit(failures.length ? 1 : 0);
