// The pages of the portal: the lists of the admin API, restricted to the user's own account.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { get, me } from "../lib/api.js";
import { base } from "../lib/router.js";
import { ago, count, money } from "../lib/format.js";
import { Badge, Json, Load, PageHead, Properties, Table, Time } from "../lib/elements.js";
import { createObject } from "../lib/forms.js";
import { List } from "../lib/list.js";
import { entryColumns } from "../lib/entries.js";
import { filesOfRecord, Media } from "../lib/media.js";
import { Result } from "../pages/gallery.js";
import { keyFields, keyState } from "../pages/keys.js";
import { revokeKey, rotateKey } from "../pages/key.js";

export function Balance() {
  const { user, key } = me.value;
  const budgets = [
    { label: t("Amount"), number: true, cell: (row) => t("{amount} per {period}", { amount: money(row.amount), period: t(row.period) }) },
    { label: t("Spent"), number: true, cell: (row) => money(row.spent) }, { label: t("Resets"), cell: (row) => html`<${Time} at=${row.resets_at} />` },
  ];
  const usage = [
    { label: t("Model"), cell: (row) => row.model }, { label: t("Spend"), number: true, cell: (row) => money(row.cost) },
    { label: t("Requests"), number: true, cell: (row) => count(row.requests) }, { label: t("Failed"), number: true, cell: (row) => count(row.failed) },
  ];
  const load = (signal) => get("/me/usage", { group_by: "model", metric: "cost,requests,failed", from: ago(30 * 86_400_000), limit: 200 }, signal);
  return html`<${PageHead} title=${t("Balance")} />
    <${Properties} rows=${[
      [t("Balance"), html`<span class="stat">${user.unlimited ? t("unlimited") : money(user.balance)}</span>`], [t("Held"), html`<span class="stat">${money(user.held)}</span>`], [t("Used"), html`<span class="stat">${money(user.used)}</span>`],
      key && [t("This key"), html`<code>${key.name || key.hint}</code>`], key && [t("Quota"), key.quota == null ? t("no quota") : money(key.quota)], key && [t("Used by this key"), money(key.used)],
    ]} />
    <h2>${t("Used in the last 30 days")}</h2>
    <${Load} load=${load}>${({ data }) => (data.length ? html`<${Table} label=${t("Usage")} columns=${usage} rows=${data} />` : html`<div class="empty"><p>${t("No usage in this period.")}</p><a href=${`${base}/connect`}>${t("Connect a client")}</a></div>`)}<//>
    <h2>${t("Budgets")}</h2>
    <${List} path="/me/budgets" label=${t("Budgets")} columns=${budgets} csv=${false} empty=${html`<p>${t("No budget limits your spending.")}</p>`} />`;
}

export function PortalTasks() {
  const draw = (rows) => html`<div class="gallery">${rows.map((task) => html`<${Result} key=${task.id} task=${task} path="/me/tasks" />`)}</div>`;
  return html`<${PageHead} title=${t("Results")} />
    <${List} path="/me/tasks" label=${t("Results")} columns=${[]} draw=${draw} timed filters=${[{ name: "kind", label: t("Kind"), options: ["image", "video", "speech"] }, { name: "state", label: t("State"), options: ["submitted", "in_progress", "completed", "failed", "cancelled"] }]}
      empty=${html`<p>${t("No tasks in this period. Submit one in the playground, or connect a client.")}</p>`} />`;
}

export function PortalTask({ id }) {
  return html`<${Load} deps=${[id]} load=${(signal) => get(`/me/tasks/${encodeURIComponent(id)}`, {}, signal)}>${(task) => {
    const files = task.files?.length ? task.files : filesOfRecord(task.record ?? task, task.kind);
    return html`<${PageHead} title=${task.id} />
      <${Properties} rows=${[[t("State"), html`<${Badge} of=${task.state} />`], [t("Model"), task.model], [t("Cost"), money(task.cost)], [t("Submitted"), html`<${Time} at=${task.created_at} />`]]} />
      <h2>${t("Results")}</h2><div class="media">${files.map((file, at) => html`<${Media} file=${file} label=${t("Result {n} of {model}", { n: at + 1, model: task.model })} />`)}</div>
      <h2>${t("Request")}</h2><${Json} label=${t("Request")} value=${task.request ?? task.record ?? task} />`;
  }}<//>`;
}

export function PortalKeys() {
  const [changed, setChanged] = useState(0);
  const refresh = () => setChanged((n) => n + 1);
  const create = async () => (await createObject({ title: t("New key"), path: "/me/keys", fields: keyFields(), note: t("The new key can have at most the limits and models of the key that you signed in with. If that key has a quota, the new key's quota is subtracted from it.") })) && refresh();
  const path = (row) => `/me/keys/${row.id}`;
  const columns = [
    { label: t("Key"), cell: (row) => row.name || "–" }, { label: t("Begins with"), cell: (row) => html`<code>${row.hint}</code>` }, { label: t("State"), cell: keyState },
    { label: t("Quota"), number: true, cell: (row) => (row.quota == null ? t("no quota") : money(row.quota)) }, { label: t("Used"), number: true, cell: (row) => money(row.used) },
    { label: t("Actions"), cell: (row) => html`<span class="row"><button type="button" disabled=${row.revoked_at} onClick=${async () => (await rotateKey(path(row))) && refresh()}>${t("Rotate")}</button>
      <button type="button" class="danger" disabled=${row.revoked_at} onClick=${async () => (await revokeKey(path(row))) && refresh()}>${t("Revoke")}</button></span>` },
  ];
  return html`<${PageHead} title=${t("Keys")} actions=${html`<button type="button" class="primary" onClick=${create}>${t("New key")}</button>`} />
    <${List} path="/me/keys" label=${t("Keys")} columns=${columns} csv=${false} refresh=${changed} empty=${html`<p>${t("No API key yet. A client needs an API key to use the gateway.")}</p>`} />`;
}

export function PortalLedger() {
  return html`<${PageHead} title=${t("Ledger")} /><${List} path="/me/entries" label=${t("Entries")} columns=${entryColumns()} timed empty=${html`<p>${t("No ledger entries in this period.")}</p>`} />`;
}

export function PortalChats() {
  const columns = [
    { label: t("Time"), cell: (row) => html`<${Time} at=${row.created_at} />` }, { label: t("Model"), cell: (row) => row.model },
    { label: t("Outcome"), cell: (row) => html`<${Badge} of=${row.outcome} />` },
    { label: t("Tokens in / out"), number: true, cell: (row) => `${count(row.tokens?.input)} / ${count(row.tokens?.output)}` },
    { label: t("Cost"), number: true, cell: (row) => money(row.cost) },
  ];
  return html`<${PageHead} title=${t("Chats")} /><${List} path="/me/chats" label=${t("Chats")} columns=${columns} timed empty=${html`<p>${t("No chats in this period. Connect a client, or start a chat in the playground.")}</p>`} />`;
}
