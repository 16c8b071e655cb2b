// A figure, not a test: the field of 512 x 512 in the page, by WebAssembly on the processor's threads, beside the program's own 128-bit form at as many
// threads. `web/build.sh` first, and a release build of the program: node web/tests/figure.mjs PROGRAM [ROUNDS]
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { visit } from "./browser.mjs";

const [program, rounds = "5"] = process.argv.slice(2);
if (!program || program === "--help") {
  console.log("node web/tests/figure.mjs PROGRAM [ROUNDS]\nThe field of 512 x 512 in Chromium without WebGPU, and by PROGRAM, in turn; milliseconds.\nExample: node web/tests/figure.mjs target/release/cantus 7");
  process.exit(program ? 0 : 2);
}
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function native(folder) {
  const file = join(folder, "bench.json");
  const options = { env: { ...process.env, CANTUS_INSTRUCTION_SET: "baseline" }, stdio: "ignore" };
  execFileSync(program, ["--backend", "cpu", "bench", "--filter", "field", "--size", "512x512", "--json", file], options);
  return JSON.parse(readFileSync(file, "utf8")).results.find(({ op }) => op === "field").median_ms;
}

async function page() {
  let found;
  await visit({ webgpu: false }, "bench", async (page) => {
    for (const box of await page.locator(".bench input[type=checkbox]").all()) await box.setChecked((await box.inputValue()) === "field");
    await page.locator("#largest").selectOption("512");
    await page.locator("#bench-run").click();
    const until = (text) => page.waitForFunction((start) => document.querySelector("#bench-status").textContent.startsWith(start), text, { timeout: 120_000 });
    await until("Done: ");
    await page.locator("#bench-copy").click();
    await until("Copied.");
    const { measurements } = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    found = measurements.find(({ size }) => size.startsWith("512 "));
  }, { own: true });
  return found;
}

test("the page beside the program", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cantus-figure-"));
  try {
    const [ours, theirs] = [[], []];
    for (let round = 0; round < Number(rounds); round++) {
      const one = await page();
      ours.push(one.milliseconds);
      if (round === 0) console.log(one.device);
      theirs.push(native(folder));
    }
    console.log(`page ${median(ours).toFixed(3)} ms, program ${median(theirs).toFixed(3)} ms, ratio ${(median(ours) / median(theirs)).toFixed(2)}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
