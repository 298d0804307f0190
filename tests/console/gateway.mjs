// The console against the real gateway: first sign-in by the printed link, a user with credit and a key, the trail, sign-out.
// Before that, both OpenAPI documents are checked against the schema of OpenAPI 3.1.
// TOLLGATE is the program; NODE_PATH must lead to playwright-core, axe-core and @seriousme/openapi-schema-validator.
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { startGateway } from "./start_gateway.mjs";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const { Validator } = await import(pathToFileURL(require.resolve("@seriousme/openapi-schema-validator")).href);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PASSWORD = "correct horse battery";
const failures = [];
const expect = (holds, what) => holds || failures.push(what);
const folder = mkdtempSync(path.join(tmpdir(), "tollgate-console-"));
const gateway = await startGateway(folder);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const root = await fetch(gateway.url, { headers: { accept: "text/html" }, redirect: "manual" });
  expect(root.status === 303 && root.headers.get("location") === "/console/", "GET / of a browser does not lead to the console");
  expect((await fetch(gateway.url)).status === 404, "GET / of other clients is not 404");
  for (const document of ["/openapi.json", "/admin/openapi.json"]) {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(await (await fetch(gateway.url + document)).json());
    expect(valid && validator.version === "3.1", `${document} is not valid OpenAPI 3.1: ${JSON.stringify(errors)}`);
    if (valid) validator.resolveRefs(); // Throws if a schema is missing.
  }
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => failures.push(error.message));
  page.on("console", (message) => /Content Security Policy|MIME/.test(message.text()) && failures.push(message.text()));
  const press = (name) => page.getByRole("button", { name, exact: true }).last().click();

  await page.goto(`${gateway.url}/console/setup#code=${gateway.code}`);
  await page.locator("input[name=name]").fill("ann");
  await page.locator("input[name=password]").fill(PASSWORD);
  await press("Set password and sign in");
  await page.locator("nav").waitFor();

  await page.goto(`${gateway.url}/console/users`);
  await press("New user");
  await page.locator("dialog input[name=name]").fill("bob");
  await press("Create");
  await page.getByRole("heading", { name: "bob" }).waitFor();
  await press("Add credit");
  await page.locator("dialog input[name=amount]").fill("12.5");
  await page.locator("dialog input[name=reason]").fill("test");
  await press("Add credit");
  await page.locator(".properties").getByText("12.5").waitFor();
  await page.locator("td", { hasText: "credit" }).first().waitFor();
  await press("New key");
  await page.locator("dialog input[name=name]").fill("laptop");
  await press("Create");
  const secret = await page.locator(".secret code").textContent();
  await press("I have copied it");
  const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
  expect(models.status === 200, `the new key gets status ${models.status}`);

  await page.goto(`${gateway.url}/console/playground`);
  await page.locator("main input[type=password]").fill(secret);
  await page.locator("main select").first().selectOption("gpt-image-2-official");
  await page.locator("main textarea").first().fill("A lighthouse at dawn");
  await page.getByText("1 × 0 per image").waitFor();
  await press("Generate");
  await page.locator("main img").first().waitFor();
  expect(await page.locator("main img").first().evaluate(async (image) => (await image.decode(), image.naturalWidth > 0)), "the image of the playground is not shown");
  await page.getByText("Chat", { exact: true }).first().click();
  await page.locator("#chat-text").fill("Say hello");
  await press("Send");
  await page.locator(".message.assistant", { hasText: "Say hello" }).waitFor();

  // The sums of the image and the chat above are the same for every grouping.
  await page.goto(`${gateway.url}/console/`);
  await page.locator("figure", { hasText: "Requests and failures" }).locator("strong", { hasText: "2 / 0" }).waitFor();
  await page.locator("figure", { hasText: "Images and seconds" }).locator("strong", { hasText: "1 / 0" }).waitFor();
  expect((await page.locator("figure canvas").count()) === 4, "not every chart is drawn");
  for (const [by, text] of [["model", "gpt-image-2-official"], ["user", "user_"], ["key", "key_"], ["channel", "sandbox"]]) {
    await press(by);
    await page.locator("table", { hasText: "Spend" }).locator("td", { hasText: text }).first().waitFor();
  }

  await page.goto(`${gateway.url}/console/channels`);
  await press("New channel");
  await page.locator("dialog input[name=name]").fill("sandbox"); // This channel replaces the built-in one, to which the task above is linked.
  await page.locator("dialog select[name=kind]").selectOption("sandbox");
  await press("Create");
  await page.getByRole("heading", { name: "sandbox", exact: true }).waitFor();
  await press("Test");
  await page.locator("td", { hasText: "gpt-5-nano" }).waitFor();
  await press("Edit");
  await page.locator("dialog input[name=weight]").fill("3");
  await press("Save");
  await page.locator(".properties").getByText("3", { exact: true }).waitFor();
  await press("Pause");
  await page.locator("dialog input[name=for_s]").fill("600");
  await press("Pause");
  await press("Resume");
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();

  // A channel that is deleted afterwards: chats and the trail may still link to it.
  await page.goto(`${gateway.url}/console/channels`);
  await press("New channel");
  await page.locator("dialog input[name=name]").fill("gone");
  await page.locator("dialog select[name=kind]").selectOption("sandbox");
  await page.locator("dialog textarea[name=apis]").fill("messages");
  await press("Create");
  await page.getByRole("heading", { name: "gone", exact: true }).waitFor();
  await press("Delete");
  await press("Delete the channel");
  await page.getByRole("heading", { name: "Channels", exact: true }).waitFor();
  await page.goto(`${gateway.url}/console/channels/gone`);
  await page.getByText("No channel has this name.").waitFor();
  await page.getByRole("link", { name: "Events of this channel" }).click();
  await page.getByText("channel.delete", { exact: true }).first().waitFor();

  await page.goto(`${gateway.url}/console/models?model=sora-2`);
  await press("Set price: sora-2");
  await page.locator("dialog input[name=per_second]").fill("0.25");
  await press("Save");
  await page.locator("td", { hasText: "0.25" }).waitFor();
  await press("Set price: sora-2");
  await page.locator("dialog input[name=per_second]").fill("");
  await page.locator("dialog input[name=per_video]").fill("1.5");
  await press("Save");
  await page.locator("td", { hasText: "1.5" }).waitFor();
  expect(!(await page.locator("td", { hasText: "0.25" }).count()), "the cleared price is still there");

  await page.goto(`${gateway.url}/console/nodes`);
  await page.locator("td", { hasText: "node_" }).first().waitFor();
  await page.locator("td", { hasText: "leader" }).first().waitFor();

  await page.goto(`${gateway.url}/console/events`);
  for (const action of ["user.create", "user.credit", "key.create"]) await page.getByText(action, { exact: true }).first().waitFor();
  await press("Verify the hash chain");
  await page.getByText("is intact").waitFor();

  // Every page of the navigation, and every page that one of them links to: no link may lead to a page that the gateway does not serve.
  const linked = () => page.locator("nav a[href^='/console/'], main a[href^='/console/']").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  const waiting = new Set(await linked());
  // The pages of two users or two models differ in their texts only: a few of each kind are opened, and axe-core checks the first.
  const MAX_OF_A_KIND = 5;
  const kinds = new Map();
  const kindOf = (address) => address.split("?")[0].replace(/^(\/console\/(?!settings)[^/]+\/).+/, "$1:id");
  let opened = 0;
  for (const address of waiting) {
    const before = kinds.get(kindOf(address)) ?? 0;
    if (before === MAX_OF_A_KIND) continue;
    kinds.set(kindOf(address), before + 1);
    opened += 1;
    await page.goto(gateway.url + address);
    await page.locator("main h1").waitFor();
    await page.waitForLoadState("networkidle");
    await page.waitForFunction(() => !document.querySelector(".loading"));
    expect((await page.locator("main h1").first().textContent()) !== "Page not found", `${address} is linked, but the page does not exist`);
    for (const text of await page.locator(".notice.bad").allTextContents()) failures.push(`${address}: ${text}`);
    for (const next of await linked()) waiting.add(next);
    if (before > 0) continue;
    await page.evaluate(axe);
    const violations = await page.evaluate(async () => (await globalThis.axe.run({ resultTypes: ["violations"], selectors: false })).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 150)}`));
    violations.forEach((violation) => failures.push(`${address}: axe ${violation}`));
  }
  expect(waiting.size > 10 && [...waiting].some((address) => address.includes("/users/user_")), `only these pages are linked: ${[...waiting].join(" ")}`);
  expect(kinds.size > 15, `only these kinds of pages are linked: ${[...kinds].join(" ")}`);
  console.log(`${opened} of ${waiting.size} pages of the gateway, of ${kinds.size} kinds, are as they should be`);

  // The portal, signed in with the key; then a budget that is used up, which portal and playground show.
  const portal = await browser.newPage();
  portal.setDefaultTimeout(20_000);
  portal.on("pageerror", (error) => failures.push(error.message));
  await portal.goto(`${gateway.url}/portal/`);
  await portal.locator("input[name=api_key]").fill("sk-wrong");
  await portal.getByRole("button", { name: "Sign in", exact: true }).click();
  await portal.locator(".notice.bad, .field-error").first().waitFor();
  await portal.locator("input[name=api_key]").fill(secret);
  await portal.getByRole("button", { name: "Sign in", exact: true }).click();
  await portal.locator(".properties").getByText("12.5").waitFor();
  await portal.goto(`${gateway.url}/portal/keys`);
  await portal.getByRole("button", { name: "New key", exact: true }).first().click();
  await portal.locator("dialog input[name=name]").fill("phone");
  await portal.getByRole("button", { name: "Create", exact: true }).click();
  const second = await portal.locator(".secret code").textContent();
  await portal.getByRole("button", { name: "I have copied it", exact: true }).click();
  await portal.locator("td", { hasText: "phone" }).first().waitFor();
  expect((await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${second}` } })).status === 200, "the key that was created in the portal does not work");
  await page.goto(`${gateway.url}/console/users`);
  await page.locator("main a", { hasText: "bob" }).first().click();
  await press("New budget");
  await page.locator("dialog input[name=amount]").fill("0");
  await press("Create");
  await page.locator("td", { hasText: "0 per day" }).first().waitFor();
  await page.goto(`${gateway.url}/console/models?model=gpt-image-2-official`);
  await press("Set price: gpt-image-2-official");
  await page.locator("dialog input[name=per_image]").fill("0.5");
  await press("Save");
  await page.locator("td", { hasText: "0.5" }).first().waitFor();
  const rejected = await fetch(`${gateway.url}/v1/images/generations`, { method: "POST", headers: { authorization: `Bearer ${second}`, "content-type": "application/json" }, body: JSON.stringify({ model: "gpt-image-2-official", prompt: "A mill" }) });
  expect(rejected.status === 402, `a request beyond the budget gets status ${rejected.status}`);
  // A chat, which is free here, appears in the list without a reload.
  await page.goto(`${gateway.url}/console/chats?live=1`);
  await page.locator("main h1").waitFor();
  const rows = await page.locator("main tbody tr").count();
  await page.waitForTimeout(1000); // Until the stream is open.
  await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", headers: { authorization: `Bearer ${second}`, "content-type": "application/json" }, body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Live" }] }) });
  await page.waitForFunction((before) => document.querySelectorAll("main tbody tr").length > before, rows);
  for (const address of ["", "tasks", "chats", "keys", "books", "playground", "connect"]) {
    await portal.goto(`${gateway.url}/portal/${address}`);
    await portal.locator("main h1").waitFor();
    await portal.waitForLoadState("networkidle");
    await portal.waitForFunction(() => !document.querySelector(".loading"));
    for (const text of await portal.locator(".notice.bad").allTextContents()) failures.push(`portal/${address}: ${text}`);
    await portal.evaluate(axe);
    const violations = await portal.evaluate(async () => (await globalThis.axe.run({ resultTypes: ["violations"], selectors: false })).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 150)}`));
    violations.forEach((violation) => failures.push(`portal/${address}: axe ${violation}`));
    if (process.env.SCREENSHOTS) await portal.screenshot({ path: `${process.env.SCREENSHOTS}/gateway-portal-${address || "balance"}.png`, fullPage: true });
    if (address === "tasks") {
      await portal.locator("main img").first().waitFor();
      await portal.locator("main article a").first().click();
      await portal.locator("main .media img").first().waitFor();
    }
    if (address === "playground") {
      await portal.locator("main input[type=password]").fill(secret);
      await portal.locator("main select").first().selectOption("wan2.7-image");
      await portal.locator("main textarea").first().fill("A harbour");
      await portal.getByRole("button", { name: "Generate", exact: true }).click();
      await portal.locator("main .media img, main section img").first().waitFor();
    }
    if (address === "") await portal.getByText("0 per day").first().waitFor();
  }
  console.log("the portal works against the gateway");

  await page.goto(`${gateway.url}/console/settings/alerts`);
  await press("New alert");
  await page.locator("dialog select[name=on]").selectOption("debt");
  await page.locator("dialog input[name=url]").fill("http://127.0.0.1:1/hook");
  await press("Create");
  await page.locator(".field-error", { hasText: "not public" }).waitFor();
  await page.locator("dialog input[name=url]").fill("https://alerts.invalid/hook");
  await press("Create");
  await page.locator(".secret code", { hasText: "whsec_" }).waitFor();
  await press("I have copied it");
  await page.locator("td", { hasText: "alerts.invalid" }).waitFor();
  await press("Test");
  await page.locator("dialog", { hasText: "resolved" }).waitFor();
  await page.keyboard.press("Escape");
  await press("Deliveries");
  await page.locator("dialog td", { hasText: "resolved" }).waitFor();
  await page.keyboard.press("Escape");

  await press("Sign out");
  await page.locator("input[name=name]").fill("ann");
  await page.locator("input[name=password]").fill("a wrong password");
  await press("Sign in");
  await page.locator(".notice.bad").waitFor();
  await page.locator("input[name=password]").fill(PASSWORD);
  await press("Sign in");
  await page.locator("nav").waitFor();
} catch (error) {
  failures.push(error.message);
} finally {
  await browser.close();
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
}
failures.forEach((failure) => console.error(failure));
console.log(failures.length ? `${failures.length} failures` : "the console works against the gateway");
process.exit(failures.length ? 1 : 0);
