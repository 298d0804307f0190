// The address of the page: everything is a link, and no link loads the page anew.
import { signal } from "./ui.js";

/** The current address. */
export const address = signal(new URL(location.href));
const meta = (/** @type {string} */ name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute("content");
/** The address under which clients know the gateway: another one if operators have a listener of their own. */
export const clientsUrl = meta("tollgate-clients") ?? location.origin;
/** Whether the console is on this listener. */
export const hasConsole = meta("tollgate-console") !== "elsewhere";

/** "/console" or "/portal". */
export const base = location.pathname.startsWith("/portal") ? "/portal" : "/console";

/** Goes to a path of this site. `replace` leaves no entry in the history. */
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

/** Sets query parameters of the current address; empty values are left out. */
export function setQuery(/** @type {Record<string, string>} */ values) {
  const target = new URL(address.value);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") target.searchParams.delete(name);
    else target.searchParams.set(name, value);
  }
  navigate(target.href, { replace: true });
}

/**
 * The first pattern that fits the path, with what its `:name` parts stand for.
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
