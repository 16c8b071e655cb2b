// The npm package as an app would use it, without a bundler: results against arithmetic done here, errors, types of the surface, sizes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MODES, WEB, inPage, open, serve, visitor } from "./browser.mjs";
import { isQuick, left } from "./quick.mjs";

for (const mode of MODES) {
  test(`package, ${mode.name}: tensors, dispatch, operations, errors`, async () => {
    const found = await inPage(mode, async (backend) => {
      const { Engine } = await import("/npm/index.js");
      // The best device is the CPU where the GPU is a program: it has to be asked for.
      const engine = await Engine.create(backend === "webgpu" ? { backend } : {});
      const found = { backend: engine.backend, isExperimental: engine.isExperimental, best: (await Engine.create()).backend };
      const x = await engine.tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
      const y = await engine.zeros([2, 3]);
      const wgsl = `struct P { a: f32, shift: vec2f }
        @group(0) @binding(0) var<uniform> p: P;
        @group(0) @binding(1) var<storage, read> x: array<f32>;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        override scale: f32 = 1.0;
        @compute @workgroup_size(4) fn first(@builtin(global_invocation_id) id: vec3u) {
          if id.x < arrayLength(&y) { y[id.x] = scale * p.a * x[id.x] + p.shift.y; }
        }
        @compute @workgroup_size(4) fn second(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] = -x[id.x]; } }`;
      const uniforms = { "p.a": 2, "p.shift": [9, 0.5] };
      await engine.dispatch(wgsl, { entryPoint: "first", bindings: { x, y }, uniforms, invocations: 6 });
      found.first = Array.from(await y.read());
      await engine.dispatch(wgsl, { entryPoint: "first", bindings: { x, y }, uniforms, workgroups: [2], overrides: { scale: 10 } });
      found.scaled = Array.from(await y.read());
      await engine.dispatch(wgsl, { entryPoint: "second", bindings: { x, y }, invocations: [6, 1] });
      found.second = Array.from(await y.read());
      found.shape = y.shape;
      found.dtype = y.dtype;
      const counts = await engine.tensor(Uint32Array.of(7, 4294967295));
      found.counts = Array.from(await counts.read());
      found.kinds = [counts.dtype, (await counts.read()).constructor.name];
      const b = await engine.tensor(Float32Array.of(1, 0, 0, 1, 1, 1), [3, 2]);
      found.product = Array.from(await (await engine.matmul(x, b)).read());
      found.softmax = Array.from(await (await engine.softmax(x)).read());
      found.sum = Array.from(await (await engine.sum(x)).read());
      found.cumsum = Array.from(await (await engine.cumsum(x)).read());
      await x.write(Float32Array.of(6, 5, 4, 3, 2, 1));
      found.written = Array.from(await x.read());
      const own = new Float32Array(6);
      found.same = (await x.read(own)) === own;
      found.own = Array.from(own);
      const colors = Uint8ClampedArray.of(1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255);
      const shades = await engine.tensor(Float32Array.of(NaN, -Infinity, -1, -0.34, -0.32, 0.32, 0.34, 1, Infinity));
      const pixels = new Uint8ClampedArray(36);
      await shades.shade(pixels, colors);
      found.shades = Array.from(pixels).filter((_, i) => i % 4 === 0);
      found.last = Array.from(pixels.slice(-4));

      const code = async (work) => {
        try {
          await work();
          return "nothing was thrown";
        } catch (error) {
          return [error instanceof Error, error.name, error.code, error.line, error.column].join(" ");
        }
      };
      found.errors = [
        await code(() => engine.dispatch("fn f(", { invocations: 1 })),
        await code(() => engine.dispatch(wgsl, { entryPoint: "none", invocations: 1 })),
        await code(() => engine.dispatch(wgsl, { entryPoint: "second", bindings: { x }, invocations: 1 })),
        await code(() => engine.tensor(Float32Array.of(1, 2), [3])),
        await code(() => engine.dispatch(wgsl, { entryPoint: "second", bindings: { x, y }, invocations: -1 })),
        await code(() => x.read(new Float32Array(7))),
        await code(() => x.read(new Uint32Array(6))),
        await code(() => x.shade(new Uint8ClampedArray(20), colors)),
        await code(() => x.shade(new Uint8ClampedArray(24), new Uint8ClampedArray(7))),
        await code(() => counts.shade(new Uint8ClampedArray(4), colors)),
      ];

      // Drawing from it: the buffer's bytes are the tensor's, as the browser's own API sees them.
      const buffer = y.gpuBuffer;
      found.device = engine.gpuDevice?.constructor.name;
      if (buffer) {
        const device = engine.gpuDevice;
        const copy = device.createBuffer({ size: 24, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(buffer, 0, copy, 0, 24);
        device.queue.submit([encoder.finish()]);
        await copy.mapAsync(GPUMapMode.READ);
        found.raw = Array.from(new Float32Array(copy.getMappedRange()));
      }
      for (const tensor of [x, y, b, counts, shades]) tensor.free();
      engine.free();
      return found;
    });
    assert.equal(found.backend, mode.backend);
    assert.equal(found.isExperimental, mode.backend === "webgpu");
    assert.equal(found.best, "cpu");
    assert.deepEqual(found.first, [2.5, 4.5, 6.5, 8.5, 10.5, 12.5]);
    assert.deepEqual(found.scaled, [20.5, 40.5, 60.5, 80.5, 100.5, 120.5]);
    assert.deepEqual(found.second, [-1, -2, -3, -4, -5, -6]);
    assert.deepEqual([found.shape, found.dtype], [[2, 3], "f32"]);
    assert.deepEqual(found.counts, [7, 4294967295]);
    assert.deepEqual(found.kinds, ["u32", "Uint32Array"]);
    assert.deepEqual(found.product, [4, 5, 10, 11]);
    const weights = [1, 2, 3].map(Math.exp);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    found.softmax.forEach((value, i) => assert.ok(Math.abs(value - weights[i % 3] / total) < 1e-6));
    assert.deepEqual(found.sum, [21]);
    assert.deepEqual(found.cumsum, [1, 3, 6, 4, 9, 15]);
    assert.deepEqual(found.written, [6, 5, 4, 3, 2, 1]);
    assert.deepEqual([found.shades, found.last], [[1, 1, 1, 1, 4, 4, 7, 7, 7], [7, 8, 9, 255]]);
    assert.deepEqual([found.same, found.own], [true, [6, 5, 4, 3, 2, 1]]);
    assert.match(found.errors[0], /^true CantusError InvalidWgsl 1 \d+$/);
    const codes = found.errors.slice(1).map((text) => text.split(" ").slice(0, 3).join(" "));
    const expected = ["EntryPoint", "Binding", "Shape", "InvalidInput", "Shape", "Dtype", "Shape", "InvalidInput", "Shape"];
    assert.deepEqual(codes, expected.map((code) => `true CantusError ${code}`));
    assert.equal(found.device, mode.webgpu ? "GPUDevice" : undefined);
    assert.deepEqual(found.raw, mode.webgpu ? found.second : undefined);
  });

  test(`package, ${mode.name}: textures from the page's pixels, samplers, pictures out`, async () => {
    const found = await inPage(mode, async (backend) => {
      const { Engine, Kernel } = await import("/npm/index.js");
      const engine = await Engine.create({ backend });
      const found = {};
      const wgsl = `
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var made: texture_storage_2d<rgba8unorm, write>;
        override shift: f32 = 0.0;
        @compute @workgroup_size(4, 4) fn shrink(@builtin(global_invocation_id) id: vec3u) {
          let size = textureDimensions(made);
          if all(id.xy < size) { textureStore(made, id.xy, textureSampleLevel(image, smp, (vec2f(id.xy) + 0.5) / vec2f(size) + shift, 0.0)); }
        }`;
      found.reflection = (await Kernel.parse(wgsl)).reflection();
      const texels = Uint8Array.from({ length: 4 * 2 * 4 }, (_, i) => (i * 37) & 255);
      const image = await engine.texture({ format: "rgba8unorm", size: [4, 2] }, texels);
      const made = await engine.texture({ format: "rgba8unorm", size: [2, 1] });
      found.size = [image.size, image.width, image.height, image.levels, image.format];
      await engine.dispatch(wgsl, { bindings: { image, made }, invocations: [2, 1] });
      found.half = Array.from(await made.read());
      const same = await engine.texture({ format: "rgba8unorm", size: [4, 2] });
      const run = (smp) => engine.dispatch(wgsl, { bindings: { image, made: same, smp }, overrides: { shift: 1 }, invocations: [4, 2] });
      await run({ addressModeU: "repeat", addressModeV: "repeat" });
      found.repeated = Array.from(await same.read());
      await run("nearest");
      found.clamped = Array.from(await same.read());

      // One picture, as everything that a page has pictures in.
      const picture = Uint8ClampedArray.of(255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 9, 8, 7, 255, 200, 100, 50, 255, 255, 255, 255, 255);
      const data = new ImageData(picture, 3, 2);
      const canvas = Object.assign(document.createElement("canvas"), { width: 3, height: 2 });
      canvas.getContext("2d").putImageData(data, 0, 0);
      const offscreen = new OffscreenCanvas(3, 2);
      offscreen.getContext("2d").putImageData(data, 0, 0);
      const blob = await offscreen.convertToBlob();
      const element = new Image();
      element.src = canvas.toDataURL();
      await element.decode();
      const frame = new VideoFrame(canvas, { timestamp: 0 });
      const sources = { data, canvas, offscreen, blob, element, frame, bitmap: await createImageBitmap(canvas) };
      found.sources = {};
      for (const [name, source] of Object.entries(sources)) {
        const texture = await engine.textureFrom(source);
        found.sources[name] = Array.from(await texture.read());
        texture.free();
      }
      frame.close();
      found.picture = Array.from(picture);
      const large = Object.assign(document.createElement("canvas"), { width: 64, height: 48 });
      const context = large.getContext("2d");
      context.fillStyle = "#c86432";
      context.fillRect(0, 0, 64, 48);
      const video = Object.assign(document.createElement("video"), { muted: true, srcObject: large.captureStream(30) });
      // A stream has a picture once something is drawn.
      const drawing = setInterval(() => context.fillRect(0, 0, 64, 48), 30);
      await video.play();
      const film = await engine.textureFrom(video);
      clearInterval(drawing);
      found.film = [film.width, film.height, ...(await film.read()).slice(0, 4)];
      const turned = await engine.textureFrom(data, { format: "bgra8unorm" });
      found.turned = Array.from(await turned.read());
      await turned.write(canvas);
      await turned.draw(offscreen);
      found.drawn = Array.from(offscreen.getContext("2d").getImageData(0, 0, 3, 2).data);
      const levels = await engine.textureFrom(large, { levels: true });
      found.levels = [levels.levels, levels.level(1).size, ...(await levels.level(3).read()).slice(0, 4)];
      const depths = await engine.texture({ format: "r32float", size: [3, 1] }, Float32Array.of(0, 0.5, 2));
      found.depths = [Array.from((await depths.imageData()).data), (await depths.read()).constructor.name, Array.from(await depths.read())];
      await depths.write(Float32Array.of(1, 2, 3));
      found.written = Array.from(await depths.read());
      found.buffer = depths.texels.gpuBuffer?.constructor.name;

      const said = (work) => work().then(() => "nothing was thrown", (error) => `${error.name} ${error.code} ${error.message}`);
      found.errors = [
        await said(() => engine.texture({ format: "rgba9", size: [1, 1] })),
        await said(() => engine.texture({ format: "rgba8unorm", size: [0, 5] })),
        await said(() => engine.texture({ format: "rgba8unorm", size: [100000, 100000] })),
        await said(() => engine.texture({ format: "rgba8unorm", size: [2, 2] }, new Uint8Array(15))),
        await said(() => engine.textureFrom(new Blob(["no picture"]))),
        await said(() => engine.textureFrom(document.createElement("video"))),
        await said(() => film.write(data)),
        await said(() => engine.dispatch(wgsl, { bindings: { image, made: depths }, invocations: 1 })),
        await said(() => engine.dispatch(wgsl, { bindings: { image, made, smp: { magFilter: "cubic" } }, invocations: 1 })),
        // Read and written at once.
        await said(() => engine.dispatch(wgsl, { bindings: { image, made: image }, invocations: 1 })),
        await said(async () => image.level(3)),
      ];
      engine.free();
      return found;
    });
    const { textures, samplers } = found.reflection;
    assert.deepEqual(textures.map(({ name, type, dimension, sampleType, access, format }) => [name, type, dimension, sampleType, access, format]), [
      ["image", "texture_2d<f32>", "2d", "float", "read", null],
      ["made", "texture_storage_2d<rgba8unorm, write>", "2d", "float", "write", "rgba8unorm"],
    ]);
    assert.deepEqual(samplers, [{ name: "smp", group: 0, binding: 1, comparison: false }]);
    assert.deepEqual(found.size, [[4, 2, 1], 4, 2, 1, "rgba8unorm"]);
    const texel = (x, y, part) => ((4 * (4 * y + x) + part) * 37) & 255;
    for (const x of [0, 1]) {
      for (const part of [0, 1, 2, 3]) {
        const mean = (texel(2 * x, 0, part) + texel(2 * x + 1, 0, part) + texel(2 * x, 1, part) + texel(2 * x + 1, 1, part)) / 4;
        assert.ok(Math.abs(found.half[4 * x + part] - mean) <= 0.5 + 1e-3, `${x}, ${part}: ${found.half[4 * x + part]}, not ${mean}`);
      }
    }
    const all = Array.from({ length: 32 }, (_, i) => (i * 37) & 255);
    assert.deepEqual(found.repeated, all);
    assert.deepEqual(found.clamped, Array.from({ length: 8 }, () => all.slice(28)).flat());
    for (const [name, texels] of Object.entries(found.sources)) assert.deepEqual(texels, found.picture, name);
    // A stream's pictures may pass through another colour space.
    assert.deepEqual(found.film.slice(0, 2), [64, 48]);
    [200, 100, 50, 255].forEach((part, i) => assert.ok(Math.abs(found.film[2 + i] - part) <= 12, `${found.film}`));
    assert.deepEqual(found.turned, found.picture.map((_, i) => found.picture[i % 4 === 3 ? i : i + [2, 0, -2][i % 4]]));
    assert.deepEqual(found.drawn, found.picture);
    assert.deepEqual(found.levels, [7, [32, 24, 1], 200, 100, 50, 255]);
    assert.deepEqual(found.depths, [[0, 0, 0, 255, 128, 128, 128, 255, 255, 255, 255, 255], "Float32Array", [0, 0.5, 2]]);
    assert.deepEqual(found.written, [1, 2, 3]);
    assert.equal(found.buffer, mode.webgpu ? "GPUBuffer" : undefined);
    const expected = [/InvalidInput .*rgba9.*rgba8unorm/, /Shape .*at least 1/, /Shape .*32768/, /Shape .*16 bytes, 15/, /InvalidInput .*cannot read/, /InvalidInput .*no pixels/, /InvalidInput .*3 x 2 pixels, the texture 64 x 48/, /Binding .*rgba8unorm/, /InvalidInput .*cubic.*linear/, /Binding /, /Index .*level 3/];
    found.errors.forEach((said, i) => assert.match(said, new RegExp(`^CantusError ${expected[i].source}`), `error ${i}`));
  });

  test(`package, ${mode.name}: imports from the library and from modules`, async () => {
    const found = await inPage(mode, async (backend) => {
      const { Engine, Kernel } = await import("/npm/index.js");
      const engine = await Engine.create({ backend });
      const wgsl = `
        import cantus::safe::is_nan;
        import package::twice::twice;
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
          x[id.x] = select(twice(x[id.x]), -1.0, is_nan(x[id.x]));
        }`;
      const x = await engine.tensor(Float32Array.of(1, NaN, 3));
      const twice = "fn twice(x: f32) -> f32 { return 2.0 * x; }";
      await engine.dispatch(await Kernel.parse(wgsl, { "package::twice": twice }), { bindings: { x }, workgroups: 3 });
      const refused = await Kernel.parse(wgsl, { "package::twice": "fn twice(x: f32) -> f32 { return y; }" }).catch((error) => error.message);
      const missing = await Kernel.parse(wgsl).catch((error) => error.message);
      return { values: Array.from(await x.read()), refused, missing };
    });
    assert.deepEqual(found.values, [2, -1, 6]);
    assert.match(found.refused, /package::twice:1:/);
    assert.match(found.missing, /package::twice/);
  });

  test(`package, ${mode.name}: no promise stays pending after a panic`, async () => {
    const use = async (backend) => {
      const { Engine } = await import("/npm/index.js");
      const engine = await Engine.create(backend === "webgpu" ? { backend } : {});
      const x = await engine.tensor(Float32Array.of(1, 2));
      const late = new Promise((resolve) => setTimeout(resolve, 10_000, "pending"));
      const outcome = (promise) => Promise.race([promise.then(() => "done", ({ name, code }) => `${name} ${code}`), late]);
      const into = new Uint8Array(8);
      // Its length changes where nothing else looks at it any more: copying panics.
      let asked = 0;
      Object.defineProperty(into, "length", { get: () => (asked++ < 2 ? 8 : 7) });
      const all = await Promise.all([x.raw.readInto(into, "f32"), x.read(), engine.finish()].map(outcome));
      return { all, later: await outcome(x.read()) };
    };
    const found = await inPage(mode, use, undefined, (faults) => assert.ok(faults.some((fault) => fault.includes("a fault in Cantus"))));
    assert.equal(found.all[0], "CantusError Fault");
    assert.ok(found.all.every((outcome) => outcome === "done" || outcome === "CantusError Fault"), JSON.stringify(found.all));
    assert.equal(found.later, "CantusError Fault");
  });

  test(`package, ${mode.name}: the small build`, async () => {
    const found = await inPage(mode, async (backend) => {
      const { Engine } = await import("/npm/field.js");
      const engine = await Engine.create({ backend });
      const field = await engine.field(33, 17, { frequency: 432, time: 1.5 });
      const phi = await engine.phiPattern(8, 8);
      const values = Array.from(await field.read());
      let other = "opened";
      if (backend === "cpu") {
        try {
          await Engine.create({ backend: "webgpu" });
        } catch (error) {
          other = error.code;
        }
      }
      return { values, shape: field.shape, coherence: await engine.coherence(field), phi: (await phi.read()).length, other };
    });
    assert.deepEqual(found.shape, [17, 33]);
    // The wave by its definition, in double precision.
    const phi = (1 + Math.sqrt(5)) / 2;
    let worst = 0;
    for (let row = 0; row < 17; row++) {
      for (let column = 0; column < 33; column++) {
        const [x, y] = [(2 * column) / 32 - 1, (2 * row) / 16 - 1];
        const r = Math.hypot(x, y);
        const expected = Math.sin(0.01 * 432 * phi * r + phi * Math.atan2(y, x) + phi ** phi * 1.5) * Math.exp(-r);
        worst = Math.max(worst, Math.abs(found.values[row * 33 + column] - expected));
      }
    }
    console.log(`    largest difference from the definition: ${worst}`);
    assert.ok(worst < 1e-5, String(worst));
    assert.equal(found.phi, 64);
    assert.ok(found.coherence > 0 && found.coherence <= 1);
    assert.equal(found.other, mode.webgpu ? "opened" : "NoDevice");
  });
}

test("package: the page of `cantus new` builds, opens a device and moves", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cantus-new-"));
  try {
    const app = join(folder, "waves");
    execFileSync(process.env.CANTUS, ["new", app, "--kind", "page", "--cantus", join(WEB, "..")]);
    // What `npm install` would bring.
    mkdirSync(join(app, "node_modules"));
    symlinkSync(WEB, join(app, "node_modules", "cantus"));
    execFileSync(join(WEB, "node_modules", ".bin", "vite"), ["build", "--logLevel", "warn"], { cwd: app, stdio: "inherit" });
    const server = await serve(join(app, "dist"));
    const { context, close } = await visitor(false);
    try {
      const { page, faults } = await open(context, server.url);
      await page.waitForFunction(() => document.getElementById("status").textContent.includes("(cpu)"));
      const picture = () => page.evaluate(() => document.getElementById("picture").toDataURL());
      const empty = await picture();
      await page.waitForFunction((empty) => document.getElementById("picture").toDataURL() !== empty, empty);
      const first = await picture();
      assert.ok(first.length > 10_000, `the picture has shades: ${first.length} bytes`);
      await page.waitForFunction((first) => document.getElementById("picture").toDataURL() !== first, first);
      assert.deepEqual(faults, []);
    } finally {
      await close();
      server.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("package: a browser that is too old is told so", async () => {
  const found = await inPage(MODES[1], async () => {
    // Imitates a browser without SIMD: no current one lacks it.
    WebAssembly.validate = () => false;
    const said = [];
    for (const file of ["/npm/index.js", "/npm/field.js"]) {
      const { Engine } = await import(file);
      said.push(await Engine.create().then(() => "opened", (error) => `${error.code}: ${error.message}`));
    }
    return said;
  });
  for (const said of found) assert.match(said, /^Unsupported: .*no SIMD instructions: update it/);
});

test("package: sizes of the compressed modules", (test) => {
  if (isQuick()) return left(test);
  const assets = join(WEB, "dist", "assets");
  const served = readdirSync(assets).filter((name) => name.endsWith(".wasm"));
  for (const [build, most] of [["field", 500_000], ["playground", 1_200_000], ["threads", 1_200_000]]) {
    const bytes = readFileSync(join(WEB, "pkg", build, "cantus_bg.wasm"));
    // As the page serves it.
    const file = served.find((name) => readFileSync(join(assets, name)).equals(bytes));
    assert.ok(file, `the page serves the module ${build}`);
    const packed = statSync(join(assets, `${file}.br`)).size;
    console.log(`    ${build}: ${bytes.length} bytes, ${packed} with brotli, at most ${most}`);
    assert.ok(packed > 50_000 && packed <= most);
  }
});
