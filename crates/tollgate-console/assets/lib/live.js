// The live tail: server-sent events of tasks and chats, read with fetch because EventSource sends no Authorization.
import { request } from "./api.js";

/**
 * Calls `report` with type and data of every event until the returned function is called. If the connection ends, it
 * is reopened after two seconds, and continues after the last event.
 * @param {(type: string, data: any) => void} report
 * @param {string} [path]
 * @returns {() => void}
 */
export function follow(report, path = "/tail") {
  const abort = new AbortController();
  let lastEventId = "";
  const connect = async () => {
    try {
      const options = { accept: "text/event-stream", raw: true, signal: abort.signal, lastEventId };
      const { response } = await request("GET", path, options);
      for await (const event of readEvents(response)) {
        lastEventId = event.id || lastEventId;
        if (event.data) report(event.type, JSON.parse(event.data));
      }
    } catch {
      // The error is not shown: the connection is reopened below.
    }
    if (!abort.signal.aborted) setTimeout(connect, 2000);
  };
  connect();
  return () => abort.abort();
}

/** The server-sent events of a response. @param {Response} response */
export async function* readEvents(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = { type: "message", id: "", data: "" };
      for (const line of block.split(/\r?\n/)) {
        const [, name, text] = /^(\w+): ?(.*)$/.exec(line) ?? [];
        if (name === "event") event.type = text;
        if (name === "id") event.id = text;
        if (name === "data") event.data += event.data ? `\n${text}` : text;
      }
      yield event;
    }
  }
}
