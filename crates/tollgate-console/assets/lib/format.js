// Formats amounts, times and sizes for display.
import { language, t } from "./i18n.js";

const NANO = 1_000_000_000n;

/** An amount (decimal string) with thousands separated; a dash if there is none. */
export function money(/** @type {string | null | undefined} */ amount) {
  if (amount == null) return "–";
  const [integer, fraction] = String(amount).split(".");
  const grouped = integer.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${grouped}.${fraction}` : grouped;
}

function toNano(/** @type {string} */ amount) {
  const [integer, fraction = ""] = amount.replace("-", "").split(".");
  const nano = BigInt(integer) * NANO + BigInt(fraction.padEnd(9, "0"));
  return amount.startsWith("-") ? -nano : nano;
}

/** The exact sum of amounts, as a decimal string. */
export function sumAmounts(/** @type {(string | null | undefined)[]} */ amounts) {
  const sum = amounts.reduce((total, amount) => total + toNano(amount ?? "0"), 0n);
  const positive = sum < 0n ? -sum : sum;
  const fraction = (positive % NANO).toString().padStart(9, "0").replace(/0+$/, "");
  return `${sum < 0n ? "-" : ""}${positive / NANO}${fraction ? `.${fraction}` : ""}`;
}

/** A number with thousands separated. */
export function count(/** @type {number | null | undefined} */ number) {
  return number == null ? "–" : Number(number).toLocaleString(language.value === "zh" ? "zh-CN" : "en-US");
}

/** A time in the reader's own time zone. */
export function time(/** @type {string | null | undefined} */ at) {
  if (!at) return "–";
  const options = /** @type {const} */ ({ dateStyle: "medium", timeStyle: "medium" });
  return new Date(at).toLocaleString(language.value === "zh" ? "zh-CN" : "en-GB", options);
}

/** The time between two moments: in milliseconds below a second, then in seconds, minutes, hours, days. */
export function duration(/** @type {number | null | undefined} */ ms) {
  if (ms == null) return "–";
  if (ms < 1000) return t("{n} ms", { n: Math.round(ms) });
  if (ms < 60_000) return t("{n} s", { n: (ms / 1000).toFixed(1) });
  if (ms < 3_600_000) return t("{n} min", { n: Math.round(ms / 60_000) });
  if (ms < 86_400_000) return t("{n} h", { n: Math.round(ms / 3_600_000) });
  return t("{n} days", { n: Math.round(ms / 86_400_000) });
}

/** Milliseconds from one time to another. */
export function between(/** @type {string | null} */ from, /** @type {string | null} */ to) {
  return from && to ? Date.parse(to) - Date.parse(from) : null;
}

/** A size in bytes, KB or MB. */
export function bytes(/** @type {number | null | undefined} */ size) {
  if (size == null) return "–";
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KB`;
  return `${(size / 1024 / 1024).toFixed(1)} MB`;
}

/** The time that many milliseconds ago, in the format of the API. */
export function ago(/** @type {number} */ ms) {
  return new Date(Date.now() - ms).toISOString();
}
