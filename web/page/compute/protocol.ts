/** Messages from the playground and the bench to the worker that computes for them. */
import type { Binding, Reflection, TextureBinding } from "../../lib/types.js";
import type { ColormapName } from "../colormap.js";

export type Backend = "webgpu" | "cpu";

/** How a storage binding or a texture begins. `camera` and `video` are what the page sends while it runs; only textures are `blank` or a `pattern`. */
export type Fill =
  | { kind: "zeros" | "ones" | "range" | "random"; length: number }
  | { kind: "numbers"; numbers: number[] }
  | { kind: "file"; name: string; bytes: ArrayBuffer }
  | { kind: "image"; name: string; width: number; height: number; bytes: ArrayBuffer }
  | { kind: "camera"; width: number; height: number }
  | { kind: "video"; name: string; width: number; height: number }
  | { kind: "blank"; width: number; height: number }
  | { kind: "pattern"; width: number; height: number };

/** Entry points that run one after another, all of them `times` times. */
export interface Step {
  run: string[];
  times?: number;
  /** Only before the first frame. */
  once?: boolean;
  /** Where it differs from the job's. */
  count?: [number, number, number];
  unit?: "invocations" | "workgroups";
}

/** Kernels with everything they run on. */
export interface Job {
  wgsl: string;
  steps: Step[];
  overrides: Record<string, number>;
  fills: Record<string, Fill>;
  uniforms: Record<string, number[]>;
  count: [number, number, number];
  unit: "invocations" | "workgroups";
  /** Rounds at most of an invocation's loops on WebGPU; chosen by the amount of work where left out. */
  rounds?: number;
}

/** Facts about a document. */
export interface Parsed {
  /** With an estimate of the operations of one invocation. */
  entryPoints: { name: string; workgroupSize: [number, number, number]; operations: number }[];
  bindings: Binding[];
  textures: TextureBinding[];
  overrides: Reflection["overrides"];
  /** True if it reads the time, the frame or the pointer. */
  moves: boolean;
}

/** A picture's pointer, in its pixels. */
export interface Pointer {
  x: number;
  y: number;
  pressed: boolean;
}

/** The values that change while it runs. */
export interface Change {
  uniforms?: Record<string, number[]>;
  pointer?: Pointer;
  playing?: boolean;
  look?: Look;
  /** Values of bindings, from the camera or a video: RGBA bytes. */
  feed?: Record<string, ArrayBuffer>;
}

/** A frame of what runs. */
export interface Frame {
  seen: Seen;
  frames: number;
  /** Frames per second; 0 while paused. */
  rate: number;
  /** A frame's own time in milliseconds. */
  milliseconds: number;
}

export interface Output {
  name: string;
  type: string;
  /** The elements' type, or "texture". */
  scalar: string;
  length: number;
  /** Left out where there are too many values to look at each. */
  min?: number;
  max?: number;
  /** Values that are not a number or not finite. */
  odd: number;
}

export interface Outcome {
  backend: Backend;
  device: string;
  /** From the dispatch to its end; compiling included the first time. */
  milliseconds: number;
  outputs: Output[];
}

export interface Difference {
  name: string;
  /** The largest difference, and where; `null` where all are equal. */
  largest: number;
  index: number;
  webgpu: number;
  cpu: number;
  /** Values that differ at all. */
  differing: number;
  length: number;
}

export interface Comparison {
  webgpu: Outcome;
  cpu: Outcome;
  differences: Difference[];
}

/** A look at one output. */
export type Look =
  | { name: string; kind: "numbers"; from: number; count: number }
  | { name: string; kind: "picture"; width: number; map: ColormapName; range?: [number, number] }
  /** Colours: four floats a pixel, the bytes of a word, or texels. */
  | { name: string; kind: "rgba"; width: number }
  | { name: string; kind: "plot"; points: number };

export type Seen =
  | { kind: "numbers"; from: number; numbers: string[] }
  | { kind: "picture"; image: ImageBitmap; low: number; high: number; colors: boolean }
  /** The least and the greatest value of each stretch of values. */
  | { kind: "plot"; lows: Float64Array; highs: Float64Array; length: number };

/** A row of the bench. */
export interface Measurement {
  kernel: string;
  size: string;
  elements: number;
  backend: Backend;
  device: string;
  /** Median of the rounds, per dispatch. */
  milliseconds: number;
  rounds: number;
}

export interface BenchPlan {
  kernels: string[];
  sizes: number[];
  backends: Backend[];
}

export interface BenchProgress {
  done: number;
  total: number;
  doing: string;
  measurement?: Measurement;
  /** A device that is not there, with the reason. */
  missing?: string;
}
