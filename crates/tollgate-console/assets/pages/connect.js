// The configuration of common clients for this gateway, to copy.
import { html, useState } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { address, base, clientsUrl, setQuery } from "../lib/router.js";
import { Code, PageHead } from "../lib/elements.js";

/**
 * The name and the text of each configuration, for the gateway at `url` and a chat model.
 * @type {[string, (url: string, model: string) => string][]}
 */
const CLIENTS = [
  ["curl", (url, model) => `curl ${url}/v1/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H "content-type: application/json" \\\n  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`],
  ["OpenAI SDK (Python)", (url, model) => `from openai import OpenAI\n\nclient = OpenAI(base_url="${url}/openai/v1", api_key="sk-…")\nreply = client.chat.completions.create(\n    model="${model}", messages=[{"role": "user", "content": "Hello"}])\nprint(reply.choices[0].message.content)`],
  ["OpenAI SDK (JavaScript)", (url, model) => `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${url}/openai/v1", apiKey: process.env.TOLLGATE_API_KEY });\nconst reply = await client.chat.completions.create({\n  model: "${model}", messages: [{ role: "user", content: "Hello" }] });\nconsole.log(reply.choices[0].message.content);`],
  ["Anthropic SDK (Python)", (url, model) => `from anthropic import Anthropic\n\nclient = Anthropic(base_url="${url}/anthropic", api_key="sk-…")\nreply = client.messages.create(model="${model}", max_tokens=1024,\n    messages=[{"role": "user", "content": "Hello"}])\nprint(reply.content[0].text)`],
  ["Google Gen AI SDK (Python)", (url, model) => `from google import genai\n\nclient = genai.Client(api_key="sk-…", http_options={"base_url": "${url}/gemini"})\nreply = client.models.generate_content(model="${model}", contents="Hello")\nprint(reply.text)`],
  ["Claude Code", (url, model) => `export ANTHROPIC_BASE_URL=${url}/anthropic\nexport ANTHROPIC_AUTH_TOKEN=sk-…\nclaude --model ${model}`],
  ["Codex CLI", (url, model) => `# ~/.codex/config.toml\nmodel = "${model}"\nmodel_provider = "tollgate"\n\n[model_providers.tollgate]\nname = "Tollgate"\nbase_url = "${url}/openai/v1"\nenv_key = "TOLLGATE_API_KEY"\nwire_api = "responses"`],
  ["Gemini CLI", (url, model) => `export GOOGLE_GEMINI_BASE_URL=${url}/gemini\nexport GEMINI_API_KEY=sk-…\ngemini --model ${model}`],
  ["LangChain", (url, model) => `from langchain_openai import ChatOpenAI\n\nchat = ChatOpenAI(base_url="${url}/openai/v1", api_key="sk-…", model="${model}")\nprint(chat.invoke("Hello").content)`],
  ["Vercel AI SDK", (url, model) => `import { createOpenAI } from "@ai-sdk/openai";\nimport { generateText } from "ai";\n\nconst tollgate = createOpenAI({ baseURL: "${url}/openai/v1", apiKey: process.env.TOLLGATE_API_KEY });\nconst { text } = await generateText({ model: tollgate("${model}"), prompt: "Hello" });`],
  ["Open WebUI", (url) => `docker run -p 3000:8080 -e OPENAI_API_BASE_URL=${url}/openai/v1 -e OPENAI_API_KEY=sk-… \\\n  ghcr.io/open-webui/open-webui:main`],
  ["Cursor", (url, model) => `Settings → Models → API Keys\nOpenAI API Key:           sk-…\nOverride OpenAI Base URL: ${url}/openai/v1\nAdd model:                ${model}`],
];

export function Connect() {
  const [model, setModel] = useState("gpt-5");
  const chosen = address.value.searchParams.get("client") ?? CLIENTS[0][0];
  const [name, text] = CLIENTS.find(([of]) => of === chosen) ?? CLIENTS[0];
  return html`<${PageHead} title=${t("Connect")}>${t("Configure the client with the URL of this gateway and an API key. All other settings are the same as for the provider.")}<//>
    <div class="filters">
      <label>${t("Client")}<select onChange=${(event) => setQuery({ client: event.target.value })}>${CLIENTS.map(([of]) => html`<option value=${of} selected=${of === name}>${of}</option>`)}</select></label>
      <label>${t("Model")}<input value=${model} onInput=${(event) => setModel(event.target.value)} /></label>
    </div>
    <h2>${name}</h2>
    <${Code} label=${name} text=${text(clientsUrl, model)} />
    <p>${t("Replace sk-… with an API key.")} ${base === "/console" && html`<a href=${`${base}/keys`}>${t("Create one under Keys.")}</a>`}</p>
    <p><a href="/docs" target="_blank" rel="noopener">${t("Documentation of the client API")}</a></p>`;
}
