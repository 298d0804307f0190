// The list of users, and the form for a new one.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can } from "../lib/api.js";
import { base, navigate } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Badge, ObjectLink, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { createObject } from "../lib/forms.js";

/** Fields of a user that the forms for a new and an existing user share. */
export const userFields = () => [
  { name: "name", label: t("Name"), required: true },
  { name: "unlimited", label: t("Unlimited: the balance may go below zero"), type: "switch" },
  { name: "rpm", label: t("Requests per minute"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "tpm", label: t("Tokens per minute"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "max_concurrency", label: t("Concurrent requests"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
];

export function Users() {
  const [refresh] = useState(0);
  const create = async () => {
    const user = await createObject({ title: t("New user"), path: "/users", fields: userFields(), note: t("A new user has a balance of 0. Add credit on the user's page.") });
    if (user) navigate(`${base}/users/${user.id}`);
  };
  const button = html`<button type="button" class="primary" disabled=${!can("users:write")} onClick=${create}>${t("New user")}</button>`;
  const columns = [
    { label: t("Name"), cell: (row) => html`<${ObjectLink} type="user" id=${row.id} label=${row.name} />` },
    { label: t("Balance"), number: true, cell: (row) => (row.unlimited ? t("unlimited") : money(row.balance)) },
    { label: t("Held"), number: true, cell: (row) => money(row.held) },
    { label: t("Used"), number: true, cell: (row) => money(row.used) },
    { label: t("State"), cell: (row) => (row.disabled ? html`<${Badge} of="disabled" />` : html`<${Badge} of="active" tone="good" />`) },
    { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
  ];
  return html`<${PageHead} title=${t("Users")} actions=${button}>${t("A user is an account with a balance. Each API key belongs to a user.")}<//>
    <${List} path="/users" label=${t("Users")} columns=${columns} refresh=${refresh} filters=${[{ name: "name", label: t("Name") }, { name: "disabled", label: t("Disabled"), options: ["true", "false"] }]}
      empty=${html`<p>${t("No user yet. Create one, add credit, then create a key for it.")}</p>${button}`} />`;
}
