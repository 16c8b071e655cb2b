/** What a run gave: each output as numbers, picture or plot. The values stay in the worker; this shows looks at them. */
import { type ColormapName, colormapNames } from "../colormap.js";
import type { Comparison, Look, Outcome, Output, Seen } from "../compute/protocol.js";
import { button, el, labelled, milliseconds, select } from "../dom.js";
import { plot } from "../plot.js";
import type { Remote } from "../rpc.js";
import type { Sketch } from "./examples.js";

const PER_PAGE = 256;
const POINTS = 720;

const number = (value: number) => (Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "–");

export class Results {
  readonly element = el("div", { class: "results", id: "results" });
  #kind: Look["kind"] = "numbers";
  #width: number | undefined;
  #map: ColormapName = "viridis";

  /** How an example wants to be looked at. */
  prefer(look: Sketch["look"]): void {
    this.#kind = look?.kind ?? "numbers";
    this.#width = look?.width;
  }

  /** How it is looked at now, for a share link. */
  get preferred(): NonNullable<Sketch["look"]> {
    return { kind: this.#kind, ...(this.#width !== undefined && { width: this.#width }) };
  }

  clear(): void {
    this.element.replaceChildren();
  }

  show(outcome: Outcome, remote: Remote): void {
    const line = el("p", { class: "outcome", role: "status" }, el("strong", {}, outcome.device), ` in ${milliseconds(outcome.milliseconds)}`);
    this.element.replaceChildren(line, ...this.#outputs(outcome.outputs, remote));
  }

  showComparison({ webgpu, cpu, differences }: Comparison, remote: Remote): void {
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
    this.element.replaceChildren(
      el("p", { class: "outcome", role: "status" }, el("strong", {}, webgpu.device), ` in ${milliseconds(webgpu.milliseconds)}; `, el("strong", {}, cpu.device), ` in ${milliseconds(cpu.milliseconds)}`),
      el(
        "div",
        { class: "scroll" },
        el("table", { id: "comparison" }, el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i ? "number" : "" }, head)))), el("tbody", {}, ...rows)),
      ),
      ...this.#outputs(webgpu.outputs, remote),
    );
  }

  #outputs(outputs: Output[], remote: Remote): HTMLElement[] {
    if (outputs.length === 0) return [el("p", { class: "lead" }, "The kernel writes no binding.")];
    return outputs.map((output) => this.#output(output, remote));
  }

  #output(output: Output, remote: Remote): HTMLElement {
    const kind = select([["numbers", "Numbers"], ["picture", "Picture"], ["plot", "Plot"]], this.#kind, { "aria-label": `Look at ${output.name} as`, "data-look": output.name });
    const width = el("input", { type: "number", min: 1, max: 8192, step: 1, value: this.#width ?? Math.ceil(Math.sqrt(output.length)) });
    const map = select(colormapNames.map((name) => [name, name] as const), this.#map);
    const options = el("div", { class: "row options" }, labelled("Width", width), labelled("Colours", map));
    const seen = el("div", { class: "seen" });
    let from = 0;
    const update = async () => {
      this.#kind = kind.value as Look["kind"];
      options.hidden = this.#kind !== "picture";
      const { name } = output;
      const looks: Record<Look["kind"], Look> = {
        numbers: { name, kind: "numbers", from, count: PER_PAGE },
        picture: { name, kind: "picture", width: width.valueAsNumber || 1, map: this.#map },
        plot: { name, kind: "plot", points: POINTS },
      };
      try {
        const found = await remote.call<Seen>("look", looks[this.#kind]);
        seen.replaceChildren(...this.#seen(found, output, (start) => ((from = start), void update())));
      } catch (error) {
        seen.replaceChildren(el("p", { class: "error" }, (error as Error).message));
      }
    };
    kind.addEventListener("change", () => void update());
    width.addEventListener("change", () => ((this.#width = width.valueAsNumber || 1), void update()));
    map.addEventListener("change", () => ((this.#map = map.value as ColormapName), void update()));
    void update();
    const odd = output.odd > 0 ? `, ${output.odd} not finite` : "";
    return el(
      "section",
      { class: "output", "aria-label": output.name },
      el(
        "div",
        { class: "row spread" },
        el("h2", {}, el("code", {}, output.name), el("span", { class: "hint" }, ` ${output.length} values, ${number(output.min)} to ${number(output.max)}${odd}`)),
        kind,
      ),
      options,
      seen,
    );
  }

  #seen(seen: Seen, output: Output, page: (from: number) => void): HTMLElement[] {
    if (seen.kind === "picture") {
      const canvas = el("canvas", { role: "img", "aria-label": `${output.name} as a picture` });
      canvas.width = seen.image.width;
      canvas.height = seen.image.height;
      canvas.getContext("bitmaprenderer")?.transferFromImageBitmap(seen.image);
      return [canvas, el("p", { class: "hint" }, `${number(seen.low)} to ${number(seen.high)}`)];
    }
    if (seen.kind === "plot") {
      const { lows, highs, length } = seen;
      const at = (point: number) => (point * length) / lows.length;
      const points = lows.length === length ? Array.from(lows, (y, i) => [i, y] as const) : Array.from(lows, (low, i) => [[at(i), low], [at(i), highs[i] ?? low]] as const).flat();
      const chart = el("div", { class: "scroll" });
      chart.append(plot([{ name: output.name, color: "one", points }], { label: `${output.name} as a plot`, x: "index", y: "value" }));
      return [chart];
    }
    const last = Math.min(seen.from + PER_PAGE, output.length);
    const list = el("ol", { class: "numbers", start: seen.from }, ...seen.numbers.map((text) => el("li", {}, text)));
    if (output.length <= PER_PAGE) return [list];
    const earlier = button("Earlier", () => page(Math.max(0, seen.from - PER_PAGE)));
    const later = button("Later", () => page(last));
    earlier.disabled = seen.from === 0;
    later.disabled = last === output.length;
    return [list, el("div", { class: "row" }, earlier, later, el("span", { class: "hint" }, `${seen.from} to ${last - 1} of ${output.length}`))];
  }
}
