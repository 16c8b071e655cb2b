/** Measures the shipped operations over sizes on each device: median time of one operation, many in a row per round. */
import type { Engine, Tensor } from "../../lib/index.js";
import { describe } from "../device.js";
import { failure } from "../rpc.js";
import { sentence } from "../say.js";
import type { Backend, BenchPlan, BenchProgress, Measurement } from "./protocol.js";

const ROUNDS = 5;
/** A round lasts about this long, so that a clock of coarse steps will do. */
const ROUND_MS = 60;
const MOST_PER_ROUND = 64;
/** An operation's first figure waits for this: a browser begins with WebAssembly that it has not optimised yet, three to eight times slower. */
const WARM_MS = 400;

type Values = Tensor<Float32Array>;

/** An operation on a square of `side * side` values. */
interface Bench {
  /** Makes what it needs, outside of the time taken. */
  inputs?: (engine: Engine, side: number) => Promise<Values[]>;
  run: (engine: Engine, side: number, inputs: Values[]) => Promise<Values | number>;
}

const noise = async (engine: Engine, side: number): Promise<Values> =>
  engine.tensor(Float32Array.from({ length: side * side }, (_, i) => Math.sin(i * 12.9898) * 0.5), [side, side]);

const first = ([a]: Values[]): Values => {
  if (!a) throw new Error("the operation has no input");
  return a;
};

export const benches: Record<string, Bench> = {
  field: { run: (engine, side) => engine.field(side, side, { time: 1 }) },
  phi_pattern: { run: (engine, side) => engine.phiPattern(side, side) },
  coherence: {
    inputs: async (engine, side) => [await engine.field(side, side)],
    run: (engine, _, inputs) => engine.coherence(first(inputs)),
  },
  sum: { inputs: async (engine, side) => [await noise(engine, side)], run: (engine, _, inputs) => engine.sum(first(inputs)) },
  softmax: {
    inputs: async (engine, side) => [await noise(engine, side)],
    run: (engine, _, inputs) => engine.softmax(first(inputs)),
  },
  cumsum: {
    inputs: async (engine, side) => [await noise(engine, side)],
    run: (engine, _, inputs) => engine.cumsum(first(inputs)),
  },
  matmul: {
    inputs: async (engine, side) => [await noise(engine, side), await noise(engine, side)],
    run: (engine, _, inputs) => engine.matmul(first(inputs), first(inputs.slice(1))),
  },
};

/** Runs the plan, small sizes first, and reports after each measurement. Returns nothing: the reports hold everything. */
export async function bench(plan: BenchPlan, open: (backend: Backend) => Promise<Engine>, report: (progress: BenchProgress) => void): Promise<void> {
  const engines: [Backend, Engine][] = [];
  for (const backend of plan.backends) {
    try {
      engines.push([backend, await open(backend)]);
    } catch (error) {
      report({ done: 0, total: 0, doing: "", missing: `${backend === "webgpu" ? "WebGPU" : "CPU"}: ${sentence(failure(error))}` });
    }
  }
  const total = plan.sizes.length * plan.kernels.length * engines.length;
  const warm = new Set<string>();
  let done = 0;
  for (const side of plan.sizes) {
    for (const kernel of plan.kernels) {
      for (const [backend, engine] of engines) {
        report({ done, total, doing: `${kernel}, ${side} × ${side}, ${backend === "webgpu" ? "WebGPU" : "CPU"}` });
        const measurement = await measure(kernel, side, backend, engine, warm);
        done++;
        report({ done, total, doing: "", measurement });
      }
    }
  }
}

async function measure(kernel: string, side: number, backend: Backend, engine: Engine, warm: Set<string>): Promise<Measurement> {
  const one = benches[kernel];
  if (!one) throw new Error(`there is no bench of ${kernel}`);
  const inputs = (await one.inputs?.(engine, side)) ?? [];
  try {
    const round = async (times: number) => {
      const start = performance.now();
      for (let i = 0; i < times; i++) {
        const made = await one.run(engine, side, inputs);
        if (typeof made !== "number") made.free();
      }
      await engine.finish();
      return (performance.now() - start) / times;
    };
    // The first compiles; the shortest says how many make a round.
    await round(1);
    let once = await round(1);
    if (!warm.has(`${backend} ${kernel}`)) {
      warm.add(`${backend} ${kernel}`);
      const end = performance.now() + WARM_MS;
      while (performance.now() < end) once = Math.min(once, await round(1));
    }
    const times = Math.max(1, Math.min(MOST_PER_ROUND, Math.round(ROUND_MS / Math.max(once, 0.01))));
    const rounds: number[] = [];
    for (let i = 0; i < ROUNDS; i++) rounds.push(await round(times));
    rounds.sort((a, b) => a - b);
    const milliseconds = rounds[ROUNDS >> 1] ?? once;
    return { kernel, size: `${side} × ${side}`, elements: side * side, backend, device: describe(engine), milliseconds, rounds: ROUNDS };
  } finally {
    for (const tensor of inputs) tensor.free();
  }
}
