// The portal: a user who is signed in with an API key sees the user's own balance, usage, ledger, keys and results.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { get, loadMe, me, request } from "../lib/api.js";
import { address, base, hasConsole, match } from "../lib/router.js";
import { Preferences, Shell } from "../lib/shell.js";
import { ErrorNotice, PageHead } from "../lib/elements.js";
import { Form } from "../lib/forms.js";
import { SignedIn, SingleSignOn } from "../lib/single_sign_on.js";
import { apiKey } from "../lib/client.js";
import { Connect } from "../pages/connect.js";
import { Playground } from "../pages/playground.js";
import { Balance, PortalChats, PortalKeys, PortalLedger, PortalTask, PortalTasks } from "./pages.js";

const ROUTES = [["", Balance], ["/tasks", PortalTasks], ["/tasks/:id", PortalTask], ["/chats", PortalChats], ["/keys", PortalKeys], ["/books", PortalLedger], ["/playground", Playground], ["/connect", Connect]];

export function App() {
  const [error, setError] = useState(null);
  const start = () => {
    setError(null);
    loadMe().catch(setError);
  };
  useEffect(start, []);
  const links = [["", t("Balance")], ["/tasks", t("Results")], ["/chats", t("Chats")], ["/keys", t("Keys")], ["/books", t("Ledger")], ["/playground", t("Playground")], ["/connect", t("Connect")]];
  if (error) return html`<main class="sign-in-page"><h1>Tollgate</h1><${ErrorNotice} error=${error} retry=${start} /></main>`;
  if (address.value.pathname === `${base}/signed-in`) return html`<${SignedIn} />`;
  if (me.value === undefined) return html`<main class="sign-in-page"><h1>Tollgate</h1><p role="status">${t("Loading…")}</p></main>`;
  if (me.value === null) return html`<${SignIn} />`;
  const path = address.value.pathname.slice(base.length);
  const found = match(/** @type {any} */ (ROUTES), path);
  return html`<${Shell} links=${links} name=${me.value.user?.name} search=${false}>
    ${found ? html`<${found.page} key=${path} ...${found.params} />` : html`<${PageHead} title=${t("Page not found")} />`}
  <//>`;
}

function SignIn() {
  document.title = `${t("Sign in")} · Tollgate`;
  const fields = [{ name: "api_key", label: t("API key"), type: "password", required: true, hint: t("The key that your programs use. It begins with sk-.") }];
  const submit = async (body) => {
    await request("POST", "/me/session", { body });
    apiKey.value = body.api_key;
    me.value = await get("/me");
  };
  return html`<main class="sign-in-page" id="main"><h1>${t("Sign in to Tollgate")}</h1>
    <${SingleSignOn} />
    <div class="panel"><${Form} fields=${fields} action=${t("Sign in")} submit=${submit} /></div>
    ${hasConsole && html`<p><a href="/console/" target="_self">${t("Do you administer this gateway? Go to the console")}</a></p>`}<${Preferences} /></main>`;
}
