"use strict";
const $ = (id) => document.getElementById(id);
const METHODS = ["get", "post", "put", "patch", "delete"];
const FINAL = ["completed", "failed", "cancelled"];
let api = {};

/* ---- small helpers ------------------------------------------------------------------------ */

/** An element with attributes and children; strings become text, never markup. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== ""));
  return node;
}

/** Text in which `this` becomes code. */
function prose(text) {
  return String(text || "").split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/** Follows $ref within the document. */
function resolve(schema) {
  let seen = 0;
  while (schema && schema.$ref && seen++ < 20) {
    const name = schema.$ref.replace(/^#\//, "").split("/");
    schema = name.reduce((at, part) => at && at[part.replace(/~1/g, "/").replace(/~0/g, "~")], api);
  }
  return schema || {};
}

/** The alternatives of a schema: the schema itself if it has none. */
function variants(schema) {
  const resolved = resolve(schema);
  const several = resolved.oneOf || resolved.anyOf;
  return several ? several.flatMap(variants) : [resolved];
}

function bodySchema(operation) {
  const content = resolve(operation.requestBody).content || {};
  const type = Object.keys(content)[0];
  return type ? { type, schema: content[type].schema || {} } : null;
}

const anchor = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
const pretty = (value) => JSON.stringify(value, null, 2);

/* ---- reading: schemas, endpoints, families ------------------------------------------------ */

function typeName(schema) {
  const s = resolve(schema);
  if (s.const !== undefined) return "always " + JSON.stringify(s.const);
  if (s.oneOf || s.anyOf) return [...new Set(variants(s).map(typeName))].join(" or ");
  const type = Array.isArray(s.type) ? s.type.join(" or ") : s.type || (s.properties ? "object" : "any");
  if (type !== "array") return type;
  const items = resolve(s.items);
  return "array of " + typeName(items) + (s.maxItems ? ", at most " + s.maxItems : "");
}

function valuesOf(schema) {
  const s = resolve(schema);
  const parts = [];
  const list = s.enum || s.examples;
  if (list) {
    const shown = list.slice(0, 24).flatMap((v, at) => [at ? " " : "", el("code", {}, String(v))]);
    parts.push(el("span", {}, shown, list.length > 24 ? ` and ${list.length - 24} more` : ""));
  }
  if (s.minimum !== undefined || s.maximum !== undefined) {
    parts.push(`${s.minimum ?? "…"} to ${s.maximum ?? "…"}`);
  }
  if (s.maxLength) parts.push(`at most ${s.maxLength} characters`);
  if (s.items) parts.push(...valuesOf(s.items));
  return parts;
}

/** The most used fields come first; the document has the fields in alphabetical order. */
const FIRST = ["model", "prompt", "size", "resolution", "quality", "n", "output_format"];
function ordered(properties) {
  const rank = ([name]) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return Object.entries(properties || {}).sort((a, b) => rank(a) - rank(b));
}

/** One row for each field, members of objects below their object. */
function rows(schema, prefix = "", depth = 0) {
  const s = resolve(schema);
  const required = s.required || [];
  return ordered(s.properties).flatMap(([name, field]) => {
    const f = resolve(field);
    const must = required.includes(name) ? el("div", { class: "required" }, "required") : null;
    const preset = f.default === undefined ? null : el("code", {}, typeof f.default === "string" ? f.default : JSON.stringify(f.default));
    const row = el("tr", {},
      el("td", {}, el("code", {}, prefix + name), must),
      el("td", {}, typeName(f)),
      el("td", { class: "values" }, valuesOf(f)),
      el("td", {}, preset),
      el("td", {}, prose(f.description)));
    const inner = f.items ? resolve(f.items) : f;
    const below = depth < 3 && inner.properties ? rows(inner, prefix + name + (f.items ? "[]." : "."), depth + 1) : [];
    return [row, ...below];
  });
}

function fieldTable(schema, caption) {
  const body = rows(schema);
  if (!body.length) return el("p", { class: "hint" }, typeName(schema), " ", valuesOf(schema));
  const head = el("tr", {}, ["Field", "Type", "Values", "Default", "Meaning"].map((h) => el("th", { scope: "col" }, h)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

function parameterTable(parameters) {
  const body = parameters.map(resolve).map((p) => el("tr", {},
    el("td", {}, el("code", {}, p.name), p.required ? el("div", { class: "required" }, "required") : null),
    el("td", {}, p.in),
    el("td", {}, typeName(p.schema)),
    el("td", { class: "values" }, valuesOf(p.schema)),
    el("td", {}, prose(p.description))));
  const head = el("tr", {}, ["Parameter", "In", "Type", "Values", "Meaning"].map((h) => el("th", { scope: "col" }, h)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parameters" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

/** Statuses with the same response share an entry. */
function responseList(responses) {
  const alike = new Map();
  for (const [status, response] of Object.entries(responses || {})) {
    const r = resolve(response);
    const same = JSON.stringify([r.description, r.content]);
    alike.set(same, { r, statuses: [...((alike.get(same) || {}).statuses || []), status] });
  }
  return el("div", {}, [...alike.values()].map(({ r, statuses }) => {
    const title = [statuses.flatMap((s, at) => [at ? " " : "", el("code", {}, s)]), " ", prose(r.description)];
    const content = Object.values(r.content || {})[0];
    const shapes = content && content.schema ? variants(content.schema).filter((v) => v.properties) : [];
    if (!shapes.length) return el("p", {}, title);
    const tables = shapes.map((v, at) => {
      const name = v.title || (shapes.length > 1 ? `Shape ${at + 1} of ${shapes.length}, by model` : "");
      return [name ? el("h4", {}, name) : null, fieldTable(v, `Response ${statuses.join(", ")}`)];
    });
    return el("details", { class: "more" }, el("summary", {}, title), tables);
  }));
}

function operationCard(path, method, operation) {
  const id = "op-" + anchor(method + path);
  const parts = [];
  if (operation.description) parts.push(el("p", {}, prose(operation.description)));
  if (operation.parameters && operation.parameters.length) parts.push(el("h4", {}, "Parameters"), parameterTable(operation.parameters));
  const body = bodySchema(operation);
  if (body) {
    const options = variants(body.schema);
    parts.push(el("h4", {}, "Body: " + body.type));
    if (options.length > 1 || options.some((o) => o.properties && o.properties.model)) {
      const links = options.flatMap((o, at) => [at ? ", " : "", el("a", { href: "#family-" + anchor(o.title || "") }, o.title || "variant " + (at + 1))]);
      parts.push(el("p", {}, "The fields depend on the model: ", links));
    } else {
      parts.push(fieldTable(options[0], "Body"));
    }
  }
  parts.push(el("h4", {}, "Responses"), responseList(operation.responses));
  return el("details", { class: "card", id },
    el("summary", {},
      el("span", { class: "method " + method }, method.toUpperCase()),
      el("span", { class: "path" }, path),
      el("span", { class: "summary" }, operation.summary || "")),
    el("div", {}, parts));
}

/** Every family of models: its path, its fields and its model ids. */
function families() {
  const found = [];
  for (const [path, item] of Object.entries(api.paths || {})) {
    const body = item.post && bodySchema(item.post);
    if (!body || body.type !== "application/json") continue;
    for (const schema of variants(body.schema)) {
      const model = resolve((schema.properties || {}).model);
      const models = model.enum || (model.const ? [model.const] : []);
      if (models.length) found.push({ path, schema, models, title: schema.title || models[0] });
    }
  }
  // The path that serves most families comes first; the order within it stays.
  const weight = (path) => found.filter((f) => f.path === path).length;
  return found.sort((a, b) => weight(b.path) - weight(a.path));
}

function familyCard(family) {
  return el("details", { class: "card", id: "family-" + anchor(family.title) },
    el("summary", {}, el("h3", {}, family.title), el("span", { class: "summary" }, family.models.join(" · "))),
    el("div", {},
      el("p", {}, prose(family.schema.description)),
      el("p", {}, el("span", { class: "method post" }, "POST"), " ", el("span", { class: "path" }, family.path)),
      fieldTable(family.schema, "Fields of " + family.title)));
}

/** The operations by their first tag, in the document's order of tags. */
function groups() {
  const found = new Map((api.tags || []).map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const [path, item] of Object.entries(api.paths || {})) {
    for (const method of METHODS.filter((m) => item[m])) {
      const name = (item[method].tags || ["Other"])[0];
      if (!found.has(name)) found.set(name, { name, operations: [] });
      found.get(name).operations.push({ path, method, operation: item[method] });
    }
  }
  return [...found.values()].filter((group) => group.operations.length);
}

function contents(all) {
  const list = (title, links) => [el("h2", {}, title), el("ul", {}, links.map(([href, text]) => el("li", {}, el("a", { href }, text))))];
  const link = ({ method, path }) => ["#op-" + anchor(method + path), method.toUpperCase() + " " + path];
  $("contents").append(
    ...list("Start", [["#try", "Try it"]]),
    ...list("Models", all.map((f) => ["#family-" + anchor(f.title), f.title])),
    ...groups().flatMap((group) => list(group.name, group.operations.map(link))));
}

/** A link into a closed card opens it. */
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
}

/* ---- trying: a form generated from the model's schema ------------------------------------- */

let chosen = null;

function chooseModel(all) {
  const name = $("model").value;
  chosen = all.find((f) => f.models.includes(name));
  $("model-hint").textContent = chosen ? "POST " + chosen.path : "";
  const kept = request();
  const fields = ordered(chosen && chosen.schema.properties).filter(([name]) => name !== "model");
  const must = (name) => (chosen.schema.required || []).includes(name);
  const control = ([name, schema]) => fieldControl(name, resolve(schema), must(name), kept[name]);
  const long = ([name, schema]) => name === "prompt" || isLong(resolve(schema));
  const group = (some) => [...some.filter(long).map(control), el("div", { class: "row" }, some.filter((f) => !long(f)).map(control))];
  const usual = ([name]) => must(name) || FIRST.includes(name);
  const rest = fields.filter((f) => !usual(f));
  $("fields").replaceChildren($("fields").firstElementChild, ...group(fields.filter(usual)),
    ...(rest.length ? [el("details", { class: "more" }, el("summary", {}, `More fields (${rest.length})`), group(rest))] : []));
  $("upload-field").hidden = !referenceField();
}

const isLong = (s) => s.type === "array" || s.type === "object" || Boolean(s.properties);
const referenceField = () => document.querySelector("#fields [data-kind=lines]");

function fieldControl(name, schema, required, value) {
  const id = "field-" + name;
  const common = { id, name, required, "aria-describedby": id + "-hint" };
  const preset = schema.default === undefined ? "not sent" : `not sent (${schema.default})`;
  const options = (values) => values.map((v) => el("option", { value: v }, String(v)));
  let input;
  if (name === "prompt") {
    input = el("textarea", { ...common, rows: "3", maxlength: schema.maxLength, "data-kind": "text", placeholder: "A lighthouse at dawn, gulls, long light" });
  } else if (schema.enum) {
    input = el("select", { ...common, "data-kind": typeof schema.enum[0] === "string" ? "text" : "json" }, required ? [] : el("option", { value: "" }, preset), options(schema.enum));
  } else if (schema.type === "boolean") {
    input = el("select", { ...common, "data-kind": "json" }, el("option", { value: "" }, preset), options(["true", "false"]));
  } else if (schema.type === "integer" || schema.type === "number") {
    input = el("input", { ...common, type: "number", min: schema.minimum, max: schema.maximum, step: schema.type === "integer" ? "1" : "any", placeholder: preset, "data-kind": "json" });
  } else if (schema.type === "array" && resolve(schema.items).type === "string") {
    input = el("textarea", { ...common, rows: "2", "data-kind": "lines", placeholder: "one to a line", spellcheck: "false" });
  } else if (isLong(schema)) {
    input = el("textarea", { ...common, rows: "2", "data-kind": "json", placeholder: "JSON", spellcheck: "false" });
  } else {
    const list = schema.examples ? id + "-list" : null;
    input = el("input", { ...common, type: "text", list, placeholder: preset, "data-kind": "text" });
    if (list) input = [input, el("datalist", { id: list }, options(schema.examples))];
  }
  const control = Array.isArray(input) ? input[0] : input;
  if (value !== undefined) control.value = control.dataset.kind === "lines" ? value.join("\n") : typeof value === "string" ? value : JSON.stringify(value);
  if (control.tagName === "SELECT" && control.selectedIndex < 0) control.selectedIndex = 0;
  const must = required ? el("span", { class: "required" }, " required") : null;
  return el("div", { class: "field" }, el("label", { for: id }, name, must), input, el("span", { class: "hint", id: id + "-hint" }, prose(schema.description)));
}

/** The request in the form. Sets a validation message on a field whose text is not JSON. */
function request() {
  const body = { model: $("model").value };
  for (const input of document.querySelectorAll("#fields [data-kind]")) {
    const text = input.value.trim();
    input.setCustomValidity("");
    if (!text) continue;
    if (input.dataset.kind === "text") body[input.name] = input.value;
    else if (input.dataset.kind === "lines") body[input.name] = text.split(/\s*\n\s*/);
    else try { body[input.name] = JSON.parse(text); } catch { input.setCustomValidity("This is not JSON."); }
  }
  return body;
}

async function call(method, path, body) {
  const headers = { authorization: "Bearer " + $("key").value.trim() };
  if (body && !(body instanceof FormData)) { headers["content-type"] = "application/json"; body = JSON.stringify(body); }
  const response = await fetch(path, { method, headers, body });
  const text = await response.text();
  let json;
  try { json = JSON.parse(text); } catch { json = { error: { message: text.slice(0, 500) || response.statusText } }; }
  return { ok: response.ok, status: response.status, json };
}

const errorText = ({ status, json }) => `${status}: ${json.error ? json.error.message || json.error : json.message || "no message"}`;

/* ---- a task from its submission to its end ------------------------------------------------ */

let current = null;

function show(state, kind, detail) {
  $("outcome").hidden = false;
  $("state").textContent = state;
  $("state").className = kind;
  $("detail").textContent = detail || "";
}

const percent = (progress) => (typeof progress === "string" ? parseInt(progress, 10) : progress) || 0;

function links(record) {
  const standard = ((record.result && record.result.images) || []).flatMap((image) => image.url);
  const items = ((record.result && record.result.items) || []).flatMap((item) => (item.data || []).map((d) => d.url));
  return [...new Set([...standard, ...items, record.result_url, record.url].filter((u) => typeof u === "string" && u))];
}

/** Our own files are shown from here, whatever name the server has outside. */
function local(url) {
  const parsed = new URL(url, location.href);
  return parsed.pathname.startsWith("/files/") ? parsed.pathname + parsed.search : url;
}

function showResults(record) {
  const prompt = $("field-prompt") ? $("field-prompt").value : "";
  const figures = links(record).map((url, at) => {
    const caption = el("figcaption", {}, el("a", { href: local(url), download: "" }, `Download result ${at + 1}`));
    const label = `Result ${at + 1}: ${prompt}`.slice(0, 300);
    const extension = new URL(url, location.href).pathname.split(".").pop();
    if (extension === "mp4") return el("figure", {}, el("video", { src: local(url), controls: true, "aria-label": label }), caption);
    if (["mp3", "wav"].includes(extension)) return el("figure", {}, el("audio", { src: local(url), controls: true, "aria-label": label }), caption);
    const image = el("img", { src: local(url), alt: label });
    image.addEventListener("load", () => caption.append(` · ${image.naturalWidth}×${image.naturalHeight}`));
    return el("figure", {}, image, caption);
  });
  $("results").replaceChildren(...figures);
}

async function follow(task) {
  const began = Date.now();
  while (current === task) {
    const got = await call("GET", "/v1/tasks/" + encodeURIComponent(task));
    if (current !== task) return;
    $("record").textContent = pretty(got.json);
    if (!got.ok && got.status < 500 && got.status !== 429) return show("Lost", "bad", errorText(got));
    const record = got.json.data && got.json.data.status ? got.json.data : got.json;
    if (got.ok) $("progress").value = percent(record.progress);
    if (FINAL.includes(record.status)) return finish(task, record, began);
    const seconds = Math.round((Date.now() - began) / 1000);
    show(record.status === "submitted" || record.status === "queued" ? "Waiting" : "Working", "", `${task} · ${seconds} s`);
    await new Promise((wake) => setTimeout(wake, seconds < 15 ? 700 : 3000));
  }
}

function finish(task, record, began) {
  current = null;
  $("cancel").hidden = true;
  $("submit").disabled = false;
  const cost = record.cost === undefined ? "" : ` · cost ${record.cost}`;
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  if (record.status === "completed") {
    show("Completed", "good", `${task} · ${seconds} s${cost}`);
    showResults(record);
  } else {
    const error = record.error || {};
    show(record.status === "cancelled" || error.code === "cancelled" ? "Cancelled" : "Failed", "bad", `${error.message || error.code || ""} · ${task}${cost}`);
  }
}

async function submit(event) {
  event.preventDefault();
  const body = request();
  // Invalid fields must be visible, so that the user can correct them.
  for (const input of document.querySelectorAll("#fields :invalid")) { const more = input.closest("details"); if (more) more.open = true; }
  if (!$("form").reportValidity()) return;
  $("submit").disabled = true;
  $("results").replaceChildren();
  $("receipt").textContent = $("record").textContent = "";
  $("progress").value = 0;
  show("Submitting", "");
  try {
    const sent = await call("POST", chosen.path, body);
    $("receipt").textContent = pretty(sent.json);
    const receipt = Array.isArray(sent.json.data) ? sent.json.data[0] : sent.json;
    const task = sent.ok && receipt && (receipt.task_id || receipt.id);
    if (!task) { $("submit").disabled = false; return show("Rejected", "bad", errorText(sent)); }
    current = task;
    $("cancel").hidden = false;
    await follow(task);
  } catch (error) {
    show("No connection", "bad", String(error));
  }
  $("submit").disabled = false;
  $("cancel").hidden = true;
}

async function cancel() {
  if (!current) return;
  const got = await call("POST", `/v1/tasks/${encodeURIComponent(current)}/cancel`, {});
  if (!got.ok) show("Not cancelled", "bad", errorText(got));
}

async function upload() {
  const file = $("file").files[0];
  if (!file) { $("upload-is").textContent = "Choose a file first."; return; }
  const form = new FormData();
  form.append("file", file);
  $("upload-is").textContent = "Uploading…";
  try {
    const got = await call("POST", "/v1/uploads/images", form);
    if (!got.ok) { $("upload-is").textContent = errorText(got); return; }
    const { url, content_type: type, bytes } = got.json;
    const field = referenceField();
    if (field) { field.value = (field.value.trim() + "\n" + url).trim(); const more = field.closest("details"); if (more) more.open = true; }
    $("upload-is").replaceChildren(`${type}, ${bytes} bytes: `, el("a", { href: local(url), target: "_blank", rel: "noopener" }, url));
  } catch (error) {
    $("upload-is").textContent = "No connection: " + error;
  }
}

async function balance() {
  try {
    const got = await call("GET", "/v1/balance");
    const b = got.json;
    $("balance-is").textContent = b.success ? `Left: ${b.unlimited_quota ? "no limit" : b.remain_balance}, used: ${b.used_balance}.` : errorText(got);
  } catch (error) {
    $("balance-is").textContent = "No connection: " + error;
  }
}

async function copyCurl() {
  const quoted = JSON.stringify(request()).replace(/'/g, "'\\''");
  const text = `curl -s ${location.origin}${chosen.path} -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '${quoted}'`;
  try { await navigator.clipboard.writeText(text); $("copied").textContent = "Copied; set KEY to your key."; }
  catch { $("copied").textContent = text; }
}

/* ---- start -------------------------------------------------------------------------------- */

function start() {
  const info = api.info || {};
  $("title").textContent = info.title || "Tollgate API";
  $("about").replaceChildren(...prose(info.description), info.version ? ` Version ${info.version}.` : "");
  const all = families();
  contents(all);
  $("families").append(...all.map(familyCard));
  for (const group of groups()) {
    $("paths").append(el("h3", { class: "group" }, group.name), el("p", { class: "summary" }, prose(group.description)),
      ...group.operations.map(({ path, method, operation }) => operationCard(path, method, operation)));
  }
  $("model").append(...all.map((f) => el("optgroup", { label: f.title }, f.models.map((m) => el("option", { value: m }, m)))));
  $("model").addEventListener("change", () => chooseModel(all));
  chooseModel(all);
  openTarget();
}

function remember() {
  // The page also works without storage.
  try { $("key").value = sessionStorage.getItem("key") || ""; } catch { /* private mode */ }
  $("key").addEventListener("change", () => { try { sessionStorage.setItem("key", $("key").value.trim()); } catch { /* private mode */ } });
}

remember();
$("form").addEventListener("submit", submit);
$("cancel").addEventListener("click", cancel);
$("upload").addEventListener("click", upload);
$("balance").addEventListener("click", balance);
$("copy").addEventListener("click", copyCurl);
$("show").addEventListener("click", () => {
  const hidden = $("key").type === "password";
  $("key").type = hidden ? "text" : "password";
  $("show").textContent = hidden ? "Hide" : "Show";
  $("show").setAttribute("aria-pressed", String(hidden));
});
addEventListener("hashchange", openTarget);
fetch("/openapi.json")
  .then((response) => (response.ok ? response.json() : Promise.reject(new Error("status " + response.status))))
  .then((json) => { api = json; start(); })
  .catch((error) => { $("about").textContent = "The description of the API did not load: " + error.message; $("about").className = "notice"; });
