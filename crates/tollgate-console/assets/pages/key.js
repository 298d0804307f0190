// One API key: limits, usage, rotation and revocation.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, isServed, request } from "../lib/api.js";
import { base } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Load, ObjectLink, PageHead, Properties, Time } from "../lib/elements.js";
import { confirm } from "../lib/dialog.js";
import { editObject, openForm, run, showSecret } from "../lib/forms.js";
import { BudgetList } from "./budgets.js";
import { keyState, operatorKeyFields } from "./keys.js";

/** Gives a key a new secret; the old secret remains valid for the time that is entered in the dialog. */
export async function rotateKey(path) {
  const fields = [{ name: "overlap_s", label: t("Seconds for which the old secret remains valid"), type: "integer", min: 0, max: 604800, required: true }];
  const submit = async (body, key) => (await request("POST", `${path}/rotate`, { body, key })).data;
  const rotated = await openForm({ title: t("Rotate key"), fields, initial: { overlap_s: 3600 }, action: t("Rotate"), submit });
  if (rotated?.secret) await showSecret(rotated.secret);
  return rotated;
}

/** Revokes a key after a confirmation. */
export async function revokeKey(path) {
  if (!(await confirm(t("Revoke this key? Clients that use it are rejected immediately. This cannot be undone."), t("Revoke the key")))) return undefined;
  return run(() => request("POST", `${path}/revoke`), t("Revoked"));
}

export function Key({ id }) {
  const path = `/keys/${encodeURIComponent(id)}`;
  return html`<${Load} deps=${[id]} load=${(signal) => get(path, {}, signal)}>${(key, again) => {
    const may = can("keys:write") && !key.revoked_at;
    const edit = async () => (await run(() => editObject({ title: t("Edit key"), path, fields: operatorKeyFields() }))) && again();
    const actions = html`
      <button type="button" disabled=${!may} onClick=${edit}>${t("Edit")}</button>
      <button type="button" disabled=${!may} onClick=${async () => (await rotateKey(path)) && again()}>${t("Rotate")}</button>
      <button type="button" class="danger" disabled=${!may} onClick=${async () => (await revokeKey(path)) && again()}>${t("Revoke")}</button>
      ${isServed("/tasks") && html`<a class="button" href=${`${base}/tasks?key_id=${id}`}>${t("Tasks")}</a>`}${isServed("/chats") && html`<a class="button" href=${`${base}/chats?key_id=${id}`}>${t("Chats")}</a>`}`;
    return html`<${PageHead} title=${key.name || key.hint} actions=${actions} />
      <${Properties} rows=${[
        [t("State"), keyState(key)], [t("User"), html`<${ObjectLink} type="user" id=${key.user_id} />`], [t("Begins with"), html`<code>${key.hint}</code>`],
        [t("Quota"), key.quota == null ? t("no quota") : money(key.quota)], [t("Used"), money(key.used)], [t("Held"), money(key.held)],
        [t("Requests per minute"), key.rpm ?? t("no limit")], [t("Tokens per minute"), key.tpm ?? t("no limit")], [t("Concurrent requests"), key.max_concurrency ?? t("no limit")],
        [t("Models"), key.models ? key.models.join(", ") : t("every model")], [t("Created"), html`<${Time} at=${key.created_at} />`], [t("Expires (UTC)"), html`<${Time} at=${key.expires_at} />`],
        key.trace_content && [t("Record the content of its chats in traces"), t("Enabled")],
        key.previous_valid_until && [t("The old secret is valid until"), html`<${Time} at=${key.previous_valid_until} />`], ["id", html`<span class="id">${key.id}</span>`],
      ]} />
      ${can("users:read") && isServed("/budgets") && html`<h2>${t("Budgets")}</h2><${BudgetList} owner=${{ key_id: id }} />`}`;
  }}<//>`;
}
