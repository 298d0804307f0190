// The gateways that use this database, and the configuration.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { get, request } from "../lib/api.js";
import { Badge, Load, PageHead, Table, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { Form, run } from "../lib/forms.js";
import { openDialog } from "../lib/dialog.js";
import { Code } from "../lib/elements.js";

export function Nodes() {
  const nodeColumns = [
    { label: t("Node"), cell: (row) => html`<span class="id">${row.id}</span>` }, { label: t("Version"), cell: (row) => row.version },
    { label: t("State"), cell: (row) => html`<span><${Badge} of=${row.ready ? "ready" : "not ready"} tone=${row.ready ? "good" : "bad"} /> ${row.leader ? html`<${Badge} of="leader" />` : ""} ${row.not_ready ?? ""}</span>` },
    { label: t("Clock offset"), cell: (row) => (row.clock_offset_ms === null ? "–" : t("{n} ms", { n: row.clock_offset_ms })) },
    { label: t("Started"), cell: (row) => html`<${Time} at=${row.started_at} />` }, { label: t("Last seen"), cell: (row) => html`<${Time} at=${row.last_seen_at} />` },
    { label: t("Configuration"), cell: (row) => (row.config_error ? html`<${Badge} of="error" /> ${row.config_error}` : html`<span>${row.config_version} <span class="id">${row.config_fingerprint ?? ""}</span></span>`) },
  ];
  const configColumns = [
    { label: t("Setting"), cell: (row) => html`<code>${row.key}</code>` }, { label: t("Value"), cell: (row) => html`<code>${JSON.stringify(row.value)}</code>` },
    { label: t("Source"), cell: (row) => html`<${Badge} of=${row.source} />` },
  ];
  const exportToml = () => run(async () => {
    const { response } = await request("GET", "/config/export", { accept: "application/toml", raw: true });
    const text = await response.text();
    await openDialog(t("Configuration as TOML"), () => html`<${Code} text=${text} />`);
  });
  const validate = () => openDialog(t("Check a configuration"), () => html`<${Form} fields=${[{ name: "toml", label: "TOML", type: "textarea", required: true }]} action=${t("Check")}
    submit=${async (body) => {
      const { data } = await request("POST", "/config/validate", { body });
      if (!data.ok) throw new Error(data.errors.map(({ field, message }) => `${field}: ${message}`).join("\n"));
      await openDialog(t("Check a configuration"), () => html`<p>${t("This configuration is valid.")}</p>${data.warnings.map((warning) => html`<p class="notice warn">${typeof warning === "string" ? warning : warning.message}</p>`)}`);
    }} />`);
  const actions = html`<button type="button" onClick=${exportToml}>${t("Export as TOML")}</button><button type="button" onClick=${validate}>${t("Check a configuration")}</button>`;
  return html`<${PageHead} title=${t("Nodes")} actions=${actions}>${t("All gateways that use this database. A change in the console takes effect on all of them within a second.")}<//>
    <${List} path="/nodes" label=${t("Nodes")} columns=${nodeColumns} csv=${false} empty=${html`<p>${t("No node has reported yet.")}</p>`} />
    <h2>${t("Configuration")}</h2>
    <${Load} load=${(signal) => get("/config", {}, signal)}>${({ data }) => html`<${Table} label=${t("Configuration")} columns=${configColumns} rows=${data} />`}<//>`;
}
