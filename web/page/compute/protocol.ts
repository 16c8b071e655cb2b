/** What the playground and the bench say to the worker that computes for them. */
import type { Reflection } from "../../lib/types.js";
import type { ColormapName } from "../colormap.js";

export type Backend = "webgpu" | "cpu";

/** How a storage binding begins. */
export type Fill =
  | { kind: "zeros" | "ones" | "range" | "random"; length: number }
  | { kind: "numbers"; numbers: number[] }
  | { kind: "file"; name: string; bytes: ArrayBuffer };

/** A kernel with everything it runs on. */
export interface Job {
  wgsl: string;
  entryPoint?: string;
  overrides: Record<string, number>;
  fills: Record<string, Fill>;
  uniforms: Record<string, number[]>;
  count: [number, number, number];
  unit: "invocations" | "workgroups";
}

export interface Parsed {
  entryPoints: string[];
  reflection: Reflection;
}

export interface Output {
  name: string;
  type: string;
  scalar: string;
  length: number;
  min: number;
  max: number;
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
  | { name: string; kind: "picture"; width: number; map: ColormapName }
  | { name: string; kind: "plot"; points: number };

export type Seen =
  | { kind: "numbers"; from: number; numbers: string[] }
  | { kind: "picture"; image: ImageBitmap; low: number; high: number }
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
