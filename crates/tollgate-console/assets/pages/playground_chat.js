// Chat in one of the four formats, streamed, with images and any other fields of the format (tools, for example).
import { html, useRef, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { apiKey, FORMATS, streamChat } from "../lib/client.js";
import { ErrorNotice } from "../lib/elements.js";
import { ImageDrop, JsonInput } from "../lib/schema_form.js";
import { Quote, Snippets } from "./playground_request.js";

function asDataUri(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

export function ChatPlayground() {
  const [format, setFormat] = useState("chat-completions");
  const [model, setModel] = useState("gpt-5");
  const [turns, setTurns] = useState(/** @type {any[]} */ ([]));
  const [draft, setDraft] = useState("");
  const [image, setImage] = useState(/** @type {string | undefined} */ (undefined));
  const [others, setOthers] = useState({});
  const [state, setState] = useState(/** @type {any} */ ({}));
  const abort = useRef(/** @type {AbortController | null} */ (null));
  const next = draft ? [...turns, { role: "user", text: draft, image }] : turns;
  const api = FORMATS[format];
  const body = { ...api.body(model, next), ...others };
  const send = async (event) => {
    event.preventDefault();
    setTurns([...next, { role: "assistant", text: "" }]);
    setDraft("");
    setImage(undefined);
    setState({ busy: true });
    const add = (piece) => setTurns((before) => [...before.slice(0, -1), { role: "assistant", text: before[before.length - 1].text + piece }]);
    abort.current = new AbortController();
    try {
      await streamChat(format, model, body, add, abort.current.signal);
      setState({});
    } catch (error) {
      setState(abort.current.signal.aborted ? {} : { error });
    }
  };
  return html`<div class="split">
    <section class="panel">
      <div class="filters">
        <label>${t("Model")}<input value=${model} onInput=${(event) => setModel(event.target.value)} /></label>
        <label>${t("Format")}<select onChange=${(event) => setFormat(event.target.value)}>${Object.keys(FORMATS).map((name) => html`<option selected=${name === format}>${name}</option>`)}</select></label>
      </div>
      <div class="messages" aria-live="polite">${turns.map((turn) => html`<div class=${`message ${turn.role}`}><div class="muted">${t(turn.role)}</div>${turn.text || "…"}</div>`)}</div>
      ${state.error && html`<${ErrorNotice} error=${state.error} />`}
      <form onSubmit=${send}>
        <div class="field"><label for="chat-text">${t("Message")}</label><textarea id="chat-text" rows="3" required value=${draft} onInput=${(event) => setDraft(event.target.value)}></textarea></div>
        <details><summary>${t("Image")}</summary><div class="field"><label for="chat-image">${t("Image")}</label><${ImageDrop} id="chat-image" many=${false} value=${image} change=${setImage} upload=${asDataUri} /></div></details>
        <details><summary>${t("Other fields, such as tools")}</summary><div class="field"><label for="chat-others">JSON</label><${JsonInput} id="chat-others" rows=${6} value=${undefined} change=${(value) => setOthers(value ?? {})} /></div></details>
        <div class="form-actions"><button type="submit" class="primary" disabled=${state.busy || !apiKey.value}>${t("Send")}</button>
          ${state.busy && html`<button type="button" onClick=${() => abort.current?.abort()}>${t("Stop")}</button>`}
          <button type="button" class="quiet" onClick=${() => setTurns([])}>${t("New conversation")}</button>
          ${!apiKey.value && html`<span class="muted">${t("Enter an API key above.")}</span>`}</div>
      </form>
    </section>
    <section class="panel"><h2>${t("Request")}</h2>
      ${next.length > 0 && html`<${Quote} endpoint=${api.path(model).split("?")[0]} request=${body} />`}
      <${Snippets} endpoint=${api.path(model).replace("streamGenerateContent?alt=sse", "generateContent")} request=${{ ...body, stream: undefined }} /></section>
  </div>`;
}
