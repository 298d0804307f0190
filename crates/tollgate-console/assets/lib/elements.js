// Small elements that many pages draw: headings, badges, links to objects, notices, copy buttons.
import { html, useEffect, useState } from "./ui.js";
import { t } from "./i18n.js";
import { time } from "./format.js";
import { toast } from "./dialog.js";
import { base } from "./router.js";
import { isServed } from "./api.js";

/** Heading of a page, with its actions; it is also the title of the document. */
export function PageHead({ title, actions, children }) {
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return html`<div class="page-head">
    <h1>${title}</h1>
    <div class="actions">${actions}</div>
    ${children && html`<p class="lead">${children}</p>`}
  </div>`;
}

const TONES = {
  completed: "good", done: "good", closed: "good", ok: "good", delivered: "good",
  failed: "bad", open: "bad", error: "bad", given_up: "bad",
  in_progress: "busy", running: "busy", submitted: "busy", half_open: "busy", pending: "busy",
  cut: "warn", client_gone: "warn", cancelled: "warn", disabled: "warn", revoked: "warn", paused: "warn", shadowed: "warn",
};

/** A word in a coloured box. The word alone has the complete meaning; the colour only emphasises it. */
export function Badge({ of, tone }) {
  return html`<span class=${`badge ${tone ?? TONES[of] ?? ""}`}>${t(of)}</span>`;
}

/** A time, with its exact value as the tooltip. */
export function Time({ at }) {
  return at ? html`<time datetime=${at} title=${at}>${time(at)}</time>` : html`<span>–</span>`;
}

const PAGES = { task: "tasks", chat: "chats", user: "users", key: "keys", channel: "channels", request: "chats?request_id=" };
/** Types of objects whose page needs another path of the API than their list. */
const NEEDED = { channel: "/channels/{name}/pause" };

/** A link to the page of an object; a dash if there is none. */
export function ObjectLink({ type, id, label }) {
  if (!id) return html`<span>–</span>`;
  if (NEEDED[type] && !isServed(NEEDED[type])) return html`<span class="id">${label ?? id}</span>`;
  const page = PAGES[type] ?? type;
  const path = type === "request" ? `${page}${encodeURIComponent(id)}` : `${page}/${encodeURIComponent(id)}`;
  return html`<a class="id" href=${`${base}/${path}`}>${label ?? id}</a>`;
}

/** The type of an object by the beginning of its id. */
export function typeOfId(id) {
  const prefix = String(id ?? "").split("_")[0];
  return { task: "task", chat: "chat", user: "user", key: "key", req: "request" }[prefix] ?? null;
}

/** A link if the id belongs to an object that has a page, else the id as text. */
export function AnyId({ id }) {
  const type = typeOfId(id);
  return type ? html`<${ObjectLink} type=${type} id=${id} />` : html`<span class="id">${id ?? "–"}</span>`;
}

/** Copies a text when pressed. */
export function CopyButton({ text, label }) {
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    toast(t("Copied"));
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${label ?? t("Copy")}</button>`;
}

/** A block of code with a copy button. */
export function Code({ text, label }) {
  return html`<div class="code">
    <${CopyButton} text=${text} />
    <pre tabindex="0" role="region" aria-label=${label ?? t("Code")}>${text}</pre>
  </div>`;
}

/** JSON, indented. */
export function Json({ value, label }) {
  return html`<${Code} label=${label ?? "JSON"} text=${JSON.stringify(value, null, 2)} />`;
}

/** An error message, with the request id to search for in the log. */
export function ErrorNotice({ error, retry }) {
  return html`<div class="notice bad" role="alert">
    <p>${error.message}${error.field ? html` <code>${error.field}</code>` : ""}</p>
    ${error.requestId && html`<p class="muted">${t("Request id")} <code>${error.requestId}</code></p>`}
    ${retry && html`<button type="button" onClick=${retry}>${t("Try again")}</button>`}
  </div>`;
}

/** The properties of an object: names and values in two columns. `rows` are pairs; false values are left out. */
export function Properties({ rows }) {
  return html`<dl class="properties">
    ${rows.filter(Boolean).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? "–"}</dd></div>`)}
  </dl>`;
}

/**
 * Loads something and draws it: a progress line while it loads, an error if it fails.
 * `children` gets the function `again` to reload it; `missing` is drawn if the response is 404.
 */
export function Load({ load, deps = [], missing = null, children }) {
  const { state, again } = useLoad(load, deps);
  if (missing && state.error?.status === 404) return missing;
  if (state.error) return html`<${ErrorNotice} error=${state.error} retry=${again} />`;
  if (state.value === undefined) return html`<p class="loading" role="status">${t("Loading…")}</p>`;
  return children(state.value, again);
}

/** Loads something when `deps` change. @returns {{state: {value?: any, error?: any}, again: () => void}} */
export function useLoad(load, deps) {
  const [state, setState] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const fail = (error) => abort.signal.aborted || setState({ error });
    load(abort.signal).then((value) => abort.signal.aborted || setState({ value }), fail);
    return () => abort.abort();
  }, [...deps, round]);
  return { state, again: () => setRound((n) => n + 1) };
}

/** A table whose rows become cards on narrow screens. Columns: `{label, cell, number}`. */
export function Table({ columns, rows, label }) {
  return html`<table class="stack" aria-label=${label}>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.number ? "number" : ""}>${c.label}</th>`)}</tr></thead>
    <tbody>
      ${rows.map((row) => html`<tr key=${row.id ?? row.seq ?? row.name}>
        ${columns.map((c) => html`<td data-label=${c.label} class=${c.number ? "number" : ""}>${c.cell(row) ?? "–"}</td>`)}
      </tr>`)}
    </tbody>
  </table>`;
}
