/** The results of a run, beside the editor: one output at a time as numbers, picture, colours or plot. The values stay in the worker. */
import { type ColormapName, colormapNames } from "../colormap.js";
import type { Comparison, Look, Outcome, Output, Pointer, Seen } from "../compute/protocol.js";
import { wordsOf } from "../compute/session.js";
import { button, el, labelled, milliseconds, select } from "../dom.js";
import { plot } from "../plot.js";
import type { Shown } from "./sketch.js";

const PER_PAGE = 256;
const POINTS = 720;

const number = (value: number) => (Number.isInteger(value) ? String(value) : Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "–");

/** The outputs that can be shown. */
export interface Choice {
  name: string;
  type: string;
  /** The elements' type, or "texture". */
  scalar: string;
  pixels: number;
  /** Of a texture. */
  width?: number;
}

export class Results {
  readonly #name = select([], "", { "aria-label": "Result", id: "result-name" });
  readonly #kind = select([["rgba", "Colours"], ["picture", "Picture"], ["plot", "Plot"], ["numbers", "Numbers"]], "numbers", { "aria-label": "Look at it as", id: "look" });
  readonly #map = select(colormapNames.map((name) => [name, name] as const), "viridis", { "aria-label": "Colour map", id: "result-map" });
  readonly #width = el("input", { type: "number", min: 1, max: 8192, step: 1, value: 512, "aria-label": "Width in pixels", id: "result-width" });
  readonly #seen = el("div", { class: "seen" });
  readonly #line = el("p", { class: "outcome", role: "status" });
  readonly #note = el("p", { class: "hint", id: "range" });
  readonly #more = el("div", { class: "more" });
  readonly #canvas = el("canvas", { role: "img", id: "result-canvas" });
  readonly element = el("div", { class: "results", id: "results" }, this.#seen, el("div", { class: "row looks" }, this.#name, this.#kind, this.#map, labelled("width", this.#width)), this.#line, this.#note, this.#more);
  #choices: Choice[] = [];
  #outputs: Output[] = [];
  #shown: Shown = { kind: "numbers" };
  #from = 0;

  /** `changed` is called when another look is wanted, `pointed` when the pointer moves in the picture. */
  constructor(
    private readonly changed: () => void,
    pointed: (pointer: Pointer) => void,
  ) {
    for (const control of [this.#name, this.#kind, this.#map, this.#width]) {
      control.addEventListener("change", () => {
        const { range, ...rest } = this.#shown;
        const same = this.#name.value === rest.name;
        this.#shown = { ...(same && range && { range }), name: this.#name.value, kind: this.#kind.value as Shown["kind"], map: this.#map.value as ColormapName, width: Math.max(1, Math.floor(this.#width.valueAsNumber) || 1) };
        this.#from = 0;
        this.#controls();
        this.changed();
      });
    }
    this.#point(pointed);
  }

  #point(pointed: (pointer: Pointer) => void): void {
    const canvas = this.#canvas;
    let pressed = false;
    const at = (event: PointerEvent): Pointer => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      return { x: ((event.clientX - left) / width) * canvas.width, y: ((event.clientY - top) / height) * canvas.height, pressed };
    };
    canvas.addEventListener("pointerdown", (event) => {
      pressed = true;
      canvas.setPointerCapture(event.pointerId);
      pointed(at(event));
    });
    canvas.addEventListener("pointermove", (event) => pointed(at(event)));
    for (const end of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(end, (event) => {
        pressed = false;
        pointed(at(event));
      });
    }
  }

  /** Sets how a document's output is shown, and reserves room for a picture of that size. */
  prefer(shown: Shown | undefined, pixels: number): void {
    this.#shown = { ...(shown ?? { kind: "numbers" }) };
    this.#from = 0;
    this.#choices = [];
    this.#clear();
    this.#controls();
    const { kind, width } = this.#shown;
    if (width === undefined || pixels === 0 || (kind !== "picture" && kind !== "rgba")) return;
    this.#size(width, Math.ceil(pixels / width));
    this.#canvas.setAttribute("aria-label", "Nothing yet");
    this.#seen.replaceChildren(this.#canvas);
  }

  /** Gives the canvas a size, which clears it. */
  #size(width: number, height: number): void {
    const canvas = this.#canvas;
    [canvas.width, canvas.height] = [width, height];
    canvas.style.aspectRatio = `${width} / ${height}`;
    canvas.style.setProperty("--ratio", String(width / height));
  }

  /** How it is looked at now. */
  get shown(): Shown {
    return this.#shown;
  }

  /** Sets the outputs to choose from. If the chosen one is gone, chooses another. */
  offer(choices: Choice[]): void {
    this.#choices = choices;
    const known = choices.find(({ name }) => name === this.#shown.name);
    if (!known && choices.length > 0) {
      const best = choices.find(({ name }) => /^(picture|image|pixels|canvas|colou?rs)$/.test(name)) ?? choices[0] as Choice;
      const square = best.width !== undefined || Number.isInteger(Math.sqrt(best.pixels)) && best.pixels >= 4096;
      const colors = best.width !== undefined ? true : best.scalar === "u32" ? /picture|image|pixels|canvas|colou?r/.test(best.name) : wordsOf(best.type) === 4 && best.scalar === "f32";
      const kind = this.#shown.name === undefined && this.#shown.kind !== "numbers" ? this.#shown.kind : square ? (colors ? "rgba" : "picture") : "numbers";
      this.#shown = { ...this.#shown, name: best.name, kind, width: this.#shown.width ?? Math.max(1, Math.ceil(Math.sqrt(best.pixels))) };
    }
    this.#name.replaceChildren(...choices.map(({ name }) => el("option", { value: name }, name)));
    this.#controls();
  }

  #controls(): void {
    const { name, kind, map, width } = this.#shown;
    const chosen = this.#choices.find((choice) => choice.name === name);
    this.#name.value = name ?? "";
    const texture = chosen?.width !== undefined;
    for (const option of this.#kind.options) {
      if (option.value === "rgba") option.disabled = chosen !== undefined && !texture && chosen.scalar !== "u32" && !(chosen.scalar === "f32" && wordsOf(chosen.type) === 4);
      if (option.value === "picture") option.disabled = texture;
    }
    this.#kind.value = kind;
    this.#map.value = map ?? "viridis";
    this.#map.hidden = kind !== "picture";
    const label = this.#width.closest("label");
    if (label) label.hidden = texture || (kind !== "picture" && kind !== "rgba");
    this.#width.value = String(width ?? Math.max(1, Math.ceil(Math.sqrt(chosen?.pixels ?? 1))));
  }

  /** The request to the worker; `undefined` if the kernel writes nothing. */
  get look(): Look | undefined {
    const { kind, map = "viridis", range } = this.#shown;
    const name = this.#shown.name;
    if (name === undefined || this.#choices.length === 0) return undefined;
    const chosen = this.#choices.find((choice) => choice.name === name);
    const width = chosen?.width ?? this.#shown.width ?? Math.max(1, Math.ceil(Math.sqrt(chosen?.pixels ?? 1)));
    if (kind === "numbers") return { name, kind, from: this.#from, count: PER_PAGE };
    if (kind === "plot") return { name, kind, points: POINTS };
    if (kind === "rgba" || chosen?.width !== undefined) return { name, kind: "rgba", width };
    return { name, kind, width, map, ...(range && { range }) };
  }

  #clear(): void {
    this.#seen.replaceChildren();
    this.#line.replaceChildren();
    this.#note.replaceChildren();
    this.#more.replaceChildren();
    this.#outputs = [];
    delete this.element.dataset["frames"];
  }

  /** The line below: what ran, where, how fast. */
  say(...what: (Node | string)[]): void {
    this.#line.replaceChildren(...what);
  }

  show(outcome: Outcome): void {
    this.#more.replaceChildren();
    this.#outputs = outcome.outputs;
    this.say(el("strong", {}, outcome.device), ` in ${milliseconds(outcome.milliseconds)}`);
    if (outcome.outputs.length === 0) this.#seen.replaceChildren(el("p", { class: "lead" }, "The kernel writes no binding."));
  }

  showComparison({ webgpu, cpu, differences }: Comparison): void {
    this.#outputs = webgpu.outputs;
    const slowest = Math.max(webgpu.milliseconds, cpu.milliseconds);
    const bar = (name: string, time: number, color: string) => {
      const filled = el("span", { class: `bar-fill ${color}` });
      filled.style.width = `${Math.max(1, (100 * time) / slowest)}%`;
      return el("div", { class: "bar-row" }, el("span", {}, name), el("span", { class: "bar-track" }, filled), el("span", { class: "number" }, milliseconds(time)));
    };
    const rows = differences.map((found) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, el("code", {}, found.name)),
        el("td", { class: "number", "data-largest": String(found.largest) }, found.largest === 0 ? "none" : found.largest.toExponential(2)),
        el("td", { class: "number" }, found.largest === 0 ? "–" : `${number(found.webgpu)} | ${number(found.cpu)}`),
        el("td", { class: "number" }, found.largest === 0 ? "–" : String(found.index)),
        el("td", { class: "number" }, `${found.differing} of ${found.length}`),
      ),
    );
    const heads = ["Output", "Largest difference", "WebGPU | CPU there", "At", "Differing"];
    this.say(el("strong", {}, webgpu.device), ` in ${milliseconds(webgpu.milliseconds)}; `, el("strong", {}, cpu.device), ` in ${milliseconds(cpu.milliseconds)}`);
    this.#more.replaceChildren(
      el("div", { class: "race" }, bar("WebGPU", webgpu.milliseconds, "one"), bar("CPU", cpu.milliseconds, "two")),
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences" },
        el("table", { id: "comparison" }, el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i ? "number" : "" }, head)))), el("tbody", {}, ...rows)),
      ),
    );
  }

  /** Shows what the worker saw. */
  draw(seen: Seen): void {
    const name = this.#shown.name ?? "";
    const output = this.#outputs.find((known) => known.name === name);
    const values = output ? `${output.length} ${output.scalar === "texture" ? "texels" : "values"}${output.min === undefined || output.max === undefined || output.min > output.max ? "" : `, ${number(output.min)} to ${number(output.max)}`}${output.odd > 0 ? `, ${output.odd} not finite` : ""}` : "";
    if (seen.kind === "picture") {
      const canvas = this.#canvas;
      if (canvas.width !== seen.image.width || canvas.height !== seen.image.height) this.#size(seen.image.width, seen.image.height);
      canvas.setAttribute("aria-label", `${name} as a picture`);
      canvas.getContext("bitmaprenderer")?.transferFromImageBitmap(seen.image);
      if (canvas.parentElement !== this.#seen) this.#seen.replaceChildren(canvas);
      this.#note.textContent = [values, seen.colors ? "" : `colours from ${number(seen.low)} to ${number(seen.high)}`].filter(Boolean).join("; ");
      return;
    }
    this.#note.textContent = values;
    if (seen.kind === "plot") {
      const { lows, highs, length } = seen;
      const at = (point: number) => (point * length) / lows.length;
      const points = lows.length === length ? Array.from(lows, (y, i) => [i, y] as const) : Array.from(lows, (low, i) => [[at(i), low], [at(i), highs[i] ?? low]] as const).flat();
      const chart = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${name} as a plot` });
      chart.append(plot([{ name, color: "one", points }], { label: `${name} as a plot`, x: "index", y: "value" }));
      this.#seen.replaceChildren(chart);
      return;
    }
    const length = output?.length ?? seen.from + seen.numbers.length;
    const last = seen.from + seen.numbers.length;
    const list = el("ol", { class: "numbers", start: seen.from, tabindex: 0, "aria-label": `${name}, numbers`, "data-name": name }, ...seen.numbers.map((text) => el("li", {}, text)));
    if (length <= PER_PAGE) return this.#seen.replaceChildren(list);
    const page = (first: number) => {
      this.#from = first;
      this.changed();
    };
    const earlier = button("Earlier", () => page(Math.max(0, seen.from - PER_PAGE)));
    const later = button("Later", () => page(last));
    earlier.disabled = seen.from === 0;
    later.disabled = last >= length;
    this.#seen.replaceChildren(list, el("div", { class: "row" }, earlier, later, el("span", { class: "hint" }, `${seen.from} to ${last - 1} of ${length}`)));
  }
}
