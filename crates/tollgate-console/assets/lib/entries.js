// Entries of the ledger as a table.
import { html } from "./ui.js";
import { t } from "./i18n.js";
import { money } from "./format.js";
import { AnyId, Badge, ObjectLink, Table, Time } from "./elements.js";

/** Columns of entries; `owner`: also user and key. */
export function entryColumns({ owner = false } = {}) {
  return [
    { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` },
    owner && { label: t("User"), cell: (row) => html`<${ObjectLink} type="user" id=${row.user_id} />` },
    owner && { label: t("Key"), cell: (row) => html`<${ObjectLink} type="key" id=${row.key_id} />` },
    { label: t("Kind"), cell: (row) => html`<${Badge} of=${row.kind} />` },
    { label: t("Amount"), number: true, cell: (row) => money(row.amount) },
    { label: t("Effect on the balance"), number: true, cell: (row) => money(row.delta) },
    { label: t("Balance after"), number: true, cell: (row) => money(row.balance_after) },
    { label: t("Related object"), cell: (row) => html`<${AnyId} id=${row.ref} />` },
    { label: t("Reason"), cell: (row) => [row.reason, row.reference].filter(Boolean).join(" · ") || "–" },
  ].filter(Boolean);
}

/** A table of entries. */
export function EntryTable({ rows }) {
  const columns = entryColumns().filter((column) => column.label !== t("Balance after"));
  return html`<${Table} label=${t("Entries")} columns=${columns} rows=${rows} />`;
}
