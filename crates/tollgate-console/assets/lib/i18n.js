// The language of the page. The English text is the key; lang/zh.js has its Chinese translation, lang/en.js the English text of words of the API.
import { signal } from "./ui.js";
import { en } from "../lang/en.js";
import { zh } from "../lang/zh.js";

const stored = localStorage.getItem("tollgate_language");
const preferred = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

/** "en" or "zh". */
export const language = signal(stored === "en" || stored === "zh" ? stored : preferred);

/** Changes the language of the page and remembers it. */
export function setLanguage(/** @type {string} */ code) {
  language.value = code;
  localStorage.setItem("tollgate_language", code);
  document.documentElement.lang = code === "zh" ? "zh-CN" : "en";
}

/**
 * The text in the current language; `{name}` is replaced by `values.name`.
 * @param {string} text
 * @param {Record<string, unknown>} [values]
 */
export function t(text, values) {
  const translated = (language.value === "zh" ? zh : en)[text] ?? text;
  return values ? translated.replace(/\{(\w+)\}/g, (_, name) => String(values[name])) : translated;
}
