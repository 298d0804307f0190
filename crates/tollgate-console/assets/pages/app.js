// The console: the sign-in, and the page for each address.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, isServed, loadMe, me, onFreshSignIn, request } from "../lib/api.js";
import { address, base, match, navigate } from "../lib/router.js";
import { Shell } from "../lib/shell.js";
import { ErrorNotice, PageHead } from "../lib/elements.js";
import { openForm } from "../lib/forms.js";
import { SignedIn, SingleSignOnAgain } from "../lib/single_sign_on.js";
import { SignIn } from "./sign_in.js";
import { Setup } from "./setup.js";
import { Overview } from "./overview.js";
import { Gallery } from "./gallery.js";
import { Tasks } from "./tasks.js";
import { Task } from "./task.js";
import { Chats } from "./chats.js";
import { Chat } from "./chat.js";
import { Playground } from "./playground.js";
import { Users } from "./users.js";
import { User } from "./user.js";
import { Keys } from "./keys.js";
import { Key } from "./key.js";
import { Ledger } from "./ledger.js";
import { Channels } from "./channels.js";
import { Channel } from "./channel.js";
import { Models } from "./models.js";
import { Events } from "./events.js";
import { Nodes } from "./nodes.js";
import { Settings } from "./settings.js";
import { Connect } from "./connect.js";

const ROUTES = [
  ["", Overview], ["/gallery", Gallery], ["/tasks", Tasks], ["/tasks/:id", Task], ["/chats", Chats], ["/chats/:id", Chat],
  ["/playground", Playground], ["/users", Users], ["/users/:id", User], ["/keys", Keys], ["/keys/:id", Key], ["/books", Ledger],
  ["/channels", Channels], ["/channels/:name", Channel], ["/models", Models], ["/events", Events], ["/nodes", Nodes],
  ["/settings", Settings], ["/settings/:tab", Settings], ["/connect", Connect],
];

/** Pages of the navigation: path, name, a scope that its reader needs, and a path of the API that the page needs. */
const pages = () => [
  ["", t("Overview"), "users:read", "/usage"], ["/gallery", t("Gallery"), "tasks:read", "/tasks"], ["/tasks", t("Tasks"), "tasks:read", "/tasks"],
  ["/chats", t("Chats"), "chats:read", "/chats"], ["/playground", t("Playground"), "prices:read", "/quote"], ["/users", t("Users"), "users:read", "/users"],
  ["/keys", t("Keys"), "keys:read", "/keys"], ["/books", t("Ledger"), "users:read", "/entries"], ["/channels", t("Channels"), "channels:read", "/channels/{name}/pause"],
  ["/models", t("Models and prices"), "prices:read", "/models/custom"], ["/events", t("Events"), "events:read", "/events"], ["/nodes", t("Nodes"), "config:read", "/nodes"],
  ["/settings", t("Settings"), null, "/sessions"], ["/connect", t("Connect"), null, "/me"],
];

onFreshSignIn(async () => {
  const fields = [{ name: "password", label: t("Password"), type: "password", required: true, autocomplete: "current-password" }];
  const note = t("Actions on money and secrets require a password that was entered in the last five minutes.");
  const submit = async (body) => (await request("POST", "/session/fresh", { body })).data;
  const other = (close) => html`<${SingleSignOnAgain} done=${() => close(true)} />`;
  return (await openForm({ title: t("Enter your password again"), fields, note, action: t("Continue"), submit, other })) !== undefined;
});

export function App() {
  const [error, setError] = useState(null);
  const start = () => {
    setError(null);
    loadMe().catch(setError);
  };
  useEffect(start, []);
  const path = address.value.pathname.slice(base.length);
  if (error) return html`<main class="sign-in-page"><h1>Tollgate</h1><${ErrorNotice} error=${error} retry=${start} /></main>`;
  if (path === "/signed-in") return html`<${SignedIn} />`;
  if (path.startsWith("/setup")) return html`<${Setup} />`;
  if (me.value === undefined) return html`<main class="sign-in-page"><h1>Tollgate</h1><p role="status">${t("Loading…")}</p></main>`;
  if (me.value === null) return html`<${SignIn} />`;
  const all = pages().filter(([, , , api]) => isServed(/** @type {string} */ (api)));
  const links = all.filter(([, , scope]) => !scope || can(scope));
  const first = links[0]?.[0] ?? "";
  const shown = path.replace(/\/+$/, "") || first;
  if (shown !== path.replace(/\/+$/, "")) queueMicrotask(() => navigate(`${base}${first}`, { replace: true }));
  const isPage = all.some(([page]) => page === shown || (page && shown?.startsWith(`${page}/`)));
  const found = isPage ? match(/** @type {any} */ (ROUTES), /** @type {string} */ (shown)) : null;
  return html`<${Shell} links=${links} name=${`${me.value.name}${me.value.role ? ` · ${t(me.value.role)}` : ""}`} search=${isServed("/search")}>
    ${found ? html`<${found.page} key=${path} ...${found.params} />` : html`<${NoPage} />`}
  <//>`;
}

function NoPage() {
  return html`<${PageHead} title=${t("Page not found")} />
    <p><a href=${`${base}/`}>${t("Go to the overview")}</a></p>`;
}
