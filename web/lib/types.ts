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

export interface DispatchOptions<T> {
  /** Tensors by the bindings' names. */
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
