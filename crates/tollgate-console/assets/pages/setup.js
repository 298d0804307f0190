// The page of a one-time link: sets the password of a new administrator.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { me, request } from "../lib/api.js";
import { base, navigate } from "../lib/router.js";
import { Form } from "../lib/forms.js";
import { Preferences } from "../lib/shell.js";

export function Setup() {
  // The code is removed from the address at once, so that no history keeps it.
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get("code") ?? "");
  useState(() => history.replaceState(null, "", location.pathname));
  document.title = `${t("Set your password")} · Tollgate`;
  const fields = [
    ...(code ? [] : [{ name: "code", label: t("Code from the link"), required: true }]),
    { name: "name", label: t("Name"), autocomplete: "username", hint: t("Only for the first administrator of a new gateway. Other administrators already have a name.") },
    { name: "password", label: t("New password"), type: "password", required: true, minlength: 12, autocomplete: "new-password", hint: t("At least 12 characters.") },
  ];
  const submit = async (values) => {
    me.value = (await request("POST", "/session", { body: { code, ...values } })).data;
    navigate(`${base}/`, { replace: true });
  };
  return html`<main class="sign-in-page" id="main">
    <h1>${t("Set your password")}</h1>
    <div class="panel"><${Form} fields=${fields} action=${t("Set password and sign in")} submit=${submit} /></div>
    <${Preferences} />
  </main>`;
}
