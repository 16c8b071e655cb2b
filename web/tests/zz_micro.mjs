import { MODES, WEB, launch, open, serve } from "/work/main/web/tests/browser.mjs";
const server = await serve(WEB);
const { context, close } = await launch(false);
const { page } = await open(context, `${server.url}tests/empty.html`);
const found = await page.evaluate(async () => {
  const out = [];
  for (const file of ["/npm/field.js", "/npm/index.js"]) {
    const { Engine } = await import(file);
    const engine = await Engine.create({ backend: "cpu" });
    for (const N of [64, 128, 256, 64, 128]) {
      for (const batch of [1, 16, 64]) {
        const a = performance.now();
        let n = 0;
        while (performance.now() - a < 300) {
          for (let i = 0; i < batch; i++) { const t = await engine.field(N, N, { time: 1 }); t.free(); n++; }
          await engine.finish();
        }
        out.push(`${file} ${N} x${batch}: ${((performance.now() - a) / n).toFixed(3)} ms`);
      }
    }
  }
  return out;
});
console.log(found.join("\n"));
await close(); server.close();
