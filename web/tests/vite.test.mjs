// The plugin for Vite, on the program itself: kernels linked, types that fit, errors with their place.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import cantus from "../vite.mjs";

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
const KERNEL = `import super::noise::fbm;
@group(0) @binding(0) var<uniform> radius: f32;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn blur(@builtin(global_invocation_id) id: vec3u) { y[id.x] = fbm(radius); }
`;
const APP = `import text, { type Blur } from "./blur.wgsl";
const options: Blur<number> = { bindings: { y: 1 }, uniforms: { radius: 2 } };
console.log(text, options);
`;

/** Files in a folder of their own. */
function folder(context, files) {
  const place = mkdtempSync(join(tmpdir(), "cantus-vite-"));
  context.after(() => rmSync(place, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
  return place;
}

/** The text of the only chunk. */
async function built(place, options = { program: process.env.CANTUS }) {
  const [result] = [
    await build({
      root: place,
      configFile: false,
      logLevel: "silent",
      plugins: [cantus(options)],
      build: { write: false, minify: false, lib: { entry: "app.ts", formats: ["es"] } },
    }),
  ].flat();
  return result.output[0].code;
}

/** TypeScript's complaints about the app. */
function typed(place, app) {
  writeFileSync(join(place, "app.ts"), app);
  const options = { strict: true, noEmit: true, skipLibCheck: true, module: "esnext", moduleResolution: "bundler", allowArbitraryExtensions: true, types: [] };
  const paths = { cantus: [join(WEB, "lib/types.ts")] };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...options, lib: ["esnext", "dom"], paths }, files: ["app.ts"] }));
  try {
    execFileSync(process.execPath, [join(WEB, "node_modules/typescript/bin/tsc"), "-p", place], { encoding: "utf8" });
    return "";
  } catch (error) {
    return error.stdout;
  }
}

test("vite: a kernel is linked, and its types are those of its bindings", async (context) => {
  const place = folder(context, { "blur.wgsl": KERNEL, "noise.wgsl": "fn fbm(x: f32) -> f32 { return x * 0.5; }", "app.ts": APP });
  const code = await built(place);
  assert.match(code, /fn fbm\(/);
  assert.doesNotMatch(code, /import super/);
  assert.equal(typed(place, APP), "");
  const wrong = typed(place, `${APP}
const first: Blur<number> = { bindings: { y: 1 }, uniforms: { radius: true } };
const second: Blur<number> = { bindings: {}, uniforms: { radius: 2 } };
const third: Blur<number> = { bindings: { y: 1 }, uniforms: { radius: 2, sigma: 1 } };
console.log(first, second, third);
`);
  assert.match(wrong, /app\.ts\(5,.*'boolean' is not assignable to type 'number'/);
  assert.match(wrong, /app\.ts\(6,.*Property 'y' is missing/);
  assert.match(wrong, /app\.ts\(7,.*'sigma' does not exist/);
  // Types that are as they were are not written anew.
  const types = join(place, "blur.d.wgsl.ts");
  const before = readFileSync(types, "utf8");
  writeFileSync(join(place, "app.ts"), APP);
  await built(place);
  assert.equal(readFileSync(types, "utf8"), before);
});

test("vite: a mistake is an error of the kernel's file, with its place", async (context) => {
  const place = folder(context, { "blur.wgsl": KERNEL, "noise.wgsl": "fn fbm(x: f32) -> f32 {\n  return 1u;\n}", "app.ts": APP });
  await assert.rejects(built(place), /\[plugin cantus\] .*noise\.wgsl:1:0/);
  writeFileSync(join(place, "blur.wgsl"), KERNEL.replace("y[id.x] = fbm(radius)", "z[id.x] = radius"));
  await assert.rejects(built(place), /\[plugin cantus\] .*blur\.wgsl:4:/);
  await assert.rejects(built(place, { program: "no-such-program" }), /there is no program "no-such-program"/);
});
