// The playground: media with forms from the models' declarations, and chat in all four formats.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { API, can, get, request as sendRequest, isServed } from "../lib/api.js";
import { address, base, clientsUrl, setQuery } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Code, ErrorNotice, Json, Load, PageHead } from "../lib/elements.js";
import { apiKey, readTask, submitTask } from "../lib/client.js";
import { filesOfRecord, Media } from "../lib/media.js";
import { SchemaForm } from "../lib/schema_form.js";
import { ChatPlayground } from "./playground_chat.js";

const ENDED = ["completed", "failed", "cancelled", "success"];
const POLL_MS = 1500;

/** The page of console and portal. */
export function Playground() {
  const search = address.value.searchParams;
  const chat = search.get("mode") === "chat";
  const [count, setCount] = useState(1);
  const actions = html`<button type="button" aria-pressed=${!chat} onClick=${() => setQuery({ mode: "" })}>${t("Images, videos, speech")}</button>
    <button type="button" aria-pressed=${chat} onClick=${() => setQuery({ mode: "chat" })}>${t("Chat")}</button>
    ${!chat && html`<button type="button" aria-pressed=${count === 2} onClick=${() => setCount(3 - count)}>${t("Compare two models")}</button>`}`;
  return html`<${PageHead} title=${t("Playground")} actions=${actions}>${t("Requests are sent with an API key and charged to its user, like those of any client.")}<//>
    <div class="filters"><label>${t("API key")}<input type="password" autocomplete="off" value=${apiKey.value} onInput=${(event) => (apiKey.value = event.target.value.trim())} /></label></div>
    ${chat ? html`<${ChatPlayground} />` : html`<${Load} load=${(signal) => get(API === "/v1" ? "/me/models" : "/models", { limit: 200 }, signal)}>${({ data }) => {
      const media = data.filter((model) => model.kind !== "chat" && model.schema);
      return html`<div class="split">${Array.from({ length: count }, (_, at) => html`<${MediaPlayground} key=${at} at=${at} models=${media} />`)}</div>`;
    }}<//>`}`;
}

/** The form, the quote and the result of one model. */
function MediaPlayground({ at, models }) {
  const search = address.value.searchParams;
  const parameter = at === 0 ? "model" : "model2";
  const name = search.get(parameter);
  const model = models.find((one) => one.id === name || one.aliases?.includes(name)) ?? models[at] ?? models[0];
  const again = at === 0 ? search.get("task") : null;
  const [values, setValues] = useState(/** @type {Record<string, any>} */ ({}));
  useEffect(() => {
    if (again && can("tasks:read")) get(`/tasks/${encodeURIComponent(again)}`).then(({ request }) => setValues(fieldsOf(request)), () => {});
  }, [again]);
  if (!model) return html`<div class="empty"><p>${t("No model makes images, videos or speech here.")}</p></div>`;
  const known = Object.keys(model.schema.properties ?? {});
  const request = { model: model.id, ...Object.fromEntries(Object.entries(values).filter(([field, value]) => known.includes(field) && value !== undefined)) };
  const change = (field, value) => setValues((before) => ({ ...before, [field]: value }));
  return html`<section class="panel" aria-label=${model.id}>
    <div class="field"><label for=${`model-${at}`}>${t("Model")}</label>
      <select id=${`model-${at}`} onChange=${(event) => setQuery({ [parameter]: event.target.value })}>
        ${["image", "video", "speech"].map((kind) => html`<optgroup label=${t(kind)}>${models.filter((one) => one.kind === kind).map((one) => html`<option value=${one.id} selected=${one === model}>${one.id}</option>`)}</optgroup>`)}
      </select></div>
    <${SchemaForm} key=${`${model.id}-${again && Object.keys(values).length > 0}`} id=${`play-${at}`} schema=${model.schema} values=${values} change=${change} />
    <${Quote} endpoint=${model.endpoint} request=${request} />
    <${Result} model=${model} request=${request} />
    <details><summary>${t("The same in code")}</summary><${Snippets} endpoint=${model.endpoint} request=${request} /></details>
  </section>`;
}

function fieldsOf(request) {
  const { model, callback_url, ...fields } = request ?? {};
  return fields;
}

/** What the request would cost, asked for half a second after the last change. */
export function Quote({ endpoint, request }) {
  const [quote, setQuote] = useState(/** @type {any} */ ({}));
  const text = JSON.stringify(request);
  // On the client API a quote needs an API key; with nothing but the model there is nothing to ask for yet.
  const isAsked = (API !== "/v1" || Boolean(apiKey.value)) && Object.keys(request).length > 1;
  const ask = () => sendRequest("POST", "/quote", { body: { endpoint, request }, bearer: API === "/v1" ? apiKey.value : undefined });
  useEffect(() => {
    if (!isAsked) return undefined;
    const timer = setTimeout(() => ask().then(({ data }) => setQuote({ value: data }), (error) => setQuote({ error })), 500);
    return () => clearTimeout(timer);
  }, [endpoint, text, apiKey.value]);
  if (!isAsked) return null;
  const { value, error } = quote;
  if (error) return html`<p class="notice warn" role="status">${error.message}</p>`;
  if (!value) return html`<p class="muted" role="status">${t("Calculating the price…")}</p>`;
  return html`<div role="status"><p>${value.exact === false ? t("At most") : t("Costs")} <strong>${money(value.total)} ${value.currency}</strong>
      ${value.units != null && value.price != null && html` <span class="muted">${t("{units} × {price} per {unit}", { ...value, unit: t(value.unit) })}</span>`}
      ${value.channels && html`<br /><span class="muted">${t("Channels:")} ${value.channels.join(", ") || t("none")}</span>`}</p>
    <details><summary>${t("What is sent to the provider")}${value.adjustments?.length ? ` · ${t("{n} adjustments", { n: value.adjustments.length })}` : ""}</summary>
      <${Json} label=${t("What is sent to the provider")} value=${{ job: value.job, adjustments: value.adjustments }} /></details></div>`;
}

function Result({ model, request }) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  useEffect(() => {
    if (!state.id || ENDED.includes(state.state)) return undefined;
    const timer = setTimeout(() => readTask(state.id).then((task) => setState((before) => ({ ...before, ...task, tick: (before.tick ?? 0) + 1 })), (error) => setState({ error })), POLL_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const start = async () => {
    setState({ busy: true });
    try {
      setState({ id: await submitTask(model.endpoint, request), state: "submitted" });
    } catch (error) {
      setState({ error });
    }
  };
  const running = state.busy || (state.id && !ENDED.includes(state.state));
  const files = state.record ? filesOfRecord(state.record, model.kind) : [];
  return html`<div class="form-actions"><button type="button" class="primary" disabled=${running || !apiKey.value} onClick=${start}>${running ? t("Generating…") : t("Generate")}</button>
      ${!apiKey.value && html`<span class="muted">${t("Enter an API key above.")}</span>`}</div>
    ${state.error && html`<${ErrorNotice} error=${state.error} />`}
    ${state.id && html`<p role="status">${t(state.state)} · ${isServed("/tasks") ? html`<a class="id" href=${`${base}/tasks/${state.id}`}>${state.id}</a>` : html`<span class="id">${state.id}</span>`}</p>`}
    ${running && html`<progress max="100" value=${state.progress || undefined} aria-label=${t("Progress")}></progress>`}
    ${files.map((file, n) => html`<${Media} file=${file} label=${t("Result {n} of {model}", { n: n + 1, model: model.id })} />`)}
    ${ENDED.includes(state.state) && files.length === 0 && html`<${Json} value=${state.record} />`}`;
}

/** The request in curl, Python and JavaScript. */
export function Snippets({ endpoint, request }) {
  const url = clientsUrl + endpoint;
  const body = JSON.stringify(request, null, 2);
  const curl = `curl ${url} -H "authorization: Bearer $TOLLGATE_API_KEY" \\\n  -H "content-type: application/json" -d '${body.replace(/'/g, "'\\''")}'`;
  const python = `import json, os, requests\n\nreply = requests.post("${url}",\n    headers={"authorization": "Bearer " + os.environ["TOLLGATE_API_KEY"]},\n    json=json.loads(${JSON.stringify(JSON.stringify(request))}))\nprint(reply.json())`;
  const script = `const reply = await fetch("${url}", {\n  method: "POST",\n  headers: { authorization: \`Bearer \${process.env.TOLLGATE_API_KEY}\`, "content-type": "application/json" },\n  body: JSON.stringify(${body}),\n});\nconsole.log(await reply.json());`;
  return html`<h3>curl</h3><${Code} label="curl" text=${curl} /><h3>Python</h3><${Code} label="Python" text=${python} /><h3>JavaScript</h3><${Code} label="JavaScript" text=${script} />`;
}
