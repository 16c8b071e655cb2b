/** The worker of playground and bench: engines, runs, comparisons, looks at results. */
import { Engine, Kernel, type Tensor } from "../../lib/index.js";
import type { TypedArray } from "../../lib/types.js";
import { shade } from "../colormap.js";
import { describe } from "../device.js";
import { Handed, serve } from "../rpc.js";
import { bench } from "./bench.js";
import type { Backend, BenchPlan, BenchProgress, Comparison, Difference, Job, Look, Outcome, Output, Parsed, Seen } from "./protocol.js";
import { filled, numbersOf } from "./values.js";

const engines = new Map<Backend, Promise<Engine>>();

function engine(backend: Backend): Promise<Engine> {
  let opened = engines.get(backend);
  if (!opened) {
    opened = Engine.create({ backend });
    engines.set(backend, opened);
    opened.catch(() => engines.delete(backend));
  }
  return opened;
}

/** What the last run wrote, by binding. */
let results = new Map<string, ArrayLike<number>>();

async function run(job: Job, backend: Backend): Promise<[Outcome, Map<string, ArrayLike<number>>]> {
  const on = await engine(backend);
  const kernel = on.kernel(job.wgsl);
  const chosen = job.entryPoint === undefined ? kernel : kernel.entryPoint(job.entryPoint);
  const { bindings } = Object.entries(job.overrides).reduce((k, [name, value]) => k.setOverride(name, value), chosen).reflection();
  const tensors: Record<string, Tensor> = {};
  try {
    for (const { name, space, scalar } of bindings) {
      if (space !== "storage") continue;
      const fill = job.fills[name];
      if (!fill) throw new Error(`the binding ${name} has no values`);
      tensors[name] = await named(name, () => on.tensor(filled(fill, scalar)));
    }
    const start = performance.now();
    await on.dispatch(chosen, { bindings: tensors, uniforms: job.uniforms, overrides: job.overrides, [job.unit]: job.count });
    await on.finish();
    const milliseconds = performance.now() - start;
    const outputs: Output[] = [];
    const values = new Map<string, ArrayLike<number>>();
    for (const { name, access, type, scalar } of bindings) {
      const tensor = tensors[name];
      if (access !== "read_write" || !tensor) continue;
      const numbers = numbersOf((await tensor.read()) as TypedArray);
      values.set(name, numbers);
      outputs.push({ name, type, scalar, length: numbers.length, ...extent(numbers) });
    }
    const device = Object.values(tensors)[0]?.device;
    const fellBack = device !== undefined && device !== on.device;
    return [{ backend, device: fellBack ? device : describe(on), milliseconds, outputs }, values];
  } finally {
    for (const tensor of Object.values(tensors)) tensor.free();
  }
}

async function named<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && error.name !== "CantusError") error.message = `the binding ${name}: ${error.message}`;
    throw error;
  }
}

function extent(values: ArrayLike<number>): { min: number; max: number; odd: number } {
  let [min, max, odd] = [Infinity, -Infinity, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isFinite(value)) odd++;
    else {
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return { min, max, odd };
}

function difference(name: string, webgpu: ArrayLike<number>, cpu: ArrayLike<number>): Difference {
  const found: Difference = { name, largest: 0, index: 0, webgpu: webgpu[0] ?? 0, cpu: cpu[0] ?? 0, differing: 0, length: cpu.length };
  for (let index = 0; index < cpu.length; index++) {
    const [a, b] = [webgpu[index] as number, cpu[index] as number];
    if (a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
    found.differing++;
    const distance = Math.abs(a - b);
    // One NaN, or two infinities of different sign, is as far apart as can be.
    const size = Number.isNaN(distance) ? Infinity : distance;
    if (size > found.largest) Object.assign(found, { largest: size, index, webgpu: a, cpu: b });
  }
  return found;
}

function numbersText(values: ArrayLike<number>, from: number, count: number): string[] {
  const text = (value: number) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7))));
  return Array.from({ length: Math.max(0, Math.min(count, values.length - from)) }, (_, i) => text(values[from + i] as number));
}

function look(look: Look): Seen | Handed {
  const values = results.get(look.name);
  if (!values) throw new Error(`there are no results of ${look.name}`);
  if (look.kind === "numbers") return { kind: "numbers", from: look.from, numbers: numbersText(values, look.from, look.count) };
  if (look.kind === "plot") {
    const points = Math.min(look.points, values.length);
    const [lows, highs] = [new Float64Array(points), new Float64Array(points)];
    for (let point = 0; point < points; point++) {
      const from = Math.floor((point * values.length) / points);
      const to = Math.max(from + 1, Math.floor(((point + 1) * values.length) / points));
      let [low, high] = [Infinity, -Infinity];
      for (let i = from; i < to; i++) {
        const value = values[i] as number;
        if (value < low) low = value;
        if (value > high) high = value;
      }
      lows[point] = low;
      highs[point] = high;
    }
    return { kind: "plot", lows, highs, length: values.length };
  }
  const width = Math.max(1, Math.min(Math.floor(look.width), 8192));
  const height = Math.max(1, Math.min(Math.ceil(values.length / width), 8192));
  const { min, max } = extent(values);
  const [low, high] = min < max ? [min, max] : [Number.isFinite(min) ? min : 0, (Number.isFinite(min) ? min : 0) + 1];
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no 2D context for the picture");
  const image = new ImageData(width, height);
  shade(values, new Uint32Array(image.data.buffer, 0, Math.min(values.length, width * height)), look.map, low, high);
  context.putImageData(image, 0, 0);
  const picture = canvas.transferToImageBitmap();
  return new Handed({ kind: "picture", image: picture, low, high } satisfies Seen, [picture]);
}

serve({
  /** The device of a backend, or an error with the reason. */
  async device(backend: Backend) {
    return describe(await engine(backend));
  },

  async parse({ wgsl, entryPoint, overrides }: { wgsl: string; entryPoint?: string; overrides: Record<string, number> }): Promise<Parsed> {
    const kernel = await Kernel.parse(wgsl);
    const { entryPoints } = kernel;
    // A chosen entry point or override may be gone from the text since; then the kernel's own hold.
    const wanted = entryPoint !== undefined && entryPoints.includes(entryPoint) ? entryPoint : entryPoints[0];
    let chosen = wanted === undefined ? kernel : kernel.entryPoint(wanted);
    for (const [name, value] of Object.entries(overrides)) {
      try {
        chosen = chosen.setOverride(name, value);
      } catch {
        continue;
      }
    }
    return { entryPoints, reflection: chosen.reflection() };
  },

  async run({ job, backend }: { job: Job; backend: Backend }): Promise<Outcome> {
    const [outcome, values] = await run(job, backend);
    results = values;
    return outcome;
  },

  async compare(job: Job): Promise<Comparison> {
    const [cpu, cpuValues] = await run(job, "cpu");
    const [webgpu, gpuValues] = await run(job, "webgpu");
    results = gpuValues;
    const differences = cpu.outputs.map(({ name }) => difference(name, gpuValues.get(name) ?? [], cpuValues.get(name) ?? []));
    return { webgpu, cpu, differences };
  },

  look,

  bench(plan: BenchPlan, report: (progress: BenchProgress) => void) {
    return bench(plan, engine, report);
  },
});
