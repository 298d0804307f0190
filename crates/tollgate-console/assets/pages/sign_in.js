// Sign-in with name and password, or with an admin token for this tab.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { loadMe, me, request, setToken } from "../lib/api.js";
import { Form } from "../lib/forms.js";
import { SingleSignOn } from "../lib/single_sign_on.js";
import { Preferences } from "../lib/shell.js";
import { Overlays } from "../lib/dialog.js";

export function SignIn() {
  const [byToken, setByToken] = useState(false);
  document.title = `${t("Sign in")} · Tollgate`;
  const password = [
    { name: "name", label: t("Name"), required: true, autocomplete: "username" },
    { name: "password", label: t("Password"), type: "password", required: true, autocomplete: "current-password" },
  ];
  const token = [{ name: "token", label: t("Admin token"), type: "password", required: true, hint: t("Stored in this tab only. The command `tollgate admin-key` prints the owner's token.") }];
  const signIn = async (body) => {
    me.value = (await request("POST", "/session", { body })).data;
  };
  const useToken = async (values) => {
    setToken(values.token);
    await loadMe();
    if (me.value === null) {
      setToken(null);
      throw Object.assign(new Error(t("This token is not valid.")), { field: "token" });
    }
  };
  return html`<main class="sign-in-page" id="main">
    <h1>${t("Sign in to Tollgate")}</h1>
    <${SingleSignOn} />
    <div class="panel">
      ${byToken
        ? html`<${Form} key="token" fields=${token} action=${t("Sign in")} submit=${useToken} />`
        : html`<${Form} key="password" fields=${password} action=${t("Sign in")} submit=${signIn} />`}
    </div>
    <button type="button" class="quiet" onClick=${() => setByToken(!byToken)}>${byToken ? t("Sign in with a password") : t("Sign in with an admin token")}</button>
    <p class="muted">${t("No account yet? The first start of `tollgate serve` prints a sign-in link; `tollgate admin create NAME --role ROLE` prints one for each further administrator.")}</p>
    <${Preferences} />
  </main><${Overlays} />`;
}
