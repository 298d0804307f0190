// One task: its result, its timeline with the money beside each step, attempts, ledger entries, webhook.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { asCurl, can, get, request } from "../lib/api.js";
import { base } from "../lib/router.js";
import { bytes, duration, money } from "../lib/format.js";
import { Badge, CopyButton, Json, Load, ObjectLink, PageHead, Properties, Table, Time } from "../lib/elements.js";
import { EntryTable } from "../lib/entries.js";
import { confirm } from "../lib/dialog.js";
import { openForm, run } from "../lib/forms.js";
import { filesOfRecord, Media } from "../lib/media.js";

const UNFINISHED = ["submitted", "in_progress"];

/** Opens a form for the amount and the reason of a refund, and sends the refund. */
export async function refund(path, charge) {
  const fields = [
    { name: "amount", label: t("Amount"), type: "amount", hint: t("Empty: the entire remaining amount. Settled: {settled}. Refunded so far: {refunded}.", charge) },
    { name: "reason", label: t("Reason"), required: true },
  ];
  const submit = async (body, key) => (await request("POST", `${path}/refund`, { body, key })).data;
  return openForm({ title: t("Refund"), fields, action: t("Refund"), submit });
}

export function Task({ id }) {
  const path = `/tasks/${encodeURIComponent(id)}`;
  return html`<${Load} deps=${[id]} load=${(signal) => get(path, {}, signal)}>${(task, again) => html`<${Details} task=${task} path=${path} again=${again} />`}<//>`;
}

function Details({ task, path, again }) {
  const cancel = async () => {
    if (!(await confirm(t("Cancel this task? The amount held for it is released."), t("Cancel the task")))) return;
    await run(() => request("POST", `${path}/cancel`), t("Cancelled"));
    again();
  };
  const resend = async () => {
    await run(() => request("POST", `${path}/webhook/resend`), t("The webhook will be resent."));
    again();
  };
  const settled = Number(task.charge?.settled ?? 0) > Number(task.charge?.refunded ?? 0);
  const actions = html`
    <button type="button" class="quiet" onClick=${again}>${t("Refresh")}</button>
    <a class="button" href=${`${base}/playground?model=${encodeURIComponent(task.model)}&task=${encodeURIComponent(task.id)}`}>${t("Edit and resubmit")}</a>
    ${UNFINISHED.includes(task.state) && html`<button type="button" class="danger" disabled=${!can("tasks:write")} onClick=${cancel}>${t("Cancel")}</button>`}
    ${settled && html`<button type="button" disabled=${!can("money:write")} onClick=${async () => (await refund(path, task.charge)) && again()}>${t("Refund")}</button>`}
    <${CopyButton} label=${t("Copy as curl")} text=${() => asCurl("GET", path)} />`;
  const files = task.files?.length ? task.files : filesOfRecord(task.record, task.kind);
  const charge = task.charge;
  return html`<${PageHead} title=${task.id} actions=${actions} />
    <${Properties} rows=${[
      [t("State"), html`<${Badge} of=${task.state} /> ${task.error_code ?? ""}`], [t("Model"), task.model], [t("Kind"), t(task.kind)],
      [t("User"), html`<${ObjectLink} type="user" id=${task.user_id} />`], [t("Key"), html`<${ObjectLink} type="key" id=${task.key_id} />`],
      [t("Channel"), html`<${ObjectLink} type="channel" id=${task.channel} />`], [t("Provider job id"), html`<span class="id">${task.provider_job_id ?? "–"}</span>`],
      [t("Submitted"), html`<${Time} at=${task.created_at} />`], [t("Ended"), html`<${Time} at=${task.ended_at} />`],
      charge && [t("Price"), t("{units} × {price} per {unit}", { ...charge, unit: t(charge.unit) })],
      [t("Held now"), money(task.held)], [t("Cost"), money(task.cost)], [t("Refunded"), money(task.refunded)],
    ]} />
    ${files.length > 0 && html`<h2>${t("Results")}</h2><div class="media">${files.map((file, at) => html`<div>
      <${Media} file=${file} label=${t("Result {n} of {model}", { n: at + 1, model: task.model })} />
      <p class="muted">${file.type} ${file.bytes ? bytes(file.bytes) : ""} ${file.expires_at ? html`· ${t("expires")} <${Time} at=${file.expires_at} />` : ""}</p></div>`)}</div>`}
    <div class="split">
      <section><h2>${t("Timeline")}</h2><${Timeline} steps=${task.timeline ?? []} /></section>
      <section><h2>${t("Attempts")}</h2><${Attempts} attempts=${task.attempts ?? []} /></section>
    </div>
    <h2>${t("Ledger entries of this task")}</h2>
    ${task.entries?.length ? html`<${EntryTable} rows=${task.entries} />` : html`<p class="muted">${t("No ledger entries.")}</p>`}
    ${task.webhook && html`<${Webhook} webhook=${task.webhook} resend=${can("tasks:write") ? resend : null} />`}
    <div class="split">
      <section><h2>${t("Request")}</h2><${Json} label=${t("Request")} value=${task.request} />
        ${task.adjustments?.length > 0 && html`<h3>${t("Adjustments")}</h3><${Json} label=${t("Adjustments")} value=${task.adjustments} />`}</section>
      <section><h2>${t("Task as the client sees it")}</h2><${Json} label=${t("Task as the client sees it")} value=${task.record} /></section>
    </div>`;
}

function Timeline({ steps }) {
  return html`<ol class="timeline">${steps.map((step) => html`<li>
    <strong>${t(step.event)}${step.attempt ? ` ${step.attempt}` : ""}</strong>
    ${step.amount != null && html`<span class="amount">${money(step.amount)}</span>`}
    <span class="muted"><${Time} at=${step.at} /></span></li>`)}</ol>`;
}

/** The attempts of a task or chat. */
export function Attempts({ attempts }) {
  const columns = [
    { label: "#", cell: (row) => row.number },
    { label: t("Channel"), cell: (row) => html`<${ObjectLink} type="channel" id=${row.channel} />` },
    { label: t("Outcome"), cell: (row) => html`<${Badge} of=${row.outcome ?? "running"} />${row.error ? html`<div class="muted">${typeof row.error === "string" ? row.error : JSON.stringify(row.error)}</div>` : ""}` },
    { label: t("Key"), cell: (row) => html`<span class="id">${row.key_fingerprint ?? "–"}</span>` },
    { label: t("Ids"), cell: (row) => html`<span class="id">${[row.external_id, row.provider_job_id].filter(Boolean).join(" · ") || "–"}</span>` },
    { label: t("Duration"), number: true, cell: (row) => duration(row.ms) },
  ];
  if (!attempts.length) return html`<p class="muted">${t("No attempt yet.")}</p>`;
  return html`<${Table} label=${t("Attempts")} columns=${columns} rows=${attempts} />`;
}

function Webhook({ webhook, resend }) {
  const columns = [
    { label: "#", cell: (row) => row.number }, { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` },
    { label: t("Status"), cell: (row) => row.status }, { label: t("Error"), cell: (row) => row.error }, { label: t("Duration"), number: true, cell: (row) => duration(row.ms) },
  ];
  return html`<h2>${t("Webhook")} <${Badge} of=${webhook.state} /></h2>
    <p><span class="id">${webhook.url}</span> <button type="button" disabled=${!resend} onClick=${resend}>${t("Resend")}</button></p>
    ${webhook.tries?.length > 0 && html`<${Table} label=${t("Webhook")} columns=${columns} rows=${webhook.tries} />`}`;
}
