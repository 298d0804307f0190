// Results: images, videos with a player, audio with its waveform.
import { html, useEffect, useRef, useState } from "./ui.js";
import { t } from "./i18n.js";
import { theme } from "./theme.js";

const BARS = 120;

/** The URL of a file on this site, independent of the host name in the links that the gateway sends to clients. */
export function localUrl(/** @type {string} */ url) {
  const parsed = new URL(url, location.href);
  return parsed.pathname.startsWith("/files/") ? parsed.pathname + parsed.search : url;
}

/** Every link to an image, video or audio in a client's record, with its kind. */
export function filesOfRecord(record, kind) {
  const found = [];
  const walk = (value, name) => {
    if (typeof value === "string" && /^https?:\/\//.test(value) && /url/i.test(name)) found.push(value);
    else if (Array.isArray(value)) value.forEach((one) => walk(one, name));
    else if (value && typeof value === "object") for (const [key, one] of Object.entries(value)) walk(one, key);
  };
  walk(record, "");
  const type = { image: "image/png", video: "video/mp4", speech: "audio/mpeg" }[kind];
  return [...new Set(found)].map((url) => ({ url, type }));
}

/** One result, drawn by its media type. */
export function Media({ file, label }) {
  const [failed, setFailed] = useState(false);
  const url = localUrl(file.url);
  const onError = () => setFailed(true);
  if (failed) return html`<p class="media-failed">${t("The file has expired or cannot be shown.")}</p>`;
  if (file.type?.startsWith("video/")) return html`<video src=${url} controls preload="metadata" aria-label=${label} onError=${onError}></video>`;
  if (file.type?.startsWith("audio/")) return html`<${Audio} url=${url} label=${label} onError=${onError} />`;
  return html`<img src=${url} alt=${label} loading="lazy" onError=${onError} />`;
}

function Audio({ url, label, onError }) {
  const canvas = useRef(null);
  const dark = theme.value;
  useEffect(() => {
    const abort = new AbortController();
    drawWaveform(canvas.current, url, abort.signal).catch(() => {});
    return () => abort.abort();
  }, [url, dark]);
  return html`<div class="audio">
    <canvas ref=${canvas} width="480" height="72" aria-hidden="true"></canvas>
    <audio src=${url} controls preload="metadata" aria-label=${label} onError=${onError}></audio>
  </div>`;
}

async function drawWaveform(canvas, url, signal) {
  const bytes = await (await fetch(url, { signal })).arrayBuffer();
  const audio = await new OfflineAudioContext(1, 1, 44100).decodeAudioData(bytes);
  if (signal.aborted) return;
  const samples = audio.getChannelData(0);
  const step = Math.max(1, Math.floor(samples.length / BARS));
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  const width = canvas.width / BARS;
  for (let bar = 0; bar < BARS; bar++) {
    let peak = 0;
    for (let at = bar * step; at < (bar + 1) * step && at < samples.length; at++) peak = Math.max(peak, Math.abs(samples[at]));
    const height = Math.max(2, peak * canvas.height);
    context.fillRect(bar * width, (canvas.height - height) / 2, width * 0.6, height);
  }
}
