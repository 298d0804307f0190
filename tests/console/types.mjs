// Runs the TypeScript compiler over the scripts of the console and the portal. They are not compiled for use, so types come from inference and JSDoc.
// NODE_PATH must lead to typescript.
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ts = createRequire(`${process.env.NODE_PATH}/`)("typescript");
const assets = fileURLToPath(new URL("../../crates/tollgate-console/assets/", import.meta.url));
const isOwn = (name) => name.endsWith(".js") && !path.relative(assets, name).startsWith("vendor");
const files = readdirSync(assets, { recursive: true }).map((name) => path.join(assets, String(name))).filter(isOwn);
const program = ts.createProgram(files, {
  allowJs: true, checkJs: true, noEmit: true, skipLibCheck: true, strict: false, types: [],
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
});
const found = ts.getPreEmitDiagnostics(program).filter((one) => !one.file || isOwn(path.normalize(one.file.fileName)));
const host = { getCurrentDirectory: () => assets, getCanonicalFileName: (name) => name, getNewLine: () => "\n" };
if (found.length) console.error(ts.formatDiagnostics(found, host));
console.log(found.length ? `${found.length} type errors` : `${files.length} scripts without type errors`);
process.exit(found.length ? 1 : 0);
