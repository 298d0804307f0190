// A mock of the admin API: it responds to the console's requests with fixed objects in the API's shapes. With it, the pages can be developed without a
// build; `node tests/console/mock.mjs [PORT]` starts it.
import { createServer } from "node:http";
import { readFile, readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";

const ASSETS = fileURLToPath(new URL("../../crates/tollgate-console/assets/", import.meta.url));
const TYPES = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY = "default-src 'self'; script-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const PIXEL = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dwn4GBgYEBAA0JAQEhk5rVAAAAAElFTkSuQmCC", "base64");

const at = new Date(Date.now() - 3_600_000).toISOString();
const later = new Date(Date.now() - 3_570_000).toISOString();
const ROLES = { viewer: ["users", "keys", "tasks", "chats", "channels", "prices", "config", "events"].map((name) => `${name}:read`) };
const user = { id: "user_1", name: "bob <b>", balance: "1234.56", held: "0.08", used: "12.5", unlimited: false, rpm: null, tpm: null, max_concurrency: 8, disabled: false, created_at: at, version: 1 };
const key = { id: "key_1", name: "laptop", user_id: "user_1", hint: "sk-1a2b3c4d", quota: "50", used: "12.5", held: "0", rpm: 60, tpm: null, max_concurrency: null, models: null, envelope: "standard", created_at: at, expires_at: null, revoked_at: null, previous_valid_until: null, version: 1 };
const entry = { id: "entry_1", at, user_id: "user_1", key_id: "key_1", kind: "settle", amount: "0.08", delta: "-0.08", ref: "task_1", reference: null, reason: null, balance_after: "1234.56" };
const task = { id: "task_1", kind: "image", model: "gpt-image-2-official", state: "completed", user_id: "user_1", key_id: "key_1", channel: "openai-main", provider_job_id: "job_9", error_code: null, held: "0", cost: "0.08", refunded: "0", created_at: at, started_at: at, ended_at: later };
const failed = { ...task, id: "task_2", state: "failed", error_code: "provider_error", cost: "0", ended_at: later };
const chat = { id: "chat_1", model: "gpt-5", format: "messages", streamed: true, outcome: "done", user_id: "user_1", key_id: "key_1", channel: "openai-main", request_id: "req_1", error_code: null, cost: "0.002", refunded: "0", tokens: { input: 1400, cached_input: 0, cache_write: 0, output: 520, reasoning: 0 }, created_at: at, ended_at: later };
const attempts = [{ number: 1, channel: "openai-main", key_fingerprint: "9f8e7d6c", external_id: null, provider_job_id: "job_8", fence: 1, outcome: "failed", error: "the provider returned 503", started_at: at, ended_at: later, ms: 310 }, { number: 2, channel: "openai-main", key_fingerprint: "9f8e7d6c", external_id: null, provider_job_id: "job_9", fence: 1, outcome: "completed", error: null, started_at: at, ended_at: later, ms: 2100 }];
const charge = { price: "0.04", units: 2, unit: "image", held: "0.08", settled: "0.08", released: "0", refunded: "0" };
const steps = ["accepted", "held", "attempt_started", "attempt_failed", "attempt_started", "fetched", "settled", "ended"];
const details = { record: { code: 200, data: { status: "completed" } }, request: { model: task.model, prompt: "A red door", n: 2 }, adjustments: [], attempts, charge, entries: [entry], webhook: { url: "https://example.com/hook", state: "delivered", tries: [{ number: 1, at, ms: 5, status: 200, error: null }] }, files: [{ url: "/files/a.png", type: "image/png", bytes: 70, expires_at: later }], timeline: steps.map((event, n) => ({ at, event, amount: event === "held" || event === "settled" ? "0.08" : null, attempt: event.startsWith("attempt") ? (n < 4 ? 1 : 2) : null })) };
const channel = { name: "openai-main", kind: "openai", source: "database", shadowed: false, base_url: null, models: [{ name: "gpt-5", upstream: "gpt-5", options: null }], priority: 0, weight: 1, max_concurrency: 64, connect_s: null, first_byte_s: null, idle_s: null, apis: null, poll_ms: null, options: {}, api_keys: [{ fingerprint: "9f8e7d6c", hint: "…wxyz", origin: "env:OPENAI_API_KEY" }], paused: false, created_at: at, updated_at: at, version: 3 };
const schema = { type: "object", required: ["prompt"], properties: { model: { type: "string" }, prompt: { type: "string", description: "What to generate." }, n: { type: "integer", minimum: 1, maximum: 4, default: 1 }, size: { type: "string", enum: ["1024x1024", "1536x1024"], default: "1024x1024" }, image: { type: "array", items: { type: "string" }, description: "References." } } };
const usage = Array.from({ length: 24 }, (_, n) => ({ hour: new Date(Math.floor(Date.now() / 3_600_000 - n) * 3_600_000).toISOString(), day: new Date(Math.floor(Date.now() / 86_400_000 - n) * 86_400_000).toISOString(), model: ["gpt-5", "gpt-image-2-official"][n % 2] + n, user: "user_1", key: "key_1", channel: "openai-main", cost: String(n * 0.25), requests: n * 7, tokens: n * 900, images: n, seconds: n % 5, failed: n % 3 }));
const empty = () => ({ data: [], next_cursor: null });
const list = (...data) => ({ data, next_cursor: null });

/** The responses to GET, by path. */
const RESPONSES = {
  "/users": list(user, { ...user, id: "user_2", name: "ann", disabled: true, unlimited: true }), "/users/user_1": user, "/users/user_1/entries": list(entry),
  "/keys": list(key, { ...key, id: "key_2", name: "", revoked_at: at }), "/keys/key_1": key, "/keys/key_3": { ...key, id: "key_3", expires_at: "2100-01-01T10:00:30.500Z" }, "/entries": list(entry), "/usage": { ...list(...usage), watermark: at },
  "/tasks": list(task, failed), "/tasks/task_1": { ...task, ...details }, "/tasks/task_2": { ...failed, ...details, files: [], webhook: null },
  "/chats": list(chat), "/chats/chat_1": { ...chat, attempts, dropped: ["metadata"], charge },
  // The node cannot open the second channel, so it has no health.
  "/channels": list(channel, { ...channel, name: "unopened" }), "/channels/unopened": { ...channel, name: "unopened" }, "/channels/openai-main": channel, "/channels/openai-main/health": list({ node: "node_1", circuit: "closed", cooldowns: [], in_flight: 3, p50_ms: 420, error_rate: 0.02 }),
  "/models": { data: [{ id: "gpt-image-2-official", kind: "image", family: "gpt_image", endpoint: "/v1/images/generations", aliases: ["gpt-image"], schema }, { id: "sora-2", kind: "video", family: "sora", endpoint: "/v1/video/generations", aliases: [], schema }] },
  "/prices": list({ model: "sora-2", source: "database", shadowed: false, per_second: "0.1", when: [{ resolution: "4k", per_second: "0.6" }], version: 1 }), "/models/custom": empty(),
  "/events": list({ seq: 2, at, actor: "owner", token_id: null, address: "127.0.0.1", request_id: "req_2", action: "user.update", object: { type: "user", id: "user_1" }, before: { rpm: null }, after: { rpm: 5 }, reason: "abuse", prev_hash: "a", hash: "b" }),
  "/events/verify": { ok: true, rows: 2, head: "b", first_bad: null }, "/audits": list({ id: "audit_1", state: "done", ok: true, violations: [], progress: 1, started_at: at, ended_at: later }),
  "/nodes": list({ id: "node_1", version: "0.2.0", started_at: at, last_seen_at: at, config_version: 4, config_error: null, config_fingerprint: "0123456789abcdef", schema_version: 23, clock_offset_ms: -3, leader: true, ready: true, not_ready: null }), "/config": { data: [{ key: "listen", value: "127.0.0.1:8080", source: "default" }] },
  "/tokens": list({ id: "tok_1", name: "ci", scopes: ["users:read"], hint: "adm_1a2b3c4d", created_at: at, expires_at: null, last_used_at: null, version: 1 }),
  "/admins": list({ id: "admin_1", name: "ann", role: "owner", disabled: false, created_at: at, last_sign_in_at: at, version: 1 }), "/sessions": list({ id: "ses_1", created_at: at, last_seen_at: at, address: "127.0.0.1", current: true }),
  "/alerts": list({ id: "alert_1", on: "low_balance", threshold: "5", url: "https://example.com/alert", enabled: true, created_at: at, version: 1 }), "/alerts/alert_1/deliveries": empty(),
  "/budgets": list({ id: "bud_1", user_id: "user_1", key_id: null, amount: "10", period: "month", mode: "hard", spent: "4", held: "0", resets_at: later, version: 1 }), "/search": { data: [{ type: "task", id: "task_1", label: "gpt-image-2-official" }, { type: "user", id: "user_1", label: "bob" }] },
};
const METHODS = { oidc: { label: "Company account" } };
const PORTAL = { "/models": RESPONSES["/models"], "/session/methods": METHODS, "/chats": list({ ...chat, channel: undefined }), "/usage": RESPONSES["/usage"], "/budgets": RESPONSES["/budgets"], "/tasks": list(task), "/tasks/task_1": { ...task, files: details.files, record: details.record, request: details.request }, "/keys": list(key), "/entries": list(entry) };

async function assetNames(folder = "") {
  const entries = await readdir(path.join(ASSETS, folder), { withFileTypes: true });
  const names = await Promise.all(entries.map((one) => (one.isDirectory() ? assetNames(`${folder}${one.name}/`) : [`${folder}${one.name}`])));
  return names.flat();
}

async function page() {
  let text = await readFile(path.join(ASSETS, "index.html"), "utf8");
  for (const name of await assetNames()) text = text.replaceAll(`{{${name}}}`, `/console/assets/${name}`);
  return text.replace("{{modulepreload}}", "");
}

/** The paths that the mock's OpenAPI document lists, because the console shows only what the gateway serves. */
const SERVED = "usage tasks chats quote users keys entries channels prices events nodes sessions me search tail tokens admins alerts budgets audits channels/{name}/pause models/custom".split(" ");

/**
 * Starts the mock; resolves with its address and a function that stops it. `caching`: headers of the console's files, without which the browser
 * requests the files again on each page; `scripts`: more files, by path.
 */
export function startMock(port = 0, { caching = {}, scripts = {} } = {}) {
  let session = null;
  let stale = true;
  const respondToApi = (request, url, body, send) => {
    const error = (status, code, message, field = null) => send(status, { error: { code, message, field, request_id: "req_mock" } });
    const me = () => ({ kind: "session", name: session.name, role: session.name, scopes: ROLES[session.name] ?? [...ROLES.viewer.map((scope) => scope.replace("read", "write")), "money:write", "secrets:write"], expires_at: null, fresh_until: null });
    const route = url.pathname.slice("/admin/v1".length);
    if (request.method !== "GET" && request.headers["x-tollgate-console"] !== "1") return error(403, "csrf", "the header X-Tollgate-Console is missing");
    if (route === "/session/fresh") return ((stale = false), send(200, {}));
    if (route === "/session" && request.method === "POST") {
      if (body.password !== "correct horse battery") return error(401, "bad_credentials", "name or password is wrong");
      session = { name: body.name };
      return send(201, me());
    }
    if (route === "/session/methods") return send(200, METHODS);
    if (!session) return error(401, "unauthorized", "sign in first");
    if (route === "/session") return ((session = null), send(204));
    if (route === "/me") return send(200, me());
    if (route === "/quote") return send(200, { endpoint: body.endpoint, model: body.request.model, job: body.request, adjustments: [], unit: "image", units: body.request.n ?? 1, price: "0.04", total: "0.04", exact: true, currency: "USD", channels: ["openai-main"] });
    if (route === "/tail") return send(200, "", "text/event-stream");
    if (request.method === "GET") return RESPONSES[route] ? send(200, RESPONSES[route], undefined, { etag: `"${RESPONSES[route].version ?? 1}"` }) : error(404, "not_found", `there is no ${route}`);
    if (route.endsWith("/credits") && stale) return error(403, "fresh_auth_required", "enter the password again");
    if (route.endsWith("/credits")) return send(201, { ...entry, kind: "credit", amount: body.amount });
    if (route === "/users" && body.name === "bob") return error(409, "name_taken", "the name bob is taken", "name");
    if (route === "/users") return send(201, { ...user, name: body.name });
    if (route === "/keys") return send(201, { ...key, secret: "sk-secret" });
    if (request.method === "PATCH" && !request.headers["if-match"]) return error(428, "precondition_required", "If-Match is missing");
    return send(200, RESPONSES[route] ?? { ok: true, results: [{ key: "9f8e7d6c", model: "gpt-5", ok: true, ms: 5, error: null }], entry, charge });
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://mock");
    const send = (status, value, type = "application/json", headers = {}) => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store", ...headers });
      response.end(value === undefined ? undefined : typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value));
    };
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length && request.headers["content-type"] === "application/json" ? JSON.parse(Buffer.concat(chunks)) : {};
    if (url.pathname.startsWith("/console/assets/")) {
      const name = path.join(ASSETS, path.normalize(url.pathname.slice("/console/assets/".length)));
      return send(200, await readFile(name).catch(() => ""), TYPES[path.extname(name)], caching);
    }
    if (scripts[url.pathname]) return send(200, scripts[url.pathname], TYPES[".js"], caching);
    if (/^\/(console|portal)\//.test(url.pathname)) return send(200, await page(), "text/html; charset=utf-8", { "content-security-policy": POLICY });
    if (url.pathname.startsWith("/files/")) return send(200, PIXEL, "image/png");
    if (url.pathname.endsWith("/openapi.json")) return send(200, { paths: Object.fromEntries(SERVED.map((name) => [`/admin/v1/${name}`, {}])) });
    if (url.pathname.startsWith("/admin/v1/")) return respondToApi(request, url, body, send);
    if (url.pathname === "/v1/me/session") return send(201, {});
    if (url.pathname === "/v1/me") return session ? send(200, { user, key }) : ((session = { name: "portal" }), send(401, { error: { message: "sign in first" } }));
    const own = PORTAL[url.pathname.slice("/v1/me".length)];
    return own ? send(200, own) : send(404, { error: { message: "there is no such path" } });
  });
  return new Promise((done) => server.listen(port, "127.0.0.1", () => done({ url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await startMock(Number(process.argv[2] ?? 8099))).url);
