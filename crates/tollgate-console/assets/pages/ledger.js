// The ledger of all users, and the audits that verify it.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, isServed, post } from "../lib/api.js";
import { ErrorNotice, Json, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { run } from "../lib/forms.js";
import { entryColumns } from "../lib/entries.js";

const KINDS = ["credit", "hold", "settle", "release", "charge", "refund", "quota"];

export function Ledger() {
  const filters = [
    { name: "kind", label: t("Kind"), options: KINDS }, { name: "user_id", label: t("User id") }, { name: "key_id", label: t("Key id") },
  ];
  const columns = entryColumns({ owner: true }).filter((column) => column.label !== t("Balance after"));
  return html`<${PageHead} title=${t("Ledger")}>${t("All ledger entries. A balance is the sum of the effects of its entries. Each user's page shows the running balance.")}<//>
    ${can("events:read") && isServed("/audits") && html`<${Audits} />`}
    <h2>${t("Entries")}</h2>
    <${List} path="/entries" label=${t("Entries")} columns=${columns} filters=${filters} timed empty=${html`<p>${t("No ledger entries in this period. Add credit on a user's page.")}</p>`} />`;
}

/** The last audits; the page polls a running one every second. */
function Audits() {
  const [audits, setAudits] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(null);
  const running = audits?.some((audit) => audit.state === "running");
  const refresh = () => get("/audits", { limit: 5 }).then((page) => setAudits(page.data), setError);
  useEffect(() => void refresh(), []);
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(refresh, 1000);
    return () => clearInterval(timer);
  }, [running]);
  const start = async () => {
    await run(() => post("/audits"));
    refresh();
  };
  const last = audits?.[0];
  return html`<section class="panel">
    <div class="row"><h2>${t("Audit")}</h2>
      <button type="button" disabled=${running || !can("events:write")} onClick=${start}>${running ? t("Running…") : t("Audit now")}</button></div>
    ${running && html`<progress max="1" value=${last.progress} aria-label=${t("Progress of the audit")}></progress>`}
    ${error && html`<${ErrorNotice} error=${error} />`}
    ${audits?.length === 0 && html`<p class="muted">${t("No audit yet. An audit reads the complete database and verifies every balance.")}</p>`}
    ${last && !running && html`<p class=${`notice ${last.ok ? "good" : "bad"}`}>${last.ok ? t("The audit found no violations.") : t("The audit found violations.")} <${Time} at=${last.ended_at} /></p>`}
    ${last?.violations?.length > 0 && html`<${Json} label=${t("Violations")} value=${last.violations} />`}
  </section>`;
}
