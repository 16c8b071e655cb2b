// The playground, used as a person would: examples, inputs, errors, comparison, cancelling, links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MODES, looks, open, screenshot, visit } from "./browser.mjs";

const EXAMPLES = ["saxpy", "mandelbrot", "field", "phi", "histogram", "matmul"];

/** Takes a good while on any device: a chain of steps that none may leave out. */
const LONG = (rounds) => `@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < ${rounds}u; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7u; }
    y[id.x] = x;
}`;

const ready = (page) => page.waitForSelector("#run:enabled");

async function write(page, text) {
  await page.locator(".cm-content").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

async function choose(page, id) {
  await page.locator("#example").selectOption(id);
  await page.waitForFunction(() => document.querySelector(".inputs").childElementCount > 0);
}

/** Runs, and answers with the line that says where and how long. */
async function run(page, act = () => page.locator("#run").click()) {
  await act();
  await page.waitForSelector("#results .outcome, #problem > p", { timeout: 180_000 });
  assert.equal(await page.locator("#problem").innerText(), "");
  return page.locator("#results .outcome").innerText();
}

const numbers = async (page, name) => (await page.locator(`section[aria-label="${name}"] .numbers li`).allInnerTexts()).map(Number);

/** A .npy file of float32 values. */
function npy(values) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${values.length},), }`;
  const head = Buffer.from(`${text}${" ".repeat(64 - ((10 + text.length + 1) % 64))}\n`);
  const start = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length & 255, head.length >> 8]);
  return Buffer.concat([start, head, Buffer.from(Float32Array.from(values).buffer)]);
}

for (const mode of MODES) {
  const where = mode.webgpu ? /swiftshader \(WebGPU/ : /CPU executor/;

  test(`playground, ${mode.name}: inputs by reflection, numbers, uniforms, a file`, async () => {
    await visit(mode, "playground", async (page) => {
      await ready(page);
      if (!mode.webgpu) {
        await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("No WebGPU"));
        assert.equal(await page.locator("#compare").isDisabled(), true);
        assert.equal(await page.locator("#run-on").inputValue(), "cpu");
      }
      assert.match(await run(page), where);
      const range = Array.from({ length: 256 }, (_, i) => 2 * i + 1);
      assert.deepEqual(await numbers(page, "y"), range, "2 x + 1");
      await page.getByRole("button", { name: "Later" }).click();
      await page.waitForFunction(() => document.querySelector(".numbers").getAttribute("start") === "256");
      assert.deepEqual((await numbers(page, "y"))[0], 513);

      await page.locator('[data-uniform="params.a"]').fill("-0.5");
      await page.locator('[data-fill="x"]').selectOption("numbers");
      await page.getByLabel("x: numbers").fill("10, 20 30; 1e3");
      await page.locator('[data-length="y"]').fill("4");
      // By keyboard, from the editor.
      await page.locator(".cm-content").focus();
      await page.keyboard.press("ControlOrMeta+Enter");
      await page.waitForFunction(() => document.querySelectorAll(".numbers li").length === 4);
      assert.deepEqual(await numbers(page, "y"), [-4, -9, -14, -499]);

      await page.locator('[data-fill="x"]').selectOption("file");
      await page.locator('[data-file="x"]').setInputFiles({ name: "x.npy", mimeType: "application/octet-stream", buffer: npy([1.5, -2.25, 1024, 0]) });
      await page.locator("#results").evaluate((element) => element.replaceChildren());
      await run(page);
      await page.waitForSelector(".numbers li");
      assert.deepEqual(await numbers(page, "y"), [0.25, 2.125, -511, 1]);
    });
  });

  test(`playground, ${mode.name}: every example runs and is looked at as it wants to be`, async () => {
    await visit(mode, "playground", async (page) => {
      await ready(page);
      assert.deepEqual((await page.locator("#example option").evaluateAll((options) => options.map(({ value }) => value))).filter(Boolean), EXAMPLES);
      for (const id of EXAMPLES) {
        await choose(page, id);
        assert.match(await run(page), where, id);
        await page.waitForSelector(".seen > *");
        if (id === "histogram") {
          assert.equal(await page.locator(".seen svg.plot path.line").count(), 1);
          await page.locator("[data-look=bins]").selectOption("numbers");
          await page.waitForSelector(".numbers li");
          const bins = await numbers(page, "bins");
          assert.equal(bins.reduce((sum, bin) => sum + bin, 0), 65536, "every value is in a bin");
          assert.ok(Math.max(...bins) === Math.max(...bins.slice(28, 36)) && Math.min(...bins) > 500, `two waves make a hill: ${bins}`);
        }
        if (id === "mandelbrot") {
          const colors = await page.locator(".seen canvas").screenshot();
          assert.ok(colors.length > 20_000, "a picture of many colours");
          await screenshot(page, `playground-${mode.backend}`);
        }
      }
      await looks(page, `playground-${mode.backend}`);
    });
  });

  test(`playground, ${mode.name}: an error is underlined where it is`, async () => {
    await visit(mode, "playground", async (page) => {
      await ready(page);
      const lines = ["// éü𝄞: counted in characters", "@group(0) @binding(0) var<storage, read_write> y: array<f32>;", "@compute @workgroup_size(64) fn main() {", "    /* é𝄞 */ y[0] = nothing + 1.0;", "}"];
      await write(page, lines.join("\n"));
      const underline = page.locator(".cm-lintRange-error");
      await underline.waitFor();
      assert.equal(await underline.innerText(), "nothing");
      // The column of the underline in the editor, from the text before it on its line.
      const [line, before] = await underline.evaluate((mark) => {
        const line = mark.closest(".cm-line");
        const range = document.createRange();
        range.setStart(line, 0);
        range.setEndBefore(mark);
        return [[...line.parentElement.children].indexOf(line) + 1, range.toString()];
      });
      assert.deepEqual([line, before], [4, "    /* é𝄞 */ y[0] = "]);
      const column = [...before].length + 1;
      assert.equal(await page.locator("#problem .place").innerText(), `Line 4, column ${column}`);
      assert.match(await page.locator("#problem").innerText(), /nothing/);
      assert.equal(await page.locator("#run").isDisabled(), true);
      await screenshot(page, `error-${mode.backend}`);
      // The button goes there; what is typed then is at the place.
      await page.locator("#problem .place").click();
      for (let i = 0; i < "nothing".length; i++) await page.keyboard.press("Delete");
      await page.keyboard.type("2.0");
      await page.waitForFunction(() => document.querySelector("#problem").textContent === "", undefined, { polling: 100 });
      assert.equal(await underline.count(), 0);

      // One that only validation finds, and one at the very end.
      await write(page, lines.join("\n").replace("nothing + 1.0", "vec2f(1.0)"));
      await underline.waitFor();
      assert.match(await page.locator("#problem .place").innerText(), /^Line 4, /);
      await write(page, lines.slice(0, 4).join("\n"));
      await page.waitForFunction(() => /^Line [45], /.test(document.querySelector("#problem .place")?.textContent ?? ""));
    });
  });

  test(`playground, ${mode.name}: a long run is cancelled, and the next one works`, async () => {
    await visit(mode, "playground", async (page) => {
      await ready(page);
      await write(page, LONG(mode.webgpu ? 1_000_000 : 400_000_000));
      await page.waitForSelector('[data-fill="y"]');
      await page.waitForFunction(() => document.querySelector('legend code').textContent === "y");
      await ready(page);
      await page.locator("#run").click();
      await page.waitForSelector("#cancel:visible");
      await page.waitForTimeout(200);
      assert.equal(await page.locator("#status").innerText(), "Running…");
      const start = Date.now();
      await page.locator("#cancel").focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelector("#status").textContent === "Cancelled.");
      const took = Date.now() - start;
      assert.ok(took < 2000, `cancelled after ${took} ms`);
      assert.equal(await page.locator("#cancel").isVisible(), false);
      await page.locator("#example").selectOption("saxpy");
      await page.waitForSelector('[data-uniform="params.a"]');
      assert.match(await run(page), where);
      assert.deepEqual((await numbers(page, "y")).slice(0, 3), [1, 3, 5]);
    });
  });

  test(`playground, ${mode.name}: a link holds kernel and inputs`, async () => {
    await visit(mode, "playground", async (page, { context, url }) => {
      await ready(page);
      await choose(page, "matmul");
      await write(page, LONG(3).replace("fn main", "fn chain"));
      await page.waitForFunction(() => document.querySelector('legend code').textContent === "y");
      await ready(page);
      await page.locator('[data-fill="y"]').selectOption("ones");
      await page.locator('[data-length="y"]').fill("77");
      await page.locator('[data-axis="x"]').fill("77");
      await run(page);
      await page.locator("[data-look=y]").selectOption("numbers");
      await page.locator("#share").click();
      await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("The link is copied"));
      const link = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(link.startsWith(`${url}#playground/`), link);

      const { page: other, faults } = await open(context, link);
      await ready(other);
      await other.waitForSelector('[data-length="y"]');
      assert.equal(await other.locator(".cm-content").innerText().then((text) => text.trim()), LONG(3).replace("fn main", "fn chain"));
      assert.equal(await other.locator('[data-fill="y"]').inputValue(), "ones");
      await run(other);
      await other.waitForSelector(".numbers li");
      let x = 0;
      for (let i = 0; i < 3; i++) {
        x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
        x = (x ^ (x >>> 7)) >>> 0;
      }
      const found = await numbers(other, "y");
      assert.equal(found.length, 77);
      assert.equal(found[0], x);
      await other.goto(`${url}#playground/broken!`);
      await other.waitForFunction(() => document.querySelector("#status").textContent.startsWith("The link cannot be opened"));
      assert.deepEqual(faults, []);
    });
  });
}

test("playground: WebGPU and the CPU agree on every example", async () => {
  await visit(MODES[0], "playground", async (page) => {
    await ready(page);
    // Values that whole numbers make are equal; others differ by roundings, which may move a value to the next bin.
    const limits = { saxpy: 0, mandelbrot: 1, field: 2e-6, phi: 2e-6, histogram: 8, matmul: 1e-4 };
    for (const id of EXAMPLES) {
      await choose(page, id);
      await page.locator("#compare").click();
      await page.waitForSelector("#comparison, #problem > p", { timeout: 180_000 });
      const largest = Number(await page.locator("#comparison [data-largest]").getAttribute("data-largest"));
      const row = await page.locator("#comparison tbody").innerText();
      console.log(`    ${id}: ${row.replaceAll(/\s+/g, " ")}`);
      assert.ok(largest <= limits[id], `${id}: ${largest}`);
      assert.match(await page.locator("#results .outcome").innerText(), /^google swiftshader \(WebGPU.*; CPU executor/s);
      if (id === "mandelbrot") {
        const [, differing, all] = /(\d+) of (\d+)/.exec(row);
        assert.ok(Number(differing) < Number(all) / 100, `only at the border: ${row}`);
      }
      if (id === "matmul") await screenshot(page, "compare");
      await page.locator("#results").evaluate((element) => element.replaceChildren());
    }
  });
});
