// One chat: tokens by kind, attempts, fields that were not sent to the upstream, charge.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { asCurl, can, get } from "../lib/api.js";
import { between, count, duration, money } from "../lib/format.js";
import { Badge, CopyButton, Json, Load, ObjectLink, PageHead, Properties, Time } from "../lib/elements.js";
import { Attempts, refund } from "./task.js";

export function Chat({ id }) {
  const path = `/chats/${encodeURIComponent(id)}`;
  return html`<${Load} deps=${[id]} load=${(signal) => get(path, {}, signal)}>${(chat, again) => {
    const left = Number(chat.cost) > 0 && Number(chat.charge?.settled ?? chat.cost) > Number(chat.refunded);
    const charge = { settled: chat.cost, refunded: chat.refunded, ...chat.charge };
    const actions = html`<button type="button" class="quiet" onClick=${again}>${t("Refresh")}</button>
      ${left && html`<button type="button" disabled=${!can("money:write")} onClick=${async () => (await refund(path, charge)) && again()}>${t("Refund")}</button>`}
      <${CopyButton} label=${t("Copy as curl")} text=${() => asCurl("GET", path)} />`;
    const tokens = chat.tokens ?? {};
    return html`<${PageHead} title=${chat.id} actions=${actions} />
      <${Properties} rows=${[
        [t("Outcome"), html`<${Badge} of=${chat.outcome} /> ${chat.error_code ?? ""}`], [t("Model"), chat.model],
        [t("Format"), `${chat.format}${chat.streamed ? ` · ${t("streamed")}` : ""}`],
        [t("User"), html`<${ObjectLink} type="user" id=${chat.user_id} />`], [t("Key"), html`<${ObjectLink} type="key" id=${chat.key_id} />`],
        [t("Channel"), html`<${ObjectLink} type="channel" id=${chat.channel} />`], [t("Request id"), html`<span class="id">${chat.request_id}</span>`],
        [t("Started"), html`<${Time} at=${chat.created_at} />`], [t("Duration"), duration(between(chat.created_at, chat.ended_at))],
        [t("Cost"), money(chat.cost)], [t("Refunded"), money(chat.refunded)],
      ]} />
      <h2>${t("Tokens")}</h2>
      <${Properties} rows=${[
        [t("Input"), count(tokens.input)], [t("Read from the cache"), count(tokens.cached_input)], [t("Written to the cache"), count(tokens.cache_write)],
        [t("Output"), count(tokens.output)], [t("Reasoning"), count(tokens.reasoning)],
      ]} />
      <h2>${t("Attempts")}</h2><${Attempts} attempts=${chat.attempts ?? []} />
      ${chat.dropped?.length > 0 && html`<h2>${t("Fields not sent to the provider")}</h2><${Json} value=${chat.dropped} />`}
      ${chat.charge && html`<h2>${t("Charge")}</h2><${Json} label=${t("Charge")} value=${chat.charge} />`}`;
  }}<//>`;
}
