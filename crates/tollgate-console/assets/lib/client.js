// The requests of the playground: to the client API, with an API key that stays in this tab's memory.
import { signal } from "./ui.js";
import { ApiError, newIdempotencyKey } from "./api.js";
import { readEvents } from "./live.js";

/** The API key of the playground; lost when the tab is closed or reloaded. */
export const apiKey = signal("");

async function send(path, init = {}) {
  const headers = { authorization: `Bearer ${apiKey.value}`, ...init.headers };
  const response = await fetch(path, { ...init, headers, credentials: "omit" });
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new ApiError(response.status, body, null);
}

/** Submits a request for a task and returns the task's id. */
export async function submitTask(endpoint, body) {
  const headers = { "content-type": "application/json", "idempotency-key": newIdempotencyKey() };
  const receipt = await (await send(endpoint, { method: "POST", headers, body: JSON.stringify(body) })).text();
  const id = /"(task_[0-9a-z]{10,})"/.exec(receipt)?.[1];
  if (!id) throw new Error(receipt.slice(0, 300));
  return id;
}

/** The record of a task: its state, its progress in percent, and the record itself. */
export async function readTask(id) {
  const record = await (await send(`/v1/tasks/${encodeURIComponent(id)}`)).json();
  const data = record.data && !Array.isArray(record.data) ? record.data : record;
  return { state: data.status, progress: parseInt(data.progress, 10) || 0, record };
}

/** Uploads an image as a reference and returns its URL. */
export async function uploadImage(file) {
  const form = new FormData();
  form.append("file", file);
  return (await (await send("/v1/uploads/images", { method: "POST", body: form })).json()).url;
}

/**
 * The four chat formats: path, body of a conversation of `{role, text, image?}`, and the text of one event of the stream.
 * @type {Record<string, { path: (model: string) => string, body: (model: string, turns: any[]) => any, text: (event: any) => string }>}
 */
export const FORMATS = {
  "chat-completions": {
    path: () => "/openai/v1/chat/completions",
    body: (model, turns) => ({ model, stream: true, messages: turns.map(({ role, text, image }) => ({ role, content: image ? [{ type: "text", text }, { type: "image_url", image_url: { url: image } }] : text })) }),
    text: (event) => event.choices?.[0]?.delta?.content ?? calls(event.choices?.[0]?.delta?.tool_calls),
  },
  responses: {
    path: () => "/openai/v1/responses",
    body: (model, turns) => ({ model, stream: true, input: turns.map(({ role, text, image }) => ({ role, content: image ? [{ type: "input_text", text }, { type: "input_image", image_url: image }] : text })) }),
    text: (event) => (event.type === "response.output_text.delta" || event.type === "response.function_call_arguments.delta" ? event.delta : ""),
  },
  messages: {
    path: () => "/anthropic/v1/messages",
    body: (model, turns) => ({ model, stream: true, max_tokens: 1024, messages: turns.map(({ role, text, image }) => ({ role, content: image ? [{ type: "text", text }, { type: "image", source: { type: "base64", ...splitDataUri(image) } }] : text })) }),
    text: (event) => event.delta?.text ?? event.delta?.partial_json ?? "",
  },
  "generate-content": {
    path: (model) => `/gemini/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
    body: (_, turns) => ({ contents: turns.map(({ role, text, image }) => ({ role: role === "assistant" ? "model" : "user", parts: [{ text }, ...(image ? [{ inline_data: { mime_type: splitDataUri(image).media_type, data: splitDataUri(image).data } }] : [])] })) }),
    text: (event) => (event.candidates?.[0]?.content?.parts ?? []).map((part) => part.text ?? (part.functionCall ? JSON.stringify(part.functionCall) : "")).join(""),
  },
};

function calls(list) {
  return (list ?? []).map((call) => `${call.function?.name ?? ""}${call.function?.arguments ?? ""}`).join("");
}

function splitDataUri(uri) {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/.exec(uri) ?? ["", "", ""];
  return { media_type, data };
}

/** Sends a chat and calls `add` with each piece of the reply. */
export async function streamChat(format, model, body, add, signal) {
  const { path, text } = FORMATS[format];
  const response = await send(path(model), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
  for await (const { data } of readEvents(response)) {
    if (!data || data === "[DONE]") continue;
    const event = JSON.parse(data);
    if (event.error) throw new ApiError(response.status, event, null);
    add(text(event));
  }
}
