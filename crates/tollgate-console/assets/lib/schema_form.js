// Fields of a request, drawn from the model's declaration (JSON Schema).
import { html, useState } from "./ui.js";
import { t } from "./i18n.js";
import { uploadImage } from "./client.js";
import { run } from "./forms.js";

const LONG = ["prompt", "input", "text", "negative_prompt", "instructions"];

/** Whether a field accepts links to images: the form then shows an area to drop images on. */
function acceptsImages(name, schema) {
  return /image|reference|frame/.test(name) && (schema.type === "array" || schema.type === "string") && !schema.enum;
}

/** The fields of `schema` except `model`; `change(name, value)` changes `values`, and the value `undefined` removes a member. */
export function SchemaForm({ schema, values, change, id }) {
  const required = schema.required ?? [];
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => name !== "model" && name !== "callback_url");
  const main = fields.filter(([name]) => required.includes(name) || LONG.includes(name));
  const others = fields.filter((field) => !main.includes(field));
  const draw = ([name, one]) => html`<${SchemaField} key=${name} id=${`${id}-${name}`} name=${name} schema=${one} required=${required.includes(name)} value=${values[name]} change=${(value) => change(name, value)} />`;
  return html`${main.map(draw)}${others.length > 0 && html`<details><summary>${t("More fields ({n})", { n: others.length })}</summary>${others.map(draw)}</details>`}`;
}

function SchemaField({ id, name, schema, required, value, change }) {
  const images = acceptsImages(name, schema);
  return html`<div class=${`field ${schema.type === "boolean" ? "switch" : ""}`}>
    <label for=${id}>${name}${required ? html` <span class="muted">${t("(required)")}</span>` : ""}</label>
    ${images ? html`<${ImageDrop} id=${id} many=${schema.type === "array"} value=${value} change=${change} />` : html`<${Control} id=${id} name=${name} schema=${schema} required=${required} value=${value} change=${change} />`}
    ${schema.description && html`<p class="hint" id=${`${id}-hint`}>${schema.description}</p>`}
  </div>`;
}

function Control({ id, name, schema, required, value, change }) {
  const hint = schema.description ? `${id}-hint` : undefined;
  const text = (event) => change(event.target.value === "" ? undefined : event.target.value);
  const shown = schema.default === undefined ? "" : String(schema.default);
  const choices = schema.enum ?? (schema.anyOf ?? schema.oneOf)?.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]));
  if (schema.type === "boolean") return html`<input type="checkbox" id=${id} aria-describedby=${hint} checked=${value ?? schema.default ?? false} onInput=${(event) => change(event.target.checked)} />`;
  if (schema.enum && choices.length) {
    return html`<select id=${id} aria-describedby=${hint} onInput=${(event) => change(choices.find((one) => String(one) === event.target.value))}>
      <option value="" selected=${value === undefined}>${shown ? t("default: {value}", { value: shown }) : t("not set")}</option>
      ${choices.map((one) => html`<option value=${String(one)} selected=${one === value}>${String(one)}</option>`)}</select>`;
  }
  if (schema.type === "integer" || schema.type === "number") {
    return html`<input type="number" id=${id} required=${required} aria-describedby=${hint} min=${schema.minimum} max=${schema.maximum} step=${schema.type === "integer" ? 1 : "any"} placeholder=${shown} value=${value ?? ""}
      onInput=${(event) => change(event.target.value === "" ? undefined : Number(event.target.value))} />`;
  }
  if (schema.type === "array" || schema.type === "object") return html`<${JsonInput} id=${id} hint=${hint} value=${value} change=${change} />`;
  if (LONG.includes(name)) return html`<textarea id=${id} rows="4" required=${required} aria-describedby=${hint} value=${value ?? ""} onInput=${text}></textarea>`;
  return html`<input id=${id} required=${required} aria-describedby=${hint} placeholder=${shown} list=${choices?.length ? `${id}-list` : undefined} value=${value ?? ""} onInput=${text} />
    ${choices?.length > 0 && html`<datalist id=${`${id}-list`}>${choices.map((one) => html`<option value=${String(one)}></option>`)}</datalist>`}`;
}

/** JSON as text; invalid JSON is marked and not used. */
export function JsonInput({ id, hint, value, change, rows = 3 }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [valid, setValid] = useState(true);
  const input = (event) => {
    setText(event.target.value);
    try {
      change(event.target.value.trim() === "" ? undefined : JSON.parse(event.target.value));
      setValid(true);
    } catch {
      setValid(false);
    }
  };
  return html`<textarea id=${id} rows=${rows} spellcheck=${false} aria-describedby=${hint} aria-invalid=${valid ? undefined : "true"} value=${text} onInput=${input}></textarea>
    ${!valid && html`<p class="field-error">${t("This is not valid JSON.")}</p>`}`;
}

/** Images by drop, paste, file choice or URL. They are uploaded with the API key of the playground. */
export function ImageDrop({ id, many, value, change, upload = uploadImage }) {
  const [over, setOver] = useState(false);
  const urls = value === undefined ? [] : [value].flat();
  const set = (list) => change(list.length === 0 ? undefined : many ? list : list.at(-1));
  const add = async (files) => {
    const images = [...files].filter((file) => file.type.startsWith("image/"));
    const added = await run(() => Promise.all(images.map(upload)));
    if (added) set([...urls, ...added]);
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    add(event.dataTransfer.files);
  };
  return html`<div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}
    onPaste=${(event) => event.clipboardData.files.length && add(event.clipboardData.files)}>
    <span class="muted">${t("Drop or paste images here, choose files, or enter URLs, one per line.")}</span>
    <input type="file" accept="image/*" multiple=${many} aria-label=${t("Choose images")} onChange=${(event) => add(event.target.files)} />
    <textarea id=${id} rows="2" value=${urls.filter((url) => !url.startsWith("data:")).join("\n")} onChange=${(event) => set(event.target.value.split("\n").map((line) => line.trim()).filter(Boolean))}></textarea>
    ${urls.length > 0 && html`<div class="thumbs">${urls.map((url) => html`<button type="button" class="quiet" onClick=${() => set(urls.filter((one) => one !== url))}>${url.startsWith("data:") ? html`<img src=${url} alt="" />` : ""} ${t("Remove")}</button>`)}</div>`}
  </div>`;
}
