/** Tensors, as the package shows them. */
import type { RawTensor } from "../pkg/playground/cantus.js";
import type { DType, TypedArray } from "./types.js";

/** An array on the engine's device: contiguous and row-major. Its memory is given back by `free`, or when it is collected. */
export class Tensor<T extends TypedArray = TypedArray> {
  /** @internal */
  constructor(/** @internal */ readonly raw: RawTensor) {}

  /** Lengths of the axes. */
  get shape(): number[] {
    return Array.from(this.raw.shape);
  }

  get dtype(): DType {
    return this.raw.dtype as DType;
  }

  /** The name of the device it is on. */
  get device(): string {
    return this.raw.device;
  }

  /**
   * The browser's own buffer, to draw from on `engine.gpuDevice` without a copy; `undefined` on the CPU. It may be longer than the
   * tensor, which starts at its first byte. What writes the tensor has been submitted when this returns. Usages: storage, uniform,
   * vertex, copy source and copy target.
   */
  get gpuBuffer(): GPUBuffer | undefined {
    return this.raw.gpuBuffer as GPUBuffer | undefined;
  }

  /** The contents, after all work so far: in a new array, or in `into`, which must be of the tensor's length and type. */
  async read(into?: T): Promise<T> {
    if (!into) return (await this.raw.read()) as T;
    await this.raw.readInto(bytesOf(into), dtypeOf(into));
    return into;
  }

  /**
   * A tensor of float32 or 32-bit integers as a picture's pixels (`ImageData.data`), after all work so far: for a canvas where there is no `gpuBuffer` to draw
   * from. `colors` are RGBA bytes, the first of `low`, the last of `high`; values beyond them take the nearest, NaN the first.
   */
  async shade(pixels: Uint8ClampedArray, colors: Uint8ClampedArray, low = -1, high = 1): Promise<void> {
    await this.raw.pixels(pixels, "map", new Uint8Array(colors), low, high);
  }

  /**
   * As `shade`, by kind: "map" is `shade` for float32 and 32-bit integers, over the range of the values where `high` is left out; "rgba" takes four
   * float32 from 0 to 1 a pixel; "bytes" the tensor's own. Resolves with the range.
   */
  async picture(pixels: Uint8ClampedArray, kind: "map" | "rgba" | "bytes", colors = new Uint8ClampedArray(4), low = 0, high = NaN): Promise<[number, number]> {
    const [least = 0, most = 1] = (await this.raw.pixels(pixels, kind, new Uint8Array(colors), low, high)) as Float32Array;
    return [least, most];
  }

  /** Overwrites a tensor of float32 or 32-bit integers, after all work so far. */
  async write(values: Float32Array | Int32Array | Uint32Array): Promise<void> {
    await this.raw.write(bytesOf(values), dtypeOf(values));
  }

  /** Gives the memory back. The tensor must not be used afterwards. */
  free(): void {
    this.raw.free();
  }
}

/** The dtype of a typed array. */
export function dtypeOf(values: TypedArray): DType {
  if (values instanceof Float32Array) return "f32";
  if (values instanceof Float64Array) return "f64";
  if (values instanceof Int32Array) return "i32";
  if (values instanceof Uint32Array) return "u32";
  if (values instanceof BigInt64Array) return "i64";
  if (values instanceof BigUint64Array) return "u64";
  return "f16";
}

/** The bytes of a typed array, without a copy. */
export function bytesOf(values: TypedArray): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
