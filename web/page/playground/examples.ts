/** The playground's examples: kernels of the library as it ships them, and others that show one thing each. */
import field from "../../../src/ops/prepared/field.wgsl?raw";
import phi from "../../../src/ops/prepared/phi_pattern.wgsl?raw";
import type { Fill } from "../compute/protocol.js";
import histogram from "./examples/histogram.wgsl?raw";
import mandelbrot from "./examples/mandelbrot.wgsl?raw";
import matmul from "./examples/matmul.wgsl?raw";
import saxpy from "./examples/saxpy.wgsl?raw";

/** What is kept of a kernel and its inputs: in an example, and in a share link. */
export interface Sketch {
  wgsl: string;
  entryPoint?: string;
  fills: Record<string, Exclude<Fill, { kind: "file" }>>;
  uniforms: Record<string, number[]>;
  overrides: Record<string, number>;
  count: [number, number, number];
  unit: "invocations" | "workgroups";
  look?: { name?: string; kind: "numbers" | "picture" | "plot"; width?: number };
}

const zeros = (length: number) => ({ kind: "zeros", length }) as const;
const random = (length: number) => ({ kind: "random", length }) as const;
const base = { overrides: {}, uniforms: {}, unit: "invocations" } as const;

const grid = (side: number) => ({
  "grid.width": [side],
  "grid.height": [side],
  "grid.first_row": [0],
  "grid.first_column": [0],
  "grid.tile_width": [side],
  "grid.tile_height": [side],
});

/** The linked text says where it came from in its first lines; they stay. */
export const examples: readonly { id: string; title: string; sketch: Sketch }[] = [
  {
    id: "saxpy",
    title: "saxpy: the first kernel",
    sketch: { ...base, wgsl: saxpy, fills: { x: { kind: "range", length: 1024 }, y: { kind: "ones", length: 1024 } }, uniforms: { "params.a": [2] }, count: [1024, 1, 1], look: { kind: "numbers" } },
  },
  {
    id: "mandelbrot",
    title: "Mandelbrot: loops that diverge",
    sketch: { ...base, wgsl: mandelbrot, fills: { picture: zeros(512 * 512) }, uniforms: { "view.center": [-0.7, 0], "view.scale": [2.6], "view.rounds": [200], "view.side": [512] }, count: [512, 512, 1], look: { kind: "picture", width: 512 } },
  },
  {
    id: "field",
    title: "Field: as the library ships it",
    sketch: { ...base, wgsl: field, fills: { values: zeros(512 * 512) }, uniforms: { ...grid(512), "wave.number": [8.54296875, 0.000338], "wave.phase": [0.5] }, count: [512, 512, 1], look: { kind: "picture", width: 512 } },
  },
  {
    id: "phi",
    title: "Golden spiral: as the library ships it",
    sketch: { ...base, wgsl: phi, fills: { values: zeros(512 * 512) }, uniforms: grid(512), count: [512, 512, 1], look: { kind: "picture", width: 512 } },
  },
  {
    id: "histogram",
    title: "Histogram: atomics and a barrier",
    sketch: { ...base, wgsl: histogram, fills: { values: random(65536), bins: zeros(64) }, count: [65536, 1, 1], look: { kind: "plot" } },
  },
  {
    id: "matmul",
    title: "Matrix product: tiles in workgroup memory",
    sketch: { ...base, wgsl: matmul, fills: { a: random(128 * 128), b: random(128 * 128), c: zeros(128 * 128) }, uniforms: { "size.side": [128] }, count: [128, 128, 1], look: { kind: "picture", width: 128 } },
  },
];
