import { Engine } from "cantus";

const engine = await Engine.create(); // WebGPU, or the CPU in WebAssembly
const x = await engine.tensor(Float32Array.of(1, 2, 3, 4));
const y = await engine.zeros([4], "f32");
await engine.dispatch(`
  @group(0) @binding(0) var<storage> x: array<f32>;
  @group(0) @binding(1) var<storage, read_write> y: array<f32>;
  @compute @workgroup_size(64) fn square(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = x[id.x] * x[id.x]; }
  }`, { bindings: { x, y }, invocations: 4 });
console.log(...(await y.read())); // 1 4 9 16
