/** The bench: shipped operations over sizes, WebGPU against the CPU, as plot, table and JSON. */
import { startCompute } from "../compute/start.js";
import type { Backend, BenchPlan, BenchProgress, Measurement } from "../compute/protocol.js";
import { button, el, labelled, milliseconds, select } from "../dom.js";
import type { View } from "../main.js";
import { type Line, plot } from "../plot.js";
import { Cancelled, type Remote } from "../rpc.js";

const KERNELS = ["field", "phi_pattern", "coherence", "sum", "softmax", "cumsum", "matmul"] as const;
const SIZES = [64, 128, 256, 512, 1024, 2048];
const NAMES: Record<Backend, string> = { webgpu: "WebGPU", cpu: "CPU" };

export class BenchView implements View {
  readonly element: HTMLElement;
  readonly #kernels = KERNELS.map((name) => el("input", { type: "checkbox", value: name, checked: name !== "cumsum" }));
  readonly #largest = select(SIZES.slice(2).map((side) => [String(side), `${side} × ${side}`] as const), "512", { id: "largest" });
  readonly #start = button("Run", () => void this.#run(), { class: "primary", id: "bench-run" });
  readonly #cancel = button("Cancel", () => this.#remote?.end(), { id: "bench-cancel", hidden: true });
  readonly #copy = button("Copy as JSON", () => void this.#copyJson(), { id: "bench-copy", disabled: true });
  readonly #progress = el("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true });
  readonly #status = el("p", { class: "hint", role: "status", id: "bench-status" }, "Nothing measured yet.");
  readonly #results = el("div", { class: "results" });
  #remote: Remote | undefined;
  #measured: Measurement[] = [];

  constructor() {
    const choices = KERNELS.map((name, i) => el("label", { class: "check" }, this.#kernels[i] as HTMLInputElement, el("code", {}, name)));
    this.element = el(
      "div",
      { class: "bench view" },
      el(
        "div",
        { class: "panel side" },
        el("h1", {}, "Bench"),
        el("p", { class: "lead" }, "The library's operations on squares of growing size, WebGPU against the CPU executor. Times hold for this browser on this machine."),
        el("fieldset", {}, el("legend", {}, "Operations"), ...choices),
        labelled("Largest square", this.#largest),
        el("div", { class: "row" }, this.#start, this.#cancel, this.#copy),
        this.#progress,
        this.#status,
      ),
      el("div", { class: "panel wide" }, this.#results),
    );
  }

  show(): void {}

  hide(): void {}

  async #run(): Promise<void> {
    const plan: BenchPlan = {
      kernels: this.#kernels.filter(({ checked }) => checked).map(({ value }) => value),
      sizes: SIZES.filter((side) => side <= Number(this.#largest.value)),
      backends: ["webgpu", "cpu"],
    };
    if (plan.kernels.length === 0) {
      this.#status.textContent = "Choose an operation.";
      return;
    }
    this.#measured = [];
    this.#results.replaceChildren();
    this.#busy(true);
    const missing: string[] = [];
    const note = (text: string) => (this.#status.textContent = [text, ...missing].join(" "));
    note("Opening devices…");
    const remote = startCompute();
    this.#remote = remote;
    try {
      await remote.call("bench", plan, {
        report: ({ done, total, doing, measurement, missing: gone }: BenchProgress) => {
          if (gone) missing.push(`Not measured: ${gone}`);
          if (total > 0) this.#progress.value = done / total;
          if (doing) note(`${doing} (${done} of ${total})`);
          if (measurement) {
            this.#measured.push(measurement);
            this.#draw();
          }
        },
      });
      note(`Done: ${this.#measured.length} measurements, median of 5 rounds each.`);
    } catch (error) {
      note(error instanceof Cancelled ? `Cancelled after ${this.#measured.length} measurements.` : (error as Error).message);
    } finally {
      remote.end();
      this.#busy(false);
    }
  }

  #busy(busy: boolean): void {
    this.#start.disabled = busy;
    this.#cancel.hidden = !busy;
    this.#progress.hidden = !busy;
    this.#copy.disabled = busy || this.#measured.length === 0;
    if (busy) this.#progress.value = 0;
  }

  #draw(): void {
    const kernels = [...new Set(this.#measured.map(({ kernel }) => kernel))];
    this.#results.replaceChildren(el("div", { class: "charts" }, ...kernels.map((kernel) => this.#chart(kernel))), this.#table());
  }

  #chart(kernel: string): HTMLElement {
    const of = this.#measured.filter((one) => one.kernel === kernel);
    const lines = (["webgpu", "cpu"] as const).map((backend): Line => ({
      name: NAMES[backend],
      color: backend === "webgpu" ? "one" : "two",
      points: of.filter((one) => one.backend === backend).map(({ elements, milliseconds }) => [Math.sqrt(elements), milliseconds] as const),
    }));
    const legend = el("span", { class: "legend" }, ...lines.filter(({ points }) => points.length > 0).map(({ name, color }) => el("span", { class: color }, name)));
    const figure = el("figure", {}, el("figcaption", {}, el("code", {}, kernel), legend));
    figure.append(plot(lines, { label: `${kernel}: time by size, WebGPU and CPU; the table has the numbers`, x: "side of the square", y: "ms", logarithmic: true, xTick: String }));
    return figure;
  }

  #table(): HTMLElement {
    const found = (kernel: string, size: string, backend: Backend) =>
      this.#measured.find((one) => one.kernel === kernel && one.size === size && one.backend === backend)?.milliseconds;
    const keys = [...new Set(this.#measured.map(({ kernel, size }) => `${kernel}|${size}`))].map((key) => key.split("|") as [string, string]);
    const cell = (time: number | undefined) => el("td", { class: "number" }, time === undefined ? "–" : milliseconds(time));
    const rows = keys.map(([kernel, size]) => {
      const [gpu, cpu] = [found(kernel, size, "webgpu"), found(kernel, size, "cpu")];
      const ratio = gpu !== undefined && cpu !== undefined ? `${(cpu / gpu).toPrecision(2)} ×` : "–";
      return el("tr", {}, el("th", { scope: "row" }, el("code", {}, kernel)), el("td", { class: "number" }, size), cell(gpu), cell(cpu), el("td", { class: "number" }, ratio));
    });
    const heads = ["Operation", "Size", "WebGPU", "CPU", "CPU / WebGPU"].map((head, i) => el("th", { scope: "col", class: i ? "number" : "" }, head));
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measurements" }, el("table", { id: "bench-table" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
  }

  async #copyJson(): Promise<void> {
    const text = JSON.stringify({ browser: navigator.userAgent, threads: navigator.hardwareConcurrency, date: new Date().toISOString(), measurements: this.#measured }, undefined, 2);
    try {
      await navigator.clipboard.writeText(text);
      this.#status.textContent = "Copied.";
    } catch {
      this.#status.textContent = "The browser gives no access to the clipboard.";
    }
  }
}
