// A list of the API: filters in the address, pages by cursor, export as CSV, the request as curl, and a hint if it is empty.
import { html, useEffect, useState } from "./ui.js";
import { t } from "./i18n.js";
import { asCurl, get, request, withQuery, isServed } from "./api.js";
import { address, navigate, setQuery } from "./router.js";
import { CopyButton, ErrorNotice, Table } from "./elements.js";
import { run } from "./forms.js";
import { follow } from "./live.js";

const DAY = 86_400_000;
const SPANS = [["", "Last 7 days"], ["1", "Last 24 hours"], ["30", "Last 30 days"], ["365", "Last year"]];

/** The query of the API for the filters in the address. */
function queryOf(filters, fixed, timed) {
  const search = address.value.searchParams;
  const query = { ...fixed };
  for (const { name } of filters) if (search.get(name)) query[name] = search.get(name);
  const days = Number(search.get("days"));
  // Rounded to the hour, so that pages of one list have the same query.
  if (timed && days) query.from = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - days * DAY).toISOString();
  return query;
}

/**
 * A list.
 * `filters`: `{name, label, options?}`; `timed`: the API accepts a time window; `live`: an event of the live tail that
 * refreshes it; `draw`: draws all rows instead of a table; `empty`: a hint that is shown if the list is empty.
 */
export function List({ path, columns, filters = [], fixed = {}, timed = false, live, draw, empty, label, csv = true, refresh = 0 }) {
  const query = queryOf(filters, fixed, timed);
  const url = withQuery(path, query);
  const [state, setState] = useState({ url: "", rows: [], next: null, error: null, busy: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, busy: true, error: null }));
    get(path, query, abort.signal).then(
      (page) => setState({ url, rows: page.data, next: page.next_cursor ?? null, error: null, busy: false }),
      (error) => abort.signal.aborted || setState({ url, rows: [], next: null, error, busy: false }),
    );
    return () => abort.abort();
  }, [url, round, refresh]);
  const more = async () => {
    setState((before) => ({ ...before, busy: true }));
    try {
      const page = await get(path, { ...query, cursor: state.next });
      setState((before) => ({ ...before, rows: [...before.rows, ...page.data], next: page.next_cursor ?? null, busy: false }));
    } catch (error) {
      setState((before) => ({ ...before, error, busy: false }));
    }
  };
  const again = () => setRound((n) => n + 1);
  const filtered = filters.some(({ name }) => query[name]) || Boolean(query.from);
  const rows = state.url === url ? state.rows : [];
  return html`
    ${(filters.length > 0 || timed) && html`<${Filters} filters=${filters} timed=${timed} />`}
    <div class="list-tools">
      ${live && isServed("/tail") && html`<${LiveSwitch} event=${live} again=${again} />`}
      <button type="button" class="quiet" onClick=${again}>${t("Refresh")}</button>
      ${csv && html`<button type="button" class="quiet" onClick=${() => run(() => downloadCsv(path, query))}>${t("Export CSV")}</button>`}
      <${CopyButton} label=${t("Copy as curl")} text=${() => asCurl("GET", url)} />
    </div>
    ${state.error && html`<${ErrorNotice} error=${state.error} retry=${again} />`}
    ${rows.length > 0 && (draw ? draw(rows) : html`<${Table} columns=${columns} rows=${rows} label=${label} />`)}
    ${state.busy && rows.length === 0 && html`<p class="loading" role="status">${t("Loading…")}</p>`}
    ${!state.busy && !state.error && rows.length === 0 && html`<div class="empty">
      ${filtered ? html`<p>${t("No results match these filters.")}</p>
        <button type="button" onClick=${() => navigate(address.value.pathname)}>${t("Clear filters")}</button>` : empty}
    </div>`}
    ${state.next && html`<button type="button" class="more" disabled=${state.busy} onClick=${more}>${state.busy ? t("Loading…") : t("Show more")}</button>`}`;
}

function Filters({ filters, timed }) {
  const search = address.value.searchParams;
  const change = (name) => (event) => setQuery({ [name]: event.target.value.trim() });
  return html`<form class="filters" role="search" aria-label=${t("Filters")} onSubmit=${(event) => event.preventDefault()}>
    ${filters.map(({ name, label, options }) => html`<label key=${name}>${label}
      ${options
        ? html`<select value=${search.get(name) ?? ""} onChange=${change(name)}>
            <option value="" selected=${!search.get(name)}>${t("all")}</option>
            ${options.map((of) => html`<option value=${of} selected=${search.get(name) === of}>${t(of)}</option>`)}
          </select>`
        : html`<input type="search" value=${search.get(name) ?? ""} onChange=${change(name)} />`}
    </label>`)}
    ${timed && html`<label>${t("Time")}
      <select value=${search.get("days") ?? ""} onChange=${change("days")}>
        ${SPANS.map(([days, text]) => html`<option value=${days} selected=${(search.get("days") ?? "") === days}>${t(text)}</option>`)}
      </select></label>`}
  </form>`;
}

/** Refreshes the list when the live tail reports an event, at most once a second. */
function LiveSwitch({ event, again }) {
  const on = address.value.searchParams.get("live") === "1";
  useEffect(() => {
    if (!on) return undefined;
    let timer = 0;
    const stop = follow((type) => {
      if ((type === event || type === "reset" || type === "omitted") && !timer) {
        timer = setTimeout(() => {
          timer = 0;
          again();
        }, 1000);
      }
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [on, event]);
  return html`<button type="button" class="quiet" aria-pressed=${on} onClick=${() => setQuery({ live: on ? "" : "1" })}>
    <span class=${`dot ${on ? "on" : ""}`} aria-hidden="true"></span> ${t("Live")}
  </button>`;
}

async function downloadCsv(path, query) {
  const { response } = await request("GET", path, { query, accept: "text/csv", raw: true });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${path.split("/").filter(Boolean).join("-")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
