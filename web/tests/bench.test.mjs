// The bench, used as a person would: a run, its table, plots and JSON; and a run that is cancelled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MODES, looks, screenshot, visit } from "./browser.mjs";
import { everything } from "./turn.mjs";

async function only(page, wanted) {
  for (const box of await page.locator(".bench input[type=checkbox]").all()) await box.setChecked(wanted.includes(await box.inputValue()));
}

const until = (page, text) => page.waitForFunction((start) => document.querySelector("#bench-status").textContent.startsWith(start), text, { polling: 100, timeout: 120_000 });

for (const mode of MODES) {
  test(`bench, ${mode.name}: measures, draws, copies`, async () => {
    await visit(mode, "bench", async (page) => {
      await only(page, []);
      await page.locator("#bench-run").click();
      await until(page, "Choose an operation.");
      await only(page, ["field", "sum", "matmul"]);
      await page.locator("#largest").selectOption("256");
      await page.locator("#bench-run").focus();
      await page.keyboard.press("Enter");
      await page.waitForSelector("progress:visible");
      await until(page, "Done: ");
      const backends = mode.webgpu ? ["webgpu", "cpu"] : ["cpu"];
      const status = await page.locator("#bench-status").innerText();
      assert.equal(status.includes("Not measured: WebGPU"), !mode.webgpu, status);
      assert.doesNotMatch(status, /not requested/, "a sentence for people");
      assert.equal(await page.locator("progress").isVisible(), false);
      assert.equal(await page.locator("figure svg.plot").count(), 3);
      assert.equal(await page.locator("figure svg.plot path.line").count(), 6);
      assert.equal(await page.locator("figure svg.plot circle").count(), 9 * backends.length);
      assert.equal(await page.locator("#bench-table tbody tr").count(), 9);

      await page.locator("#bench-copy").click();
      await until(page, "Copied.");
      const { measurements } = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
      const keys = measurements.map(({ kernel, size, backend }) => `${kernel} ${size} ${backend}`);
      const expected = [64, 128, 256].flatMap((side) => ["field", "sum", "matmul"].flatMap((kernel) => backends.map((backend) => `${kernel} ${side} × ${side} ${backend}`)));
      assert.deepEqual(keys, expected);
      for (const { milliseconds } of measurements) assert.ok(milliseconds > 0 && milliseconds < 10_000);
      // Sixty-four times the work takes longer on the CPU.
      const time = (side) => measurements.find(({ kernel, size, backend }) => kernel === "matmul" && backend === "cpu" && size.startsWith(`${side} `)).milliseconds;
      assert.ok(time(256) > time(64), `${time(64)} and ${time(256)} ms`);
      await screenshot(page, `bench-${mode.backend}`);
      if (!mode.webgpu || everything || process.env.CANTUS_SCREENSHOTS) await looks(page, `bench-${mode.backend}`);
    });
  });

  test(`bench, ${mode.name}: a run is cancelled, what was measured stays, and the next one works`, async () => {
    await visit(mode, "bench", async (page) => {
      await page.locator("#largest").selectOption("2048");
      await page.locator("#bench-run").click();
      await page.waitForSelector("#bench-table tbody tr");
      const start = Date.now();
      await page.locator("#bench-cancel").click();
      await until(page, "Cancelled after ");
      // Not at the end of the run, which takes far longer; people wait for a tenth of that.
      assert.ok(Date.now() - start < 10_000, `cancelled after ${Date.now() - start} ms`);
      assert.ok((await page.locator("#bench-table tbody tr").count()) > 0);
      assert.equal(await page.locator("#bench-cancel").isVisible(), false);
      await only(page, ["sum"]);
      await page.locator("#largest").selectOption("256");
      await page.locator("#bench-run").click();
      await until(page, "Done: ");
      assert.equal(await page.locator("#bench-table tbody tr").count(), 3);
    });
  });
}
