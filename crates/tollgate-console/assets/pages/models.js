// Models with their prices: which ones are served, what they cost, and which ones the operator has added.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { can, get, request } from "../lib/api.js";
import { address, base, setQuery } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Badge, Load, PageHead, Table } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { confirm } from "../lib/dialog.js";
import { createObject, deleteObject, editObject, openForm, run } from "../lib/forms.js";

const AMOUNTS = ["per_image", "per_second", "per_video", "per_thousand_characters", "input_per_million", "output_per_million", "cached_input_per_million", "cache_write_per_million", "reasoning_per_million"];
const ABOUT = ["model", "source", "shadowed", "version", "id"];

const priceFields = () => [
  ...AMOUNTS.map((name) => ({ name, label: t(name), type: "amount", nullable: true })),
  { name: "when", label: t("Conditional prices"), type: "json", nullable: true, hint: t("A list, for example [{\"resolution\":\"4k\",\"per_second\":\"0.6\"}].") },
];

/** Sets the price of a model: creates one, or changes the existing one. */
async function setPrice(model, price) {
  const path = `/prices/${encodeURIComponent(model)}`;
  const title = t("Price of {model}", { model });
  if (price) return editObject({ title, path, fields: priceFields() });
  const submit = async (body) => (await request("PUT", path, { body, create: true })).data;
  return openForm({ title, fields: priceFields(), initial: {}, action: t("Save"), submit });
}

export function Models() {
  const [changed, setChanged] = useState(0);
  const wanted = (address.value.searchParams.get("model") ?? "").toLowerCase();
  const load = async (signal) => {
    const [models, prices] = await Promise.all([get("/models", {}, signal), allPrices(signal)]);
    return { models: models.data, prices };
  };
  return html`<${PageHead} title=${t("Models and prices")}>${t("A model without a price is free. Prices from the configuration file are read-only here.")}<//>
    <form class="filters" role="search" aria-label=${t("Filters")} onSubmit=${(event) => event.preventDefault()}>
      <label>${t("Model")}<input type="search" value=${wanted} onInput=${(event) => setQuery({ model: event.target.value })} /></label></form>
    <h2>${t("Models")}</h2>
    <${Load} deps=${[changed]} load=${load}>${({ models, prices }) => html`<${ModelTable} models=${models} prices=${prices} wanted=${wanted} changed=${() => setChanged((n) => n + 1)} />`}<//>
    <${Custom} />`;
}

async function allPrices(signal) {
  const prices = [];
  let cursor = null;
  do {
    const page = await get("/prices", { limit: 200, cursor }, signal);
    prices.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor);
  return prices;
}

function ModelTable({ models, prices, wanted, changed }) {
  const priceOf = new Map(prices.filter((price) => !price.shadowed).map((price) => [price.model, price]));
  const known = new Set(models.map((model) => model.id));
  const others = prices.filter((price) => !known.has(price.model)).map((price) => ({ id: price.model, kind: "chat", family: null }));
  const rows = [...models, ...others].filter((model) => model.id.toLowerCase().includes(wanted) || model.aliases?.some((alias) => alias.toLowerCase().includes(wanted)));
  const remove = async (model) => {
    if (!(await confirm(t("Delete the price of {model}? The model is then free.", { model }), t("Delete the price")))) return;
    await run(() => deleteObject(`/prices/${encodeURIComponent(model)}`));
    changed();
  };
  const columns = [
    { label: t("Model"), cell: (row) => html`<a href=${`${base}/playground?model=${encodeURIComponent(row.id)}`}>${row.id}</a>${row.aliases?.length ? html`<div class="muted">${row.aliases.join(", ")}</div>` : ""}` },
    { label: t("Kind"), cell: (row) => html`<${Badge} of=${row.kind} />` }, { label: t("Family"), cell: (row) => row.family },
    { label: t("Price"), cell: (row) => html`<${Price} price=${priceOf.get(row.id)} />` },
    { label: t("Source"), cell: (row) => (priceOf.has(row.id) ? html`<${Badge} of=${priceOf.get(row.id).source} />` : "–") },
    { label: t("Actions"), cell: (row) => {
      const price = priceOf.get(row.id);
      const may = can("prices:write") && (!price || price.source === "database");
      return html`<span class="row"><button type="button" disabled=${!may} aria-label=${`${t("Set price")}: ${row.id}`} onClick=${async () => (await run(() => setPrice(row.id, price))) && changed()}>${t("Set price")}</button>
        ${price?.source === "database" && html`<button type="button" class="danger" disabled=${!may} onClick=${() => remove(row.id)}>${t("Delete")}</button>`}</span>`;
    } },
  ];
  return rows.length ? html`<${Table} label=${t("Models")} columns=${columns} rows=${rows} />` : html`<div class="empty"><p>${t("No model has this name.")}</p></div>`;
}

function Price({ price }) {
  if (!price) return html`<span class="muted">${t("no price")}</span>`;
  const set = Object.entries(price).filter(([name, value]) => !ABOUT.includes(name) && typeof value === "string");
  return html`${set.map(([name, value]) => html`<div>${money(value)} <span class="muted">${t(name)}</span></div>`)}
    ${price.when?.length > 0 && html`<div class="muted">${t("{n} conditional prices", { n: price.when.length })}</div>`}`;
}

function Custom() {
  const [changed, setChanged] = useState(0);
  const create = async () => {
    const fields = [{ name: "name", label: t("Name"), required: true }, { name: "like", label: t("Same fields as the model"), required: true }];
    (await createObject({ title: t("New model"), path: "/models/custom", fields })) && setChanged((n) => n + 1);
  };
  const remove = async (name) => {
    if (!(await confirm(t("Delete this model?"), t("Delete")))) return;
    await run(() => deleteObject(`/models/custom/${encodeURIComponent(name)}`));
    setChanged((n) => n + 1);
  };
  const columns = [
    { label: t("Name"), cell: (row) => row.name }, { label: t("Same fields as"), cell: (row) => row.like }, { label: t("Source"), cell: (row) => html`<${Badge} of=${row.source} />` },
    { label: t("Actions"), cell: (row) => html`<button type="button" class="danger" disabled=${!can("prices:write") || row.source !== "database"} onClick=${() => remove(row.name)}>${t("Delete")}</button>` },
  ];
  return html`<h2>${t("Custom models")}</h2><div class="row"><button type="button" disabled=${!can("prices:write")} onClick=${create}>${t("New model")}</button></div>
    <${List} path="/models/custom" label=${t("Custom models")} columns=${columns} refresh=${changed} empty=${html`<p>${t("No custom models. Add one to serve a model that is not in the catalogue, with the fields of a model that is.")}</p>`} />`;
}
