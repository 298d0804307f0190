// One channel: settings, health on every node, test, pause.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, request, withQuery } from "../lib/api.js";
import { address, base, navigate } from "../lib/router.js";
import { duration } from "../lib/format.js";
import { Badge, CopyButton, Json, Load, PageHead, Properties, Table, Time } from "../lib/elements.js";
import { confirm } from "../lib/dialog.js";
import { deleteObject, editObject, openForm, run } from "../lib/forms.js";
import { channelFields } from "./channels.js";

/** The channel as TOML of the configuration file: the settings of the form, without empty ones. */
function asToml(channel) {
  const shown = {
    ...channel,
    api_keys: (channel.api_keys ?? []).map((key) => (key.origin?.startsWith("env:") ? key.origin : `env:KEY_${key.hint}`)),
    models: channel.models?.map(({ name, upstream }) => (upstream && upstream !== name ? { name, upstream } : name)),
  };
  const isSet = (value) => value != null && value !== false && (typeof value !== "object" || Object.keys(value).length > 0);
  const names = ["name", ...channelFields().map((field) => field.name)].filter((name) => isSet(shown[name]));
  return ["[[channel]]", ...names.map((name) => `${name} = ${toml(shown[name])}`)].join("\n");
}

function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (value && typeof value === "object") return `{ ${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)} = ${toml(one)}`).join(", ")} }`;
  return JSON.stringify(value);
}

export function Channel({ name }) {
  const source = address.value.searchParams.get("source");
  const path = `/channels/${encodeURIComponent(name)}`;
  const own = withQuery(path, { source });
  const missing = html`<${PageHead} title=${name}>${t("No channel has this name. Tasks and chats keep the name of their channel after it is deleted.")}<//>
    <p><a href=${`${base}/events?object_id=${encodeURIComponent(name)}`}>${t("Events of this channel")}</a> · <a href=${`${base}/chats?channel=${encodeURIComponent(name)}`}>${t("Chats of this channel")}</a> · <a href=${`${base}/tasks?channel=${encodeURIComponent(name)}`}>${t("Tasks of this channel")}</a></p>`;
  return html`<${Load} deps=${[own]} missing=${missing} load=${(signal) => get(path, { source }, signal)}>${(channel, again) => html`<${Details} channel=${channel} path=${path} own=${own} again=${again} />`}<//>`;
}

function Details({ channel, path, own, again }) {
  const [test, setTest] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const may = can("channels:write");
  const editable = may && channel.source === "database";
  const runTest = async () => {
    setBusy(true);
    setTest(await run(async () => (await request("POST", `${path}/test`)).data));
    setBusy(false);
  };
  const edit = async () => (await run(() => editObject({ title: t("Edit channel"), path: own, fields: channelFields() }))) && again();
  const pause = async () => {
    const fields = [{ name: "for_s", label: t("Seconds"), type: "integer", min: 1, hint: t("Empty: until it is resumed.") }];
    const submit = async (body) => (await request("POST", `${path}/pause`, { body })).data;
    (await openForm({ title: t("Pause channel"), fields, action: t("Pause"), submit })) && again();
  };
  const resume = async () => {
    await run(() => request("POST", `${path}/wake`), t("The channel is active again."));
    again();
  };
  const remove = async () => {
    if (!(await confirm(t("Delete this channel? New requests are sent to other channels."), t("Delete the channel")))) return;
    if ((await run(async () => (await deleteObject(own), true)))) navigate(`${base}/channels`);
  };
  const actions = html`
    <button type="button" class="primary" disabled=${busy || !may} onClick=${runTest}>${busy ? t("Testing…") : t("Test")}</button>
    ${editable ? html`<button type="button" onClick=${edit}>${t("Edit")}</button>` : ""}
    ${channel.paused ? html`<button type="button" disabled=${!may} onClick=${resume}>${t("Resume")}</button>` : html`<button type="button" disabled=${!may} onClick=${pause}>${t("Pause")}</button>`}
    <${CopyButton} label=${t("Copy as TOML")} text=${() => asToml(channel)} />
    ${editable ? html`<button type="button" class="danger" onClick=${remove}>${t("Delete")}</button>` : ""}`;
  const keyColumns = [
    { label: t("Fingerprint"), cell: (row) => html`<code>${row.fingerprint}</code>` }, { label: t("Ends with"), cell: (row) => html`<code>${row.hint}</code>` },
    { label: t("Origin"), cell: (row) => row.origin },
  ];
  const modelColumns = [{ label: t("Model"), cell: (row) => row.name }, { label: t("Name at the provider"), cell: (row) => row.upstream ?? row.name }];
  const testColumns = [
    { label: t("Key"), cell: (row) => html`<code>${row.key ?? "–"}</code>` }, { label: t("Model"), cell: (row) => row.model },
    { label: t("Result"), cell: (row) => html`<${Badge} of=${row.ok ? "ok" : "failed"} /> ${row.error ?? ""}` }, { label: t("Duration"), number: true, cell: (row) => duration(row.ms) },
  ];
  return html`<${PageHead} title=${channel.name} actions=${actions} />
    ${channel.source !== "database" && html`<p class="notice">${t("This channel is defined in the configuration file: edit it there, or copy it as TOML.")}</p>`}
    ${channel.shadowed && html`<p class="notice warn">${t("A channel in the configuration file has the same name and is used instead of this one.")}</p>`}
    <${Properties} rows=${[
      [t("Kind"), channel.kind], [t("Source"), html`<${Badge} of=${channel.source} />`], [t("State"), channel.paused ? html`<${Badge} of="paused" />` : html`<${Badge} of="active" tone="good" />`],
      [t("Base URL"), channel.base_url ?? t("the provider's default URL")], [t("Priority"), channel.priority], [t("Weight"), channel.weight],
      [t("Concurrent requests"), channel.max_concurrency ?? t("no limit")], [t("Changed"), html`<${Time} at=${channel.updated_at} />`],
    ]} />
    ${test && html`<h2>${t("Test")}</h2><${Table} label=${t("Test")} columns=${testColumns} rows=${test.results} />`}
    <h2>${t("Health")}</h2><${Health} path=${path} />
    <div class="split">
      <section><h2>${t("API keys")}</h2>${channel.api_keys?.length ? html`<${Table} label=${t("API keys")} columns=${keyColumns} rows=${channel.api_keys} />` : html`<p class="muted">${t("No API key. Providers on this machine do not need one.")}</p>`}</section>
      <section><h2>${t("Models")}</h2>${channel.models ? html`<${Table} label=${t("Models")} columns=${modelColumns} rows=${channel.models} />` : html`<p class="muted">${t("Every model that the provider serves.")}</p>`}</section>
    </div>
    ${Object.keys(channel.options ?? {}).length > 0 && html`<h2>${t("Provider options")}</h2><${Json} label=${t("Provider options")} value=${channel.options} />`}`;
}

function Health({ path }) {
  const columns = [
    { label: t("Node"), cell: (row) => html`<span class="id">${row.node}</span>` }, { label: t("Circuit breaker"), cell: (row) => html`<${Badge} of=${row.circuit} />` },
    { label: t("In flight"), number: true, cell: (row) => row.in_flight }, { label: "p50", number: true, cell: (row) => duration(row.p50_ms) },
    { label: t("Error rate"), number: true, cell: (row) => `${Math.round((row.error_rate ?? 0) * 100)} %` },
    { label: t("Cooldowns"), cell: (row) => (row.cooldowns?.length ? row.cooldowns.map((one) => (typeof one === "string" ? one : Object.values(one).filter((v) => v != null).join(" "))).join("; ") : t("none")) },
  ];
  return html`<${Load} deps=${[path]} load=${(signal) => get(`${path}/health`, {}, signal)}>${({ data }) => html`<${Table} label=${t("Health")} columns=${columns} rows=${data} />`}<//>`;
}
