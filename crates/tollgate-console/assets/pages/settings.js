// Settings: admin tokens, administrators, own sessions, alerts, budgets.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, isServed, me, request } from "../lib/api.js";
import { base } from "../lib/router.js";
import { Badge, CopyButton, PageHead, Table, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { confirm, openDialog } from "../lib/dialog.js";
import { createObject, deleteObject, editObject, run } from "../lib/forms.js";
import { BudgetList } from "./budgets.js";

const ROLES = ["owner", "operator", "finance", "support", "viewer"];
const OBJECTS = ["users", "keys", "tasks", "chats", "channels", "prices", "config", "events"];
const SCOPES = [...OBJECTS.flatMap((object) => [`${object}:read`, `${object}:write`]), "money:write", "secrets:write"];
const ALERTS = ["low_balance", "budget", "circuit_open", "queue_age", "audit_violation", "webhook_given_up", "debt"];

export function Settings({ tab = "tokens" }) {
  const tabs = [["tokens", t("Tokens"), "config:read", Tokens], ["admins", t("Administrators"), "config:read", Admins], ["sessions", t("Sessions"), null, Sessions],
    ["alerts", t("Alerts"), "config:read", Alerts], ["budgets", t("Budgets"), "users:read", BudgetList]].filter(([path, , scope]) => isServed(`/${path}`) && (!scope || can(/** @type {string} */ (scope))));
  const [name, , , Panel] = tabs.find(([name]) => name === tab) ?? tabs[0];
  return html`<${PageHead} title=${t("Settings")} />
    <div class="tabs" role="navigation" aria-label=${t("Settings")}>${tabs.map(([path, label]) => html`<a href=${`${base}/settings/${path}`} aria-current=${path === name ? "page" : undefined}>${label}</a>`)}</div>
    <${Panel} />`;
}

/** A list of objects that forms create, change and delete. */
function Managed({ path, label, columns, fields, editFields, create, newLabel, scope, explain, extra }) {
  const [changed, setChanged] = useState(0);
  const refresh = () => setChanged((n) => n + 1);
  const may = can(scope);
  const add = async () => (await create()) && refresh();
  const edit = async (row) => (await run(() => editObject({ title: label, path: `${path}/${row.id}`, fields: editFields }))) && refresh();
  const remove = async (row) => {
    if (!(await confirm(t("Delete {name}? It stops working immediately.", { name: row.name ?? row.id }), t("Delete")))) return;
    await run(() => deleteObject(`${path}/${row.id}`));
    refresh();
  };
  const actions = { label: t("Actions"), cell: (row) => html`<span class="row">${extra?.(row)}
    ${editFields && html`<button type="button" disabled=${!may} onClick=${() => edit(row)}>${t("Edit")}</button>`}
    <button type="button" class="danger" disabled=${!may} onClick=${() => remove(row)}>${t("Delete")}</button></span>` };
  return html`<p class="muted">${explain}</p><div class="row"><button type="button" class="primary" disabled=${!may} onClick=${add}>${newLabel}</button></div>
    <${List} path=${path} label=${label} columns=${[...columns, actions]} refresh=${changed} empty=${html`<p>${t("None yet.")}</p>`} />`;
}

function Tokens() {
  const fields = [{ name: "name", label: t("Name"), required: true }, { name: "scopes", label: t("Scopes"), type: "choices", options: SCOPES.filter(can) }, { name: "expires_at", label: t("Expires (UTC)"), type: "time" }];
  const columns = [
    { label: t("Name"), cell: (row) => row.name }, { label: t("Begins with"), cell: (row) => html`<code>${row.hint}</code>` }, { label: t("Scopes"), cell: (row) => row.scopes.join(", ") },
    { label: t("Last used"), cell: (row) => html`<${Time} at=${row.last_used_at} />` }, { label: t("Expires (UTC)"), cell: (row) => html`<${Time} at=${row.expires_at} />` },
  ];
  return html`<${Managed} path="/tokens" label=${t("Tokens")} columns=${columns} scope="config:write" newLabel=${t("New token")}
    create=${() => createObject({ title: t("New token"), path: "/tokens", fields, initial: { scopes: [] } })} explain=${t("Programs use tokens to call the admin API. You can give a token only scopes that you have.")} />`;
}

function Admins() {
  const role = { name: "role", label: t("Role"), type: "select", options: ROLES.map((name) => [name, t(name)]) };
  const create = async () => {
    const admin = await createObject({ title: t("New administrator"), path: "/admins", fields: [{ name: "name", label: t("Name"), required: true }, role], initial: { role: "viewer" } });
    if (admin?.link) {
      await openDialog(t("Send this link"), () => html`<p>${t("The link sets the password of {name}, works once, and expires in an hour.", admin)}</p>
        <p class="secret"><code>${admin.link}</code> <${CopyButton} text=${admin.link} /></p>`);
    }
    return admin;
  };
  const columns = [
    { label: t("Name"), cell: (row) => row.name }, { label: t("Role"), cell: (row) => html`<${Badge} of=${row.role} />` },
    { label: t("State"), cell: (row) => (row.disabled ? html`<${Badge} of="disabled" />` : html`<${Badge} of="active" tone="good" />`) },
    { label: t("Last sign-in"), cell: (row) => html`<${Time} at=${row.last_sign_in_at} />` },
  ];
  return html`<${Managed} path="/admins" label=${t("Administrators")} columns=${columns} scope="config:write" newLabel=${t("New administrator")} create=${create}
    editFields=${[role, { name: "disabled", label: t("Disabled"), type: "switch" }]} explain=${t("Owner: everything. Operator: everything except money and secrets. Finance: read access, prices and money. Support: read access, cancels tasks. Viewer: read access.")} />`;
}

function Sessions() {
  const columns = [
    { label: t("Session"), cell: (row) => html`<span class="id">${row.id}</span> ${row.current ? html`<${Badge} of="current" tone="good" />` : ""}` },
    { label: t("IP address"), cell: (row) => row.address }, { label: t("Started"), cell: (row) => html`<${Time} at=${row.created_at} />` }, { label: t("Last seen"), cell: (row) => html`<${Time} at=${row.last_seen_at} />` },
  ];
  return html`<p class="muted">${t("You are signed in as {name}.", me.value)}</p><${List} path="/sessions" label=${t("Sessions")} columns=${columns} csv=${false} empty=${html`<p>${t("No sessions. You are signed in with an admin token.")}</p>`} />`;
}

function Alerts() {
  const fields = [
    { name: "on", label: t("Event"), type: "select", options: ALERTS.map((name) => [name, t(name)]) },
    { name: "threshold", label: t("Threshold"), nullable: true, hint: t("Low balance: an amount. Budget: a fraction from 0 to 1. Queue age: seconds. Others: empty.") },
    { name: "url", label: t("Webhook URL"), type: "url", required: true },
  ];
  const test = async (row) => {
    const result = await run(async () => (await request("POST", `/alerts/${row.id}/test`)).data);
    if (result) await openDialog(t("Test"), () => html`<p>${result.error ?? t("The receiver responded with {status} after {ms} ms.", result)}</p>`);
  };
  const log = (row) => run(async () => {
    const { data } = (await request("GET", `/alerts/${row.id}/deliveries`)).data;
    const columns = [{ label: t("Time"), cell: (one) => html`<${Time} at=${one.at} />` }, { label: t("Status"), cell: (one) => one.status }, { label: t("Error"), cell: (one) => one.error }];
    await openDialog(t("Deliveries"), () => (data.length ? html`<${Table} label=${t("Deliveries")} columns=${columns} rows=${data} />` : html`<p>${t("None yet.")}</p>`));
  });
  const columns = [
    { label: t("Event"), cell: (row) => html`<${Badge} of=${row.on} />` }, { label: t("Threshold"), cell: (row) => row.threshold }, { label: t("Webhook URL"), cell: (row) => html`<span class="id">${row.url}</span>` },
    { label: t("State"), cell: (row) => (row.enabled ? html`<${Badge} of="active" tone="good" />` : html`<${Badge} of="disabled" />`) },
  ];
  return html`<${Managed} path="/alerts" label=${t("Alerts")} columns=${columns} scope="config:write" newLabel=${t("New alert")} create=${() => createObject({ title: t("New alert"), path: "/alerts", fields })}
    editFields=${[...fields, { name: "enabled", label: t("Enabled"), type: "switch" }]} explain=${t("An alert is a signed request to a URL, sent once when a threshold is crossed.")}
    extra=${(row) => html`<button type="button" disabled=${!can("config:write")} onClick=${() => test(row)}>${t("Test")}</button><button type="button" onClick=${() => log(row)}>${t("Deliveries")}</button>`} />`;
}
