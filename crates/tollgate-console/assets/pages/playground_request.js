// A request of the playground: its price, and the same request in code.
import { html, useEffect, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { API, request as sendRequest } from "../lib/api.js";
import { clientsUrl } from "../lib/router.js";
import { money } from "../lib/format.js";
import { Code, Json } from "../lib/elements.js";
import { apiKey } from "../lib/client.js";

/** The price of the request. The quote is requested half a second after the last change. */
export function Quote({ endpoint, request }) {
  const [quote, setQuote] = useState(/** @type {any} */ ({}));
  const text = JSON.stringify(request);
  // On the client API a quote needs an API key; a request with nothing but the model is not quoted yet.
  const isRequested = (API !== "/v1" || Boolean(apiKey.value)) && Object.keys(request).length > 1;
  const requestQuote = () => sendRequest("POST", "/quote", { body: { endpoint, request }, bearer: API === "/v1" ? apiKey.value : undefined });
  useEffect(() => {
    if (!isRequested) return undefined;
    const timer = setTimeout(() => requestQuote().then(({ data }) => setQuote({ value: data }), (error) => setQuote({ error })), 500);
    return () => clearTimeout(timer);
  }, [endpoint, text, apiKey.value]);
  if (!isRequested) return null;
  const { value, error } = quote;
  if (error) return html`<p class="notice warn" role="status">${error.message}</p>`;
  if (!value) return html`<p class="muted" role="status">${t("Calculating the price…")}</p>`;
  return html`<div role="status"><p>${value.exact === false ? t("At most") : t("Costs")} <strong>${money(value.total)} ${value.currency}</strong>
      ${value.units != null && value.price != null && html` <span class="muted">${t("{units} × {price} per {unit}", { ...value, unit: t(value.unit) })}</span>`}
      ${value.channels && html`<br /><span class="muted">${t("Channels:")} ${value.channels.join(", ") || t("none")}</span>`}</p>
    <details><summary>${t("What is sent to the provider")}${value.adjustments?.length ? ` · ${t("{n} adjustments", { n: value.adjustments.length })}` : ""}</summary>
      <${Json} label=${t("What is sent to the provider")} value=${{ job: value.job, adjustments: value.adjustments }} /></details></div>`;
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
