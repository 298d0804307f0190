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

/** @type {Record<string, () => string>} */
const REASONS = {
  denied: () => t("The provider did not sign you in."),
  disabled: () => t("This account is disabled here. Ask whoever administers this gateway."),
  expired: () => t("This sign-in was not begun in this browser, or more than ten minutes ago. Try again; if that fails, use the gateway's public address."),
  name_taken: () => t("Somebody else here has the name of your account. Ask whoever administers this gateway."),
  no_role: () => t("Your account has no role here. Ask whoever administers the provider for one."),
  no_user: () => t("There is no user with the name of your account. Ask whoever administers this gateway."),
  not_fresh: () => t("The provider did not ask for your password just now, or does not say so. Sign out there, then try again."),
  other_account: () => t("This is another account than the one that is signed in here."),
  provider_unavailable: () => t("The provider does not answer as it should. Try again later."),
  rejected: () => t("What the provider answered does not prove who you are. The gateway's log says why."),
  throttled: () => t("Too many sign-ins have failed. Try again in a quarter of an hour."),
  unavailable: () => t("The gateway cannot sign anybody in just now. Try again later."),
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
  return html`<main class="gate" id="main"><h1>${error ? t("You are not signed in") : t("You are signed in")}</h1>
    <div class="panel">${error ? html`<p role="alert">${(REASONS[error] ?? REASONS.rejected)()}</p>` : html`<p role="status">${t("You can close this window.")}</p>`}
      ${error && html`<div class="form-actions"><a class="button primary" href=${startUrl(next, next === RESULT)} target="_self">${t("Try again")}</a></div>`}</div>
    <p><a href=${`${base}/`}>${t("Other ways to sign in")}</a></p><${Preferences} /></main>`;
}
