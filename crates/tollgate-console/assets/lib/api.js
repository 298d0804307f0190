// Sends every request of a page: the console's to the admin API, the portal's to /v1/me.
import { signal } from "./ui.js";
import { base } from "./router.js";

const portal = base === "/portal";
/** The prefix of the API that this page uses. */
export const API = portal ? "/v1" : "/admin/v1";
const TOKEN_ITEM = "tollgate_admin_token";

/** Who is signed in: the response of /me; `null` if nobody is; `undefined` until the response arrives. */
export const me = signal(/** @type {any} */ (undefined));
/** An admin token for this tab only, instead of a session. */
let token = portal ? null : sessionStorage.getItem(TOKEN_ITEM);

/** Uses an admin token for this tab; `null` forgets it. */
export function setToken(/** @type {string | null} */ value) {
  token = value;
  if (value) sessionStorage.setItem(TOKEN_ITEM, value);
  else sessionStorage.removeItem(TOKEN_ITEM);
}

/** An error that the API returned, or that prevented a response (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {any} body @param {string | null} etag */
  constructor(status, body, etag) {
    const error = body?.error ?? {};
    super(error.message ?? body?.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = error.code ?? "";
    this.field = error.field ?? error.param ?? null;
    this.requestId = error.request_id ?? null;
    this.current = body?.current ?? null;
    this.etag = etag;
  }
}

/** @type {() => Promise<boolean>} Requests the password again; returns whether it was accepted. */
let confirmPassword = async () => false;
/** Sets the function that requests the password when an action requires a fresh sign-in. */
export function onFreshSignIn(/** @type {() => Promise<boolean>} */ requestPassword) {
  confirmPassword = requestPassword;
}

/** A key for the header Idempotency-Key. */
export function newIdempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A path with its query, without empty values. */
export function withQuery(/** @type {string} */ path, /** @type {Record<string, any>} */ query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Sends a request, and returns status, body and ETag of the response.
 * @param {string} method
 * @param {string} path below the API's prefix
 * @param {{ query?: Record<string, any>, body?: any, etag?: string | null, create?: boolean, key?: string,
 *   signal?: AbortSignal, accept?: string, raw?: boolean, bearer?: string, lastEventId?: string }} [options]
 * @returns {Promise<{ status: number, data: any, etag: string | null, response: Response }>}
 */
export async function request(method, path, options = {}) {
  const key = options.key ?? newIdempotencyKey();
  try {
    return await send(method, path, options, key);
  } catch (error) {
    const stale = error instanceof ApiError && error.code === "fresh_auth_required";
    if (!stale || !(await confirmPassword())) throw error;
    return send(method, path, options, key);
  }
}

/** @param {string} method @param {string} path @param {any} options @param {string} key */
async function send(method, path, options, key) {
  /** @type {Record<string, string>} */
  const headers = { accept: options.accept ?? "application/json" };
  const bearer = options.bearer ?? token;
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  if (method !== "GET") headers["x-tollgate-console"] = "1";
  if (method === "POST") headers["idempotency-key"] = key;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.etag) headers["if-match"] = options.etag;
  if (options.create) headers["if-none-match"] = "*";
  if (options.lastEventId) headers["last-event-id"] = options.lastEventId;
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const url = withQuery(path.startsWith("/v1/") ? path : API + path, options.query);
  const init = { method, headers, body, signal: options.signal, credentials: /** @type {const} */ ("same-origin") };
  const response = await fetch(url, init);
  if (response.ok && options.raw) return { status: response.status, data: null, etag: null, response };
  const text = await response.text();
  const data = text ? parse(text) : null;
  if (response.ok) return { status: response.status, data, etag: response.headers.get("etag"), response };
  if (response.status === 401 && !options.bearer && !path.startsWith("/session") && path !== "/me/session") {
    me.value = null;
  }
  throw new ApiError(response.status, data, response.headers.get("etag"));
}

function parse(/** @type {string} */ text) {
  try {
    return JSON.parse(text);
  } catch {
    return { error: { message: text.slice(0, 500) } };
  }
}

/** The body of a GET. @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
export async function get(path, query, signal) {
  return (await request("GET", path, { query, signal })).data;
}

/** The body of the response to a POST. @param {string} path @param {any} [body] */
export async function post(path, body) {
  return (await request("POST", path, { body })).data;
}

/** Paths below the API's prefix that this gateway serves, from its OpenAPI document. */
let served = new Set();

async function loadServed() {
  if (served.size > 0) return;
  const document = portal ? "/openapi.json" : "/admin/openapi.json";
  const response = await fetch(document);
  const body = parse(await response.text());
  if (!response.ok) throw new ApiError(response.status, body, null);
  served = new Set(Object.keys(body.paths).filter((path) => path.startsWith(API)).map((path) => path.slice(API.length)));
}

/** Whether this gateway serves a path of the API, such as `/users`. Elements that need another path are not shown. */
export function isServed(/** @type {string} */ path) {
  return served.has(path);
}

/** Loads who is signed in, and which paths the gateway serves. */
export async function loadMe() {
  await loadServed();
  try {
    me.value = await get("/me");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    me.value = null;
  }
}

/** Whether the caller has a scope; a write scope of users, keys, … includes its read scope. */
export function can(/** @type {string} */ scope) {
  const scopes = me.value?.scopes ?? [];
  const [object, right] = scope.split(":");
  return me.value?.kind === "owner" || scopes.includes(scope) || (right === "read" && scopes.includes(`${object}:write`));
}

/** The request as a curl command that reads the token from the environment. */
export function asCurl(/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body) {
  const variable = portal ? "$TOLLGATE_API_KEY" : "$TOLLGATE_ADMIN_TOKEN";
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const data = body === undefined ? "" : ` -H 'content-type: application/json' -d '${JSON.stringify(body).replace(/'/g, "'\\''")}'`;
  return `curl${verb} -H "authorization: Bearer ${variable}"${data} '${location.origin}${API}${path}'`;
}
