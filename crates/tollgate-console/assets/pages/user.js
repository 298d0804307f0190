// One user: balance, limits, keys, budgets, ledger.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, isServed, request } from "../lib/api.js";
import { base } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Badge, Load, PageHead, Properties, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { editObject, openForm, run } from "../lib/forms.js";
import { entryColumns } from "../lib/entries.js";
import { KeyList } from "./keys.js";
import { BudgetList } from "./budgets.js";
import { userFields } from "./users.js";

/** Opens a form for an amount and adds the amount to the user's balance, or subtracts it. */
async function addCredit(path) {
  const fields = [
    { name: "amount", label: t("Amount"), type: "amount", required: true, hint: t("Negative amounts reduce the balance.") },
    { name: "reason", label: t("Reason"), required: true },
    { name: "reference", label: t("Reference"), hint: t("For example, a payment id. The same reference is credited only once.") },
  ];
  const submit = async (body, key) => (await request("POST", `${path}/credits`, { body, key })).data;
  return openForm({ title: t("Add credit"), fields, action: t("Add credit"), submit });
}

export function User({ id }) {
  const path = `/users/${encodeURIComponent(id)}`;
  const [moved, setMoved] = useState(0);
  return html`<${Load} deps=${[id, moved]} load=${(signal) => get(path, {}, signal)}>${(user, again) => {
    const credit = async () => (await addCredit(path)) && setMoved((n) => n + 1);
    const edit = async () => (await run(() => editObject({ title: t("Edit user"), path, fields: userFields() }))) && again();
    const disable = async () => {
      await run(async () => {
        const { etag } = await request("GET", path);
        await request("PATCH", path, { body: { disabled: !user.disabled }, etag });
      }, t("Saved"));
      again();
    };
    const actions = html`
      <button type="button" class="primary" disabled=${!can("money:write")} onClick=${credit}>${t("Add credit")}</button>
      <button type="button" disabled=${!can("users:write")} onClick=${edit}>${t("Edit")}</button>
      <button type="button" disabled=${!can("users:write")} onClick=${disable}>${user.disabled ? t("Enable") : t("Disable")}</button>
      ${isServed("/tasks") && html`<a class="button" href=${`${base}/tasks?user_id=${id}`}>${t("Tasks")}</a>`}${isServed("/chats") && html`<a class="button" href=${`${base}/chats?user_id=${id}`}>${t("Chats")}</a>`}`;
    return html`<${PageHead} title=${user.name} actions=${actions} />
      <${Properties} rows=${[
        [t("Balance"), html`<span class="stat">${money(user.balance)}</span> ${user.unlimited ? html`<${Badge} of="unlimited" />` : ""}`],
        [t("Held"), html`<span class="stat">${money(user.held)}</span>`], [t("Used"), html`<span class="stat">${money(user.used)}</span>`],
        [t("State"), user.disabled ? html`<${Badge} of="disabled" />` : html`<${Badge} of="active" tone="good" />`],
        [t("Requests per minute"), user.rpm ?? t("no limit")], [t("Tokens per minute"), user.tpm ?? t("no limit")],
        [t("Concurrent requests"), user.max_concurrency ?? t("no limit")], [t("Created"), html`<${Time} at=${user.created_at} />`], ["id", html`<span class="id">${user.id}</span>`],
      ]} />
      ${can("keys:read") && html`<h2>${t("Keys")}</h2><${KeyList} userId=${id} />`}
      ${isServed("/budgets") && html`<h2>${t("Budgets")}</h2><${BudgetList} owner=${{ user_id: id }} />`}
      <h2>${t("Ledger")}</h2>
      <${List} path=${`${path}/entries`} label=${t("Entries")} columns=${entryColumns()} timed refresh=${moved}
        empty=${html`<p>${t("No ledger entries in this period.")}</p>`} />`;
  }}<//>`;
}
