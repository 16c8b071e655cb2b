// The npm tarball as strangers use it, in Chromium: a page without a bundler, and a project of Vite (`cantus new --kind page` makes its like).
// `CANTUS_TARBALL=FILE node --test xtask/release/fresh.mjs`; web/node_modules has Vite and the driver of the browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { open, serve, visitor } from "../../web/tests/browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tarball = resolve(process.env.CANTUS_TARBALL ?? "no tarball is named in CANTUS_TARBALL");
const example = readFileSync(join(root, "docs/site/snippets/first.js"), "utf8").replace(/console\.log\((.*)\);.*/, "document.title = [$1].join(' ');\n");
assert.match(example, /document\.title/, "docs/site/snippets/first.js ends with its result");

/** A folder with the package installed from the tarball alone. */
function installed(manifest) {
  const folder = mkdtempSync(join(tmpdir(), "cantus-fresh-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "fresh", private: true, type: "module", ...manifest }));
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", tarball], { cwd: folder, stdio: "inherit" });
  return folder;
}

/** Opens a folder's page: what `until` finds there. */
async function shown(folder, until) {
  const server = await serve(folder);
  const { context, close } = await visitor(false);
  try {
    const { page, faults } = await open(context, server.url);
    const found = await page.waitForFunction(until).then((handle) => handle.jsonValue());
    assert.deepEqual(faults, []);
    return found;
  } finally {
    await close();
    server.close();
  }
}

test("a plain page computes", async () => {
  const folder = installed({});
  const imports = '<script type="importmap">{ "imports": { "cantus": "./node_modules/cantus/npm/index.js" } }</script>';
  writeFileSync(join(folder, "index.html"), `<!doctype html><html lang="en"><title></title><link rel="icon" href="data:,">${imports}<script type="module">${example}</script></html>`);
  assert.equal(await shown(folder, () => document.title), "1 4 9 16");
  rmSync(folder, { recursive: true });
});

test("a project of Vite shows a picture", async () => {
  const folder = installed({});
  const template = join(root, "cli/templates/page");
  for (const file of ["index.html", "main.js", "vite.config.js", "waves.wgsl"]) copyFileSync(join(template, file), join(folder, file));
  execFileSync(process.execPath, [join(root, "web/node_modules/vite/bin/vite.js"), "build", "--logLevel", "warn"], { cwd: folder, stdio: "inherit" });
  const status = await shown(join(folder, "dist"), () => {
    const canvas = document.querySelector("canvas");
    const said = document.querySelector("#status")?.textContent ?? "";
    if (!canvas || !said.includes("(")) return null;
    // Read from a copy: Chromium warns of a canvas that is drawn and read again and again.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return new Set(copy.getImageData(0, 0, canvas.width, canvas.height).data).size > 100 ? said : null;
  });
  console.log(`a picture, computed on ${status}`);
  rmSync(folder, { recursive: true });
});
