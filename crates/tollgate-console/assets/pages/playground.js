// The playground: media with forms from the models' declarations, and chat in all four formats.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { API, can, get, isServed } from "../lib/api.js";
import { address, base, setQuery } from "../lib/router.js";
import { ErrorNotice, Json, Load, PageHead } from "../lib/elements.js";
import { apiKey, readTask, submitTask } from "../lib/client.js";
import { filesOfRecord, Media } from "../lib/media.js";
import { SchemaForm } from "../lib/schema_form.js";
import { ChatPlayground } from "./playground_chat.js";
import { Quote, Snippets } from "./playground_request.js";

const ENDED = ["completed", "failed", "cancelled", "success"];
const POLL_MS = 1500;

/** The playground page of both the console and the portal. */
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
  if (!model) return html`<div class="empty"><p>${t("No model that generates images, videos or speech is available.")}</p></div>`;
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
    <details><summary>${t("Code samples")}</summary><${Snippets} endpoint=${model.endpoint} request=${request} /></details>
  </section>`;
}

function fieldsOf(request) {
  const { model, callback_url, ...fields } = request ?? {};
  return fields;
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
