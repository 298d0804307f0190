// The list of channels, and the form for a new one.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can } from "../lib/api.js";
import { base, navigate } from "../lib/router.js";
import { Badge, ObjectLink, PageHead } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { createObject } from "../lib/forms.js";

const KINDS = ["openai", "anthropic", "gemini", "ark", "dashscope", "xai", "kling", "replicate", "fal", "sandbox"];

/** Fields of a channel except its name: for forms, and in this order in TOML. */
export const channelFields = () => [
  { name: "kind", label: t("Kind"), type: "select", options: KINDS },
  { name: "base_url", label: t("Base URL"), nullable: true, hint: t("Empty: the provider's own.") },
  { name: "api_keys", label: t("API keys"), type: "lines", hint: t("One a line: env:NAME reads the environment; a key itself is sealed; {\"fingerprint\":\"…\"} keeps one that is there.") },
  { name: "models", label: t("Models"), type: "lines", nullable: true, hint: t("One a line: a name, or {\"name\":\"…\",\"upstream\":\"…\"}. Empty: every model that the provider serves.") },
  { name: "priority", label: t("Priority"), type: "integer", hint: t("Lower numbers are tried first.") },
  { name: "weight", label: t("Weight"), type: "integer", min: 0, hint: t("Channels with the same priority share the requests by weight.") },
  { name: "max_concurrency", label: t("Requests at the same time"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "connect_s", label: t("Seconds to connect"), type: "number", min: 0, nullable: true, hint: t("Of chats. Empty: as for all channels.") },
  { name: "first_byte_s", label: t("Seconds to the first byte"), type: "number", min: 0, nullable: true, hint: t("Of chats. Empty: as for all channels.") },
  { name: "idle_s", label: t("Seconds between two pieces"), type: "number", min: 0, nullable: true, hint: t("Of chats. Empty: as for all channels.") },
  { name: "apis", label: t("Chat formats"), type: "lines", nullable: true, hint: t("One a line. Empty: all that the provider supports.") },
  { name: "poll_ms", label: t("Milliseconds between polls"), type: "integer", min: 1, nullable: true, hint: t("Empty: as the provider asks.") },
  { name: "fetch_urls", label: t("Fetch the files of clients"), type: "json", nullable: true, hint: t("true or false. Empty: if the server is on a private network.") },
  { name: "trace_context", label: t("Send the trace to the provider"), type: "switch" },
  { name: "allow", label: t("Allowed options of chats"), type: "lines", nullable: true, hint: t("One a line: options that may change the price at the provider, or keep state there.") },
  { name: "betas", label: t("Beta features"), type: "lines", nullable: true, hint: t("One a line: those that clients may turn on by a header.") },
  { name: "options", label: t("Options of the provider"), type: "json" },
];

export function Channels() {
  const create = async () => {
    const fields = [{ name: "name", label: t("Name"), required: true, hint: t("Small letters, digits, dot, dash, underscore.") }, ...channelFields()];
    const channel = await createObject({ title: t("New channel"), path: "/channels", fields, initial: { priority: "0", weight: "1" } });
    if (channel) navigate(`${base}/channels/${encodeURIComponent(channel.name)}`);
  };
  const button = html`<button type="button" class="primary" disabled=${!can("channels:write")} onClick=${create}>${t("New channel")}</button>`;
  const columns = [
    { label: t("Name"), cell: (row) => html`<${ObjectLink} type="channel" id=${row.name} />` },
    { label: t("Kind"), cell: (row) => row.kind },
    { label: t("Source"), cell: (row) => html`<${Badge} of=${row.source} /> ${row.shadowed ? html`<${Badge} of="shadowed" />` : ""}` },
    { label: t("State"), cell: (row) => (row.paused ? html`<${Badge} of="paused" />` : html`<${Badge} of="active" tone="good" />`) },
    { label: t("Models"), cell: (row) => (row.models ? row.models.slice(0, 4).map((model) => model.name).join(", ") + (row.models.length > 4 ? ` +${row.models.length - 4}` : "") : t("every model")) },
    { label: t("Priority"), number: true, cell: (row) => row.priority }, { label: t("Weight"), number: true, cell: (row) => row.weight },
  ];
  return html`<${PageHead} title=${t("Channels")} actions=${button}>${t("A channel is one configured way to a provider. Those of the configuration file are read-only here.")}<//>
    <${List} path="/channels" label=${t("Channels")} columns=${columns} filters=${[{ name: "source", label: t("Source"), options: ["file", "database", "builtin"] }]}
      empty=${html`<p>${t("No channel yet. Without one the sandbox serves every model.")}</p>${button}`} />`;
}
