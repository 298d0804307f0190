// Spend, requests, failures and generated units over time; tasks that are not finished; recent failures by error code.
import { html, useMemo } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, withQuery } from "../lib/api.js";
import { address, base, setQuery } from "../lib/router.js";
import { ago, between, count, duration, money, sumAmounts, time } from "../lib/format.js";
import { Badge, Load, ObjectLink, PageHead, Table, typeOfId } from "../lib/elements.js";
import { Chart } from "../lib/chart.js";

const HOUR = 3_600_000;
const SPANS = { "24h": [24 * HOUR, "hour"], "7d": [168 * HOUR, "day"], "30d": [720 * HOUR, "day"] };
const DIMENSIONS = ["model", "user", "channel", "key"];

export function Overview() {
  const search = address.value.searchParams;
  const span = SPANS[search.get("span")] ? search.get("span") : "24h";
  const by = DIMENSIONS.includes(search.get("by")) ? search.get("by") : "model";
  const [length, unit] = SPANS[span];
  const from = useMemo(() => new Date(Math.floor(Date.now() / HOUR) * HOUR - length).toISOString(), [span]);
  const names = { "24h": t("24 hours"), "7d": t("7 days"), "30d": t("30 days") };
  return html`<${PageHead} title=${t("Overview")} actions=${Object.keys(SPANS).map((name) =>
      html`<button type="button" aria-pressed=${name === span} onClick=${() => setQuery({ span: name })}>${names[name]}</button>`)} />
    ${can("users:read") && html`<${Load} deps=${[span]} load=${(signal) => get("/usage", { group_by: unit, from, limit: 200 }, signal)}>
      ${(usage) => html`<${Charts} rows=${usage.data} unit=${unit} from=${from} watermark=${usage.watermark} />`}<//>`}
    <div class="split">
      ${can("tasks:read") && html`<section><h2>${t("Current tasks")}</h2><${Waiting} /></section>`}
      ${can("channels:read") && html`<section><h2>${t("Channels")}</h2><${Health} /></section>`}
      ${can("users:read") && html`<section><h2>${t("Usage by")} ${DIMENSIONS.map((name) => html` <button type="button" class="quiet" aria-pressed=${name === by} onClick=${() => setQuery({ by: name })}>${t(name)}</button>`)}</h2>
        <${Shares} by=${by} from=${from} /></section>`}
      <section><h2>${t("Recent failures by error code")}</h2><${Failures} /></section>
    </div>`;
}

function Charts({ rows, unit, from, watermark }) {
  const step = unit === "hour" ? HOUR : 24 * HOUR;
  const data = useMemo(() => {
    const first = Math.floor(Date.parse(from) / step) * step;
    const times = [];
    for (let at = first; at <= Date.now(); at += step) times.push(at);
    const found = new Map(rows.map((row) => [Date.parse(row[unit]), row]));
    const values = (name) => times.map((at) => Number(found.get(at)?.[name] ?? 0));
    const one = (label, name, colour = "--accent") => [{ label, values: values(name), colour }];
    return {
      times: times.map((at) => at / 1000),
      cost: one(t("Spend"), "cost"),
      requests: [...one(t("Requests"), "requests"), ...one(t("Failed"), "failed", "--bad")],
      tokens: one(t("Tokens"), "tokens", "--second"),
      media: [...one(t("Images"), "images"), ...one(t("Seconds"), "seconds", "--second")],
    };
  }, [rows, unit]);
  const total = (name) => count(rows.reduce((sum, row) => sum + Number(row[name] ?? 0), 0));
  return html`<div class="charts">
      <${Chart} title=${t("Spend")} total=${money(sumAmounts(rows.map((row) => row.cost)))} times=${data.times} series=${data.cost} />
      <${Chart} title=${t("Requests and failures")} total=${`${total("requests")} / ${total("failed")}`} times=${data.times} series=${data.requests} />
      <${Chart} title=${t("Tokens")} total=${total("tokens")} times=${data.times} series=${data.tokens} />
      <${Chart} title=${t("Images and seconds")} total=${`${total("images")} / ${total("seconds")}`} times=${data.times} series=${data.media} />
    </div>
    ${watermark && html`<p class="muted">${t("Data is complete up to {time}. Days and hours are in UTC.", { time: time(watermark) })}</p>`}`;
}

function Waiting() {
  const load = async (signal) => {
    const page = await get("/tasks", { state: "submitted,in_progress", limit: 200, from: ago(168 * HOUR) }, signal);
    return { rows: page.data, more: page.next_cursor != null };
  };
  return html`<${Load} load=${load}>${({ rows, more }) => {
    const queued = rows.filter((row) => row.state === "submitted");
    const oldest = queued.at(-1)?.created_at;
    const atLeast = more ? "≥ " : "";
    return html`<div class="cards">
      <div class="panel"><div class="muted">${t("Money held by tasks")}</div><div class="stat">${atLeast}${money(sumAmounts(rows.map((row) => row.held)))}</div></div>
      <div class="panel"><div class="muted">${t("Tasks in the queue")}</div><div class="stat"><a href=${`${base}/tasks?state=submitted`}>${atLeast}${queued.length}</a></div></div>
      <div class="panel"><div class="muted">${t("Age of the oldest task")}</div><div class="stat">${oldest ? atLeast + duration(Date.now() - Date.parse(oldest)) : "–"}</div></div>
      <div class="panel"><div class="muted">${t("Tasks in progress")}</div><div class="stat"><a href=${`${base}/tasks?state=in_progress`}>${atLeast}${rows.length - queued.length}</a></div></div>
    </div>`;
  }}<//>`;
}

function Health() {
  // A channel of the database that this node cannot open has no health: 404.
  const health = (name, signal) => get(`/channels/${encodeURIComponent(name)}/health`, {}, signal).then(({ data }) => data, () => []);
  const load = async (signal) => {
    const { data } = await get("/channels", { limit: 50 }, signal);
    return Promise.all(data.map(async (channel) => ({ ...channel, nodes: await health(channel.name, signal) })));
  };
  const worst = (row) => ["open", "half_open", "closed"].find((state) => row.nodes.some((node) => node.circuit === state)) ?? "closed";
  const max = (row, name) => Math.max(...row.nodes.map((node) => node[name] ?? 0), 0);
  const columns = [
    { label: t("Channel"), cell: (row) => html`<${ObjectLink} type="channel" id=${row.name} />` },
    { label: t("Circuit breaker"), cell: (row) => html`<${Badge} of=${row.paused ? "paused" : worst(row)} />` },
    { label: t("In flight"), number: true, cell: (row) => row.nodes.reduce((sum, node) => sum + node.in_flight, 0) },
    { label: "p50", number: true, cell: (row) => duration(max(row, "p50_ms") || null) },
    { label: t("Error rate"), number: true, cell: (row) => `${Math.round(max(row, "error_rate") * 100)} %` },
  ];
  return html`<${Load} load=${load}>${(rows) => (rows.length
    ? html`<${Table} label=${t("Channels")} columns=${columns} rows=${rows} />`
    : html`<div class="empty"><p>${t("No channel yet.")}</p><a href=${`${base}/channels`}>${t("Add a channel")}</a></div>`)}<//>`;
}

function Shares({ by, from }) {
  const of = (row) => row[by] ?? row[`${by}_id`];
  const columns = [
    { label: t(by), cell: (row) => (of(row) ? html`<${ObjectLink} type=${by === "model" ? null : by === "channel" ? "channel" : typeOfId(of(row))} id=${of(row)} />` : "–") },
    { label: t("Spend"), number: true, cell: (row) => money(row.cost) },
    { label: t("Requests"), number: true, cell: (row) => count(row.requests) },
    { label: t("Failed"), number: true, cell: (row) => count(row.failed) },
  ];
  if (by === "model") columns[0].cell = (row) => html`<a href=${`${base}${withQuery("/models", { model: of(row) })}`}>${of(row) ?? "–"}</a>`;
  return html`<${Load} deps=${[by, from]} load=${(signal) => get("/usage", { group_by: by, from, metric: "cost,requests,failed", limit: 200 }, signal)}>${({ data }) => {
    const rows = [...data].sort((a, b) => Number(b.cost) - Number(a.cost)).slice(0, 12);
    return rows.length ? html`<${Table} label=${t("Usage")} columns=${columns} rows=${rows} />`
      : html`<div class="empty"><p>${t("No usage in this period.")}</p><a href=${`${base}/connect`}>${t("Connect a client")}</a></div>`;
  }}<//>`;
}

function Failures() {
  const load = async (signal) => {
    const none = { data: [] };
    const [tasks, chats] = await Promise.all([
      can("tasks:read") ? get("/tasks", { state: "failed", limit: 100 }, signal) : none,
      can("chats:read") ? get("/chats", { outcome: "failed", limit: 100 }, signal) : none,
    ]);
    const causes = new Map();
    for (const [list, rows] of [["tasks", tasks.data], ["chats", chats.data]]) {
      for (const row of rows) {
        const id = `${list} ${row.error_code}`;
        const cause = causes.get(id) ?? { id, list, code: row.error_code, count: 0, last: row };
        cause.count += 1;
        causes.set(id, cause);
      }
    }
    return [...causes.values()].sort((a, b) => b.count - a.count);
  };
  const columns = [
    { label: t("Error code"), cell: (row) => html`<a href=${`${base}/${row.list}?error_code=${encodeURIComponent(row.code ?? "")}`}>${row.code ?? "–"}</a>` },
    { label: t("Kind"), cell: (row) => t(row.list) },
    { label: t("Count"), number: true, cell: (row) => row.count },
    { label: t("Last"), cell: (row) => html`<${ObjectLink} type=${row.list === "tasks" ? "task" : "chat"} id=${row.last.id} label=${duration(between(row.last.created_at, new Date().toISOString()))} />` },
  ];
  return html`<${Load} load=${load}>${(rows) => (rows.length
    ? html`<${Table} label=${t("Recent failures by error code")} columns=${columns} rows=${rows} />`
    : html`<div class="empty"><p>${t("No failures in the last 7 days.")}</p></div>`)}<//>`;
}
