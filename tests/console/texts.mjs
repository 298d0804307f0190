// Checks that every text of the pages has a Chinese translation with the same placeholders.
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const assets = new URL("../../crates/tollgate-console/assets/", import.meta.url);
const { zh } = await import(new URL("lang/zh.js", assets));
const { en } = await import(new URL("lang/en.js", assets));
const files = (await readdir(fileURLToPath(assets), { recursive: true })).filter((name) => name.endsWith(".js") && !/^(vendor|lang)/.test(name));
const placeholders = (text) => (text.match(/\{\w+\}/g) ?? []).sort().join();
const failures = [];
for (const file of files) {
  const text = await readFile(new URL(file, assets), "utf8");
  for (const [, quoted] of text.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)) {
    const key = JSON.parse(quoted);
    if (zh[key] === undefined) failures.push(`${file}: no Chinese for ${quoted}`);
  }
}
for (const [key, value] of Object.entries(zh)) if (placeholders(key) !== placeholders(value)) failures.push(`other placeholders: ${key}`);
for (const key of Object.keys(en)) if (zh[key] === undefined) failures.push(`no Chinese for ${key}`);
failures.forEach((failure) => console.error(failure));
console.log(failures.length ? `${failures.length} failures` : `${Object.keys(zh).length} texts in both languages`);
process.exit(failures.length ? 1 : 0);
