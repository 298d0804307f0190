// The router: every page has an address, and links within the site do not reload the page.
import { signal } from "./ui.js";

/** The current address. */
export const address = signal(new URL(location.href));
const meta = (/** @type {string} */ name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute("content");
/** The gateway's URL for clients: it differs from this page's if operators have a separate listener. */
export const clientsUrl = meta("tollgate-clients") ?? location.origin;
/** Whether this listener serves the console. */
export const hasConsole = meta("tollgate-console") !== "elsewhere";

/** "/console" or "/portal". */
export const base = location.pathname.startsWith("/portal") ? "/portal" : "/console";

/** Opens a path of this site. `replace` adds no entry to the history. */
export function navigate(/** @type {string} */ href, { replace = false } = {}) {
  const target = new URL(href, location.href);
  const moved = target.pathname !== address.value.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  address.value = target;
  if (moved) {
    scrollTo(0, 0);
    document.getElementById("main")?.focus();
  }
}

/** Sets query parameters of the current address, without empty values. */
export function setQuery(/** @type {Record<string, string>} */ values) {
  const target = new URL(address.value);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") target.searchParams.delete(name);
    else target.searchParams.set(name, value);
  }
  navigate(target.href, { replace: true });
}

/**
 * The first pattern that matches the path, with the values of its `:name` parts.
 * @template T
 * @param {[string, T][]} routes
 * @param {string} path
 * @returns {{ page: T, params: Record<string, string> } | null}
 */
export function match(routes, path) {
  const parts = path.replace(/\/+$/, "").split("/");
  for (const [pattern, page] of routes) {
    const wanted = pattern.split("/");
    if (wanted.length !== parts.length) continue;
    /** @type {Record<string, string>} */
    const params = {};
    const fits = wanted.every((part, at) => {
      if (!part.startsWith(":")) return part === parts[at];
      params[part.slice(1)] = decodeURIComponent(parts[at]);
      return true;
    });
    if (fits) return { page, params };
  }
  return null;
}

/** Follows links of this site without loading the page, and the browser's back and forward. */
export function followLinks() {
  addEventListener("popstate", () => (address.value = new URL(location.href)));
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) && event.button === 0;
    if (!link || !plain || link.target || link.hasAttribute("download")) return;
    const target = new URL(link.href, location.href);
    const inside = target.origin === location.origin && (target.pathname + "/").startsWith(`${base}/`);
    if (!inside || (target.hash && target.pathname === location.pathname)) return;
    event.preventDefault();
    navigate(target.href);
  });
}
