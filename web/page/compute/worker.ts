/** The worker of playground and bench: engines, runs, comparisons, frames, looks at results. */
import { Engine, Kernel, load } from "../../lib/index.js";
import type { Binding, TextureBinding } from "../../lib/types.js";
import { describe } from "../device.js";
import { Handed, serve } from "../rpc.js";
import { bench } from "./bench.js";
import type { Backend, BenchPlan, BenchProgress, Change, Comparison, Difference, Frame, Job, Look, Outcome, Output, Parsed, Seen } from "./protocol.js";
import { GIVEN, Session } from "./session.js";
import { joined } from "./textures.js";
import { ThreadedEngine } from "./threads.js";

const engines = new Map<Backend, Promise<Engine>>();

function engine(backend: Backend): Promise<Engine> {
  let opened = engines.get(backend);
  if (!opened) {
    opened = backend === "cpu" ? onThreads() : Engine.create({ backend });
    engines.set(backend, opened);
    opened.then(
      // A device that is lost is opened anew when it is next asked for.
      ({ gpuDevice }) => void gpuDevice?.lost.then(() => engines.delete(backend)),
      () => engines.delete(backend),
    );
  }
  return opened;
}

/** The CPU, on threads where the page may have some. */
async function onThreads(): Promise<Engine> {
  if (ThreadedEngine.possible) {
    try {
      return await ThreadedEngine.create();
    } catch (error) {
      // Without them, then: the memory may be refused, or a part of the page did not come.
      console.info(`Cantus has no threads here: ${String(error)}`);
    }
  }
  return Engine.create({ backend: "cpu" });
}

/** The time in milliseconds after which a silent GPU is given up. Only destroying the device ends a dispatch. */
const SILENCE = 30_000;

/** Returns the result of `work`. If a GPU does not answer, destroys its device; the next run opens another. */
async function answered<T>(on: Engine, work: Promise<T>): Promise<T> {
  const { gpuDevice } = on;
  if (!gpuDevice) return work;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      gpuDevice.destroy();
      reject(Object.assign(new Error("The GPU did not answer for half a minute, so the kernel was stopped and the device closed. Run opens a new one."), { name: "Silence" }));
    }, SILENCE);
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

/** The last run. Its buffers stay readable until the next one. */
let session: Session | undefined;

function replace(next: Session | undefined): void {
  session?.free();
  session = next;
}

/** Values whose least and greatest are looked for. */
const SCANNED = 1 << 24;

async function run(job: Job, backend: Backend, look: Look | undefined): Promise<[Outcome, Session]> {
  const on = await engine(backend);
  const prepared = await Session.prepare(on, backend, job);
  try {
    prepared.look = look;
    await answered(on, on.finish());
    const start = performance.now();
    await prepared.frame(0, look && "width" in look ? look.width : 1);
    await answered(on, on.finish());
    const milliseconds = performance.now() - start;
    await answered(on, prepared.checkLoops());
    const outputs: Output[] = [];
    for (const [name, { binding, tensor }] of prepared.tensors) {
      if (binding.access !== "read_write") continue;
      const length = tensor.shape[0] ?? 0;
      outputs.push({ name, type: binding.type, scalar: binding.scalar, length, ...(length > SCANNED ? { odd: 0 } : extent(await prepared.values(name))) });
    }
    for (const [name, { binding, texture }] of prepared.textures) {
      if (binding.access !== "read") outputs.push({ name, type: binding.type, scalar: "texture", length: texture.width * texture.height, odd: 0 });
    }
    const [first] = [...[...prepared.tensors.values()].map(({ tensor }) => tensor), ...[...prepared.textures.values()].map(({ texture }) => texture)];
    const device = first?.device;
    const fellBack = device !== undefined && device !== on.device;
    return [{ backend, device: fellBack ? device : describe(on), milliseconds, outputs }, prepared];
  } catch (error) {
    prepared.free();
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

/** Bindings, workgroup sizes and overrides of all entry points together. */
async function parse({ wgsl, overrides }: { wgsl: string; overrides: Record<string, number> }): Promise<Parsed> {
  const kernel = await Kernel.parse(wgsl);
  const bindings = new Map<string, Binding>();
  const textures = new Map<string, TextureBinding>();
  const found: Parsed = { entryPoints: [], bindings: [], textures: [], overrides: [], moves: false };
  for (const name of kernel.entryPoints) {
    let chosen = kernel.entryPoint(name);
    for (const [key, value] of Object.entries(overrides)) {
      try {
        chosen = chosen.setOverride(key, value);
      } catch {
        // An override may be gone from the text since.
        continue;
      }
    }
    const reflection = chosen.reflection();
    found.entryPoints.push({ name, workgroupSize: reflection.workgroupSize, operations: chosen.operations });
    for (const one of reflection.overrides) if (!found.overrides.some((known) => known.name === one.name)) found.overrides.push(one);
    for (const binding of reflection.bindings) {
      if (bindings.get(binding.name)?.access !== "read_write") bindings.set(binding.name, binding);
    }
    joined(textures, reflection.textures);
  }
  if (found.entryPoints.length === 0) throw Object.assign(new Error("there is no entry point yet: a function marked @compute @workgroup_size(64)"), { code: "EntryPoint" });
  found.bindings = [...bindings.values()].sort((a, b) => a.group - b.group || a.binding - b.binding);
  found.textures = [...textures.values()].sort((a, b) => a.group - b.group || a.binding - b.binding);
  const names: readonly string[] = GIVEN.filter((name) => name !== "resolution");
  found.moves = found.bindings.some(({ members }) => members.some(({ path }) => names.includes(path.slice(path.lastIndexOf(".") + 1))));
  return found;
}

const nextFrame = () => new Promise<number>((resolve) => (typeof requestAnimationFrame === "function" ? requestAnimationFrame(resolve) : setTimeout(() => resolve(performance.now()), 16)));

/** The run that goes on; another number ends it. */
let running = 0;
let playing = true;
let dirty = true;
let fed: Record<string, ArrayBuffer> = {};

async function animate(job: Job, backend: Backend, look: Look, report: (frame: Handed) => void): Promise<void> {
  const own = ++running;
  const on = await engine(backend);
  const prepared = await Session.prepare(on, backend, job);
  if (own !== running) return prepared.free();
  replace(prepared);
  prepared.look = look;
  [playing, dirty, fed] = [true, true, {}];
  let [time, previous, reported, shown] = [0, performance.now(), performance.now(), 0];
  let rate = 0;
  let lost: string | undefined;
  void on.gpuDevice?.lost.then(({ message }) => (lost = message || "no reason given"));
  while (own === running && session === prepared) {
    await nextFrame();
    if (own !== running) return;
    if (lost !== undefined) throw Object.assign(new Error(`The GPU was lost (${lost}).`), { code: "DeviceLost" });
    const now = performance.now();
    if (!playing && !dirty) {
      previous = now;
      continue;
    }
    if (playing) time += Math.min((now - previous) / 1000, 0.25);
    previous = now;
    dirty = false;
    for (const [name, bytes] of Object.entries(fed)) await prepared.feed(name, bytes);
    fed = {};
    const current = prepared.look ?? look;
    await prepared.frame(time, "width" in current ? current.width : 1);
    const seen = await answered(on, prepared.seen(current));
    if (prepared.frames < 4 || prepared.frames % 30 === 0) await prepared.checkLoops();
    if (own !== running) return;
    shown++;
    const since = performance.now() - reported;
    if (since >= 500) {
      rate = (shown * 1000) / since;
      [reported, shown] = [performance.now(), 0];
    }
    const [value, transfer] = seen instanceof Handed ? [seen.value as Seen, seen.transfer] : [seen, []];
    const frame: Frame = { seen: value, frames: prepared.frames, rate: playing ? rate : 0, milliseconds: performance.now() - now };
    report(new Handed(frame, transfer));
  }
}

serve({
  /** The device of a backend, or an error with the reason. */
  async device(backend: Backend) {
    return describe(await engine(backend));
  },

  /** The engine's own choice among them. */
  async best(): Promise<{ backend: Backend; name: string }> {
    await load();
    const chosen = await Engine.create();
    const known: Backend = chosen.backend;
    if (known === "cpu" && ThreadedEngine.possible) {
      chosen.free();
      return { backend: known, name: describe(await engine(known)) };
    }
    if (!engines.has(known)) {
      engines.set(known, Promise.resolve(chosen));
      void chosen.gpuDevice?.lost.then(() => engines.delete(known));
    }
    return { backend: known, name: describe(chosen) };
  },

  parse,

  async run({ job, backend, look }: { job: Job; backend: Backend; look?: Look }): Promise<Outcome> {
    running++;
    replace(undefined);
    const [outcome, done] = await run(job, backend, look);
    replace(done);
    return outcome;
  },

  async compare({ job, look }: { job: Job; look?: Look }): Promise<Comparison> {
    running++;
    replace(undefined);
    const [cpu, own] = await run(job, "cpu", look);
    const values = new Map<string, ArrayLike<number>>();
    for (const { name } of cpu.outputs) values.set(name, await own.values(name));
    own.free();
    const [webgpu, done] = await run(job, "webgpu", look);
    replace(done);
    const differences: Difference[] = [];
    for (const { name } of cpu.outputs) differences.push(difference(name, await done.values(name), values.get(name) ?? []));
    return { webgpu, cpu, differences };
  },

  animate({ job, backend, look }: { job: Job; backend: Backend; look: Look }, report: (frame: unknown) => void) {
    return animate(job, backend, look, report);
  },

  /** Ends what runs; its buffers stay to be looked at. */
  halt() {
    running++;
  },

  change({ uniforms, pointer, playing: plays, look, feed }: Change) {
    if (!session) return;
    if (uniforms) session.uniforms = uniforms;
    if (pointer) session.pointer = pointer;
    if (look) session.look = look;
    if (plays !== undefined) playing = plays;
    if (feed) fed = { ...fed, ...feed };
    dirty = true;
  },

  look(look: Look): Promise<Seen | Handed> {
    if (!session) throw new Error("Nothing has run yet.");
    return session.seen(look);
  },

  /** Gives the devices back before the worker ends: what a GPU is at ends with its device. */
  async leave() {
    running++;
    for (const opened of engines.values()) void opened.then(({ gpuDevice }) => gpuDevice?.destroy()).catch(() => undefined);
  },

  bench(plan: BenchPlan, report: (progress: BenchProgress) => void) {
    return bench(plan, engine, report);
  },
});
