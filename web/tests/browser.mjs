// A server for the built page and a headless Chromium to use it: what every test starts from.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { answer } from "../serve.mjs";

export const WEB = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** A line of some bytes a second that all answers share, each `latency` milliseconds after its request; it counts them. */
export class Line {
  bytes = 0;
  #free = 0;

  constructor(rate, latency) {
    Object.assign(this, { rate, latency });
  }

  #wait = (time) => new Promise((resolve) => setTimeout(resolve, Math.max(0, time - performance.now())));

  async carry(response) {
    await this.#wait(performance.now() + this.latency);
    const { write, end } = response;
    let turn = Promise.resolve();
    const sent = async (bytes) => {
      this.bytes += bytes;
      this.#free = Math.max(this.#free, performance.now()) + (bytes / this.rate) * 1000;
      await this.#wait(this.#free);
    };
    // In small pieces, so that answers go side by side.
    response.write = (chunk, ...rest) => {
      turn = turn.then(async () => {
        for (let at = 0; at < chunk.length; at += 4096) {
          const piece = chunk.subarray(at, at + 4096);
          await sent(piece.length);
          write.call(response, piece);
        }
        response.emit("drain");
      });
      rest.find((one) => typeof one === "function")?.();
      return false;
    };
    response.end = (...rest) => void turn.then(() => sent(300)).then(() => end.apply(response, rest));
  }
}

/** Serves a folder on a free port of this machine, as `web/serve` does; or as a host that sets no headers of an isolated page. */
export async function serve(folder, { isolated = true, line = undefined } = {}) {
  const server = createServer(async (request, response) => {
    if (line) await line.carry(response);
    const write = response.writeHead.bind(response);
    if (!isolated) response.writeHead = (status, headers = {}) => write(status, Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("cross-origin"))));
    return answer(folder, request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://localhost:${server.address().port}/`, close: () => server.close() };
}

function chromiumPath() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // The next name.
    }
  }
  throw new Error("no Chromium: install one, or name it in CHROMIUM");
}

/** How long anything may take, in milliseconds: machines are slow and busy at times. */
const PATIENCE = 90_000;

/** How a browser is started, with WebGPU on SwiftShader or without WebGPU. */
function settings(webgpu, further = []) {
  // Presenting a WebGPU canvas without a GPU takes a compositor on SwiftShader's Vulkan: with the others, the GPU process ends.
  const software = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader", "--use-angle=vulkan"];
  const gpu = webgpu ? software : ["--disable-features=WebGPU", "--disable-gpu", "--disable-blink-features=WebGPU"];
  const args = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", ...gpu, ...further];
  return { executablePath: chromiumPath(), headless: true, args };
}

const VISITOR = { permissions: ["clipboard-read", "clipboard-write"], viewport: { width: 1280, height: 800 }, acceptDownloads: true };

/** A separate browser, with its profile on disk. */
export async function launch(webgpu, further = [], options = {}) {
  const profile = mkdtempSync(join(tmpdir(), "cantus-web-"));
  const context = await chromium.launchPersistentContext(profile, { ...settings(webgpu, further), ...VISITOR, ...options });
  context.setDefaultTimeout(PATIENCE);
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, close };
}

const browsers = new Map();
after(async () => {
  for (const browser of browsers.values()) await (await browser).close();
});

/** A fresh visitor, without anything stored, in a browser that a file's tests share. */
export async function visitor(webgpu, options = {}) {
  if (!browsers.has(webgpu)) browsers.set(webgpu, chromium.launch(settings(webgpu)));
  const context = await (await browsers.get(webgpu)).newContext({ ...VISITOR, ...options });
  context.setDefaultTimeout(PATIENCE);
  return { context, close: () => context.close() };
}

/** Both browsers that every view is used in. */
export const MODES = [
  { name: "WebGPU", webgpu: true, backend: "webgpu" },
  { name: "no WebGPU", webgpu: false, backend: "cpu" },
];

/** A page that notes what it says on its console when something is wrong. */
export async function open(context, url) {
  const page = await context.newPage();
  const faults = [];
  // Chromium's own note where WebGPU has no adapter: what the page then does is what the tests look at.
  const expected = "No available adapters.";
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && message.text() !== expected && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(url);
  return { page, faults };
}

/**
 * Runs `use` with a fresh page on the built site; fails on anything the console said was wrong. `own`: in a browser of its own, for what
 * leaves the GPU at work. Further options are Playwright's for a context.
 */
export async function visit(mode, hash, use, { own = false, ...options } = {}) {
  const server = await serve(join(WEB, "dist"));
  const { context, close } = own ? await launch(mode.webgpu, [], options) : await visitor(mode.webgpu, options);
  try {
    const { page, faults } = await open(context, `${server.url}#${hash}`);
    await use(page, { context, url: server.url, faults });
    assert.deepEqual(faults, [], "the console is clean");
  } finally {
    await close();
    server.close();
  }
}

/** Runs a function in a page that has nothing but the package. */
export async function inPage(mode, use, given = undefined, check = (faults) => assert.deepEqual(faults, [])) {
  const server = await serve(WEB);
  const { context, close } = await visitor(mode.webgpu);
  try {
    const { page, faults } = await open(context, `${server.url}tests/empty.html`);
    const found = await page.evaluate(`(${use})(${JSON.stringify(mode.backend)}, ${JSON.stringify(given)})`);
    check(faults);
    return found;
  } finally {
    await close();
    server.close();
  }
}

/**
 * What the page's main thread computes in `use`: the longest of its tasks, in milliseconds of the thread's own time. Unlike the clock's
 * it does not grow when the machine is busy, or when the browser waits for its compositor. A loop at the end shows that tasks are seen.
 */
export async function longestTask(page, use) {
  const trace = await page.context().newCDPSession(page);
  const events = [];
  trace.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await trace.send("Tracing.start", { traceConfig: { includedCategories: ["toplevel", "blink.user_timing"], excludedCategories: ["*"] } });
  await use();
  await page.evaluate(() => {
    performance.mark("cantus: the control begins");
    let x = 1;
    for (let i = 0; i < 300_000_000; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0;
    return x;
  });
  // The answer comes from within the loop's task, which is noted once it has ended.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
  const complete = new Promise((resolve) => trace.once("Tracing.tracingComplete", resolve));
  await trace.send("Tracing.end");
  await complete;
  await trace.detach();
  const mark = events.find(({ name }) => name === "cantus: the control begins");
  const tasks = events.filter(({ name, pid, tid, tdur }) => name.endsWith("RunTask") && tdur && pid === mark.pid && tid === mark.tid);
  const longest = (some) => Math.max(0, ...some.map(({ tdur }) => tdur)) / 1000;
  const control = longest(tasks.filter(({ ts, dur }) => ts + dur > mark.ts));
  return { count: tasks.length, longest: longest(tasks.filter(({ ts, dur }) => ts + dur <= mark.ts)), control };
}

/** Fails if a number does not come to rest: what was under way is finished first, which a busy machine draws out. */
export async function comesToRest(page, number, what) {
  const seen = [await number()];
  while (seen.length < 8 && seen.at(-1) !== seen.at(-2)) {
    await page.waitForTimeout(1100);
    seen.push(await number());
  }
  assert.equal(seen.at(-1), seen.at(-2), `${what}: ${seen}`);
}

/** axe-core's faults that hold people up. */
export async function accessibilityFaults(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.addScriptTag({ path: join(WEB, "node_modules/axe-core/axe.min.js") });
  const { violations } = await page.evaluate(() => window.axe.run(document));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
}

/** Each view is looked at as it is read: light and dark, from 320 to 1920 wide. Nothing may stick out. */
export async function looks(page, name) {
  for (const theme of ["light", "dark"]) {
    await page.locator("#theme").selectOption(theme);
    assert.deepEqual(await accessibilityFaults(page), [], `axe-core, ${theme}`);
  }
  await screenshot(page, `${name}-dark`);
  for (const [width, height] of [[320, 640], [1920, 1080], [390, 844]]) {
    await page.setViewportSize({ width, height });
    const [needed, given] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(needed <= given, `the page is ${needed} wide of ${given}`);
    assert.deepEqual(await accessibilityFaults(page), [], `axe-core, ${width} wide`);
  }
  await screenshot(page, `${name}-phone`);
  await page.locator("#theme").selectOption("light");
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** Screenshots that the repository shows. The others stay where the tests ran. */
const KEPT = ["field-webgpu", "field-cpu-phone", "playground-webgpu", "error-webgpu", "compare", "bench-webgpu-dark"];

/** A few are written to the repository when CANTUS_SCREENSHOTS is set, the others beside the results. */
export async function screenshot(page, name) {
  const folder = join(WEB, process.env.CANTUS_SCREENSHOTS && KEPT.includes(name) ? "screenshots" : "test-results");
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** Two PNG files side by side: the mean difference of their channels, and the largest, in steps of 255. */
export async function compare(page, one, two) {
  return page.evaluate(
    async (files) => {
      const [a, b] = await Promise.all(
        files.map(async (file) => {
          const blob = await (await fetch(`data:image/png;base64,${file}`)).blob();
          const image = await createImageBitmap(blob, { colorSpaceConversion: "none" });
          const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
          context.drawImage(image, 0, 0);
          return context.getImageData(0, 0, image.width, image.height);
        }),
      );
      if (a.width !== b.width || a.height !== b.height) throw new Error(`${a.width} x ${a.height} is not ${b.width} x ${b.height}`);
      let [sum, largest, count] = [0, 0, 0];
      for (let i = 0; i < a.data.length; i++) {
        if (i % 4 === 3) continue;
        const difference = Math.abs(a.data[i] - b.data[i]);
        sum += difference;
        largest = Math.max(largest, difference);
        count++;
      }
      return { mean: sum / count, largest };
    },
    [one, two].map((file) => file.toString("base64")),
  );
}

/** A file that a click offers. */
export async function download(page, act) {
  const [offered] = await Promise.all([page.waitForEvent("download"), act()]);
  return readFileSync(await offered.path());
}
