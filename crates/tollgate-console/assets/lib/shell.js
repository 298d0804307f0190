// The frame around every page: navigation, search, language, colours, the signed-in user.
import { html, useEffect, useState } from "./ui.js";
import { language, setLanguage, t } from "./i18n.js";
import { address, base, navigate } from "./router.js";
import { API, get, me, request, setToken } from "./api.js";
import { apiKey } from "./client.js";
import { setTheme, theme } from "./theme.js";
import { Overlays } from "./dialog.js";
import { ErrorNotice } from "./elements.js";

/** Buttons for colours and language, which the sign-in page also has. */
export function Preferences() {
  const other = theme.value === "dark" ? "light" : "dark";
  return html`<div class="preferences">
    <button type="button" class="quiet" onClick=${() => setTheme(other)}>${other === "dark" ? t("Dark") : t("Light")}</button>
    <button type="button" class="quiet" lang=${language.value === "zh" ? "en" : "zh-CN"}
      onClick=${() => setLanguage(language.value === "zh" ? "en" : "zh")}>${language.value === "zh" ? "English" : "中文"}</button>
  </div>`;
}

/** The frame. `links`: `[path, label]`; `search`: whether there is a search box. */
export function Shell({ links, name, search, children }) {
  const [open, setOpen] = useState(false);
  const path = address.value.pathname.replace(/\/+$/, "");
  useEffect(() => setOpen(false), [path]);
  const current = (to) => path === base + to || (to !== "" && path.startsWith(`${base}${to}/`));
  return html`<a class="skip" href="#main">${t("Skip to content")}</a>
    <div class="shell">
      <header class="top">
        <button type="button" class="quiet menu" aria-expanded=${open} aria-controls="navigation" onClick=${() => setOpen(!open)}>${t("Menu")}</button>
        <a class="brand" href=${`${base}/`}>Tollgate</a>
        ${search && html`<${Search} />`}
        <${Preferences} />
        <div class="who"><span class="muted">${name}</span> <button type="button" class="quiet" onClick=${signOut}>${t("Sign out")}</button></div>
      </header>
      <nav id="navigation" class=${open ? "open" : ""} aria-label=${t("Pages")}>
        ${links.map(([to, label]) => html`<a key=${to} href=${`${base}${to || "/"}`} aria-current=${current(to) ? "page" : undefined}>${label}</a>`)}
      </nav>
      <main id="main" tabindex="-1">${children}</main>
    </div>
    <${Overlays} />`;
}

async function signOut() {
  const path = API === "/v1" ? "/me/session" : "/session";
  await request("DELETE", path).catch(() => {});
  setToken(null);
  apiKey.value = "";
  me.value = null;
}

/** Searches for an id. If there is a single result, its page opens immediately. */
function Search() {
  const [hits, setHits] = useState(null);
  const [error, setError] = useState(null);
  const pages = { task: "tasks/", chat: "chats/", user: "users/", key: "keys/", request: "chats?request_id=", provider_job: "tasks?provider_job_id=" };
  const href = (hit) => `${base}/${pages[hit.type]}${encodeURIComponent(hit.id)}`;
  const find = async (event) => {
    event.preventDefault();
    const q = String(new FormData(event.target).get("q")).trim();
    setError(null);
    try {
      const { data } = await get("/search", { q });
      if (data.length === 1) navigate(href(data[0]));
      setHits(data.length === 1 ? null : data);
    } catch (problem) {
      setHits(null);
      setError(problem);
    }
  };
  const close = () => {
    setHits(null);
    setError(null);
  };
  return html`<form class="search" role="search" aria-label=${t("Search")} onSubmit=${find} onKeyDown=${(event) => event.key === "Escape" && close()}>
    <input type="search" name="q" minlength="3" required placeholder=${t("Search by id")} aria-label=${t("Search by id")} />
    ${(hits || error) && html`<div class="hits">
      ${error && html`<${ErrorNotice} error=${error} />`}
      ${hits?.length === 0 && html`<p>${t("Nothing has this id. The search finds complete ids of tasks, chats, requests, keys, users and provider jobs.")}</p>`}
      ${hits?.map((hit) => html`<a href=${href(hit)} onClick=${close}><span class="badge">${t(hit.type)}</span> ${hit.label || hit.id}</a>`)}
      <button type="button" class="quiet" onClick=${close}>${t("Close")}</button>
    </div>`}
  </form>`;
}
