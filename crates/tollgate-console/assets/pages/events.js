// The trail of changes: who changed what, with the values before and after, and the verification of its hash chain.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { get } from "../lib/api.js";
import { AnyId, Badge, Json, ObjectLink, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { run } from "../lib/forms.js";

export function Events() {
  const [verification, setVerification] = useState(/** @type {any} */ (null));
  const verify = html`<button type="button" onClick=${async () => setVerification(await run(() => get("/events/verify")))}>${t("Verify the hash chain")}</button>`;
  const columns = [
    { label: "#", cell: (row) => row.seq }, { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` }, { label: t("Actor"), cell: (row) => row.actor },
    { label: t("Action"), cell: (row) => html`<${Badge} of=${row.action} />` },
    { label: t("Object"), cell: (row) => (row.object?.type === "channel" ? html`<${ObjectLink} type="channel" id=${row.object.id} />` : html`<${AnyId} id=${row.object?.id} />`) },
    { label: t("Changes"), cell: (row) => html`<${Changes} before=${row.before} after=${row.after} />` },
    { label: t("Reason"), cell: (row) => row.reason }, { label: t("IP address"), cell: (row) => row.address },
  ];
  const filters = [{ name: "actor", label: t("Actor") }, { name: "action", label: t("Action") }, { name: "object_id", label: t("Object") }];
  return html`<${PageHead} title=${t("Events")} actions=${verify}>${t("Every change by administrators and by the command line. Each row contains the hash of the previous row, so that altered rows are detected.")}<//>
    ${verification && html`<p role="status" class=${`notice ${verification.ok ? "good" : "bad"}`}>${verification.ok ? t("The hash chain of {rows} rows is intact.", verification) : t("The hash chain is broken at row {first_bad}.", verification)}</p>`}
    <${List} path="/events" label=${t("Events")} columns=${columns} filters=${filters} timed empty=${html`<p>${t("No changes in this period.")}</p>`} />`;
}

/** The members that differ between two objects. */
function Changes({ before, after }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changed = names.filter((name) => name !== "version" && JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
  if (!changed.length) return html`–`;
  if (!before || !after) return html`<details><summary>${before ? t("Before") : t("After")}</summary><${Json} value=${before ?? after} /></details>`;
  return html`<div>${changed.map((name) => html`<div><code>${name}</code>: ${JSON.stringify(before[name])} → ${JSON.stringify(after[name])}</div>`)}</div>`;
}
