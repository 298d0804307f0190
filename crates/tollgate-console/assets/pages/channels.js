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
  { name: "base_url", label: t("Base URL"), nullable: true, hint: t("Empty: the provider's default URL.") },
  { name: "api_keys", label: t("API keys"), type: "lines", hint: t("One per line: env:NAME reads an environment variable; a key itself is stored encrypted; {\"fingerprint\":\"…\"} keeps an existing key.") },
  { name: "models", label: t("Models"), type: "lines", nullable: true, hint: t("One per line: a name, or {\"name\":\"…\",\"upstream\":\"…\"}. Empty: every model that the provider serves.") },
  { name: "priority", label: t("Priority"), type: "integer", hint: t("Channels with lower numbers are used first.") },
  { name: "weight", label: t("Weight"), type: "integer", min: 0, hint: t("Channels with the same priority share the requests by weight.") },
  { name: "max_concurrency", label: t("Concurrent requests"), type: "integer", min: 1, nullable: true, hint: t("Empty: no limit.") },
  { name: "connect_s", label: t("Connect timeout (seconds)"), type: "number", min: 0, nullable: true, hint: t("For chats. Empty: the timeout set for all channels.") },
  { name: "first_byte_s", label: t("First byte timeout (seconds)"), type: "number", min: 0, nullable: true, hint: t("For chats. Empty: the timeout set for all channels.") },
  { name: "idle_s", label: t("Idle timeout (seconds)"), type: "number", min: 0, nullable: true, hint: t("For chats. Empty: the timeout set for all channels.") },
  { name: "apis", label: t("Chat formats"), type: "lines", nullable: true, hint: t("One per line. Empty: all formats that the provider supports.") },
  { name: "poll_ms", label: t("Polling interval (milliseconds)"), type: "integer", min: 1, nullable: true, hint: t("Empty: the default interval of the provider.") },
  { name: "fetch_urls", label: t("Fetch files that chats reference by URL"), type: "json", nullable: true, hint: t("true or false. Empty: true if the provider's server is on a private network.") },
  { name: "trace_context", label: t("Send the trace context to the provider"), type: "switch" },
  { name: "allow", label: t("Allowed chat options"), type: "lines", nullable: true, hint: t("One per line: options that may change the provider's price or store state at the provider.") },
  { name: "betas", label: t("Beta features"), type: "lines", nullable: true, hint: t("One per line: features that clients may enable with a header.") },
  { name: "options", label: t("Provider options"), type: "json" },
];

export function Channels() {
  const create = async () => {
    const fields = [{ name: "name", label: t("Name"), required: true, hint: t("Lowercase letters, digits, dots, dashes and underscores.") }, ...channelFields()];
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
  return html`<${PageHead} title=${t("Channels")} actions=${button}>${t("A channel is a configured connection to a provider. Channels from the configuration file are read-only here.")}<//>
    <${List} path="/channels" label=${t("Channels")} columns=${columns} filters=${[{ name: "source", label: t("Source"), options: ["file", "database", "builtin"] }]}
      empty=${html`<p>${t("No channel yet. Without a channel, the sandbox serves every model.")}</p>${button}`} />`;
}
