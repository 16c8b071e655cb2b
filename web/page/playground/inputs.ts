/** The inputs of a document as controls: one for each binding, member, override; kept by name while the text changes. */
import type { Binding, TextureBinding } from "../../lib/types.js";
import type { Fill, Job, Parsed, Step } from "../compute/protocol.js";
import { GIVEN, wordsOf } from "../compute/session.js";
import { takesPictures } from "../compute/textures.js";
import { isMoving, readNpy } from "../compute/values.js";
import { button, el, labelled, select } from "../dom.js";
import { type Source, fitting, openImage, videoSize } from "./pictures.js";
import type { Shown, Sketch } from "./sketch.js";

const KINDS = [
  ["zeros", "Zeros"],
  ["ones", "Ones"],
  ["range", "0, 1, 2, …"],
  ["random", "Random, 0 to 1"],
  ["numbers", "Numbers…"],
  ["file", ".npy file…"],
  ["image", "Picture…"],
  ["video", "Video…"],
  ["camera", "Camera"],
] as const;

/** How a texture that is read begins; one that is only written is empty. */
const PICTURES = [
  ["pattern", "Test picture"],
  ["image", "Picture…"],
  ["video", "Video…"],
  ["camera", "Camera"],
  ["blank", "Empty"],
] as const;

const AXES = ["x", "y", "z"] as const;

/** Elements of a binding nobody has said anything about: a line, or a picture of this side. */
const LINE = 1024;
const SIDE = 512;
/** The sides of a texture nobody has said anything about, and the longest side of your own picture. */
const SIDES = { width: 512, height: 384 };
const LONGEST = 640;

type State = Omit<Sketch, "wgsl" | "look" | "race">;

/** The effect of a change: parse again, start again, or set new values while it runs. */
export type Changed = "kernel" | "start" | "uniforms";

/** Numbers between commas or spaces; `undefined` where one is not a number. */
export function parseNumbers(text: string): number[] | undefined {
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(Number);
  return numbers.some(Number.isNaN) ? undefined : numbers;
}

const isGiven = (path: string) => (GIVEN as readonly string[]).includes(path.slice(path.lastIndexOf(".") + 1));

export class Inputs {
  readonly element = el("div", { class: "inputs" });
  #state: State = { fills: {}, uniforms: {}, overrides: {} };
  #parsed: Parsed | undefined;
  #problems = new Map<string, string>();
  /** The width of what is looked at. */
  #width: number | undefined;
  /** The videos of inputs: they are played by the page, and do not go to the worker. */
  #videos = new Map<string, Blob>();

  /** Says again how much work there is. */
  #work: () => void = () => undefined;
  private readonly changed: (what: Changed) => void;

  constructor(changed: (what: Changed) => void) {
    this.changed = (what) => {
      if (what === "start") this.#work();
      changed(what);
    };
  }

  get parsed(): Parsed | undefined {
    return this.#parsed;
  }

  /** Why the inputs cannot be used, in a sentence. */
  get problem(): string | undefined {
    const [first] = this.#problems.values();
    return first;
  }

  get uniforms(): Record<string, number[]> {
    return this.#state.uniforms;
  }

  /** The bindings that are fed while a kernel runs: from the camera, or a video. */
  get films(): { name: string; source: Source; width: number; height: number }[] {
    return Object.entries(this.#state.fills).flatMap(([name, fill]) => {
      if (!isMoving(fill) || !this.#parsed || ![...this.#parsed.bindings, ...this.#parsed.textures].some((known) => known.name === name)) return [];
      const source = fill.kind === "camera" ? fill.kind : this.#videos.get(name);
      return source ? [{ name, source, width: fill.width, height: fill.height }] : [];
    });
  }

  /** About how many operations a frame takes. */
  operations(look: Shown): number {
    const known = new Map(this.#parsed?.entryPoints.map((entry) => [entry.name, entry]));
    const { count: all, unit: usual, steps } = this.job("", look);
    let sum = 0;
    for (const { run, times = 1, count = all, unit = usual } of steps) {
      for (const name of run) {
        const { workgroupSize = [1, 1, 1], operations = 0 } = known.get(name) ?? {};
        const size = unit === "workgroups" ? workgroupSize.reduce((a, b) => a * b) : 1;
        sum += times * operations * size * count.reduce((a, b) => a * b);
      }
    }
    return sum;
  }

  /** Starts over from a sketch; missing parts get the defaults. */
  load({ fills, uniforms, overrides, count, unit, steps, ranges, rounds }: Sketch): void {
    this.#state = structuredClone({ fills, uniforms, overrides, ...(count && { count }), ...(unit && { unit }), ...(steps && { steps }), ...(ranges && { ranges }), ...(rounds !== undefined && { rounds }) });
    this.#parsed = undefined;
    this.#problems.clear();
    this.#videos.clear();
    this.element.replaceChildren();
  }

  get overrides(): Record<string, number> {
    return this.#state.overrides;
  }

  /** The entry points to run, in order: the chosen ones that the text has, otherwise all. */
  get steps(): Step[] {
    const names = (this.#parsed?.entryPoints ?? []).map(({ name }) => name);
    const chosen = (this.#state.steps ?? []).map((step) => ({ ...step, run: step.run.filter((name) => names.includes(name)) })).filter(({ run }) => run.length > 0);
    return chosen.length > 0 ? chosen : names.map((name) => ({ run: [name] }));
  }

  job(wgsl: string, look: Shown): Job {
    const bindings = this.#parsed?.bindings ?? [];
    const known = new Set(this.#parsed?.overrides.map(({ name }) => name));
    const overrides = Object.fromEntries(Object.entries(this.#state.overrides).filter(([name]) => known.has(name)));
    const filled = [...bindings.filter(({ space }) => space === "storage"), ...(this.#parsed?.textures ?? [])];
    const fills = pick(this.#state.fills, filled.map(({ name }) => name));
    const uniforms = pick(this.#state.uniforms, bindings.flatMap(({ members }) => members.map(({ path }) => path)));
    const { rounds, unit = "invocations" } = this.#state;
    return { wgsl, steps: this.steps, overrides, fills, uniforms, count: this.#state.count ?? this.#fitting(look), unit, ...(rounds !== undefined && { rounds }) };
  }

  sketch(wgsl: string, look: Shown): Sketch {
    const { overrides, fills, uniforms } = this.job(wgsl, look);
    const { steps, ranges, count, unit, rounds } = this.#state;
    return { wgsl, overrides, fills, uniforms, ...(steps && { steps }), ...(ranges && { ranges }), ...(count && { count }), ...(unit && { unit }), ...(rounds !== undefined && { rounds }) };
  }

  /** Written bindings with their numbers of pixels: what a result may be looked at as. */
  get outputs(): { name: string; type: string; scalar: string; pixels: number; width?: number }[] {
    const { bindings = [], textures = [] } = this.#parsed ?? {};
    const buffers = bindings.filter(({ access }) => access === "read_write").map(({ name, type, scalar }) => ({ name, type, scalar, pixels: this.#elements(name, type) }));
    const images = textures.filter(({ access }) => access !== "read").map(({ name, type }) => {
      const { width, height } = this.#sides(name);
      return { name, type, scalar: "texture", pixels: width * height, width };
    });
    return [...images, ...buffers];
  }

  #sides(name: string): { width: number; height: number } {
    const fill = this.#state.fills[name];
    return fill && "width" in fill ? fill : SIDES;
  }

  #elements(name: string, type: string): number {
    const fill = this.#state.fills[name];
    if (!fill) return 0;
    if (fill.kind === "numbers") return Math.ceil(fill.numbers.length / wordsOf(type));
    if ("width" in fill) return fill.width * fill.height;
    return "length" in fill ? Math.ceil(fill.length / wordsOf(type)) : 0;
  }

  /** As many invocations as the result has elements, by rows where the workgroups are squares. */
  #fitting(look: Shown): [number, number, number] {
    const flat = (this.#parsed?.entryPoints ?? []).every(({ workgroupSize: [, y] }) => y === 1);
    const outputs = this.outputs;
    const shown = outputs.find(({ name }) => name === look.name) ?? outputs[0];
    const all = Math.max(shown?.pixels || LINE, 1);
    if (flat) return [all, 1, 1];
    const width = shown?.width ?? look.width ?? Math.ceil(Math.sqrt(all));
    return [width, Math.max(1, Math.ceil(all / width)), 1];
  }

  /** Shows the controls of a document. Where nothing changed they are left as they are. */
  show(parsed: Parsed, look: Shown): void {
    this.#width = look.width;
    const same = JSON.stringify(parsed) === JSON.stringify(this.#parsed);
    this.#parsed = parsed;
    if (same) return;
    this.#problems.clear();
    const { bindings, textures } = parsed;
    const uniforms = bindings.filter(({ space }) => space === "uniform").map((binding) => this.#uniform(binding));
    const groups: HTMLElement[] = [...uniforms.filter((group) => group !== undefined)];
    groups.push(...bindings.filter(({ space }) => space === "storage").map((binding) => this.#storage(binding)));
    groups.push(...textures.map((texture) => this.#texture(texture)));
    if (parsed.overrides.length > 0) groups.push(this.#overrideGroup(parsed.overrides));
    if (parsed.entryPoints.length > 1) groups.push(this.#stepGroup(parsed));
    groups.push(this.#extent(parsed, look));
    this.element.replaceChildren(...groups);
  }

  /** Notes whether a control holds what it should. */
  #check(control: HTMLInputElement, key: string, problem: string | undefined): boolean {
    control.setCustomValidity(problem ?? "");
    if (problem) this.#problems.set(key, problem);
    else this.#problems.delete(key);
    return problem === undefined;
  }

  #storage(binding: Binding): HTMLElement {
    const { name, type, access, minBytes, runtimeSized, scalar } = binding;
    const words = wordsOf(type);
    const least = Math.max(1, Math.floor(minBytes / bytesOf(scalar)));
    const flat = (this.#parsed?.entryPoints ?? []).every(({ workgroupSize: [, y] }) => y === 1);
    const usual = runtimeSized ? (flat ? LINE : SIDE * SIDE) * words : least;
    const initial = (this.#state.fills[name] ??= { kind: "zeros", length: usual });
    const kinds = scalar === "u32" || scalar === "f32" ? KINDS : KINDS.filter(([kind]) => kind !== "image" && kind !== "video" && kind !== "camera");
    const kind = select(kinds, initial.kind, { "aria-label": `${name}: filled with`, "data-fill": name });
    const detail = el("div", { class: "detail" });
    const show = (fill: Fill) => detail.replaceChildren(...this.#detail(binding, fill, usual));
    kind.addEventListener("change", () => {
      const before = this.#state.fills[name];
      const length = before && "length" in before ? before.length : usual;
      const chosen = kind.value as Exclude<Fill["kind"], "blank" | "pattern">;
      const pixels = before && "width" in before ? before.width * before.height : Math.ceil(length / words);
      // As wide as what is looked at, where that goes.
      const wide = before && "width" in before ? before.width : this.#width !== undefined && pixels % this.#width === 0 ? this.#width : Math.max(1, Math.round(Math.sqrt(pixels)));
      const sides = { width: wide, height: Math.ceil(pixels / wide) };
      const fill: Fill =
        chosen === "numbers" ? { kind: chosen, numbers: [1, 2, 3, 4] }
        : chosen === "file" ? { kind: chosen, name: "", bytes: new ArrayBuffer(0) }
        : chosen === "image" ? { kind: chosen, name: "", ...sides, bytes: new ArrayBuffer(0) }
        : chosen === "video" ? { kind: chosen, name: "", ...sides }
        : chosen === "camera" ? { kind: chosen, ...sides }
        : { kind: chosen, length };
      this.#state.fills[name] = fill;
      this.#problems.delete(`fill ${name}`);
      show(fill);
      this.changed("start");
    });
    show(initial);
    return el("fieldset", {}, el("legend", {}, el("code", {}, name), ` ${type}${access === "read" ? "" : ", written"}`), el("div", { class: "pair" }, kind, detail));
  }

  /** Shows the detail of a texture again. */
  readonly #again = new Map<string, () => void>();

  #texture(binding: TextureBinding): HTMLElement {
    const { name, type, access } = binding;
    const { fills } = this.#state;
    const known = fills[name];
    const reads = access === "read" && takesPictures(binding);
    const { width, height } = this.#sides(name);
    const initial = known && "width" in known && (reads || known.kind === "blank") ? known : { kind: reads ? ("pattern" as const) : ("blank" as const), width, height };
    fills[name] = initial;
    const kind = select(reads ? PICTURES : PICTURES.slice(-1), initial.kind, { "aria-label": `${name}: filled with`, "data-fill": name });
    const detail = el("div", { class: "detail" });
    const show = () => {
      const fill = fills[name];
      if (!fill || !("width" in fill)) return;
      kind.value = fill.kind;
      detail.replaceChildren(...(fill.kind === "blank" || fill.kind === "pattern" ? [this.#sizes(name, fill, reads)] : this.#detail({ name, scalar: "texture" }, fill, 0)));
    };
    this.#again.set(name, show);
    kind.addEventListener("change", () => {
      const { width, height } = this.#sides(name);
      const chosen = kind.value as (typeof PICTURES)[number][0];
      fills[name] =
        chosen === "image" ? { kind: chosen, name: "", width, height, bytes: new ArrayBuffer(0) }
        : chosen === "video" ? { kind: chosen, name: "", width, height }
        : { kind: chosen, width, height };
      this.#problems.delete(`fill ${name}`);
      show();
      this.changed("start");
    });
    show();
    return el("fieldset", {}, el("legend", {}, el("code", {}, name), ` ${type}`), el("div", { class: "pair" }, kind, detail), ...(reads ? [el("p", { class: "hint" }, "A picture may also be dropped here, or pasted.")] : []));
  }

  /** The sides of a texture. Results follow those of an input. */
  #sizes(name: string, fill: { width: number; height: number }, reads: boolean): HTMLElement {
    const sides = (["width", "height"] as const).map((side) => {
      const input = el("input", { type: "number", min: 1, max: 4096, step: 1, value: fill[side], "aria-label": `${name}: ${side}`, "data-side": `${name} ${side}` });
      input.addEventListener("input", () => {
        const value = input.valueAsNumber;
        const fits = Number.isInteger(value) && value > 0 && value <= 4096;
        if (this.#check(input, `fill ${name}`, fits ? undefined : `The ${side} of ${name} is a whole number, 1 to 4096.`)) {
          if (reads) this.#resize(name, side === "width" ? [value, fill.height] : [fill.width, value]);
          else fill[side] = value;
        }
        this.changed("start");
      });
      return input;
    });
    return el("div", { class: "pair" }, ...sides);
  }

  /** Gives a texture other sides, and with it the empty ones that were as large. */
  #resize(name: string, [width, height]: [number, number]): void {
    const before = { ...this.#sides(name) };
    for (const { name: other } of this.#parsed?.textures ?? []) {
      const fill = this.#state.fills[other];
      if (!fill || !("width" in fill) || fill.width !== before.width || fill.height !== before.height) continue;
      if (other !== name && fill.kind !== "blank") continue;
      Object.assign(fill, { width, height });
      if (other !== name) this.#again.get(other)?.();
    }
  }

  /** Takes a picture that was dropped or pasted: for the first input that takes pictures. False if no input does. */
  take(picture: File): boolean {
    const texture = this.#parsed?.textures.find((known) => known.access === "read" && takesPictures(known));
    if (!texture || !picture.type.startsWith("image/")) return false;
    const { name } = texture;
    this.#state.fills[name] = { kind: "image", name: "", ...this.#sides(name), bytes: new ArrayBuffer(0) };
    this.#again.get(name)?.();
    const file = this.element.querySelector<HTMLInputElement>(`input[data-file="${name}"]`);
    const files = new DataTransfer();
    files.items.add(picture);
    if (!file) return false;
    file.files = files.files;
    file.dispatchEvent(new Event("change"));
    return true;
  }

  #detail({ name, scalar }: Pick<Binding, "name" | "scalar">, fill: Fill, usual: number): HTMLElement[] {
    const key = `fill ${name}`;
    if (fill.kind === "numbers") {
      const text = el("input", { type: "text", value: fill.numbers.slice(0, 4096).join(", "), "aria-label": `${name}: numbers` });
      text.addEventListener("input", () => {
        const numbers = parseNumbers(text.value);
        if (this.#check(text, key, numbers?.length ? undefined : `The input ${name} takes numbers, between commas.`) && numbers) fill.numbers = numbers;
        this.changed("start");
      });
      return [text];
    }
    if (fill.kind === "file" || fill.kind === "image") {
      const picture = fill.kind === "image";
      const file = el("input", { type: "file", accept: picture ? "image/*" : ".npy", "aria-label": `${name}: ${picture ? "picture" : ".npy file"}`, "data-file": name });
      const note = el("span", { class: "hint" }, fill.name);
      if (fill.bytes.byteLength === 0) this.#check(file, key, `Choose a file for the input ${name}.`);
      file.addEventListener("change", async () => {
        const [chosen] = file.files ?? [];
        if (!chosen) return;
        try {
          if (fill.kind === "image" && scalar === "texture") this.#resize(name, await fitting(chosen, LONGEST));
          const opened = fill.kind === "image" ? await openImage(chosen, fill.width, fill.height) : { name: chosen.name, bytes: await chosen.arrayBuffer() };
          if (fill.kind === "image") note.textContent = `${chosen.name}, drawn into ${fill.width} × ${fill.height}`;
          else {
            const { shape, note: said } = readNpy(opened.bytes, chosen.name);
            note.textContent = [`${chosen.name}, ${shape.join(" × ") || "one value"}`, scalar === "f64" ? undefined : said].filter(Boolean).join("; ");
          }
          Object.assign(fill, opened);
          this.#check(file, key, undefined);
        } catch (error) {
          note.textContent = "";
          this.#check(file, key, fill.kind === "image" ? `The file ${chosen.name} cannot be read as a picture.` : `${(error as Error).message}.`);
        }
        this.changed("start");
      });
      return [file, note];
    }
    if (fill.kind === "video") {
      const file = el("input", { type: "file", accept: "video/*", "aria-label": `${name}: video`, "data-file": name });
      const note = el("span", { class: "hint" }, fill.name);
      if (!this.#videos.has(name)) this.#check(file, key, `Choose a video for the input ${name}.`);
      file.addEventListener("change", async () => {
        const [chosen] = file.files ?? [];
        if (!chosen) return;
        try {
          const [wide, high] = await videoSize(chosen);
          this.#videos.set(name, chosen);
          fill.name = chosen.name;
          note.textContent = `${chosen.name}, ${wide} × ${high}, drawn into ${fill.width} × ${fill.height}; stays on this machine`;
          this.#check(file, key, undefined);
        } catch (error) {
          note.textContent = "";
          this.#check(file, key, `The file ${chosen.name} cannot be used: ${(error as Error).message}.`);
        }
        this.changed("start");
      });
      return [file, note];
    }
    if (fill.kind === "blank" || fill.kind === "pattern") return [];
    if (fill.kind === "camera") return [el("span", { class: "hint" }, `${fill.width} × ${fill.height}; stays on this machine`)];
    const length = el("input", { type: "number", min: 1, step: 1, value: fill.length, "aria-label": `${name}: how many values`, "data-length": name });
    length.addEventListener("input", () => {
      const value = length.valueAsNumber;
      const whole = Number.isInteger(value) && value > 0;
      if (this.#check(length, key, whole ? undefined : `The input ${name} takes a whole number of values, from 1 (as ${usual}).`)) fill.length = value;
      this.changed("start");
    });
    return [length];
  }

  #uniform({ name, type, members }: Binding): HTMLElement | undefined {
    const given = members.filter(({ path }) => isGiven(path)).map(({ path }) => path.slice(path.lastIndexOf(".") + 1));
    const own = members.filter(({ path }) => !isGiven(path));
    for (const { path, count, integer } of members) this.#state.uniforms[path] ??= Array.from({ length: count }, () => (integer ? 1 : 0));
    const controls = own.map((member) => (member.count === 1 ? this.#slider(name, member) : this.#vector(name, member)));
    const hint = given.length > 0 ? [el("p", { class: "hint" }, ...given.flatMap((word, i) => [i ? (i === given.length - 1 ? " and " : ", ") : "", el("code", {}, word)]), given.length > 1 ? " come from the page." : " comes from the page.")] : [];
    if (controls.length === 0 && hint.length === 0) return undefined;
    return el("fieldset", {}, el("legend", {}, el("code", {}, name), ` ${type}, uniform`), ...controls, ...hint);
  }

  #slider(binding: string, { path, type, integer }: Binding["members"][number]): HTMLElement {
    const label = path.slice(binding.length + 1) || binding;
    const value = (this.#state.uniforms[path] ??= [0])[0] ?? 0;
    const range = this.#state.ranges?.[path] ?? [Math.min(0, 2 * value), Math.max(integer ? 10 : 1, 2 * value)];
    const step = integer ? 1 : "any";
    const number = el("input", { type: "number", step, value: tidy(value), "data-uniform": path, "aria-label": `${label} ${type}` });
    const slide = el("input", { type: "range", min: range[0], max: range[1], step: integer ? 1 : (range[1] - range[0]) / 500, value, "data-slider": path, "aria-label": `${label}, slider`, title: `${tidy(range[0])} to ${tidy(range[1])}` });
    const set = (next: number) => {
      const problem = Number.isNaN(next) || (integer && !Number.isInteger(next)) || (type === "u32" && next < 0) ? `${label} takes ${integer ? "a whole number" : "a number"}${type === "u32" ? " from 0" : ""}.` : undefined;
      if (this.#check(number, path, problem)) this.#state.uniforms[path] = [next];
      this.changed("uniforms");
    };
    number.addEventListener("input", () => {
      slide.value = number.value;
      set(number.valueAsNumber);
    });
    slide.addEventListener("input", () => {
      // As fine as the slider is.
      const next = integer ? slide.valueAsNumber : Number(slide.valueAsNumber.toPrecision(3));
      number.value = tidy(next);
      set(next);
    });
    const ends = range.map((end, side) => {
      const input = el("input", { type: "number", step: "any", value: tidy(end), "aria-label": `${label}, ${side ? "greatest" : "least"}`, "data-end": `${path} ${side}` });
      input.addEventListener("input", () => {
        if (Number.isNaN(input.valueAsNumber)) return;
        range[side] = input.valueAsNumber;
        (this.#state.ranges ??= {})[path] = [range[0], range[1]];
        [slide.min, slide.max] = [String(range[0]), String(range[1])];
        if (!integer) slide.step = String((range[1] - range[0]) / 500);
        slide.value = number.value;
        this.changed("uniforms");
      });
      return input;
    });
    const ranges = el("details", { class: "ends" }, el("summary", { "aria-label": `Range of ${label}` }, "range"), el("div", { class: "pair" }, ...ends));
    return el("div", { class: "slider" }, el("span", { class: "label" }, label), slide, number, ranges);
  }

  #vector(binding: string, { path, type, count }: Binding["members"][number]): HTMLElement {
    const values = (this.#state.uniforms[path] ??= Array.from({ length: count }, () => 0));
    const label = path.slice(binding.length + 1) || binding;
    const control = el("input", { type: "text", value: values.map(tidy).join(", "), "data-uniform": path });
    control.addEventListener("input", () => {
      const numbers = parseNumbers(control.value);
      if (this.#check(control, path, numbers?.length === count ? undefined : `${label} takes ${count} numbers, between commas.`) && numbers) this.#state.uniforms[path] = numbers;
      this.changed("uniforms");
    });
    return labelled(`${label} ${type}`, control);
  }

  #overrideGroup(overrides: Parsed["overrides"]): HTMLElement {
    const controls = overrides.map(({ name, type, value }) => {
      const control = el("input", { type: "number", step: "any", value: this.#state.overrides[name] ?? value ?? "", "data-override": name });
      control.addEventListener("change", () => {
        if (Number.isNaN(control.valueAsNumber)) delete this.#state.overrides[name];
        else this.#state.overrides[name] = control.valueAsNumber;
        this.changed("kernel");
      });
      return labelled(`${name} ${type}`, control);
    });
    return el("fieldset", {}, el("legend", {}, "Overrides"), el("div", { class: "members" }, ...controls));
  }

  /** Which entry points run, how often. */
  #stepGroup({ entryPoints }: Parsed): HTMLElement {
    const one = this.#state.steps?.length === 1 && this.#state.steps[0]?.run.length === 1 ? this.#state.steps[0].run[0] : undefined;
    const all = one === undefined ? this.#state.steps : undefined;
    const entry = select([["", "All, in turn"], ...entryPoints.map(({ name }) => [name, name] as const)], one ?? "", { id: "entry", "aria-label": "What runs" });
    const rows = el("div", { class: "steps" });
    const show = () => {
      rows.replaceChildren(
        ...this.steps.map((step, index) => {
          const times = el("input", { type: "number", min: 1, max: 1000, step: 1, value: step.times ?? 1, "aria-label": `${step.run.join(", ")}: times` });
          times.addEventListener("input", () => {
            const value = times.valueAsNumber;
            if (!this.#check(times, `times ${index}`, Number.isInteger(value) && value > 0 && value <= 1000 ? undefined : `${step.run.join(", ")} runs a whole number of times, 1 to 1000.`)) return this.changed("start");
            this.#state.steps = this.steps.map((known, i) => (i === index ? { ...known, times: value } : known));
            this.changed("start");
          });
          return el("div", { class: "step" }, el("code", {}, step.run.join(", ")), step.once ? el("span", { class: "hint" }, "at the start") : times);
        }),
      );
    };
    entry.addEventListener("change", () => {
      if (entry.value) this.#state.steps = [{ run: [entry.value] }];
      else if (all) this.#state.steps = all;
      else delete this.#state.steps;
      show();
      this.changed("start");
    });
    show();
    return el("fieldset", {}, el("legend", {}, "Kernels of each frame, with how often"), entry, rows);
  }

  #extent({ entryPoints }: Parsed, look: Shown): HTMLElement {
    const unit = this.#state.unit ?? "invocations";
    const units = select([["invocations", "Invocations"], ["workgroups", "Workgroups"]], unit, { "aria-label": "Counted in", id: "unit" });
    units.addEventListener("change", () => {
      this.#state.unit = units.value as "invocations" | "workgroups";
      this.changed("start");
    });
    const sides = AXES.map((axis, index) => {
      const side = el("input", { type: "number", min: 1, step: 1, value: (this.#state.count ?? this.#fitting(look))[index] ?? 1, "aria-label": axis, "data-axis": axis });
      side.addEventListener("input", () => {
        const value = side.valueAsNumber;
        if (this.#check(side, `count ${axis}`, Number.isInteger(value) && value > 0 ? undefined : `The number of ${unit} along ${axis} is a whole number from 1.`)) {
          this.#state.count ??= this.#fitting(look);
          this.#state.count[index] = value;
        }
        this.changed("start");
      });
      return side;
    });
    const fit = button("Fit the result", () => {
      delete this.#state.count;
      for (const [index, side] of sides.entries()) side.value = String(this.#fitting(look)[index]);
      this.changed("start");
    }, { class: "quiet" });
    const rounds = el("input", { type: "number", min: 1, step: 1, placeholder: "by the amount of work", value: this.#state.rounds ?? "", id: "rounds" });
    rounds.addEventListener("change", () => {
      if (rounds.valueAsNumber > 0) this.#state.rounds = Math.min(Math.floor(rounds.valueAsNumber), 2 ** 31);
      else delete this.#state.rounds;
      this.changed("start");
    });
    const work = el("p", { class: "hint", id: "work" });
    this.#work = () => {
      work.textContent = this.problem ? "" : `About ${amount(this.operations(look))} operations ${entryPoints.length > 1 ? "a frame" : "each time"}.`;
    };
    this.#work();
    const sizes = [...new Set(entryPoints.map(({ workgroupSize }) => workgroupSize.join(" × ")))];
    return el(
      "fieldset",
      {},
      el("legend", {}, `How much, in workgroups of ${sizes.join(" and ")}`),
      el("div", { class: "extent" }, units, ...sides),
      el("div", { class: "row" }, fit),
      work,
      labelled("Rounds of a loop at most, on WebGPU", rounds),
    );
  }
}

/** A number, rounded and in words. */
export function amount(count: number): string {
  const names = ["", " thousand", " million", " billion", " trillion", " quadrillion"];
  const place = Math.max(0, Math.min(names.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3)));
  return `${Number((count / 1000 ** place).toPrecision(2))}${names[place]}`;
}

/** A number as a person would write it. */
function tidy(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

function bytesOf(scalar: string): number {
  return scalar.endsWith("64") ? 8 : scalar.endsWith("16") ? 2 : 4;
}

function pick<T>(values: Record<string, T>, names: string[]): Record<string, T> {
  const wanted = new Set(names);
  return Object.fromEntries(Object.entries(values).filter(([name]) => wanted.has(name)));
}
