// The list of API keys: those of all users, or those of one.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can } from "../lib/api.js";
import { money } from "../lib/format.js";
import { Badge, ObjectLink, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { createObject } from "../lib/forms.js";

/** Fields of a key that the forms for a new and an existing key share. */
export const keyFields = () => [
  { name: "name", label: t("Label") },
  { name: "quota", label: t("Quota"), type: "amount", nullable: true, hint: t("The amount that the key may spend in total. Empty: limited only by the balance of its user.") },
  { name: "rpm", label: t("Requests per minute"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "tpm", label: t("Tokens per minute"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "max_concurrency", label: t("Concurrent requests"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "models", label: t("Models"), type: "lines", nullable: true, hint: t("One per line. Empty: every model.") },
  { name: "expires_at", label: t("Expires (UTC)"), type: "time", nullable: true },
];

/** The same with the fields that only operators may set. */
export const operatorKeyFields = () => [
  ...keyFields(),
  { name: "trace_content", label: t("Record the content of its chats in traces"), type: "switch", hint: t("Applies only to sampled traces, and only if the gateway exports traces.") },
];

/** The state of a key as a word: active, expired or revoked. */
export function keyState(key) {
  if (key.revoked_at) return html`<${Badge} of="revoked" />`;
  if (key.expires_at && Date.parse(key.expires_at) < Date.now()) return html`<${Badge} of="expired" tone="warn" />`;
  return html`<${Badge} of="active" tone="good" />`;
}

/** Keys, with the button for a new one. */
export function KeyList({ userId }) {
  const [created, setCreated] = useState(0);
  const owner = userId ? [] : [{ name: "user_id", label: t("User id"), required: true }];
  const create = async () => {
    const key = await createObject({ title: t("New key"), path: "/keys", fields: [...owner, ...operatorKeyFields()], fixed: userId ? { user_id: userId } : {} });
    if (key) setCreated((n) => n + 1);
  };
  const button = html`<button type="button" class=${userId ? "" : "primary"} disabled=${!can("keys:write")} onClick=${create}>${t("New key")}</button>`;
  const columns = [
    { label: t("Key"), cell: (row) => html`<${ObjectLink} type="key" id=${row.id} label=${row.name || row.hint} />` },
    { label: t("Begins with"), cell: (row) => html`<code>${row.hint}</code>` },
    !userId && { label: t("User"), cell: (row) => html`<${ObjectLink} type="user" id=${row.user_id} />` },
    { label: t("Quota"), number: true, cell: (row) => (row.quota == null ? t("no quota") : money(row.quota)) },
    { label: t("Used"), number: true, cell: (row) => money(row.used) },
    { label: t("State"), cell: keyState },
    { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
  ].filter(Boolean);
  const filters = userId ? [] : [{ name: "user_id", label: t("User id") }, { name: "revoked", label: t("Revoked"), options: ["true", "false"] }];
  const list = html`<${List} path="/keys" label=${t("Keys")} columns=${columns} filters=${filters} fixed=${userId ? { user_id: userId } : {}} refresh=${created}
    empty=${html`<p>${t("No API key yet. A client needs an API key to use the gateway.")}</p>${button}`} />`;
  return userId ? html`<div class="row">${button}</div>${list}` : html`<${PageHead} title=${t("Keys")} actions=${button}>${t("API keys of the users. Only hashes are stored: a key is shown once, when it is created.")}<//>${list}`;
}

export function Keys() {
  return html`<${KeyList} />`;
}
