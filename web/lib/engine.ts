/** The part of the engine that needs no WGSL front end: creating tensors, and the field operations. */
import type { RawEngine } from "../pkg/playground/cantus.js";
import { Tensor, bytesOf, dtypeOf } from "./tensor.js";
import type { DType, EngineOptions, TypedArray } from "./types.js";

/** Runs kernels on WebGPU, or on the CPU executor in wasm. */
export class FieldEngine {
  /** @internal */
  protected constructor(/** @internal */ readonly raw: RawEngine) {}

  /** "webgpu" or "cpu". */
  get backend(): "webgpu" | "cpu" {
    return this.raw.backend === "wgpu" ? "webgpu" : "cpu";
  }

  /** The device's name. */
  get device(): string {
    return this.raw.device;
  }

  /** Its kind: "discrete gpu", "software gpu", "cpu", … */
  get kind(): string {
    return this.raw.kind;
  }

  /** Is true if the backend has not run on such hardware yet, as WebGPU, which was tested only on a software device. */
  get isExperimental(): boolean {
    return this.raw.isExperimental;
  }

  /** Why it was chosen. */
  get why(): string {
    return this.raw.why;
  }

  /** The events so far, a line each: opened, skipped, placed, moved, failed. */
  get events(): string[] {
    return this.raw.events;
  }

  /** The browser's device, to draw on; `undefined` on the CPU. */
  get gpuDevice(): GPUDevice | undefined {
    return this.raw.gpuDevice as GPUDevice | undefined;
  }

  /** A tensor of a typed array's values; the shape is `[values.length]` unless given. A Uint16Array holds the bits of f16. */
  async tensor<T extends TypedArray>(values: T, shape: readonly number[] = [values.length]): Promise<Tensor<T>> {
    return new Tensor(await this.raw.tensor(bytesOf(values), Uint32Array.from(shape), dtypeOf(values)));
  }

  /** A tensor of zeros. */
  async zeros(shape: readonly number[], dtype: "f32"): Promise<Tensor<Float32Array>>;
  async zeros(shape: readonly number[], dtype?: DType): Promise<Tensor>;
  async zeros(shape: readonly number[], dtype: DType = "f32"): Promise<Tensor> {
    return new Tensor(await this.raw.zeros(Uint32Array.from(shape), dtype));
  }

  /** A damped spiral wave, `[height, width]`, at a frequency in Hz and a time in seconds. */
  async field(width: number, height: number, { frequency = 528, time = 0 } = {}): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.field(width, height, frequency, time));
  }

  /** The golden-ratio spiral, `[height, width]`. */
  async phiPattern(width: number, height: number): Promise<Tensor<Float32Array>> {
    return new Tensor(await this.raw.phiPattern(width, height));
  }

  /** The coherence of a field, from 0 to 1. */
  coherence(field: Tensor<Float32Array>): Promise<number> {
    return this.raw.coherence(field.raw) as Promise<number>;
  }

  /** Submits what was recorded, without waiting for it. */
  flush(): void {
    this.raw.flush();
  }

  /** Resolves when all work so far has finished. */
  async finish(): Promise<void> {
    await this.raw.finish();
  }

  /** Releases the device. Tensors keep what they need until they are freed. */
  free(): void {
    this.raw.free();
  }
}

/** The backend's name inside of the engine. */
export function backendName(options: EngineOptions): string | undefined {
  return options.backend === "webgpu" ? "wgpu" : options.backend;
}

/** A module of one function that uses a SIMD instruction. */
// prettier-ignore
const SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11);

/** Returns a function that loads a module once. It rejects where the browser is too old for it; a failed download is tried again by the next call. */
export function loader(init: (from: { module_or_path: URL }) => Promise<unknown>, url: URL): () => Promise<void> {
  let loaded: Promise<unknown> | undefined;
  return async () => {
    if (typeof WebAssembly === "undefined" || !WebAssembly.validate(SIMD)) {
      const remedy = "update it (Chrome and Edge have them since 91, Firefox since 89, Safari since 16.4)";
      throw Object.assign(new Error(`the browser's WebAssembly has no SIMD instructions: ${remedy}`), { name: "CantusError", code: "Unsupported" });
    }
    loaded ??= init({ module_or_path: url });
    try {
      await loaded;
    } catch (error) {
      loaded = undefined;
      throw error;
    }
  };
}
