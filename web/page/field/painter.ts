/** Two ways to put a field on a canvas: from the GPU's own buffer, and from values. Neither computes the field. */
import type { Tensor } from "../../lib/tensor.js";
import { COLORS, type ColormapName, palette } from "../colormap.js";

/** Draws a `[height, width]` float32 buffer through a colour map, without reading it back. */
const SHADER = /* wgsl */ `
struct Picture { width: u32, height: u32, low: f32, scale: f32 }
@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read> colors: array<u32, ${COLORS}>;
@group(0) @binding(2) var<storage, read> values: array<f32>;

@vertex fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4f {
  // One triangle that covers the canvas.
  return vec4f(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment fn pixel(@builtin(position) place: vec4f) -> @location(0) vec4f {
  let at = vec2u(place.xy);
  let value = values[at.y * picture.width + at.x];
  let index = u32(clamp((value - picture.low) * picture.scale, 0.0, ${COLORS - 1}.0));
  return unpack4x8unorm(colors[index]);
}`;

export class GpuPainter {
  readonly #context: GPUCanvasContext;
  readonly #pipeline: GPURenderPipeline;
  readonly #picture: GPUBuffer;
  readonly #colors: GPUBuffer;
  /** The bind group of a buffer: the engine reuses a few buffers, frame after frame. */
  #groups = new WeakMap<GPUBuffer, GPUBindGroup>();
  #size = "";
  #map: ColormapName | undefined;

  constructor(
    readonly canvas: OffscreenCanvas,
    private readonly device: GPUDevice,
  ) {
    const context = canvas.getContext("webgpu");
    if (!context) throw new Error("the canvas gives no WebGPU context");
    this.#context = context;
    const format = navigator.gpu.getPreferredCanvasFormat();
    context.configure({ device, format, alphaMode: "opaque" });
    const module = device.createShaderModule({ code: SHADER, label: "colour map" });
    this.#pipeline = device.createRenderPipeline({
      layout: "auto",
      vertex: { module },
      fragment: { module, targets: [{ format }] },
    });
    const { UNIFORM, STORAGE, COPY_DST } = GPUBufferUsage;
    this.#picture = device.createBuffer({ size: 16, usage: UNIFORM | COPY_DST });
    this.#colors = device.createBuffer({ size: COLORS * 4, usage: STORAGE | COPY_DST });
  }

  paint(values: GPUBuffer, width: number, height: number, map: ColormapName): void {
    const { device } = this;
    if (this.#size !== `${width}x${height}`) {
      this.#size = `${width}x${height}`;
      this.canvas.width = width;
      this.canvas.height = height;
      const picture = new ArrayBuffer(16);
      new Uint32Array(picture).set([width, height]);
      new Float32Array(picture).set([-1, COLORS / 2], 2);
      device.queue.writeBuffer(this.#picture, 0, picture);
    }
    if (this.#map !== map) {
      this.#map = map;
      device.queue.writeBuffer(this.#colors, 0, palette(map));
    }
    const encoder = device.createCommandEncoder();
    const view = this.#context.getCurrentTexture().createView();
    const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }] });
    pass.setPipeline(this.#pipeline);
    pass.setBindGroup(0, this.#group(values));
    pass.draw(3);
    pass.end();
    device.queue.submit([encoder.finish()]);
  }

  /** Resolves when what was drawn so far is done. */
  done(): Promise<undefined> {
    return this.device.queue.onSubmittedWorkDone();
  }

  #group(values: GPUBuffer): GPUBindGroup {
    let group = this.#groups.get(values);
    if (!group) {
      group = this.device.createBindGroup({
        layout: this.#pipeline.getBindGroupLayout(0),
        entries: [this.#picture, this.#colors, values].map((buffer, binding) => ({ binding, resource: { buffer } })),
      });
      this.#groups.set(values, group);
    }
    return group;
  }
}

export class PlainPainter {
  readonly #context: OffscreenCanvasRenderingContext2D;
  #image = new ImageData(1, 1);

  constructor(readonly canvas: OffscreenCanvas) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("the canvas gives no 2D context");
    this.#context = context;
  }

  async paint(values: Tensor<Float32Array>, width: number, height: number, map: ColormapName): Promise<void> {
    if (this.#image.width !== width || this.#image.height !== height) this.#image = new ImageData(width, height);
    await values.shade(this.#image.data, palette(map));
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    this.#context.putImageData(this.#image, 0, 0);
  }
}
