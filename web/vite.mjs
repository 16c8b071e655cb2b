// A plugin for Vite: a `.wgsl` file that is imported is the linked text, checked while it is built, and its types are written beside it.
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Files whose text goes into that of a kernel: those it imports by name, and theirs. */
async function imports(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return seen;
  seen.add(file);
  for (const [, path] of text.matchAll(/^\s*(?:@\w+(?:\([^)]*\))?\s*)?import\s+((?:super|package)(?:::\w+)+)/gm)) {
    const parts = path.split("::").slice(1);
    // The last names may be of declarations.
    for (let count = parts.length; count > 0; count--) {
      for (const suffix of [".wgsl", ".wesl"]) await imports(resolve(dirname(file), ...parts.slice(0, count)) + suffix, seen);
    }
  }
  return seen;
}

/** See vite.d.mts. */
export default function cantus({ program = "cantus", features = [], types = true } = {}) {
  const compile = (file, ...wanted) =>
    run(program, ["compile", file, ...wanted, ...features.flatMap((name) => ["--feature", name])], { maxBuffer: 1 << 28 });
  return {
    name: "cantus",
    enforce: "pre",
    async load(id) {
      const [file, query] = id.split("?");
      if (!file.endsWith(".wgsl") || query !== undefined) return null;
      for (const one of await imports(file)) this.addWatchFile(one);
      try {
        const { stdout: text } = await compile(file, "--target", "wgsl");
        if (types) {
          const declared = `${(await compile(file, "--types", "ts")).stdout}\n/** The kernel's text, linked. */\ndeclare const text: string;\nexport default text;\n`;
          const place = file.replace(/\.wgsl$/, ".d.wgsl.ts");
          // A file that is as it was is not written: what watches it would build again.
          if ((await readFile(place, "utf8").catch(() => "")) !== declared) await writeFile(place, declared);
        }
        return { code: `export default ${JSON.stringify(text)};`, map: null };
      } catch (error) {
        if (error.code === "ENOENT") this.error(`there is no program "${program}" (cargo install cantus-cli, or name its path: cantus({ program }))`);
        const report = String(error.stderr ?? error.message).trim();
        const [, where = id, line, column] = /┌─ (.*):(\d+):(\d+)/.exec(report) ?? [];
        this.error({ message: report, id: where, ...(line && { loc: { file: where, line: Number(line), column: Number(column) - 1 } }) });
      }
    },
  };
}
