// Budgets: those of all users and keys, or those of one.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can } from "../lib/api.js";
import { money } from "../lib/format.js";
import { Badge, ObjectLink, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { confirm } from "../lib/dialog.js";
import { createObject, deleteObject, editObject, run } from "../lib/forms.js";

const fields = () => [
  { name: "amount", label: t("Amount"), type: "amount", required: true },
  { name: "period", label: t("Period"), type: "select", options: [["day", t("day")], ["week", t("week")], ["month", t("month")]] },
  { name: "mode", label: t("Mode"), type: "select", options: [["hard", t("hard: requests that exceed it are rejected (402)")], ["soft", t("soft: an alert is sent")]] },
];

/** Budgets with the buttons to create, change and delete them. `owner`: `{user_id}` or `{key_id}`. */
export function BudgetList({ owner }) {
  const [changed, setChanged] = useState(0);
  const refresh = () => setChanged((n) => n + 1);
  const of = owner ? [] : [{ name: "user_id", label: t("User id") }, { name: "key_id", label: t("Key id"), hint: t("A budget belongs to either a user or a key.") }];
  const create = async () => (await createObject({ title: t("New budget"), path: "/budgets", fields: [...of, ...fields()], fixed: owner })) && refresh();
  const edit = async (row) => (await run(() => editObject({ title: t("Edit budget"), path: `/budgets/${row.id}`, fields: fields() }))) && refresh();
  const remove = async (row) => {
    if (!(await confirm(t("Delete this budget?"), t("Delete")))) return;
    await run(() => deleteObject(`/budgets/${row.id}`));
    refresh();
  };
  const columns = [
    !owner && { label: t("User or key"), cell: (row) => (row.user_id ? html`<${ObjectLink} type="user" id=${row.user_id} />` : html`<${ObjectLink} type="key" id=${row.key_id} />`) },
    { label: t("Amount"), number: true, cell: (row) => t("{amount} per {period}", { amount: money(row.amount), period: t(row.period) }) },
    { label: t("Mode"), cell: (row) => html`<${Badge} of=${row.mode} />` },
    { label: t("Spent"), number: true, cell: (row) => money(row.spent) }, { label: t("Held"), number: true, cell: (row) => money(row.held) },
    { label: t("Resets"), cell: (row) => html`<${Time} at=${row.resets_at} />` },
    { label: t("Actions"), cell: (row) => html`<span class="row"><button type="button" disabled=${!can("users:write")} onClick=${() => edit(row)}>${t("Edit")}</button>
      <button type="button" class="danger" disabled=${!can("users:write")} onClick=${() => remove(row)}>${t("Delete")}</button></span>` },
  ].filter(Boolean);
  const button = html`<button type="button" disabled=${!can("users:write")} onClick=${create}>${t("New budget")}</button>`;
  return html`<div class="row">${button}</div><${List} path="/budgets" label=${t("Budgets")} columns=${columns} fixed=${owner ?? {}} refresh=${changed}
    empty=${html`<p>${t("No budget. A budget limits what is spent in a day, week or month (UTC).")}</p>`} />`;
}
