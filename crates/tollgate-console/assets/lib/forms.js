// Forms: fields from a declaration, errors beside the field that the API names, edits protected by the object's ETag.
import { html, useState } from "./ui.js";
import { t } from "./i18n.js";
import { ApiError, newIdempotencyKey, request } from "./api.js";
import { openDialog, toast } from "./dialog.js";
import { CopyButton, ErrorNotice } from "./elements.js";

/**
 * A field: `type` is text, password, amount, integer, number, switch, select, choices, lines, json or time.
 * `nullable` fields are `null` if they are empty; others are left out.
 * @typedef {{ name: string, label: string, type?: string, hint?: string, required?: boolean, nullable?: boolean,
 *   options?: (string | string[])[], min?: number, max?: number, minlength?: number, readonly?: boolean,
 *   autocomplete?: string }} Field
 */

/** The text that a field shows for a value of the API. */
function toText(/** @type {Field} */ field, /** @type {any} */ value) {
  if (value == null) return "";
  if (field.type === "json") return JSON.stringify(value, null, 2);
  if (field.type === "lines") return value.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  if (field.type === "time") return new Date(value).toISOString().slice(0, 23);
  return value;
}

/** The API's value for the text that a field shows; throws an error if the text is invalid. */
function toValue(/** @type {Field} */ field, /** @type {any} */ shown) {
  if (field.type === "switch" || field.type === "choices") return shown;
  const text = String(shown).trim();
  if (text === "") return field.nullable ? null : undefined;
  if (field.type === "integer" || field.type === "number") return Number(text);
  if (field.type === "time") return new Date(`${text}Z`).toISOString();
  if (field.type === "lines") return text.split("\n").map((line) => line.trim()).filter(Boolean).map(parseLine);
  if (field.type === "json") {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error(t("This is not valid JSON."));
    }
  }
  return text;
}

function parseLine(/** @type {string} */ line) {
  if (!line.startsWith("{")) return line;
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(t("A line that begins with { must be a JSON object."));
  }
}

function Control({ field, value, change, id, invalid, describedby }) {
  const common = { id, name: field.name, required: field.required, disabled: field.readonly, "aria-invalid": invalid, "aria-describedby": describedby };
  const onInput = (event) => change(event.target.value);
  switch (field.type) {
    case "switch":
      return html`<input type="checkbox" ...${common} checked=${value === true} onInput=${(event) => change(event.target.checked)} />`;
    case "select":
      return html`<select ...${common} value=${value} onInput=${onInput}>
        ${(field.options ?? []).map((option) => {
          const [of, label] = Array.isArray(option) ? option : [option, option];
          return html`<option value=${of} selected=${of === value}>${label}</option>`;
        })}
      </select>`;
    case "choices": {
      const flip = (of) => change(value.includes(of) ? value.filter((one) => one !== of) : [...value, of]);
      return html`<fieldset class="choices" ...${{ id, "aria-describedby": describedby }}><legend class="hidden">${field.label}</legend>
        ${(field.options ?? []).map((of) => html`<label><input type="checkbox" checked=${value.includes(of)} onInput=${() => flip(of)} /> ${of}</label>`)}
      </fieldset>`;
    }
    case "json":
    case "lines":
    case "textarea":
      return html`<textarea ...${common} rows=${field.type === "json" ? 6 : 3} value=${value} onInput=${onInput} spellcheck=${false}></textarea>`;
    case "integer":
    case "number":
      return html`<input type="number" ...${common} min=${field.min} max=${field.max} step=${field.type === "integer" ? 1 : "any"} value=${value} onInput=${onInput} />`;
    case "amount":
      return html`<input inputmode="decimal" pattern="-?[0-9]{1,9}([.][0-9]{1,9})?" ...${common} value=${value} onInput=${onInput} />`;
    case "time":
      return html`<input type="datetime-local" step="any" ...${common} value=${value} onInput=${onInput} />`;
    default:
      return html`<input type=${field.type ?? "text"} minlength=${field.minlength} autocomplete=${field.autocomplete ?? "off"} ...${common} value=${value} onInput=${onInput} />`;
  }
}

/** Whether an error of the API concerns the field: `models[1].name` concerns `models`. */
function concerns(/** @type {any} */ error, /** @type {Field} */ field) {
  const path = error?.field;
  return Boolean(path) && (path === field.name || path.startsWith(`${field.name}[`) || path.startsWith(`${field.name}.`));
}

/** A form. `submit` gets the values and may throw; the error is shown at its field. */
export function Form({ fields, initial = {}, submit, action, cancel, children }) {
  const first = () => Object.fromEntries(fields.map((field) => {
    const fallback = field.type === "switch" ? false : field.type === "choices" ? [] : field.type === "select" ? [field.options?.[0]].flat()[0] : undefined;
    return [field.name, toText(field, initial[field.name]) || (initial[field.name] ?? fallback ?? "")];
  }));
  const [shown, setShown] = useState(first);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [key] = useState(newIdempotencyKey);
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const values = {};
      for (const field of fields) {
        if (field.readonly) continue;
        try {
          const value = toValue(field, shown[field.name]);
          if (value !== undefined) values[field.name] = value;
        } catch (problem) {
          throw Object.assign(problem, { field: field.name });
        }
      }
      await submit(values, key);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const general = error && !fields.some((field) => concerns(error, field));
  return html`<form onSubmit=${send}>
    ${fields.map((field) => {
      const id = `field-${field.name}`;
      const invalid = concerns(error, field);
      const notes = [field.hint && `${id}-hint`, invalid && `${id}-error`].filter(Boolean).join(" ") || undefined;
      return html`<div class=${`field ${field.type ?? "text"}`} key=${field.name}>
        <label for=${field.type === "choices" ? undefined : id}>${field.label}${field.required ? html` <span class="muted">${t("(required)")}</span>` : ""}</label>
        <${Control} field=${field} id=${id} value=${shown[field.name]} invalid=${invalid ? "true" : undefined} describedby=${notes}
          change=${(value) => setShown((before) => ({ ...before, [field.name]: value }))} />
        ${field.hint && html`<p class="hint" id=${`${id}-hint`}>${field.hint}</p>`}
        ${invalid && html`<p class="field-error" role="alert" id=${`${id}-error`}>${error.message}</p>`}
      </div>`;
    })}
    ${children}
    ${general && html`<${ErrorNotice} error=${error} />`}
    <div class="form-actions">
      <button type="submit" class="primary" disabled=${busy}>${busy ? t("Working…") : action}</button>
      ${cancel && html`<button type="button" class="quiet" onClick=${cancel}>${t("Back")}</button>`}
    </div>
  </form>`;
}

/**
 * Opens a form in a dialog; resolves to the result of `submit`, or to `undefined` if it was dismissed. `other` draws another way to close it.
 * @param {{ title: string, fields: Field[], initial?: any, action: string, note?: any, submit: (values: any, key: string) => Promise<any>, other?: (close: (value?: any) => void) => any }} form
 */
export function openForm({ title, fields, initial, action, note, submit, other }) {
  return openDialog(title, (close) => html`${note && html`<p>${note}</p>`}${other?.(close)}
    <${Form} fields=${fields} initial=${initial} action=${action} cancel=${() => close()}
      submit=${async (values, key) => close((await submit(values, key)) ?? true)} />`);
}

/**
 * Creates an object with a form; shows its secret if it has one. `fixed` has members that are sent with the fields.
 * @param {{ title: string, path: string, fields: Field[], initial?: any, action?: string, note?: any, fixed?: object }} form
 */
export async function createObject({ title, path, fields, initial, action, note, fixed = {} }) {
  const send = async (values, key) => (await request("POST", path, { body: { ...values, ...fixed }, key })).data;
  const created = await openForm({ title, fields, initial, action: action ?? t("Create"), note, submit: send });
  if (created?.secret) await showSecret(created.secret);
  if (created) toast(t("Saved"));
  return created;
}

/**
 * Edits an object with a form: sends only the changed fields. If someone else has changed the object in the meantime, the form opens again
 * with the new values.
 */
export async function editObject({ title, path, fields, method = "PATCH" }) {
  let { data: current, etag } = await request("GET", path);
  let note = null;
  for (;;) {
    const send = async (values) => {
      const changed = Object.entries(values).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(current[name]));
      const body = method === "PATCH" ? Object.fromEntries(changed) : values;
      try {
        return (await request(method, path, { body, etag })).data;
      } catch (error) {
        if (error instanceof ApiError && error.status === 412) return error;
        throw error;
      }
    };
    const result = await openForm({ title, fields, initial: current, action: t("Save"), note, submit: send });
    if (!(result instanceof ApiError)) {
      if (result) toast(t("Saved"));
      return result;
    }
    ({ data: current, etag } = await request("GET", path));
    note = t("Someone else has changed this in the meantime. The form shows the new values: make your changes again.");
  }
}

/** Deletes an object. Fails if someone else changes the object in the meantime. */
export async function deleteObject(/** @type {string} */ path) {
  const { etag } = await request("GET", path);
  await request("DELETE", path, { etag });
  toast(t("Deleted"));
}

/** Shows a secret. It cannot be shown a second time. */
export function showSecret(/** @type {string} */ secret) {
  return openDialog(t("Copy this now"), (close) => html`<p>${t("It is shown only once, and stored only as a hash.")}</p>
    <p class="secret"><code>${secret}</code> <${CopyButton} text=${secret} /></p>
    <div class="form-actions"><button type="button" class="primary" onClick=${() => close(true)}>${t("I have copied it")}</button></div>`);
}

/** Runs the action of a button, and shows the error if the action fails. */
export async function run(/** @type {() => Promise<any>} */ action, /** @type {string} */ done = "") {
  try {
    const result = await action();
    if (done) toast(done);
    return result;
  } catch (error) {
    await openDialog(t("Action failed"), () => html`<${ErrorNotice} error=${error} />`);
    return undefined;
  }
}
