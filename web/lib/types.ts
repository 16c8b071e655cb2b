/** The types of the package's surface. */

/** Typed arrays that tensors are made of and read into; f16 tensors are read as their bits. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Uint16Array;

/** Element types, by their WGSL names. */
export type DType = "f16" | "f32" | "f64" | "i32" | "u32" | "i64" | "u64";

export interface EngineOptions {
  /** Only this backend. Left out: the best device, and the CPU where there is no WebGPU. */
  backend?: "webgpu" | "cpu";
  /** Prefer the GPU that draws less power. */
  lowPower?: boolean;
}

/** Facts about a kernel. */
export interface Reflection {
  entryPoint: string;
  workgroupSize: [number, number, number];
  bindings: Binding[];
  textures: TextureBinding[];
  samplers: { name: string; group: number; binding: number; comparison: boolean }[];
  overrides: { name: string; type: string; value: number | null }[];
  /** Optional features of a device that it needs. */
  features: string[];
}

export interface Binding {
  name: string;
  group: number;
  binding: number;
  space: "uniform" | "storage";
  access: "read" | "read_write";
  /** The WGSL type. */
  type: string;
  /** The one scalar type it is made of; u32 words where members differ. */
  scalar: string;
  minBytes: number;
  runtimeSized: boolean;
  /** Of a uniform: what can be set by name. */
  members: { path: string; type: string; count: number; integer: boolean }[];
}

/** A variable of type `texture_*`. */
export interface TextureBinding {
  name: string;
  group: number;
  binding: number;
  /** The WGSL type. */
  type: string;
  dimension: "1d" | "2d" | "2d-array" | "cube" | "cube-array" | "3d";
  /** The numbers that are read or stored. */
  sampleType: "float" | "sint" | "uint" | "depth";
  multisampled: boolean;
  access: "read" | "write" | "read_write";
  /** Of a storage texture; others take any format of their sample type. */
  format: TextureFormat | null;
}

/** The format of a texel, by WebGPU's names: all but the compressed ones and the stencils. */
export type TextureFormat =
  | `${"r" | "rg" | "rgba"}${8 | 16}${"unorm" | "snorm" | "uint" | "sint"}`
  | `${"r" | "rg" | "rgba"}${16 | 32}float`
  | `${"r" | "rg" | "rgba"}32${"uint" | "sint"}`
  | `${"rgba" | "bgra"}8unorm-srgb`
  | "bgra8unorm"
  | "rgb9e5ufloat"
  | `rgb10a2u${"int" | "norm"}`
  | "rg11b10ufloat"
  | "depth16unorm"
  | "depth32float";

/** A description of a texture, with WebGPU's fields. */
export interface TextureDescriptor {
  format: TextureFormat;
  /** Width, height, and depth or layers, in texels; sides left out are 1. */
  size: readonly [number] | readonly [number, number] | readonly [number, number, number];
  /** "2d" unless given. */
  dimension?: "1d" | "2d" | "3d";
  /** Levels of detail: 1 unless given. */
  mipLevelCount?: number;
  /** Samples of each texel: 1 unless given, or 4. */
  sampleCount?: number;
}

/** The pixels of a page that textures are made of: they are copied, in the canvas's colours (sRGB). */
export type ImageSource =
  | Blob
  | ImageData
  | ImageBitmap
  | HTMLImageElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | HTMLVideoElement
  | VideoFrame;

export interface ImageOptions {
  /** The texels' format, of four 8-bit channels: rgba8unorm unless given. */
  format?: "rgba8unorm" | "rgba8unorm-srgb" | "rgba8uint" | "bgra8unorm" | "bgra8unorm-srgb";
  /** Computes all levels of detail. */
  levels?: boolean;
}

/** How a texture is sampled, with WebGPU's fields and defaults (nearest texels, clamped to the edge), or all filters by one word. */
export type Sampler = "linear" | "nearest" | SamplerDescriptor;

/** WebGPU's fields of a sampler. */
export interface SamplerDescriptor {
  addressModeU?: AddressMode;
  addressModeV?: AddressMode;
  addressModeW?: AddressMode;
  magFilter?: FilterMode;
  minFilter?: FilterMode;
  mipmapFilter?: FilterMode;
  /** 0 unless given. */
  lodMinClamp?: number;
  /** 32 unless given. */
  lodMaxClamp?: number;
  /** Of a `sampler_comparison`. */
  compare?: "never" | "less" | "equal" | "less-equal" | "greater" | "not-equal" | "greater-equal" | "always";
}

export type AddressMode = "clamp-to-edge" | "repeat" | "mirror-repeat";
export type FilterMode = "nearest" | "linear";

/** Texels as they are read: by the channels' type. 16-bit floats are their bits, and channels that share bytes are 32-bit words. */
export type TexelArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array;

export interface DispatchOptions<T> {
  /** Tensors, textures and samplers by the bindings' names. A sampler that is left out is linear and clamps to the edge. */
  bindings?: Record<string, T>;
  /** Uniforms by name (`n`) or path (`params.a`). */
  uniforms?: Record<string, number | boolean | readonly number[]>;
  /** At least this number of invocations, rounded up to whole workgroups. */
  invocations?: Extent;
  /** The number of workgroups, instead of invocations. */
  workgroups?: Extent;
  /** The entry point, where the kernel has several. */
  entryPoint?: string;
  /** Values of override constants. */
  overrides?: Record<string, number>;
}

/** Counts in x, or x and y, or x, y and z. */
export type Extent = number | readonly [number] | readonly [number, number] | readonly [number, number, number];

/** The error of every rejected promise and of every exception that the engine throws. */
export interface CantusError extends Error {
  name: "CantusError";
  /** The kind, as the Rust enum names it: `InvalidWgsl`, `Binding`, `Unsupported`, … */
  code: string;
  /** Of a kernel's text: line and column (in characters) from 1, offset and length in UTF-8 bytes. */
  line?: number;
  column?: number;
  offset?: number;
  length?: number;
}

/** Modules of WGSL that a kernel may import from, by their paths: `package::noise`. */
export type Modules = Record<string, string>;
