// The built site in Chromium: each page on a phone and a desktop, light and dark, at a path of its own. `node --test docs/site/site.test.mjs`, after
// docs/site/build.sh; CANTUS_PICTURES names a folder for screenshots.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WEB, open, serve, visitor } from "../../web/tests/browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const site = join(root, "target/site");
const axe = readFileSync(createRequire(join(root, "web/package.json")).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.CANTUS_PICTURES;
const PAGES = ["index", "gallery", "benchmarks", "beside"];
const LOOKS = [
  { name: "phone", viewport: { width: 390, height: 844 }, isMobile: true },
  { name: "desktop", viewport: { width: 1280, height: 900 } },
];

/** The site below a folder of a host. */
async function hosted() {
  const folder = mkdtempSync(join(tmpdir(), "cantus-site-"));
  symlinkSync(site, join(folder, "some"));
  const server = await serve(folder);
  return { url: `${server.url}some/`, close: () => (server.close(), rmSync(folder, { recursive: true })) };
}

for (const { name, ...look } of LOOKS) {
  for (const colorScheme of ["light", "dark"]) {
    test(`site, ${name}, ${colorScheme}: no fault, nothing runs over, everyone can read it`, async () => {
      assert.ok(existsSync(join(site, "index.html")), "there is no site: docs/site/build.sh");
      const server = await hosted();
      const { context, close } = await visitor(false, { ...look, colorScheme });
      try {
        for (const at of PAGES) {
          const { page, faults } = await open(context, `${server.url}${at}.html`);
          if (at === "index") {
            await page.waitForSelector("#stage canvas");
            assert.match(await page.locator("#device").textContent(), /in your browser now: CPU executor in WebAssembly/);
            await page.locator("#play").click();
            assert.equal(await page.locator("#play").textContent(), "Play");
          }
          await page.addScriptTag({ content: axe });
          const { violations } = await page.evaluate(() => globalThis.axe.run());
          assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`), [], at);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          assert.ok(over <= 0, `${at} is ${over} pixels too wide`);
          assert.deepEqual(faults, [], at);
          if (pictures) {
            mkdirSync(pictures, { recursive: true });
            await page.screenshot({ path: join(pictures, `${at}-${name}-${colorScheme}.png`), fullPage: at === "index" });
          }
          await page.close();
        }
      } finally {
        await close();
        server.close();
      }
    });
  }
}

test("site: no page of the guide has a fault, asks another host, or runs over on a phone", async () => {
  const names = existsSync(join(site, "guide")) ? readdirSync(join(site, "guide")).filter((name) => name.endsWith(".html") && !["404.html", "print.html", "toc.html"].includes(name)) : [];
  const server = await hosted();
  const { context, close } = await visitor(false, LOOKS[0]);
  try {
    const elsewhere = [];
    context.on("request", (request) => request.url().startsWith(server.url) || elsewhere.push(request.url()));
    for (const name of names) {
      const { page, faults } = await open(context, `${server.url}guide/${name}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(over <= 0, `${name} is ${over} pixels too wide`);
      assert.deepEqual([faults, elsewhere], [[], []], name);
      await page.close();
    }
  } finally {
    await close();
    server.close();
  }
});

test("site: the field waits for the first paint, and the playground opens a piece", async () => {
  const server = await hosted();
  const { context, close } = await visitor(false);
  try {
    const { page, faults } = await open(context, `${server.url}index.html`);
    await page.waitForSelector("#stage canvas");
    const [painted, asked] = await page.evaluate(() => {
      const paint = performance.getEntriesByType("paint").find(({ name }) => name === "first-contentful-paint");
      const worker = performance.getEntriesByType("resource").find(({ name }) => /worker/.test(name));
      return [paint?.startTime, worker?.startTime];
    });
    assert.ok(painted !== undefined && asked > painted, `the worker was asked for at ${asked} ms, the page painted at ${painted} ms`);
    await page.goto(`${server.url}play/index.html#playground/mandelbrot`);
    await page.waitForFunction(() => document.querySelector("#example")?.value === "mandelbrot");
    assert.deepEqual(faults, []);
  } finally {
    await close();
    server.close();
  }
});

test("site: the front page's JavaScript does what it says", async () => {
  const server = await serve(WEB);
  const { context, close } = await visitor(false);
  try {
    const { page, faults } = await open(context, `${server.url}tests/empty.html`);
    const said = page.waitForEvent("console", (message) => message.type() === "log");
    const code = readFileSync(join(root, "docs/site/snippets/first.js"), "utf8");
    await page.addScriptTag({ type: "module", content: code.replace('"cantus"', '"/npm/index.js"') });
    assert.match((await said).text(), /1 4 9 16/);
    assert.deepEqual(faults, []);
  } finally {
    await close();
    server.close();
  }
});
