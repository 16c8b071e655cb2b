// Sums of multiples in the page: the package's example beside arkworks' point, which tests/zk/page.rs computes again.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { MODES, WEB, inPage } from "./browser.mjs";
import { isQuick, left } from "./quick.mjs";

const expected = JSON.parse(readFileSync(join(WEB, "tests", "bn254-sum.json"), "utf8"));

for (const mode of MODES) {
  test(`proofs, ${mode.name}: a sum of 2^14 multiples is arkworks'`, async () => {
    const found = await inPage(mode, async (backend, { count, seed }) => {
      const { Engine } = await import("/npm/proofs.js");
      const { multiples, scalars } = await import("/examples/bn254-sum.js");
      const engine = await Engine.create({ backend });
      const points = multiples(count);
      const start = performance.now();
      const sum = await engine.multiScalarMul(scalars(count, BigInt(seed)), points);
      const time = performance.now() - start;
      const code = (scalars, points) => engine.multiScalarMul(scalars, points).then(() => "a sum", (error) => error.code);
      const errors = [
        await code(new Uint8Array(32), new Uint8Array(128)),
        await code(new Uint8Array(31), new Uint8Array(64)),
        await code(new Uint8Array(32).fill(255), points.slice(0, 64)),
        await code(new Uint8Array(32), Uint8Array.from(points.slice(0, 64), (byte) => byte ^ 1)),
      ];
      const none = await engine.multiScalarMul(new Uint8Array(0), new Uint8Array(0));
      const hex = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return { backend: engine.backend, time, errors, x: hex.slice(0, 64), y: hex.slice(64), none: none.every((byte) => byte === 0) };
    }, expected);
    console.log(`    ${found.backend}: ${Math.round(found.time)} ms`);
    assert.equal(found.backend, mode.backend);
    assert.deepEqual([found.x, found.y], [expected.x, expected.y]);
    assert.deepEqual(found.errors, ["Shape", "Shape", "InvalidInput", "InvalidInput"]);
    assert.ok(found.none, "no points add up to infinity");
  });
}

test("proofs: the size of the compressed module", (test) => {
  if (isQuick()) return left(test);
  const bytes = readFileSync(join(WEB, "pkg", "proofs", "cantus_bg.wasm"));
  const packed = brotliCompressSync(bytes).length;
  console.log(`    ${bytes.length} bytes, ${packed} with brotli, at most 1200000`);
  assert.ok(packed > 50_000 && packed <= 1_200_000);
});
