// The page where something is missing: storage, a part of itself, SIMD, memory, the network. It is never blank, and says what is wrong.
import assert from "node:assert/strict";
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { brotliDecompressSync } from "node:zlib";
import { WEB, serve, visitor } from "./browser.mjs";

/** A fresh visitor on the built page under a path of its own, prepared before anything is loaded. */
async function under(prepare, use, options = {}) {
  const server = await serve(WEB);
  const { context, close } = await visitor(false, options);
  try {
    await prepare(context);
    const url = `${server.url}dist/`;
    await use(await context.newPage(), url, context, server);
  } finally {
    await close();
    server.close();
  }
}

test("robust: without storage, under any path, the page works", async () => {
  await under(
    (context) => context.addInitScript(() => Object.defineProperty(window, "localStorage", { get: () => { throw new DOMException("denied", "SecurityError"); } })),
    async (page, url) => {
      const faults = [];
      page.on("pageerror", (error) => faults.push(String(error)));
      await page.goto(`${url}#playground`);
      await page.waitForSelector("#results[data-frames]");
      await page.locator("#theme").selectOption("dark");
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
      await page.goto(`${url}#field`);
      await page.waitForSelector('#device[data-backend="cpu"]');
      assert.deepEqual(faults, []);
    },
  );
});

test("robust: a part that cannot be loaded is named, and loads again", async () => {
  await under(
    async () => undefined,
    async (page, url) => {
      let broken = true;
      await page.route(/assets\/view.*\.js/, (route) => (broken ? route.abort() : route.continue()));
      await page.goto(`${url}#playground`);
      await page.waitForSelector(".fault");
      assert.match(await page.locator(".fault").innerText(), /could not be loaded/);
      broken = false;
      await page.locator(".fault button").click();
      await page.waitForSelector("#results[data-frames]");
    },
    { serviceWorkers: "block" },
  );
});

test("robust: a worker or a module that cannot be loaded is named", async () => {
  for (const missing of [/assets\/worker.*\.js/, /assets\/cantus_bg.*\.wasm/]) {
    await under(
      async () => undefined,
      async (page, url) => {
        await page.route(missing, (route) => route.abort());
        await page.goto(`${url}#field`);
        await page.waitForSelector(".stage-note:visible");
        assert.match(await page.locator(".stage-note").innerText(), /could not be loaded/);
        await page.goto(`${url}#playground`);
        await page.waitForFunction(() => /could not be loaded/.test(document.querySelector("#status")?.textContent + document.querySelector("#problem")?.textContent));
        assert.ok((await page.locator(".cm-content").innerText()).length > 100, "the text is there all the same");
      },
      // It would fetch them itself.
      { serviceWorkers: "block" },
    );
  }
});

test("robust: a browser without WebAssembly's SIMD is told so", async () => {
  await under(
    async () => undefined,
    async (page, url) => {
      // Imitates such a browser: every worker begins without it.
      await page.route(/assets\/worker.*\.js/, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, body: `WebAssembly.validate = () => false;\n${await answer.text()}` });
      });
      await page.goto(`${url}#field`);
      await page.waitForSelector(".stage-note:visible");
      assert.match(await page.locator(".stage-note").innerText(), /too old.*SIMD/s);
    },
    // It would fetch the worker itself once it has taken the page over.
    { serviceWorkers: "block" },
  );
});

test("robust: a hundred million inputs are made on the device, and too many are refused in a sentence", async () => {
  await under(
    async () => undefined,
    async (page, url) => {
      await page.goto(`${url}#playground/saxpy`);
      await page.waitForSelector(".numbers li");
      const runs = () => page.locator(".playground").evaluate(({ dataset }) => Number(dataset.runs));
      await page.locator('[data-length="x"]').fill("100000000");
      await page.waitForTimeout(400);
      await page.waitForFunction(() => document.querySelector(".playground").getAttribute("aria-busy") !== "true");
      const before = await runs();
      const start = Date.now();
      await page.locator("#run").click();
      await page.waitForFunction((least) => Number(document.querySelector(".playground").dataset.runs) > least || document.querySelector("#problem > p"), before, { timeout: 60_000 });
      assert.equal(await page.locator("#problem").innerText(), "");
      console.log(`    100 million inputs: ${Date.now() - start} ms`);
      await page.locator('[data-length="x"]').fill("99999999999");
      await page.waitForFunction(() => /more than the page takes/.test(document.querySelector("#problem").textContent));
      await page.locator('[data-length="x"]').fill("1024");
      await page.waitForFunction(() => document.querySelector("#problem").textContent === "");
    },
  );
});

test("robust: the second visit needs no network", async () => {
  await under(
    async () => undefined,
    async (page, url, context, server) => {
      const visit = async () => {
        await page.goto(`${url}#playground`);
        await page.waitForSelector("#results[data-frames]");
      };
      await visit();
      await page.evaluate(() => navigator.serviceWorker.ready);
      await page.reload();
      await page.waitForSelector("#results[data-frames]");
      await context.setOffline(true);
      await page.goto("about:blank");
      await visit();
      assert.equal(await page.evaluate(() => crossOriginIsolated), true);
      assert.ok(server);
    },
  );
});

test("robust: of an older release nothing is kept", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cantus-release-"));
  const server = await serve(folder);
  const { context, close } = await visitor(false);
  try {
    cpSync(join(WEB, "dist"), folder, { recursive: true });
    const page = await context.newPage();
    const kept = () => page.evaluate(async () => (await (await caches.open("cantus-1")).keys()).map(({ url }) => new URL(url).pathname));
    const visit = async () => {
      await page.goto("about:blank");
      await page.goto(`${server.url}#field`);
      await page.waitForFunction(() => navigator.serviceWorker.controller);
    };
    await visit();
    await visit();
    await page.evaluate(() => fetch("icon.svg"));
    await page.waitForFunction(async () => (await (await caches.open("cantus-1")).keys()).some(({ url }) => url.endsWith("icon.svg")));
    await visit();
    assert.ok((await kept()).includes("/icon.svg"), "the same release keeps its files");
    for (const coding of [".br", ".gz"]) rmSync(join(folder, `index.html${coding}`));
    appendFileSync(join(folder, "index.html"), "<!-- another release -->");
    await visit();
    const after = await kept();
    assert.ok(after.length > 0 && !after.includes("/icon.svg"), String(after));
  } finally {
    await close();
    server.close();
    rmSync(folder, { recursive: true });
  }
});

test("robust: on a disk that is nearly full the page works from the network", async () => {
  await under(
    async () => undefined,
    async (page, url) => {
      await page.goto(`${url}#field`);
      await page.evaluate(() => navigator.serviceWorker.ready);
      const session = await page.context().newCDPSession(page);
      await session.send("Storage.overrideQuotaForOrigin", { origin: new URL(url).origin, quotaSize: 100_000 });
      const refused = await page.evaluate(async () => (await caches.open("other")).put("/large", new Response(new Uint8Array(1_000_000))).catch(({ name }) => name));
      assert.equal(refused, "QuotaExceededError");
      const served = [];
      page.on("response", (response) => response.fromServiceWorker() && served.push(response.url()));
      // What the field did not need: the playground's scripts and its module, each larger than what may be kept.
      await page.goto("about:blank");
      await page.goto(`${url}#playground`);
      await page.waitForSelector("#results[data-frames]", { timeout: 30_000 });
      assert.ok(served.some((one) => one.endsWith(".wasm")), "the worker answered for the module");
    },
  );
});

test("robust: where the store is blocked, the service worker answers from the network", async () => {
  const listeners = {};
  const origin = "http://localhost";
  const denied = async () => { throw new DOMException("denied", "SecurityError"); };
  runInNewContext(readFileSync(join(WEB, "public", "service.js"), "utf8"), {
    self: { addEventListener: (kind, listener) => (listeners[kind] = listener), location: { origin } },
    caches: { open: denied },
    fetch: async ({ url }) => new Response(`of ${url}`),
    URL, Headers, Response,
  });
  let answer;
  listeners.fetch({ request: { method: "GET", url: `${origin}/assets/a.wasm` }, respondWith: (given) => (answer = given), waitUntil: () => undefined });
  assert.equal(await (await answer).text(), `of ${origin}/assets/a.wasm`);
});

test("robust: the CPU has threads where the page is isolated; elsewhere from the second visit on, and nothing is loaded twice", async () => {
  const server = await serve(WEB, { isolated: false });
  const { context, close } = await visitor(false);
  try {
    const page = await context.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    const visit = async () => {
      let navigations = 0;
      const count = (frame) => frame === page.mainFrame() && navigations++;
      await page.goto("about:blank");
      page.on("framenavigated", count);
      await page.goto(`${server.url}dist/#playground/field`);
      await page.waitForSelector(".playground[data-runs]");
      await page.locator("#look").selectOption("numbers");
      await page.waitForSelector(".numbers li");
      const numbers = await page.locator(".numbers li").allInnerTexts();
      const said = await page.locator("#results .outcome").innerText();
      page.off("framenavigated", count);
      return { navigations, numbers, said, isolated: await page.evaluate(() => crossOriginIsolated) };
    };
    const first = await visit();
    assert.deepEqual([first.isolated, first.navigations], [false, 1]);
    assert.match(first.said, /CPU executor in WebAssembly, one thread/);
    await page.evaluate(() => navigator.serviceWorker.ready);
    const second = await visit();
    assert.deepEqual([second.isolated, second.navigations], [true, 1]);
    const threads = await page.evaluate(() => Math.min(16, navigator.hardwareConcurrency));
    assert.match(second.said, threads > 1 ? new RegExp(`CPU executor in WebAssembly, ${threads} threads`) : /one thread/);
    assert.deepEqual(second.numbers, first.numbers, "the same bits by any number of threads");
    // A kernel without an end is cancelled, and the next run has its threads again.
    if (threads > 1) {
      await page.locator(".cm-content").focus();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.insertText("@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { var x = 1u; while x != 0u { x |= id.x + 1u; } y[id.x] = x; }");
      await page.waitForSelector("#cancel:visible");
      await page.waitForTimeout(500);
      await page.locator("#cancel").click();
      await page.locator("#example").selectOption("histogram");
      await page.waitForFunction((count) => document.querySelector("#results .outcome").textContent.includes(`${count} threads`) && document.querySelector(".seen svg"), threads);
    }
    assert.deepEqual(faults, []);
  } finally {
    await close();
    server.close();
  }
});

test("robust: what is served is compressed beforehand", async () => {
  const server = await serve(join(WEB, "dist"));
  try {
    const files = readdirSync(join(WEB, "dist", "assets")).filter((name) => /\.(js|css|wasm)$/.test(name));
    assert.ok(files.some((name) => name.endsWith(".wasm")));
    for (const name of files) {
      const path = join(WEB, "dist", "assets", name);
      assert.ok(existsSync(`${path}.br`) && existsSync(`${path}.gz`), name);
      assert.ok(brotliDecompressSync(readFileSync(`${path}.br`)).equals(readFileSync(path)), name);
      const answer = await fetch(`${server.url}assets/${name}`, { headers: { "accept-encoding": "br" } });
      assert.equal(answer.headers.get("content-encoding"), "br");
      assert.match(answer.headers.get("cache-control"), /immutable/);
    }
    assert.equal((await fetch(`${server.url}../package.json`)).status, 404);
    assert.equal((await fetch(`${server.url}%2e%2e/package.json`)).status, 404);
  } finally {
    server.close();
  }
});

test("robust: everything is reached by the keyboard alone, and one sees where one is", async () => {
  await under(
    async () => undefined,
    async (page, url) => {
      await page.goto(`${url}#field`);
      await page.waitForSelector('#device[data-backend="cpu"]');
      const unseen = new Set();
      const tabTo = async (selector, key = "Tab") => {
        for (let press = 0; press < 120; press++) {
          // The editor keeps Tab for itself until Escape.
          if (await page.evaluate(() => document.activeElement.matches(".cm-content"))) await page.keyboard.press("Escape");
          await page.keyboard.press(key);
          const [found, shown, what] = await page.evaluate((wanted) => {
            const { activeElement: here } = document;
            const { outlineStyle, outlineWidth } = getComputedStyle(here);
            return [here.matches(wanted), outlineStyle !== "none" && parseFloat(outlineWidth) > 0, `${here.tagName} ${here.id} ${here.className}`];
          }, selector);
          // The text cursor shows where one is in the editor.
          if (!shown && !/cm-content|BODY/.test(what)) unseen.add(what);
          if (found) return;
        }
        throw new Error(`${selector} is not reached`);
      };
      await tabTo("a.skip");
      await tabTo('[data-view="playground"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector("#results[data-frames]");
      await tabTo("#open-gallery");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#gallery[open]");
      await tabTo('[data-piece="saxpy"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector(".numbers li");
      await tabTo(".cm-content");
      await page.keyboard.press("ControlOrMeta+End");
      await page.keyboard.type("// by hand");
      await tabTo("#run");
      const before = await page.locator(".playground").getAttribute("data-runs");
      await page.keyboard.press("Enter");
      await page.waitForFunction((runs) => document.querySelector(".playground").dataset.runs !== runs, before);
      await tabTo('[data-slider="params.a"]');
      const value = await page.locator('[data-uniform="params.a"]').inputValue();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction((old) => document.querySelector('[data-uniform="params.a"]').value !== old, value);
      await tabTo('[data-fill="x"]');
      await tabTo("#open-forms", "Shift+Tab");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#forms[open]");
      await tabTo("#form-copy");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#forms:not([open])", { state: "attached" });
      await tabTo('[data-view="bench"]', "Shift+Tab");
      await page.keyboard.press("Enter");
      await tabTo("#bench-run");
      await tabTo('[data-view="field"]', "Shift+Tab");
      await page.keyboard.press("Enter");
      for (const control of ["#named", "#frequency", "#speed", "#size", "#time", "#map", "#backend", "#play", "#png"]) await tabTo(control);
      assert.deepEqual([...unseen], [], "focused without a sign of it");
    },
  );
});
