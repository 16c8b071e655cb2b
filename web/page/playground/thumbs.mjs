// Writes thumbs/*.webp, the gallery's pictures, from the built page: `node page/playground/thumbs.mjs [SECONDS]`. With --only ID,ID those alone; with
// --sheet FILE.jpg, one picture of all. 0 seconds leave the pictures as they are.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WEB, launch, open, serve } from "../../tests/browser.mjs";

const folder = fileURLToPath(new URL("thumbs/", import.meta.url));
const seconds = Number(process.argv[2] ?? 6);
const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
const sheet = option("--sheet");
const only = option("--only")?.split(",");
const server = await serve(join(WEB, "dist"));
const { context, close } = await launch(false);
try {
  const { page } = await open(context, `${server.url}#playground`);
  await page.waitForSelector("#results[data-frames]");
  const ids = (await page.locator("#example option").evaluateAll((options) => options.map(({ value }) => value))).filter(Boolean);
  const titles = [];
  for (const id of ids) {
    titles.push([id, await page.locator(`#example option[value="${id}"]`).textContent()]);
    if (seconds === 0 || (only && !only.includes(id))) continue;
    await page.locator("#example").selectOption(id);
    await page.waitForTimeout(seconds * 1000 * (id === "pathtracer" || id === "reaction" ? 3 : 1));
    const picture = await page.evaluate(async () => {
      const source = document.querySelector("#result-canvas");
      const plot = document.querySelector(".seen svg, .numbers");
      const [width, height] = [240, 180];
      const canvas = new OffscreenCanvas(width, height);
      const context = canvas.getContext("2d");
      context.fillStyle = "#f1efe9";
      context.fillRect(0, 0, width, height);
      if (plot) {
        const lines = plot.tagName === "OL" ? [...plot.children].slice(0, 40).map((item) => item.textContent) : undefined;
        context.fillStyle = context.strokeStyle = "#8a4f14";
        context.font = "12px monospace";
        context.textAlign = "right";
        if (lines) lines.forEach((text, i) => context.fillText(text, 50 + 55 * (i % 4), 24 + 17 * Math.floor(i / 4)));
        else {
          context.setTransform(0.32, 0, 0, 0.5, 4, 10);
          context.lineWidth = 4;
          context.stroke(new Path2D(plot.querySelector("path.line").getAttribute("d")));
        }
      } else {
        const wide = source.width / source.height > 1.4;
        const scale = (wide ? Math.min : Math.max)(width / source.width, height / source.height);
        context.drawImage(source, (width - source.width * scale) / 2, (height - source.height * scale) / 2, source.width * scale, source.height * scale);
      }
      const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.72 });
      return Array.from(new Uint8Array(await blob.arrayBuffer()));
    });
    writeFileSync(join(folder, `${id}.webp`), Buffer.from(picture));
  }
  if (sheet) {
    await page.setViewportSize({ width: 1000, height: 100 });
    const figures = titles.map(([id, title]) => `<figure><img src="data:image/webp;base64,${readFileSync(join(folder, `${id}.webp`)).toString("base64")}"><figcaption>${title}</figcaption></figure>`);
    await page.setContent(`<style>body{margin:10px;font:13px sans-serif;display:grid;grid-template-columns:repeat(6,1fr);gap:8px}figure{margin:0}img{width:100%}</style>${figures.join("")}`);
    await page.screenshot({ path: sheet, fullPage: true, type: "jpeg", quality: 75 });
  }
} finally {
  await close();
  server.close();
}
