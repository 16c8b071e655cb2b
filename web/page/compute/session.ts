/** Kernels with their buffers on one engine: prepared once, run frame after frame, looked at. */
import type { Engine, Kernel, Tensor, Texture } from "../../lib/index.js";
import type { Binding, Reflection, TextureBinding, TypedArray } from "../../lib/types.js";
import { palette } from "../colormap.js";
import { Handed } from "../rpc.js";
import type { Backend, Fill, Job, Look, Pointer, Seen } from "./protocol.js";
import { joined, textureOf } from "./textures.js";
import { colors, filled, halfValue, isMoving, lengthOf, numbersOf } from "./values.js";

/** Filled on the device: nothing is uploaded. The random numbers are those of values.ts. */
const fillText = (scalar: string) => /* wgsl */ `
override kind: u32;
@group(0) @binding(0) var<storage, read_write> x: array<${scalar}>;
@compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3u) {
  if id.x >= arrayLength(&x) { return; }
  if kind == 0u { x[id.x] = ${scalar}(1); return; }
  if kind == 1u { x[id.x] = ${scalar}(id.x); return; }
  var n = id.x + 0x9e3779b9u;
  n = (n ^ (n >> 16u)) * 0x7feb352du;
  n = (n ^ (n >> 15u)) * 0x846ca68bu;
  n = (n ^ (n >> 16u)) >> 8u;
  x[id.x] = ${scalar === "f32" ? "f32(n) * 5.9604644775390625e-8" : `${scalar}(n >> 23u)`};
}`;

/** Where the page sets the values: members of uniforms of these names. */
export const GIVEN = ["time", "frame", "mouse", "resolution"] as const;

/** The scalars of an element: `array<vec4<f32>>` has four, and those of three lie four apart. */
export function wordsOf(type: string): number {
  const [, size] = /^array<vec(\d)/.exec(type) ?? [];
  return size === undefined ? 1 : size === "2" ? 2 : 4;
}

interface Prepared {
  kernel: Kernel;
  count: [number, number, number];
  unit: "invocations" | "workgroups";
  bindings: string[];
  uniforms: Set<string>;
  /** Lines of loops with a limit. */
  lines: number[];
}

/** A loop that was ended by its limit. */
export class Stopped extends Error {
  constructor(
    readonly line: number,
    rounds: number,
  ) {
    super(`The loop in line ${line} was stopped after ${rounds.toLocaleString("en")} rounds of one invocation: it may have no end. If it has one, allow it more rounds below.`);
    this.name = "Stopped";
  }
}

/** Rounds of all invocations together that a GPU is given before a loop counts as endless. */
const ROUNDS_IN_ALL = 2 ** 32;

export class Session {
  frames = 0;
  pointer: Pointer = { x: 0, y: 0, pressed: false };
  #steps: { kernels: Prepared[]; times: number; once: boolean }[] = [];
  readonly tensors = new Map<string, { tensor: Tensor; binding: Binding; fill: Fill }>();
  readonly textures = new Map<string, { texture: Texture; binding: TextureBinding; fill: Fill }>();
  #stopped: Tensor<Uint32Array> | undefined;
  #rounds = 0;
  #picture: ImageData | undefined;
  uniforms: Record<string, number[]>;

  private constructor(
    readonly engine: Engine,
    readonly backend: Backend,
    readonly job: Job,
  ) {
    this.uniforms = job.uniforms;
  }

  static async prepare(engine: Engine, backend: Backend, job: Job): Promise<Session> {
    const session = new Session(engine, backend, job);
    try {
      await session.#prepare();
    } catch (error) {
      session.free();
      throw error;
    }
    return session;
  }

  async #prepare(): Promise<void> {
    const { engine, job } = this;
    const parsed = engine.kernel(job.wgsl);
    const bindings = new Map<string, Binding>();
    const textures = new Map<string, TextureBinding>();
    for (const { run, times = 1, once = false, count = job.count, unit = job.unit } of job.steps) {
      const kernels: Prepared[] = [];
      for (const name of run) {
        const chosen = Object.entries(job.overrides).reduce((k, [key, value]) => k.setOverride(key, value), parsed.entryPoint(name));
        const reflection = chosen.reflection();
        for (const binding of reflection.bindings) {
          if (bindings.get(binding.name)?.access !== "read_write") bindings.set(binding.name, binding);
        }
        joined(textures, reflection.textures);
        kernels.push({ kernel: chosen, count, unit, lines: [], ...facts(reflection) });
        if (this.backend === "webgpu") this.#limit(kernels.at(-1) as Prepared, reflection.workgroupSize);
      }
      this.#steps.push({ kernels, times, once });
    }
    for (const { members } of bindings.values()) for (const { path, count } of members) this.members.set(path, count);
    const begin = async (name: string, make: (fill: Fill) => Promise<void>) => {
      const fill = job.fills[name];
      if (!fill) throw new Error(`the binding ${name} has no values`);
      try {
        await make(fill);
      } catch (error) {
        if (error instanceof Error && error.name !== "CantusError") error.message = `The input ${name}: ${error.message}.`;
        throw error;
      }
    };
    for (const binding of bindings.values()) {
      if (binding.space !== "storage") continue;
      await begin(binding.name, async (fill) => void this.tensors.set(binding.name, { tensor: await this.#filled(fill, binding), binding, fill }));
    }
    for (const binding of textures.values()) {
      await begin(binding.name, async (fill) => void this.textures.set(binding.name, { texture: await textureOf(engine, binding, fill), binding, fill }));
    }
    if (this.#steps.some(({ kernels }) => kernels.some(({ lines }) => lines.length > 0))) this.#stopped = (await engine.zeros([1], "u32")) as Tensor<Uint32Array>;
  }

  /** Nothing cancels a dispatch on WebGPU: loops there end after a number of rounds. */
  #limit(prepared: Prepared, workgroup: [number, number, number]): void {
    const { count, unit } = prepared;
    const size = unit === "workgroups" ? workgroup.reduce((a, b) => a * b) : 1;
    const invocations = Math.max(1, count.reduce((a, b) => a * b) * size);
    const rounds = this.job.rounds ?? Math.min(2 ** 24, Math.max(4096, Math.floor(ROUNDS_IN_ALL / invocations)));
    const { kernel, lines } = prepared.kernel.withLoopLimit(rounds);
    if (lines.length === 0) return;
    // The page has one binding more than the kernel: not where the kernel uses all that there are.
    const { bindings, textures } = kernel.reflection();
    // Loops that this entry point does not come to.
    if (!bindings.some(({ name }) => name === "cantus_stopped")) return;
    // Texels lie in buffers.
    const storage = bindings.filter(({ space }) => space === "storage").length + textures.length;
    if (storage > (this.engine.gpuDevice?.limits.maxStorageBuffersPerShaderStage ?? 8)) return;
    Object.assign(prepared, { kernel, lines });
    this.#rounds = rounds;
  }

  async #filled(fill: Fill, { scalar, type }: Binding): Promise<Tensor> {
    const { engine } = this;
    const words = wordsOf(type);
    const length = lengthOf(fill, scalar, words);
    const numbered = scalar === "f32" || scalar === "u32" || scalar === "i32";
    if (fill.kind === "zeros" || isMoving(fill)) return engine.zeros([length], scalar as "f32");
    if (numbered && (fill.kind === "ones" || fill.kind === "range" || fill.kind === "random")) {
      const kind = ["ones", "range", "random"].indexOf(fill.kind);
      const tensor = await engine.zeros([length], scalar as "f32");
      await engine.dispatch(fillText(scalar), { bindings: { x: tensor }, overrides: { kind }, invocations: length });
      return tensor;
    }
    return engine.tensor(filled(fill, scalar, words));
  }

  /** Runs the steps once. Resolves when all of it is recorded. */
  async frame(time: number, width: number): Promise<void> {
    const { engine } = this;
    const first = this.frames === 0;
    const given = this.#given(time, width);
    for (const { kernels, times, once } of this.#steps) {
      if (once && !first) continue;
      for (let round = 0; round < times; round++) {
        for (const { kernel, count, unit, bindings, uniforms, lines } of kernels) {
          const all = { ...this.uniforms, ...given };
          const values = Object.fromEntries(Object.entries(all).filter(([path]) => uniforms.has(path)));
          const bound: Record<string, Tensor | Texture> = Object.fromEntries(bindings.map((name) => [name, this.textures.get(name)?.texture ?? this.#tensor(name)]));
          if (lines.length > 0 && this.#stopped) bound["cantus_stopped"] = this.#stopped;
          await engine.dispatch(kernel, { bindings: bound, uniforms: values, [unit]: count });
        }
      }
    }
    engine.flush();
    this.frames++;
  }

  /** Throws where a loop was ended by its limit. */
  async checkLoops(): Promise<void> {
    if (!this.#stopped) return;
    const [number = 0] = await this.#stopped.read();
    if (number === 0) return;
    const counted = this.#steps.flatMap(({ kernels }) => kernels).find(({ lines }) => lines.length >= number);
    throw new Stopped(counted?.lines[number - 1] ?? 0, this.#rounds);
  }

  /** Values that the page sets by name: time in seconds, frame, pointer, size of the picture. */
  #given(time: number, width: number): Record<string, number[]> {
    const { x, y, pressed } = this.pointer;
    const height = Math.max(1, Math.ceil(this.#shown() / width));
    const values = { time: [time], frame: [this.frames], mouse: [x, y, pressed ? 1 : 0, 0], resolution: [width, height, 1] };
    return Object.fromEntries(
      [...this.members.entries()].flatMap(([path, count]) => {
        const name = path.slice(path.lastIndexOf(".") + 1) as keyof typeof values;
        return name in values ? [[path, values[name].slice(0, count)]] : [];
      }),
    );
  }

  /** Pixels of what is looked at. */
  #shown(): number {
    const texture = this.look && this.textures.get(this.look.name)?.texture;
    if (texture) return texture.width * texture.height;
    const found = this.look && this.tensors.get(this.look.name);
    return found ? (found.tensor.shape[0] ?? 0) / (found.binding.scalar === "u32" ? 1 : this.look?.kind === "rgba" ? 4 : wordsOf(found.binding.type)) : 0;
  }

  look: Look | undefined;

  /** The members of uniforms with their numbers of values. */
  readonly members = new Map<string, number>();

  #tensor(name: string): Tensor {
    const found = this.tensors.get(name);
    if (!found) throw new Error(`there are no values of ${name}`);
    return found.tensor;
  }

  /** Puts a picture of the camera or a video into a binding. */
  async feed(name: string, bytes: ArrayBuffer): Promise<void> {
    const texture = this.textures.get(name);
    if (texture && isMoving(texture.fill)) await texture.texture.write(bytes);
    const found = this.tensors.get(name);
    if (found && isMoving(found.fill)) await found.tensor.write(colors(bytes, found.binding.scalar, wordsOf(found.binding.type)));
  }

  async values(name: string): Promise<ArrayLike<number>> {
    const texture = this.textures.get(name)?.texture;
    if (texture) {
      const texels = await texture.read();
      return texture.format.endsWith("16float") ? Float64Array.from(texels as Uint16Array, halfValue) : texels;
    }
    return numbersOf((await this.#tensor(name).read()) as TypedArray);
  }

  async seen(look: Look): Promise<Seen | Handed> {
    if (look.kind === "numbers") return { kind: "numbers", from: look.from, numbers: numbersText(await this.values(look.name), look.from, look.count) };
    if (look.kind === "plot") return plotted(await this.values(look.name), look.points);
    const texture = this.textures.get(look.name)?.texture;
    if (texture) return drawn(await texture.imageData(), 0, 1, true);
    const tensor = this.#tensor(look.name);
    const { scalar } = (this.tensors.get(look.name) as { binding: Binding }).binding;
    const plain = look.kind === "picture" && !["f32", "u32", "i32"].includes(scalar) ? await this.engine.tensor(Float32Array.from(await this.values(look.name))) : tensor;
    const kind = look.kind === "picture" ? "map" : scalar === "u32" ? "bytes" : scalar === "f32" ? "rgba" : undefined;
    if (!kind) throw new Error(`Colours are read from array<u32> or array<vec4f>; ${look.name} has ${scalar}.`);
    const pixels = (plain.shape[0] ?? 0) / (kind === "rgba" ? 4 : 1);
    const width = Math.max(1, Math.min(Math.floor(look.width), 8192));
    const height = Math.ceil(pixels / width);
    if (height > 8192) throw new Error(`A picture of ${width} × ${height} is larger than the page draws: choose another width.`);
    const image = this.#image(width, height);
    const whole = Number.isInteger(pixels);
    if (!whole) throw new Error(`${look.name} has no whole number of pixels.`);
    const [least, most] = look.kind === "picture" ? (look.range ?? [0, NaN]) : [0, 1];
    const map = look.kind === "picture" ? palette(look.map) : undefined;
    const [low, high] = await plain.picture(image.data.subarray(0, pixels * 4), kind, map, least, most);
    if (plain !== tensor) plain.free();
    return drawn(image, low, high, look.kind === "rgba");
  }

  #image(width: number, height: number): ImageData {
    if (this.#picture?.width !== width || this.#picture.height !== height) this.#picture = new ImageData(width, height);
    return this.#picture;
  }

  free(): void {
    for (const { tensor } of this.tensors.values()) tensor.free();
    for (const { texture } of this.textures.values()) texture.free();
    this.#stopped?.free();
    this.tensors.clear();
    this.textures.clear();
    this.#stopped = undefined;
  }
}

/** A picture's pixels as the page takes them. */
function drawn(image: ImageData, low: number, high: number, colors: boolean): Handed {
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("The browser gives no canvas for the picture.");
  context.putImageData(image, 0, 0);
  const picture = canvas.transferToImageBitmap();
  return new Handed({ kind: "picture", image: picture, low, high, colors } satisfies Seen, [picture]);
}

function facts({ bindings, textures }: Reflection): Pick<Prepared, "bindings" | "uniforms"> {
  return {
    bindings: [...bindings.filter(({ space }) => space === "storage"), ...textures].map(({ name }) => name),
    uniforms: new Set(bindings.flatMap(({ members }) => members.map(({ path }) => path))),
  };
}

function numbersText(values: ArrayLike<number>, first: number, count: number): string[] {
  const text = (value: number) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7))));
  return Array.from({ length: Math.max(0, Math.min(count, values.length - first)) }, (_, i) => text(values[first + i] as number));
}

function plotted(values: ArrayLike<number>, most: number): Seen {
  const points = Math.min(most, values.length);
  const [lows, highs] = [new Float64Array(points), new Float64Array(points)];
  for (let point = 0; point < points; point++) {
    const first = Math.floor((point * values.length) / points);
    const last = Math.max(first + 1, Math.floor(((point + 1) * values.length) / points));
    let [low, high] = [Infinity, -Infinity];
    for (let i = first; i < last; i++) {
      const value = values[i] as number;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    lows[point] = low;
    highs[point] = high;
  }
  return { kind: "plot", lows, highs, length: values.length };
}
