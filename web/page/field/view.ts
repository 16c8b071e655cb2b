/** The field view: controls, the canvas, and what runs it. All computing and drawing is in the worker. */
import { type ColormapName, colormapNames, gradient } from "../colormap.js";
import { button, el, labelled, milliseconds, save, select } from "../dom.js";
import type { View } from "../main.js";
import { Cancelled, type Failure, Remote, failure } from "../rpc.js";
import { sentence } from "../say.js";
import type { DeviceReport, FieldSettings, FrameReport } from "./protocol.js";

/** Named frequencies, as `cantus field --frequency` knows them. */
const NAMED = [
  ["432", "Unity, 432 Hz"],
  ["528", "Love, 528 Hz"],
  ["594", "Cascade, 594 Hz"],
  ["672", "Truth, 672 Hz"],
  ["720", "Vision, 720 Hz"],
  ["768", "Oneness, 768 Hz"],
] as const;

/** The browser's own tools show by this name when there was something to see. */
const FIRST = "first picture";

const SIZES = [256, 512, 768, 1024, 2048];

export class FieldView implements View {
  readonly element: HTMLElement;
  readonly #stage = el("div", { class: "stage" });
  readonly #device = el("p", { class: "device", role: "status", id: "device" }, "Opening a device…");
  readonly #rate = el("dd", { id: "rate" }, "–");
  readonly #frame = el("dd", { id: "frame" }, "–");
  readonly #overhead = el("dd", { id: "overhead" }, "–");
  /** The message in the middle of the stage. */
  readonly #note = el("div", { class: "error stage-note", role: "alert", hidden: true });
  readonly #play = button("Pause", () => this.#change({ playing: !this.#settings.playing }), { class: "primary", id: "play" });
  readonly #time = el("input", { type: "number", step: "any", value: "0", id: "time" });
  readonly #backend = select([["auto", "Automatic"], ["webgpu", "WebGPU"], ["cpu", "CPU in WebAssembly"]], "auto", { id: "backend" });
  readonly #settings: FieldSettings = { width: 512, height: 512, frequency: 528, speed: 1, map: "viridis", playing: true };
  #remote: Remote | undefined;
  /** True if it resumes when it is shown again. */
  #resume = false;

  constructor() {
    this.element = el("div", { class: "field view" }, this.#controls(), this.#stage);
    this.#backend.addEventListener("change", () => {
      this.#note.hidden = true;
      this.#open();
    });
    this.#time.addEventListener("change", () => this.#send({ time: this.#time.valueAsNumber || 0 }));
    // Someone who asked for less motion starts it by hand.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.#settings.playing = false;
  }

  show(): void {
    if (!this.#remote) this.#open();
    else if (this.#resume) this.#change({ playing: true });
  }

  hide(): void {
    this.#resume = this.#settings.playing;
    this.#change({ playing: false });
  }

  #controls(): HTMLElement {
    const { frequency, speed, width, map } = this.#settings;
    const hertz = el("input", { type: "range", min: 100, max: 1000, step: 1, value: frequency, id: "frequency" });
    const shown = el("output", { class: "value" }, `${frequency} Hz`);
    const named = select([["", "By hand"], ...NAMED], String(frequency), { id: "named" });
    const tune = (value: number) => {
      hertz.value = String(value);
      shown.textContent = `${value} Hz`;
      named.value = NAMED.some(([hz]) => Number(hz) === value) ? String(value) : "";
      this.#change({ frequency: value });
    };
    hertz.addEventListener("input", () => tune(hertz.valueAsNumber));
    named.addEventListener("change", () => named.value && tune(Number(named.value)));

    const pace = el("input", { type: "range", min: 0, max: 4, step: 0.05, value: speed, id: "speed" });
    const paceShown = el("output", { class: "value" }, `${speed.toFixed(2)} ×`);
    pace.addEventListener("input", () => {
      paceShown.textContent = `${pace.valueAsNumber.toFixed(2)} ×`;
      this.#change({ speed: pace.valueAsNumber });
    });

    const size = select(SIZES.map((side) => [String(side), `${side} × ${side}`] as const), String(width), { id: "size" });
    size.addEventListener("change", () => this.#change({ width: Number(size.value), height: Number(size.value) }));

    const swatch = el("span", { class: "swatch" });
    swatch.style.background = gradient(map);
    const maps = select(colormapNames.map((name) => [name, name] as const), map, { id: "map" });
    maps.addEventListener("change", () => {
      const chosen = maps.value as ColormapName;
      swatch.style.background = gradient(chosen);
      this.#change({ map: chosen });
    });

    return el(
      "form",
      { class: "panel", "aria-label": "Field" },
      el("h1", {}, "Field"),
      el("p", { class: "lead", id: "lead" }, "A damped spiral wave, computed and drawn frame by frame. The line on the left is where its angle starts over."),
      el(
        "dl",
        { class: "figures" },
        el("div", {}, el("dt", {}, "Frames/s"), this.#rate),
        el("div", {}, el("dt", {}, "Frame"), this.#frame),
        el("div", {}, el("dt", {}, "of it page"), this.#overhead),
      ),
      labelled("Frequency", named),
      labelled("Hertz", hertz, shown),
      labelled("Speed", pace, paceShown),
      el("div", { class: "pair wide-first" }, labelled("Size", size), labelled("Time, s", this.#time)),
      labelled("Colours", maps, swatch),
      labelled("Runs on", this.#backend),
      el("div", { class: "row" }, this.#play, button("Save PNG", () => void this.#picture(), { id: "png" })),
      this.#device,
      el("p", { class: "hint", id: "seam" }, "The angle is multiplied by the golden ratio, which is no whole number: so the arms do not meet on the line on the left. The piece Spiral wave of the playground has whole numbers of arms."),
    );
  }

  /** A fresh worker, engine and canvas: a canvas keeps the kind of its first context. */
  #open(): void {
    this.#remote?.end();
    this.#device.textContent = "Opening a device…";
    delete this.#device.dataset["backend"];
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "field" });
    const remote = new Remote(worker);
    this.#remote = remote;
    const element = el("canvas", { role: "img", "aria-label": "The field, animated", id: "canvas" });
    element.width = this.#settings.width;
    element.height = this.#settings.height;
    this.#stage.replaceChildren(element, this.#note);
    const canvas = element.transferControlToOffscreen();
    void this.#run(remote, canvas);
  }

  async #run(remote: Remote, canvas: OffscreenCanvas): Promise<void> {
    let opened: DeviceReport["backend"] | undefined;
    try {
      const argument = { canvas, settings: this.#settings, backend: this.#backend.value };
      const device = await remote.call<DeviceReport>("open", argument, { transfer: [canvas] });
      this.#device.replaceChildren(el("strong", {}, device.name), el("span", {}, device.why));
      this.#device.dataset["backend"] = opened = device.backend;
      await remote.call("animate", undefined, { report: (frame: FrameReport) => this.#report(frame) });
    } catch (error) {
      if (error instanceof Cancelled) return;
      const failed = failure(error);
      const again = (text: string) =>
        button(text, () => {
          this.#note.hidden = true;
          this.#open();
        });
      this.#note.hidden = false;
      if (opened === "webgpu" && isLoss(failed)) {
        // What it computed is gone, and comes again from the next frame.
        this.#backend.value = "cpu";
        this.#note.replaceChildren(el("span", {}, `The GPU was lost (${failed.message}). It goes on with the CPU.`), button("Try the GPU again", () => {
          this.#backend.value = "webgpu";
          this.#note.hidden = true;
          this.#open();
        }));
        this.#open();
        return;
      }
      this.#device.textContent = "Nothing runs.";
      delete this.#device.dataset["backend"];
      this.#note.replaceChildren(el("span", {}, sentence(failed)), again("Start again"));
    }
  }

  #report({ rate, overhead, frame, time, frames }: FrameReport): void {
    this.#rate.textContent = this.#settings.playing ? rate.toFixed(rate < 10 ? 1 : 0) : "paused";
    this.#frame.textContent = milliseconds(frame);
    this.#overhead.textContent = milliseconds(overhead);
    this.#overhead.dataset["ms"] = String(overhead);
    if (this.element.dataset["frames"] === undefined) performance.mark(FIRST);
    this.element.dataset["frames"] = String(frames);
    // Not under the hands of someone who is typing a time.
    if (document.activeElement !== this.#time) this.#time.value = time.toFixed(this.#settings.playing ? 1 : 3).replace(/\.?0+$/, "");
  }

  #change(changes: Partial<FieldSettings>): void {
    Object.assign(this.#settings, changes);
    if (changes.playing !== undefined) this.#play.textContent = changes.playing ? "Pause" : "Play";
    this.#send(changes);
  }

  #send(changes: Partial<FieldSettings> & { time?: number }): void {
    void this.#remote?.call("set", changes).catch(() => undefined);
  }

  async #picture(): Promise<void> {
    this.#note.hidden = true;
    try {
      const blob = await this.#remote?.call<Blob>("picture");
      if (blob) save(blob, "field.png");
    } catch (error) {
      this.#note.hidden = false;
      this.#note.textContent = `No picture: ${(error as Error).message}`;
    }
  }
}

/** True if a failure comes from a lost device. */
function isLoss({ code }: Failure): boolean {
  return code === "DeviceLost" || code === "TensorLost" || code === "Device";
}
