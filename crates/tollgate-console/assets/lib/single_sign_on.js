// Sign-in by an OpenID provider: the button, the window in which a password is entered again, and the page on which both end.
import { html, useEffect, useState } from "./ui.js";
import { t } from "./i18n.js";
import { get } from "./api.js";
import { address, base } from "./router.js";
import { Preferences } from "./shell.js";

const pages = base.slice(1);
const RESULT = `${base}/signed-in`;
/** The channel on which one window of this site informs the others that a sign-in has ended. */
const CHANNEL = "tollgate-sign-in";
const methodsPath = base === "/portal" ? "/me/session/methods" : "/session/methods";

function startUrl(/** @type {string} */ next, fresh = false) {
  const query = new URLSearchParams({ to: pages, next });
  if (fresh) query.set("fresh", "1");
  return `/oidc/start?${query}`;
}

/** The provider's label; `null` if no provider is configured. */
function useProvider() {
  const [label, setLabel] = useState(/** @type {string | null} */ (null));
  useEffect(() => void get(methodsPath).then(({ oidc }) => setLabel(oidc?.label ?? null), () => {}), []);
  return label;
}

/** The button of the sign-in page, which returns to the page that was requested; nothing if no provider is configured. */
export function SingleSignOn() {
  const label = useProvider();
  const { pathname, search } = address.value;
  const next = pathname.startsWith(`${base}/`) && !pathname.startsWith(RESULT) ? pathname + search : `${base}/`;
  return label && html`<a class="button primary" href=${startUrl(next)} target="_self">${label}</a>`;
}

/** Instead of a password: a button that opens the provider's page in a separate window. `done` is called after a successful sign-in. */
export function SingleSignOnAgain({ done }) {
  const label = useProvider();
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = () => done();
    return () => channel.close();
  }, []);
  const open = () => window.open(startUrl(RESULT, true), CHANNEL, "popup,width=520,height=720");
  return label && html`<button type="button" onClick=${open}>${t("Continue with {provider}", { provider: label })}</button>`;
}

/** The message for each value of `error` in the address. @type {Record<string, () => string>} */
const MESSAGES = {
  denied: () => t("The identity provider did not sign you in."),
  disabled: () => t("This account is disabled on this gateway. Contact the gateway's administrator."),
  expired: () => t("This sign-in was not started in this browser, or was started more than 10 minutes ago. Try again. If that fails, open the gateway's public URL."),
  name_taken: () => t("Another administrator or user of this gateway has the name of your account. Contact the gateway's administrator."),
  no_role: () => t("Your account has no role on this gateway. Request a role from the identity provider's administrator."),
  no_user: () => t("No user has the name of your account. Contact the gateway's administrator."),
  not_fresh: () => t("The identity provider did not request your password for this sign-in, or did not report when you entered it. Sign out there, then try again."),
  other_account: () => t("This account is not the one that is signed in to the console."),
  provider_unavailable: () => t("The identity provider does not respond as expected. Try again later."),
  rejected: () => t("The identity provider's response does not prove your identity. See the gateway's log for the cause."),
  throttled: () => t("Too many failed sign-ins. Try again in 15 minutes."),
  unavailable: () => t("The gateway cannot complete sign-ins at the moment. Try again later."),
};

/** The page on which a sign-in ends if it failed, or if it ran in a separate window. */
export function SignedIn() {
  const error = address.value.searchParams.get("error");
  document.title = `${t("Sign in")} · Tollgate`;
  useEffect(() => {
    if (error) return;
    const channel = new BroadcastChannel(CHANNEL);
    channel.postMessage("done");
    channel.close();
    window.close();
  }, []);
  const next = address.value.searchParams.get("next") || `${base}/`;
  return html`<main class="sign-in-page" id="main"><h1>${error ? t("You are not signed in") : t("You are signed in")}</h1>
    <div class="panel">${error ? html`<p role="alert">${(MESSAGES[error] ?? MESSAGES.rejected)()}</p>` : html`<p role="status">${t("You can close this window.")}</p>`}
      ${error && html`<div class="form-actions"><a class="button primary" href=${startUrl(next, next === RESULT)} target="_self">${t("Try again")}</a></div>`}</div>
    <p><a href=${`${base}/`}>${t("Other ways to sign in")}</a></p><${Preferences} /></main>`;
}
