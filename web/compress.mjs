// Writes a .br and a .gz beside each file of dist/ that shrinks: a server hands them out as they are. `--quick` takes seconds instead of a minute.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const quick = process.argv.includes("--quick");
const folder = fileURLToPath(new URL("dist", import.meta.url));
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath ?? entry.path, entry.name);
  if (!entry.isFile() || !/\.(html|js|css|wasm|json|svg|webmanifest)$/.test(entry.name)) continue;
  const bytes = readFileSync(file);
  const params = { [constants.BROTLI_PARAM_QUALITY]: quick ? 4 : 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  for (const [suffix, packed] of [[".br", brotliCompressSync(bytes, { params })], [".gz", gzipSync(bytes, { level: quick ? 4 : 9 })]]) {
    if (packed.length < bytes.length) writeFileSync(file + suffix, packed);
  }
}
