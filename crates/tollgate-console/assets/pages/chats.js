// The list of chats. The gateway does not store messages, so the page shows none.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { base } from "../lib/router.js";
import { between, count, duration, money } from "../lib/format.js";
import { Badge, ObjectLink, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";

export function Chats() {
  const filters = [
    { name: "outcome", label: t("Outcome"), options: ["done", "cut", "client_gone", "failed"] },
    { name: "model", label: t("Model") }, { name: "channel", label: t("Channel") }, { name: "user_id", label: t("User id") },
    { name: "key_id", label: t("Key id") }, { name: "error_code", label: t("Error code") }, { name: "request_id", label: t("Request id") },
  ];
  const columns = [
    { label: t("Chat"), cell: (row) => html`<${ObjectLink} type="chat" id=${row.id} />` },
    { label: t("Outcome"), cell: (row) => html`<${Badge} of=${row.outcome} />${row.error_code ? html` <span class="muted">${row.error_code}</span>` : ""}` },
    { label: t("Model"), cell: (row) => row.model },
    { label: t("Format"), cell: (row) => `${row.format}${row.streamed ? ` · ${t("streamed")}` : ""}` },
    { label: t("User"), cell: (row) => html`<${ObjectLink} type="user" id=${row.user_id} />` },
    { label: t("Channel"), cell: (row) => html`<${ObjectLink} type="channel" id=${row.channel} />` },
    { label: t("Tokens in / out"), number: true, cell: (row) => `${count(row.tokens?.input)} / ${count(row.tokens?.output)}` },
    { label: t("Cost"), number: true, cell: (row) => money(row.cost) },
    { label: t("Duration"), number: true, cell: (row) => duration(between(row.created_at, row.ended_at)) },
    { label: t("Time"), cell: (row) => html`<${Time} at=${row.created_at} />` },
  ];
  const empty = html`<p>${t("No chats in this period. Connect a client, or start a chat in the playground.")}</p>
    <a class="button" href=${`${base}/connect`}>${t("Connect a client")}</a>`;
  return html`<${PageHead} title=${t("Chats")}>${t("Chats with their tokens and cost. The gateway does not store messages.")}<//>
    <${List} path="/chats" label=${t("Chats")} columns=${columns} filters=${filters} timed live="chat" empty=${empty} />`;
}
