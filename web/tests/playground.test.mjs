// The playground, used as a person would: pieces, inputs, errors, comparison, loops without an end, links, other forms.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MODES, WEB, comesToRest, launch, looks, open, screenshot, serve, visit } from "./browser.mjs";
import { everything, hasTurn } from "./turn.mjs";

const PROGRAM = process.env.CANTUS ?? join(WEB, "../target/debug/cantus");

/** Where `.ci/standalone` has built the library for apps. */
const STANDALONE = join(WEB, "../target/standalone");

const MOVING = ["waves", "fluid", "reaction", "raymarcher", "pathtracer", "nbody", "boids", "mandelbrot", "spiral", "life", "ripples", "cloth", "digits", "camera", "kaleidoscope", "fft", "sort", "slits", "hashes"];
const STILL = ["sobel", "tiltshift", "matmul", "field", "phi", "histogram", "saxpy"];

/** Takes a good while on any device: a chain of steps that none may leave out. */
const LONG = (rounds) => `@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < ${rounds}u; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7u; }
    y[id.x] = x;
}`;

const ENDLESS = `@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x | 1u;
    while x != 0u { x = x * 5u + 2u; x |= 1u; }
    y[id.x] = x;
}`;

const ready = (page) => page.waitForSelector("#run:enabled");

/** The device, whatever the engine would choose: a GPU in software ranks below the CPU. */
async function on(page, mode) {
  await ready(page);
  await page.waitForSelector("#results[data-frames], .playground[data-runs]");
  await page.locator("#run-on").selectOption(mode.backend);
}

const runs = (page) => page.locator(".playground").evaluate(({ dataset }) => Number(dataset.runs ?? 0));

/** Does something that starts a run, and waits for its end. */
async function ran(page, act) {
  const before = await runs(page);
  await act();
  await page.waitForFunction((least) => Number(document.querySelector(".playground")?.dataset.runs ?? 0) > least || document.querySelector("#problem > p"), before, { timeout: 180_000 });
  assert.equal(await page.locator("#problem").innerText(), "");
  return page.locator("#results .outcome").innerText();
}

const frames = (page, least) => page.waitForFunction((count) => Number(document.querySelector("#results")?.dataset.frames ?? 0) >= count || document.querySelector("#problem > p"), least, { timeout: 120_000 });

async function write(page, text) {
  await page.locator(".cm-content").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

const choose = (page, id) => page.locator("#example").selectOption(id);

const numbers = async (page, name) => (await page.locator(`.numbers[data-name="${name}"] li`).allInnerTexts()).map(Number);

/** A .npy file. */
function npy(descr, shape, fortran, bytes) {
  const text = `{'descr': '${descr}', 'fortran_order': ${fortran ? "True" : "False"}, 'shape': (${shape.join(", ")},), }`;
  const head = Buffer.from(`${text}${" ".repeat(64 - ((10 + text.length + 1) % 64))}\n`);
  const start = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length & 255, head.length >> 8]);
  return Buffer.concat([start, head, Buffer.from(bytes)]);
}

const floats = (values) => Float32Array.from(values).buffer;

/** How many colours the picture has, and which share of its pixels another picture has not. */
const colors = (page) => page.locator("#result-canvas").evaluate((canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d");
  context.drawImage(canvas, 0, 0);
  return new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
});

for (const mode of MODES) {
  const where = mode.webgpu ? /swiftshader \(WebGPU/ : /CPU executor/;

  test(`playground, ${mode.name}: opens on a moving picture beside the text, by the engine's own choice`, async () => {
    await visit(mode, "playground", async (page) => {
      await frames(page, 5);
      // A GPU in software ranks below the CPU.
      assert.equal(await page.locator("#run-on").inputValue(), "cpu");
      assert.ok((await colors(page)) > 500);
      const inside = () => page.locator("#result-canvas").evaluate((canvas) => {
        const { top, bottom, left, right } = canvas.getBoundingClientRect();
        return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
      });
      assert.equal(await inside(), true, "all of the picture is on the screen at 1280 x 800");
      await on(page, mode);
      await frames(page, 3);
      // A slider changes what runs, without a new beginning.
      const before = Number(await page.locator("#results").getAttribute("data-frames"));
      await page.locator('[data-slider="view.wavelength"]').fill("0.5");
      assert.equal(await page.locator('[data-uniform="view.wavelength"]').inputValue(), "0.5");
      await frames(page, before + 2);
      await page.locator("#pause").focus();
      await page.keyboard.press("Enter");
      await comesToRest(page, () => page.locator("#results").getAttribute("data-frames"), "no frame while it is paused");
      await screenshot(page, `playground-${mode.backend}`);
      await page.locator("#pause").click();
      // It looks alike on each device.
      if (mode.webgpu && !everything) return;
      await looks(page, `playground-${mode.backend}`);
      for (const [width, height] of [[320, 640], [390, 844], [1920, 1080], [3840, 2160]]) {
        await page.setViewportSize({ width, height });
        const needed = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(needed <= width, `${needed} wide of ${width}`);
        await page.locator("#run").click();
        await frames(page, 2);
        await page.waitForFunction(() => {
          const { top, bottom } = document.querySelector("#result-canvas").getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight;
        });
        assert.equal(await inside(), true, `the picture is on the screen at ${width} x ${height} after Run`);
      }
    });
  });

  test(`playground, ${mode.name}: inputs by reflection, numbers, uniforms, files`, async () => {
    await visit(mode, "playground/saxpy", async (page) => {
      await on(page, mode);
      assert.match(await ran(page, () => page.locator("#run").click()), where);
      await page.waitForSelector(".numbers li");
      assert.deepEqual(await numbers(page, "y"), Array.from({ length: 256 }, (_, i) => 2 * i + 1), "2 x + 1");
      await page.getByRole("button", { name: "Later" }).click();
      await page.waitForFunction(() => document.querySelector(".numbers").getAttribute("start") === "256");
      assert.equal((await numbers(page, "y"))[0], 513);
      await page.getByRole("button", { name: "Earlier" }).click();
      for (const width of [320, 390, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        const cut = await page.locator("#example").evaluate((select) => {
          const context = document.createElement("canvas").getContext("2d");
          context.font = getComputedStyle(select).font;
          const [longest] = [...select.options].map(({ text }) => context.measureText(text).width).sort((a, b) => b - a);
          return longest + 36 - select.clientWidth;
        });
        assert.ok(cut <= 0, `the names of the pieces are cut by ${cut} of ${width}`);
      }

      // Runs again as it is changed; broken numbers count as they are.
      await ran(page, () => page.locator('[data-uniform="params.a"]').fill("3.25"));
      assert.equal(await page.locator('[data-uniform="params.a"]').evaluate((input) => input.checkValidity()), true);
      await page.waitForFunction(() => document.querySelectorAll(".numbers li")[2]?.textContent === "7.5");
      await page.locator('[data-fill="x"]').selectOption("numbers");
      await page.getByLabel("x: numbers").fill("10, 20 30; 1e3");
      await ran(page, () => page.locator('[data-length="y"]').fill("4"));
      await page.waitForFunction(() => document.querySelectorAll(".numbers li").length === 4);
      await page.waitForFunction(() => document.querySelector(".numbers").textContent.endsWith("3251"));

      // What cannot be used stops Run, and says why.
      await page.locator('[data-length="y"]').fill("1.5");
      await page.waitForFunction(() => document.querySelector("#status").textContent.includes("whole number of values"));
      assert.equal(await page.locator("#run").isDisabled(), true);
      await ran(page, () => page.locator('[data-length="y"]').fill("4"));
      assert.equal(await page.locator("#status").innerText(), "");

      await page.locator('[data-uniform="params.a"]').fill("1");
      await page.locator('[data-fill="y"]').selectOption("zeros");
      await page.locator('[data-length="y"]').fill("4");
      // All of that has run before the next is looked at.
      await page.waitForFunction(() => [...document.querySelectorAll(".numbers li")].map((item) => item.textContent).join() === "10,20,30,1000");
      await page.locator('[data-fill="x"]').selectOption("file");
      const big = Buffer.alloc(16);
      [1.5, -2.25, 1024, 0].forEach((value, i) => big.writeFloatBE(value, 4 * i));
      const files = [
        ["plain", npy("<f4", [4], false, floats([1.5, -2.25, 1024, 0])), [1.5, -2.25, 1024, 0]],
        ["big-endian", npy(">f4", [4], false, big), [1.5, -2.25, 1024, 0]],
        ["Fortran", npy("<f4", [2, 2], true, floats([1, 3, 2, 4])), [1, 2, 3, 4]],
        ["f64", npy("<f8", [4], false, Float64Array.of(0.5, 1, 2, 4).buffer), [0.5, 1, 2, 4]],
        ["bool", npy("|b1", [4], false, Uint8Array.of(1, 0, 1, 1)), [1, 0, 1, 1]],
      ];
      // The page reads them, not the device: all on the CPU, where it is quicker, and one on the GPU.
      for (const [name, file, expected] of mode.webgpu && !everything ? files.slice(0, 1) : files) {
        await ran(page, () => page.locator('[data-file="x"]').setInputFiles({ name: `${name}.npy`, mimeType: "application/octet-stream", buffer: file }));
        await page.waitForFunction((text) => document.querySelector(".numbers")?.textContent === text, expected.join("")).catch(() => undefined);
        assert.deepEqual(await numbers(page, "y"), expected, name);
        const said = await page.locator("fieldset", { has: page.locator('[data-file="x"]') }).innerText();
        if (name === "Fortran") assert.match(said, /Fortran.npy, 2 × 2; its values were reordered to C order/);
        if (name === "f64") assert.match(said, /rounded to f32/);
      }
      await page.locator('[data-file="x"]').setInputFiles({ name: "no.npy", mimeType: "application/octet-stream", buffer: Buffer.from("no array at all") });
      await page.waitForFunction(() => document.querySelector("#status").textContent.includes("no.npy: this is not a .npy file"));
      assert.equal(await page.locator("#run").isDisabled(), true);
    });
  });

  test(`playground, ${mode.name}: pieces run and are pictures`, async () => {
    await visit(mode, "playground", async (page) => {
      await on(page, mode);
      const listed = (await page.locator("#example option").evaluateAll((options) => options.map(({ value }) => value))).filter(Boolean);
      assert.deepEqual(listed, [...MOVING, ...STILL]);
      // Every other piece on the CPU, one in four on WebGPU, and others with the next turn.
      for (const id of listed.filter((_, number) => hasTurn(number, mode.webgpu ? 4 : 2))) {
        const before = await runs(page);
        await choose(page, id);
        if (MOVING.includes(id)) await frames(page, 2);
        else await page.waitForFunction((least) => Number(document.querySelector(".playground")?.dataset.runs ?? 0) > least || document.querySelector("#problem > p"), before, { timeout: 60_000 });
        assert.equal(await page.locator("#problem").innerText(), "", id);
        assert.equal(await page.locator("#about p").count(), 3, `three lines about ${id}`);
        if (id === "histogram") assert.equal(await page.locator(".seen svg.plot path.line").count(), 1);
        else if (id === "saxpy") assert.ok((await numbers(page, "y")).length === 256);
        else assert.ok((await colors(page)) >= (id === "life" || id === "digits" ? 2 : 30), `${id}: a picture of ${await colors(page)} colours`);
      }
      await ran(page, () => choose(page, "histogram"));
      // Results of the piece before are not mixed in.
      assert.deepEqual(await page.locator("#result-name option").allInnerTexts(), ["bins"]);
      await page.locator("#look").selectOption("numbers");
      await page.waitForSelector(".numbers li");
      const bins = await numbers(page, "bins");
      assert.equal(bins.reduce((sum, bin) => sum + bin, 0), 65536, "every value is in a bin");

      await page.locator("#open-gallery").click();
      assert.equal(await page.locator("#gallery .card").count(), listed.length);
      assert.ok(await page.locator("#gallery .card img").evaluateAll((images) => images.length >= 16));
      await page.locator('#gallery [data-piece="life"]').focus();
      await page.keyboard.press("Enter");
      await frames(page, 2);
      assert.equal(await page.locator("#example").inputValue(), "life");
    });
  });

  test(`playground, ${mode.name}: a long run is cancelled, and the next one works`, async () => {
    await visit(mode, "playground/saxpy", async (page) => {
      await on(page, mode);
      await ran(page, () => page.locator("#run").click());
      await page.locator("#rounds").fill("2000000000");
      await page.locator("#rounds").blur();
      await write(page, LONG(mode.webgpu ? 1_500_000 : 400_000_000));
      if (!mode.webgpu) {
        // A large amount of work waits for confirmation.
        await page.waitForFunction(() => /^This is about [\d.]+ trillion operations, .* Run starts it/.test(document.querySelector("#status").textContent));
        assert.match(await page.locator("#work").innerText(), /^About [\d.]+ trillion operations each time/);
        assert.equal(await page.locator("#cancel").isVisible(), false);
        await page.locator("#run").click();
      }
      await page.waitForSelector("#cancel:visible");
      await page.waitForTimeout(500);
      const start = Date.now();
      await page.locator("#cancel").focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelector("#status").textContent === "Cancelled.");
      const took = Date.now() - start;
      // Not at the end of the run, which takes far longer.
      assert.ok(took < 10_000, `cancelled after ${took} ms`);
      await choose(page, "saxpy");
      await page.waitForSelector('[data-uniform="params.a"]');
      await page.waitForSelector(".numbers li", { timeout: 120_000 });
      assert.deepEqual((await numbers(page, "y")).slice(0, 3), [1, 3, 5]);
    }, { own: mode.webgpu });
  });
}

test(`playground: an error is underlined where it is`, async () => {
  await visit(MODES[1], "playground", async (page) => {
    await ready(page);
    await frames(page, 1);
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
    await screenshot(page, `error-webgpu`);
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

test(`playground: a link holds kernel and inputs, edits survive a reload`, async () => {
  await visit(MODES[1], "playground/matmul", async (page, { context, url }) => {
    await on(page, MODES[1]);
    await write(page, LONG(3).replace("fn main", "fn chain"));
    await page.waitForSelector('[data-fill="y"]');
    await page.locator('[data-fill="y"]').selectOption("ones");
    await page.locator('[data-length="y"]').fill("77");
    await page.getByRole("button", { name: "Fit the result" }).click();
    await page.waitForFunction(() => document.querySelector("[data-axis=x]").value === "77");
    await page.waitForFunction(() => document.querySelectorAll(".numbers li").length === 77);
    await page.locator("#share").click();
    await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("The link is copied"));
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(link.startsWith(`${url}#playground/`), link);

    const { page: other, faults } = await open(context, link);
    await other.waitForFunction(() => document.querySelectorAll(".numbers li").length === 77);
    assert.equal(await other.locator(".cm-content").innerText().then((text) => text.trim()), LONG(3).replace("fn main", "fn chain"));
    assert.equal(await other.locator('[data-fill="y"]').inputValue(), "ones");
    let x = 0;
    for (let i = 0; i < 3; i++) {
      x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
      x = (x ^ (x >>> 7)) >>> 0;
    }
    assert.equal((await numbers(other, "y"))[0], x);
    await other.goto(`${url}#playground/broken!`);
    await other.waitForFunction(() => document.querySelector("#status").textContent.startsWith("The link cannot be opened"));
    assert.deepEqual(faults, []);

    // A small file goes along, a large one is named.
    for (const [length, says] of [[16, "The link is copied; it holds the kernel and its inputs."], [65536, "The link is copied; it holds the kernel and its inputs. Too large for a link and left out: x.npy."]]) {
      await page.locator('[data-fill="y"]').selectOption("file");
      await page.locator('[data-file="y"]').setInputFiles({ name: "x.npy", mimeType: "application/octet-stream", buffer: npy("<u4", [length], false, new Uint32Array(length).buffer) });
      // Asked again until the file is read.
      const until = Date.now() + 60_000;
      do {
        await page.waitForTimeout(600);
        await page.locator("#share").click();
        await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("The link is copied"));
      } while ((await page.locator("#status").innerText()) !== says && Date.now() < until);
      assert.equal(await page.locator("#status").innerText(), says);
    }

    await page.locator('[data-fill="y"]').selectOption("zeros");
    await write(page, LONG(5).replace("fn main", "fn again"));
    await page.waitForFunction(() => Object.values(localStorage).some((text) => text.includes("fn again")));
    await page.evaluate(() => history.replaceState(null, "", "#playground"));
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".cm-content")?.textContent.includes("fn again"));
  });
});

test("playground: a loop without an end is stopped on WebGPU, with its place, and the next run works", async () => {
  await visit(MODES[0], "playground/saxpy", async (page) => {
    await on(page, MODES[0]);
    await ran(page, () => page.locator("#run").click());
    await page.locator("#rounds").fill("100000");
    await page.locator("#rounds").blur();
    await write(page, ENDLESS);
    await page.waitForSelector("#problem > p", { timeout: 60_000 });
    assert.match(await page.locator("#problem").innerText(), /The loop in line 4 was stopped after 100,000 rounds/);
    await write(page, ENDLESS.replace("x |= 1u;", "x = 0u;"));
    await page.waitForFunction(() => document.querySelector("#problem").textContent === "" && document.querySelector(".numbers li")?.textContent === "0");
    assert.deepEqual((await numbers(page, "y")).slice(0, 3), [0, 0, 0]);
  }, { own: true });
});

test("playground: a GPU that does not answer is given up, and Run opens another device", async () => {
  await visit(MODES[0], "playground/saxpy", async (page, { faults }) => {
    await on(page, MODES[0]);
    await ran(page, () => page.locator("#run").click());
    const worker = page.workers().find((known) => known.url().includes("worker"));
    await worker.evaluate(() => {
      const never = () => new Promise(() => undefined);
      GPUQueue.prototype.onSubmittedWorkDone = never;
      GPUBuffer.prototype.mapAsync = never;
      const { destroy } = GPUDevice.prototype;
      GPUDevice.prototype.destroy = function () {
        console.log("destroyed");
        return destroy.call(this);
      };
      // Half a minute passes quickly.
      const later = self.setTimeout;
      self.setTimeout = (work, time, ...rest) => later(work, time >= 30_000 ? 300 : time, ...rest);
    });
    const destroyed = page.waitForEvent("console", (message) => message.text() === "destroyed");
    await page.locator("#run").click();
    await page.waitForSelector("#problem > p");
    assert.match(await page.locator("#problem").innerText(), /did not answer for half a minute.*Run opens a new one/);
    await destroyed;
    assert.equal(await page.locator("#run-on").inputValue(), "webgpu");
    await ran(page, () => page.locator("#run").click());
    assert.deepEqual((await numbers(page, "y")).slice(0, 3), [1, 3, 5]);
    faults.length = 0;
  }, { own: true });
});

test("playground: WebGPU and the CPU agree", async () => {
  await visit(MODES[0], "playground/matmul", async (page) => {
    // The piece races by itself.
    await page.waitForSelector("#comparison", { timeout: 120_000 });
    assert.equal(await page.locator(".race .bar-row").count(), 2);
    await screenshot(page, "compare");
    // Values that whole numbers make are equal; others differ by roundings, which may move a value to the next bin.
    const limits = { matmul: 1e-3, saxpy: 0, field: 2e-6, phi: 2e-6, histogram: 8 };
    for (const [id, limit] of Object.entries(limits)) {
      if (id !== "matmul") {
        const before = await runs(page);
        await choose(page, id);
        await page.waitForFunction((least) => Number(document.querySelector(".playground")?.dataset.runs) > least, before);
        await ran(page, () => page.locator("#compare").click());
      }
      const largest = Number(await page.locator("#comparison [data-largest]").first().getAttribute("data-largest"));
      assert.ok(largest <= limit, `${id}: ${largest}`);
    }
  });
});

test("playground: the kernel as a program runs", async () => {
  await visit(MODES[1], "playground/saxpy", async (page, { context, url }) => {
    const folder = mkdtempSync(join(tmpdir(), "cantus-forms-"));
    const server = await serve(WEB);
    try {
      // What the Rust forms are compiled in: an app as `cantus new` makes it.
      const app = join(folder, "forms");
      execFileSync(PROGRAM, ["new", app, "--cantus", join(WEB, "..")], { stdio: "pipe" });
      copyFileSync(join(WEB, "../Cargo.lock"), join(app, "Cargo.lock"));
      const rust = async (id, form) => {
        mkdirSync(join(app, "src/bin", id), { recursive: true });
        writeFileSync(join(app, "src/bin", id, "main.rs"), await form("rust"));
        const [, wgsl] = /<<'WGSL'\n([\s\S]*?)\nWGSL\n/.exec(await form("cli"));
        writeFileSync(join(app, "src/bin", id, "kernel.wgsl"), wgsl);
      };
      const form = async (name) => {
        await page.locator("#form").selectOption(name);
        return page.locator("#form-text").textContent();
      };
      const program = ["saxpy", "reaction", "spiral"];
      for (const id of program) {
        await choose(page, id);
        await page.waitForFunction((about) => document.querySelector("#example").value === about && !document.querySelector("#run").disabled, id);
        await page.waitForSelector(id === "saxpy" ? ".numbers li" : "#results[data-frames]");
        await page.locator("#open-forms").click();
        const cli = await form("cli");
        execFileSync("sh", ["-euc", `cantus() { "${PROGRAM}" --backend cpu "$@"; }\n${cli.replace("repeat = 60", "repeat = 2")}`], { cwd: folder, stdio: "pipe" });
        const made = readFileSync(join(folder, id === "saxpy" ? "y.npy" : id === "spiral" ? "values.png" : "picture.npy"));
        assert.ok(made.length > 1000);
        if (id === "saxpy") assert.deepEqual(Array.from(new Float32Array(made.buffer.slice(made.byteOffset + made.length - 4096))).slice(0, 3), [1, 3, 5]);
        const npm = await form("npm");
        const { page: other } = await open(context, `${server.url}tests/empty.html`);
        const printed = other.waitForEvent("console", (message) => message.type() === "log");
        await other.addScriptTag({ type: "module", content: npm.replace('"cantus"', '"/npm/index.js"') });
        assert.match((await printed).text(), /Array/);
        await other.close();
        await rust(id, form);
        await page.keyboard.press("Escape");
      }
      const others = [...MOVING, ...STILL].filter((id, number) => !program.includes(id) && hasTurn(number, 4));
      for (const id of others) {
        await choose(page, id);
        await page.waitForFunction((chosen) => document.querySelector("#about p") && document.querySelector("#example").value === chosen && !document.querySelector("#run").disabled && document.querySelector(".inputs fieldset"), id);
        await page.locator("#open-forms").click();
        await rust(id, form);
        await page.keyboard.press("Escape");
      }
      execFileSync("cargo", ["build", "--offline", "--quiet", "--bins"], { cwd: app, stdio: "pipe", env: { ...process.env, CARGO_TARGET_DIR: STANDALONE } });
      const printed = execFileSync(join(STANDALONE, "debug/saxpy"), { env: { ...process.env, CANTUS_BACKEND: "cpu" }, encoding: "utf8" });
      assert.match(printed, /^\[1\.0, 3\.0, 5\.0, /);
    } finally {
      server.close();
      rmSync(folder, { recursive: true });
    }
    assert.ok(url);
  });
});

test("playground: the camera's picture is an input", async () => {
  const server = await serve(join(WEB, "dist"));
  const { context, close } = await launch(false, ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]);
  try {
    const { page, faults } = await open(context, `${server.url}#playground/camera`);
    await frames(page, 2);
    await page.locator("#result-name").selectOption("camera");
    await page.locator('[data-fill="camera"]').selectOption("camera");
    assert.match(await page.locator(".inputs").innerText(), /320 × 240; stays on this machine/, "as wide as the picture");
    // Chromium's own picture of a camera is mostly green.
    await page.waitForFunction(() => {
      const canvas = document.querySelector("#result-canvas");
      if (!canvas) return false;
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const [r, g, b] = copy.getImageData(canvas.width / 2, canvas.height - 20, 1, 1).data;
      return g > 100 && g > r + 40 && g > b + 40;
    }, undefined, { timeout: 30_000 });
    assert.deepEqual(faults, []);
  } finally {
    await close();
    server.close();
  }
});

for (const mode of MODES) {
  test(`playground, ${mode.name}: your own picture is a texture: by file, dropped, pasted`, async () => {
    await visit(mode, "playground/sobel", async (page) => {
      await on(page, mode);
      await ran(page, () => page.locator("#run").click());
      const shown = () => page.locator("#result-canvas").evaluate((canvas) => {
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        // The lightest pixel of each column.
        const { data, width, height } = copy.getImageData(0, 0, canvas.width, canvas.height);
        const light = Array.from({ length: width }, () => 0);
        for (let i = 0; i < width * height; i++) light[i % width] = Math.max(light[i % width], data[4 * i] + data[4 * i + 1] + data[4 * i + 2]);
        return { width, height, light };
      });
      assert.ok((await colors(page)) > 30, "the test picture has edges");
      /** A picture of 96 x 40, black to the left of a column and white from it on. */
      const picture = (column) => page.evaluate(async (column) => {
        const canvas = new OffscreenCanvas(96, 40);
        const context = canvas.getContext("2d");
        context.fillRect(0, 0, column, 40);
        context.fillStyle = "#fff";
        context.fillRect(column, 0, 96 - column, 40);
        return Array.from(new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer()));
      }, column);
      /** The edge is where the picture has it, and the result is as large as the picture. */
      const check = async (column, how) => {
        const want = { width: 96, height: 40, edge: [column - 1, column] };
        // A run of the picture before may end last.
        for (const end = Date.now() + 10_000; ; await page.waitForTimeout(100)) {
          const { width, height, light } = await shown();
          const edge = light.flatMap((value, x) => (value > 150 ? [x] : []));
          if (Date.now() > end || JSON.stringify({ width, height, edge }) === JSON.stringify(want)) {
            assert.deepEqual({ width, height, edge }, want, how);
            return;
          }
        }
      };
      await page.locator('[data-fill="image"]').selectOption("image");
      await page.waitForFunction(() => document.querySelector("#status").textContent === "Choose a file for the input image.");
      await ran(page, async () => page.locator('[data-file="image"]').setInputFiles({ name: "step.png", mimeType: "image/png", buffer: Buffer.from(await picture(30)) }));
      await check(30, "a file");
      assert.match(await page.locator(".inputs").innerText(), /step\.png, drawn into 96 × 40/);
      for (const [kind, type, column] of [["drop", "DragEvent", 50], ["paste", "ClipboardEvent", 70]]) {
        const bytes = await picture(column);
        await ran(page, () => page.evaluate(([kind, type, bytes]) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(bytes)], `${kind}.png`, { type: "image/png" }));
          const init = { bubbles: true, cancelable: true, dataTransfer: data, clipboardData: data };
          document.querySelector(".side").dispatchEvent(new window[type](kind, init));
        }, [kind, type, bytes]));
        await check(column, kind);
      }
      await page.locator("#look").selectOption("numbers");
      await page.waitForSelector(".numbers li");
      await page.locator("#look").selectOption("rgba");
      await page.locator('[data-fill="image"]').selectOption("pattern");
      await ran(page, () => page.locator('[data-side="image width"]').fill("80"));
      // A kernel without a texture says so.
      await choose(page, "saxpy");
      await page.waitForSelector(".numbers li");
      await page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File([], "x.png", { type: "image/png" }));
        document.querySelector(".side").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
      });
      assert.match(await page.locator("#status").innerText(), /no input that takes a picture/);
      if (!mode.webgpu) {
        await choose(page, "tiltshift");
        await page.waitForFunction(() => document.querySelector("#result-canvas")?.width === 512);
        await looks(page, "playground-textures");
      }
    });
  });
}

test("playground: the camera's picture is a texture", async () => {
  const server = await serve(join(WEB, "dist"));
  const { context, close } = await launch(false, ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]);
  try {
    const { page, faults } = await open(context, `${server.url}#playground/kaleidoscope`);
    await frames(page, 2);
    await page.locator('[data-fill="image"]').selectOption("camera");
    // Chromium's own picture of a camera is mostly green.
    await page.waitForFunction(() => {
      const canvas = document.querySelector("#result-canvas");
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let green = 0;
      for (let i = 0; i < data.length; i += 4) green += data[i + 1] > 80 && data[i + 1] > data[i] + 30 && data[i + 1] > data[i + 2] + 30 ? 1 : 0;
      return green > data.length / 8;
    }, undefined, { timeout: 30_000 });
    assert.deepEqual(faults, []);
  } finally {
    await close();
    server.close();
  }
});

test("playground: a video's pictures are an input, frame by frame", async () => {
  await visit(MODES[1], "playground/camera", async (page) => {
    await frames(page, 2);
    await page.locator("#result-name").selectOption("camera");
    // Red at first, then blue.
    const film = await page.evaluate(async () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [64, 48];
      const context = canvas.getContext("2d");
      const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: "video/webm;codecs=vp8" });
      const parts = [];
      recorder.ondataavailable = ({ data }) => parts.push(data);
      const stopped = new Promise((resolve) => (recorder.onstop = resolve));
      recorder.start();
      for (let i = 0; i < 60; i++) {
        context.fillStyle = i < 30 ? "#f00" : "#00f";
        context.fillRect(0, 0, 64, 48);
        await new Promise((resolve) => setTimeout(resolve, 33));
      }
      recorder.stop();
      await stopped;
      return Array.from(new Uint8Array(await new Blob(parts).arrayBuffer()));
    });
    await page.locator('[data-fill="camera"]').selectOption("video");
    await page.waitForFunction(() => document.querySelector("#status").textContent === "Choose a video for the input camera.");
    assert.equal(await page.locator("#run").isDisabled(), true);
    const choose = (name, buffer) => page.locator('[data-file="camera"]').setInputFiles({ name, mimeType: "video/webm", buffer });
    await choose("broken.webm", Buffer.from("no video"));
    await page.waitForFunction(() => /^The file broken\.webm cannot be used: the browser cannot play this video\.$/.test(document.querySelector("#status").textContent));
    await choose("film.webm", Buffer.from(film));
    await page.waitForFunction(() => /film\.webm, 64 × 48, drawn into 320 × 240/.test(document.querySelector(".inputs").textContent));
    const shows = (strong, weak) => page.waitForFunction(([strong, weak]) => {
      const canvas = document.querySelector("#result-canvas");
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const pixel = copy.getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data;
      return pixel[strong] > 150 && pixel[weak] < 100;
    }, [strong, weak], { timeout: 30_000 });
    await shows(0, 2);
    await shows(2, 0);
    await shows(0, 2);
    await page.locator("#share").click();
    await page.waitForFunction(() => /left out: film\.webm/.test(document.querySelector("#status").textContent));
  });
});
