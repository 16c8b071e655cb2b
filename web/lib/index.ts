/** `cantus`: everything, with kernels from WGSL text. */
import init, { RawEngine, RawKernel, type RawTexture } from "../pkg/playground/cantus.js";
import { FieldEngine, backendName, loader } from "./engine.js";
import { Tensor } from "./tensor.js";
import { Texture, asBytes, ordered, pixelsOf, sampling } from "./texture.js";
import type { DispatchOptions, EngineOptions, Extent, ImageOptions, ImageSource, Modules, Reflection, Sampler, TextureDescriptor } from "./types.js";

export { Tensor } from "./tensor.js";
export { Texture } from "./texture.js";
export type * from "./types.js";

/** Loads the module, once. `Engine.create` and `Kernel.parse` do so themselves. */
export const load: () => Promise<void> = loader(init, new URL("../pkg/playground/cantus_bg.wasm", import.meta.url));

/** A kernel: WGSL text, parsed and validated once. */
export class Kernel {
  /** @internal */
  constructor(/** @internal */ readonly raw: RawKernel) {}

  /**
   * Parses and validates WGSL text; no device is needed. Rejects with an `InvalidWgsl` error with the place in the text. The text may import from
   * Cantus's library (`import cantus::random::uniform;`), and from `modules`, by their paths: `{ "package::noise": "fn value(…) …" }`.
   */
  static async parse(wgsl: string, modules: Modules = {}): Promise<Kernel> {
    await load();
    return new Kernel(new RawKernel(wgsl, Object.entries(modules).flat()));
  }

  /** The compute entry points. */
  get entryPoints(): string[] {
    return this.raw.entryPoints();
  }

  /** The same kernel at another entry point. */
  entryPoint(name: string): Kernel {
    return new Kernel(this.raw.entryPoint(name));
  }

  /** The same kernel with an override constant set. */
  setOverride(name: string, value: number): Kernel {
    return new Kernel(this.raw.setOverride(name, value));
  }

  /** Bindings, workgroup size, overrides and needed features. */
  reflection(): Reflection {
    return this.raw.reflection() as Reflection;
  }

  /**
   * The kernel with a limit on the rounds that an invocation makes over all of its loops, and the lines of the loops that are counted. Where
   * there are any, it has a further binding, `cantus_stopped`: one u32, 0 before; afterwards 0, or one more than the place in `lines` of a loop
   * that was stopped.
   */
  withLoopLimit(rounds: number): { kernel: Kernel; lines: number[] } {
    const limit = this.raw.withLoopLimit(rounds);
    try {
      return { kernel: new Kernel(limit.kernel), lines: Array.from(limit.lines) };
    } finally {
      limit.free();
    }
  }

  /** An estimate of the operations of one invocation: loops count with their bounds where the text shows them, else with 256 rounds. */
  get operations(): number {
    return this.raw.operations;
  }

  /** Throws, with the reason, when the CPU executor does not run it. */
  checkCpu(): void {
    this.raw.checkCpu();
  }
}

export class Engine extends FieldEngine {
  /** Kernels of texts given to `dispatch`, the last used last. */
  #kernels = new Map<string, Kernel>();

  /** Loads the module once and opens the best device, or the one asked for. */
  static async create(options: EngineOptions = {}): Promise<Engine> {
    await load();
    return new Engine(await RawEngine.open(backendName(options), options.lowPower ?? false));
  }

  /** @internal */
  protected parse(wgsl: string): RawKernel {
    return new RawKernel(wgsl, []);
  }

  /** Parses and validates WGSL text; throws an `InvalidWgsl` error with the place in the text. */
  kernel(wgsl: string): Kernel {
    const known = this.#kernels.get(wgsl);
    const kernel = known ?? new Kernel(this.parse(wgsl));
    this.#kernels.delete(wgsl);
    this.#kernels.set(wgsl, kernel);
    const [oldest] = this.#kernels.keys();
    if (this.#kernels.size > 64 && oldest !== undefined) this.#kernels.delete(oldest);
    return kernel;
  }

  /**
   * A texture of a description: of texels of all levels, row after row without padding, or of zeros.
   */
  async texture({ format, size, dimension = "2d", mipLevelCount = 1, sampleCount = 1 }: TextureDescriptor, texels?: ArrayBufferView | ArrayBuffer): Promise<Texture> {
    const raw = this.raw.texture(format, dimension, Float64Array.from(size), mipLevelCount, sampleCount, texels && asBytes(texels));
    return new Texture((await raw) as RawTexture);
  }

  /**
   * A texture of a picture of the page: a file's `Blob`, `ImageData`, `ImageBitmap`, an `<img>`, a canvas, a `<video>` or a `VideoFrame`. Its pixels are
   * copied, in sRGB and not premultiplied by alpha; `texture.write` takes the next ones of a video.
   */
  async textureFrom(source: ImageSource, { format = "rgba8unorm", levels = false }: ImageOptions = {}): Promise<Texture> {
    const { data, width, height } = await pixelsOf(source);
    const texture = await this.texture({ format, size: [width, height] }, ordered(data, format));
    if (!levels) return texture;
    try {
      return await texture.withAllLevels();
    } finally {
      texture.free();
    }
  }

  /**
   * Runs a kernel, given as text or parsed. Resolves when it is checked and recorded: what it computes is there when a tensor is read.
   */
  async dispatch(kernel: string | Kernel, options: DispatchOptions<Tensor | Texture | Sampler>): Promise<void> {
    let chosen = typeof kernel === "string" ? this.kernel(kernel) : kernel;
    if (options.entryPoint !== undefined) chosen = chosen.entryPoint(options.entryPoint);
    for (const [name, value] of Object.entries(options.overrides ?? {})) chosen = chosen.setOverride(name, value);
    const dispatch = this.raw.dispatch(chosen.raw);
    try {
      for (const [name, bound] of Object.entries(options.bindings ?? {})) {
        if (bound instanceof Texture) dispatch.bindTexture(name, bound.raw);
        else if (bound instanceof Tensor) dispatch.bind(name, bound.raw);
        else {
          const { addressModeU, addressModeV, addressModeW, magFilter, minFilter, mipmapFilter, lodMinClamp, lodMaxClamp, compare } = sampling(bound);
          dispatch.bindSampler(name, [addressModeU, addressModeV, addressModeW], [magFilter, minFilter, mipmapFilter], lodMinClamp, lodMaxClamp, compare);
        }
      }
      for (const [path, value] of Object.entries(options.uniforms ?? {})) {
        dispatch.set(path, Float64Array.from(typeof value === "object" ? value : [Number(value)]));
      }
      if (options.workgroups !== undefined) dispatch.workgroups(...sides(options.workgroups));
      else if (options.invocations !== undefined) dispatch.invocations(...sides(options.invocations));
      await dispatch.run();
    } finally {
      dispatch.free();
    }
  }

  /** The matrix product of `[m, k]` and `[k, n]`. */
  async matmul(a: Tensor<Float32Array>, b: Tensor<Float32Array>): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.matmul(a.raw, b.raw));
  }

  /** Softmax along an axis; a negative one counts from the last. */
  async softmax(a: Tensor<Float32Array>, axis = -1): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.softmax(a.raw, axis));
  }

  /** The sum of all elements, a tensor of one value. */
  async sum(a: Tensor<Float32Array>): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.sum(a.raw));
  }

  /** The sums from the first element on, along an axis. */
  async cumsum(a: Tensor<Float32Array>, axis = -1): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.cumsum(a.raw, axis));
  }
}

function sides(extent: Extent): [number, number, number] {
  const [x = 1, y = 1, z = 1] = typeof extent === "number" ? [extent] : extent;
  return [x, y, z];
}