/** The inputs of a kernel as controls: one for each binding, member, override; kept by name while the text changes. */
import type { Binding, Reflection } from "../../lib/types.js";
import type { Fill, Job, Parsed } from "../compute/protocol.js";
import { el, labelled, select } from "../dom.js";
import type { Sketch } from "./examples.js";

const KINDS = [
  ["zeros", "Zeros"],
  ["ones", "Ones"],
  ["range", "0, 1, 2, …"],
  ["random", "Random, 0 to 1"],
  ["numbers", "Numbers…"],
  ["file", ".npy file…"],
] as const;

const AXES = ["x", "y", "z"] as const;

type State = Omit<Job, "wgsl">;

/** Numbers between commas or spaces; `undefined` where one is none. */
export function parseNumbers(text: string): number[] | undefined {
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(Number);
  return numbers.some(Number.isNaN) ? undefined : numbers;
}

export class Inputs {
  readonly element = el("div", { class: "inputs" });
  #state: State = { fills: {}, uniforms: {}, overrides: {}, count: [1024, 1, 1], unit: "invocations" };
  #parsed: Parsed | undefined;

  /** `changed` is called when the choice of entry point or an override changes what the kernel is. */
  constructor(private readonly changed: () => void) {}

  get parsed(): Parsed | undefined {
    return this.#parsed;
  }

  /** Starts over from a sketch; missing parts get the defaults. */
  load({ fills, uniforms, overrides, count, unit, entryPoint }: Sketch): void {
    this.#state = structuredClone({ fills, uniforms, overrides, count, unit, ...(entryPoint !== undefined && { entryPoint }) });
    this.#parsed = undefined;
    this.element.replaceChildren();
  }

  /** What a parse needs of the choices made here. */
  get choice(): Pick<State, "entryPoint" | "overrides"> {
    const { entryPoint, overrides } = this.#state;
    return { overrides, ...(entryPoint !== undefined && { entryPoint }) };
  }

  job(wgsl: string): Job {
    const bindings = this.#parsed?.reflection.bindings ?? [];
    const known = new Set(this.#parsed?.reflection.overrides.map(({ name }) => name));
    const overrides = Object.fromEntries(Object.entries(this.#state.overrides).filter(([name]) => known.has(name)));
    const fills = pick(this.#state.fills, bindings.filter(({ space }) => space === "storage").map(({ name }) => name));
    const uniforms = pick(this.#state.uniforms, bindings.flatMap(({ members }) => members.map(({ path }) => path)));
    const { entryPoints = [], reflection } = this.#parsed ?? {};
    return { ...this.#state, wgsl, fills, uniforms, overrides, ...(entryPoints.length > 1 && reflection && { entryPoint: reflection.entryPoint }) };
  }

  /** For a share link: files stay behind. */
  sketch(wgsl: string): Sketch {
    const { fills, ...rest } = this.job(wgsl);
    const kept = Object.entries(fills).map(([name, fill]) => [name, fill.kind === "file" ? { kind: "zeros", length: 1024 } : fill] as const);
    return { ...rest, fills: Object.fromEntries(kept) as Sketch["fills"] };
  }

  /** Shows the controls of a kernel. Those that are there already, with the same types, are left as they are. */
  show(parsed: Parsed): void {
    const same = JSON.stringify(parsed) === JSON.stringify(this.#parsed);
    this.#parsed = parsed;
    if (same) return;
    const { reflection, entryPoints } = parsed;
    const groups: HTMLElement[] = [];
    if (entryPoints.length > 1) {
      const entry = select(entryPoints.map((name) => [name, name] as const), reflection.entryPoint);
      entry.addEventListener("change", () => {
        this.#state.entryPoint = entry.value;
        this.changed();
      });
      groups.push(labelled("Entry point", entry));
    }
    groups.push(...reflection.bindings.map((binding) => (binding.space === "storage" ? this.#storage(binding) : this.#uniform(binding))));
    if (reflection.overrides.length > 0) groups.push(this.#overrides(reflection));
    groups.push(this.#extent(reflection));
    this.element.replaceChildren(...groups);
  }

  #storage(binding: Binding): HTMLElement {
    const { name, type, access, minBytes, runtimeSized } = binding;
    const least = Math.max(1, Math.floor(minBytes / bytesOf(binding.scalar)));
    const initial = (this.#state.fills[name] ??= { kind: "zeros", length: runtimeSized ? 1024 : least });
    const kind = select(KINDS, initial.kind, { "aria-label": `${name}: filled with`, "data-fill": name });
    const detail = el("div", { class: "detail" });
    const show = (fill: Fill) => detail.replaceChildren(this.#detail(name, fill));
    kind.addEventListener("change", () => {
      const before = this.#state.fills[name];
      const length = before && "length" in before ? before.length : runtimeSized ? 1024 : least;
      const chosen = kind.value as Fill["kind"];
      const fill: Fill = chosen === "numbers" ? { kind: chosen, numbers: [1, 2, 3, 4] } : chosen === "file" ? { kind: chosen, name: "", bytes: new ArrayBuffer(0) } : { kind: chosen, length };
      this.#state.fills[name] = fill;
      show(fill);
    });
    show(initial);
    return el(
      "fieldset",
      {},
      el("legend", {}, el("code", {}, name), ` ${type}${access === "read" ? "" : ", written"}`),
      el("div", { class: "pair" }, kind, detail),
    );
  }

  #detail(name: string, fill: Fill): HTMLElement {
    if (fill.kind === "numbers") {
      const text = el("input", { type: "text", value: fill.numbers.join(", "), "aria-label": `${name}: numbers` });
      text.addEventListener("input", () => {
        const numbers = parseNumbers(text.value);
        text.setCustomValidity(numbers ? "" : "numbers, between commas");
        if (numbers) fill.numbers = numbers;
      });
      return text;
    }
    if (fill.kind === "file") {
      const file = el("input", { type: "file", accept: ".npy", "aria-label": `${name}: .npy file`, "data-file": name });
      file.addEventListener("change", async () => {
        const [chosen] = file.files ?? [];
        if (chosen) this.#state.fills[name] = { kind: "file", name: chosen.name, bytes: await chosen.arrayBuffer() };
      });
      return file;
    }
    const length = el("input", { type: "number", min: 1, step: 1, value: fill.length, "aria-label": `${name}: how many values`, "data-length": name });
    length.addEventListener("input", () => (fill.length = length.valueAsNumber || 0));
    return length;
  }

  #uniform({ name, type, members }: Binding): HTMLElement {
    const controls = members.map(({ path, type, count, integer }) => {
      const values = (this.#state.uniforms[path] ??= Array.from({ length: count }, () => (integer ? 1 : 0)));
      const single = count === 1;
      const control = el("input", { type: single ? "number" : "text", step: single ? (integer ? 1 : "any") : undefined, value: values.join(", "), "data-uniform": path });
      control.addEventListener("input", () => {
        const numbers = parseNumbers(control.value);
        control.setCustomValidity(numbers?.length === count ? "" : `${count} numbers`);
        if (numbers?.length === count) this.#state.uniforms[path] = numbers;
      });
      return labelled(`${path.slice(name.length + 1) || name} ${type}`, control);
    });
    return el("fieldset", {}, el("legend", {}, el("code", {}, name), ` ${type}, uniform`), el("div", { class: "members" }, ...controls));
  }

  #overrides({ overrides }: Reflection): HTMLElement {
    const controls = overrides.map(({ name, type, value }) => {
      const control = el("input", { type: "number", step: "any", value: this.#state.overrides[name] ?? value ?? "", "data-override": name });
      control.addEventListener("change", () => {
        if (Number.isNaN(control.valueAsNumber)) delete this.#state.overrides[name];
        else this.#state.overrides[name] = control.valueAsNumber;
        this.changed();
      });
      return labelled(`${name} ${type}`, control);
    });
    return el("fieldset", {}, el("legend", {}, "Overrides"), el("div", { class: "members" }, ...controls));
  }

  #extent({ workgroupSize }: Reflection): HTMLElement {
    const { count, unit } = this.#state;
    const units = select([["invocations", "Invocations"], ["workgroups", "Workgroups"]], unit, { "aria-label": "Counted in", id: "unit" });
    units.addEventListener("change", () => (this.#state.unit = units.value as State["unit"]));
    const sides = AXES.map((axis, index) => {
      const side = el("input", { type: "number", min: 1, step: 1, value: count[index] ?? 1, "aria-label": `${axis}`, "data-axis": axis });
      side.addEventListener("input", () => (count[index] = side.valueAsNumber || 0));
      return side;
    });
    return el(
      "fieldset",
      {},
      el("legend", {}, `How much, in workgroups of ${workgroupSize.join(" × ")}`),
      el("div", { class: "extent" }, units, ...sides),
    );
  }
}

function bytesOf(scalar: string): number {
  return scalar.endsWith("64") ? 8 : scalar.endsWith("16") ? 2 : 4;
}

function pick<T>(values: Record<string, T>, names: string[]): Record<string, T> {
  const wanted = new Set(names);
  return Object.fromEntries(Object.entries(values).filter(([name]) => wanted.has(name)));
}
