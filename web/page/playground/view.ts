/** The playground: a kernel, its inputs by reflection, Run, Compare, results, share links. */
import type { Backend, Comparison, Outcome, Parsed } from "../compute/protocol.js";
import { startCompute } from "../compute/start.js";
import { button, el, labelled, select } from "../dom.js";
import type { View } from "../main.js";
import { Cancelled, type Failure, type Remote, failure } from "../rpc.js";
import { Editor } from "./editor.js";
import { type Sketch, examples } from "./examples.js";
import { Inputs } from "./inputs.js";
import { decode, encode } from "./link.js";
import { Results } from "./results.js";

/** Quiet time after a keystroke before the text is parsed. */
const PAUSE_MS = 250;

export class PlaygroundView implements View {
  readonly element: HTMLElement;
  readonly #editor: Editor;
  readonly #inputs = new Inputs(() => this.#parseSoon());
  readonly #results = new Results();
  readonly #problem = el("div", { class: "problem", role: "alert", id: "problem" });
  readonly #status = el("span", { class: "hint", role: "status", id: "status" });
  readonly #run = button("Run", () => void this.#start("run"), { class: "primary", id: "run", title: "Ctrl+Enter" });
  readonly #compare = button("Compare", () => void this.#start("compare"), { id: "compare", title: "Run on WebGPU and on the CPU" });
  readonly #cancel = button("Cancel", () => this.#stop(), { id: "cancel", hidden: true });
  readonly #backend = select([["webgpu", "WebGPU"], ["cpu", "CPU in WebAssembly"]], "webgpu", { id: "run-on", "aria-label": "Run on" });
  readonly #example = select([["", "Your own"], ...examples.map(({ id, title }) => [id, title] as const)], "saxpy", { id: "example" });
  #remote: Remote;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The latest parse; answers of earlier ones are dropped. */
  #turn = 0;
  #loading = false;
  #link = "";

  constructor() {
    this.#remote = startCompute();
    this.#editor = new Editor("", () => this.#edited(), () => void this.#start("run"));
    this.#example.addEventListener("change", () => this.#choose(this.#example.value));
    const head = el(
      "div",
      { class: "row spread" },
      el("h1", {}, "Playground"),
      el("div", { class: "row" }, labelled("Example", this.#example), button("Share link", () => void this.#share(), { id: "share" })),
    );
    const editor = el("div", { class: "editor" });
    editor.append(this.#editor.view.dom);
    this.element = el(
      "div",
      { class: "playground view" },
      el("div", { class: "panel wide" }, head, editor, this.#problem),
      el(
        "div",
        { class: "panel side" },
        el("h2", {}, "Inputs"),
        this.#inputs.element,
        el("div", { class: "row" }, this.#backend, this.#run, this.#compare, this.#cancel),
        this.#status,
      ),
      el("div", { class: "panel results-panel" }, this.#results.element),
    );
    void this.#remote.call("device", "webgpu").catch((error: Error) => {
      if (error instanceof Cancelled) return;
      this.#backend.value = "cpu";
      for (const option of this.#backend.options) option.disabled = option.value === "webgpu";
      this.#compare.disabled = true;
      this.#status.textContent = `No WebGPU: kernels run on the CPU. ${error.message}`;
    });
  }

  show(rest: string): void {
    if (rest && rest !== this.#link) {
      this.#link = rest;
      const known = examples.find(({ id }) => id === rest);
      if (known) this.#choose(known.id);
      else void this.#open(rest);
    } else if (!this.#editor.text) this.#choose(this.#example.value);
  }

  hide(): void {}

  #choose(id: string): void {
    const found = examples.find((example) => example.id === id);
    if (!found) return;
    this.#example.value = id;
    this.#load(found.sketch);
  }

  async #open(link: string): Promise<void> {
    try {
      this.#load(await decode(link));
      this.#example.value = "";
    } catch (error) {
      if (!this.#editor.text) this.#choose("saxpy");
      this.#status.textContent = `The link cannot be opened: ${(error as Error).message}`;
    }
  }

  #load(sketch: Sketch): void {
    this.#inputs.load(sketch);
    this.#results.prefer(sketch.look);
    this.#results.clear();
    this.#loading = true;
    this.#editor.text = sketch.wgsl;
    this.#loading = false;
    void this.#parse();
  }

  #edited(): void {
    if (this.#loading) return;
    this.#example.value = "";
    this.#parseSoon();
  }

  #parseSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#parse(), PAUSE_MS);
  }

  /** Shows inputs and errors of the present text; false when it is no kernel. */
  async #parse(): Promise<boolean> {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    try {
      const parsed = await this.#remote.call<Parsed>("parse", { wgsl: this.#editor.text, ...this.#inputs.choice });
      if (turn !== this.#turn) return false;
      this.#inputs.show(parsed);
      this.#blame(undefined);
      return true;
    } catch (error) {
      if (turn === this.#turn && !(error instanceof Cancelled)) this.#blame(failure(error));
      return false;
    }
  }

  #blame(error: Failure | undefined): void {
    this.#editor.mark(error);
    this.#run.disabled = error !== undefined && error.offset !== undefined;
    if (!error) {
      this.#problem.replaceChildren();
      return;
    }
    const [first = "", ...report] = error.message.split("\n");
    const place = error.line === undefined ? [] : [button(`Line ${error.line}, column ${error.column}`, () => this.#editor.go(error), { class: "place" })];
    this.#problem.replaceChildren(el("p", {}, report[0]?.replace(/^error: /, "") || first), ...place, ...(report.length > 1 ? [el("pre", { tabindex: 0 }, report.slice(1).join("\n"))] : []));
  }

  async #start(what: "run" | "compare"): Promise<void> {
    if (!this.#cancel.hidden || !(await this.#parse())) return;
    this.#busy(true);
    this.#results.clear();
    const job = this.#inputs.job(this.#editor.text);
    try {
      if (what === "run") {
        const outcome = await this.#remote.call<Outcome>("run", { job, backend: this.#backend.value as Backend });
        this.#results.show(outcome, this.#remote);
      } else this.#results.showComparison(await this.#remote.call<Comparison>("compare", job), this.#remote);
      this.#status.textContent = "";
    } catch (error) {
      if (error instanceof Cancelled) this.#status.textContent = "Cancelled.";
      else {
        this.#blame(failure(error));
        this.#status.textContent = "";
        // A trap leaves the module as it was when it trapped: a fresh one is needed.
        if (error instanceof Error && error.name === "RuntimeError") this.#restart();
      }
    } finally {
      this.#busy(false);
    }
  }

  #busy(busy: boolean): void {
    this.#cancel.hidden = !busy;
    this.#run.disabled = busy;
    this.element.setAttribute("aria-busy", String(busy));
    if (busy) this.#status.textContent = "Running…";
  }

  #stop(): void {
    this.#restart();
    this.#run.focus();
  }

  #restart(): void {
    this.#remote.end();
    this.#remote = startCompute();
  }

  async #share(): Promise<void> {
    this.#link = await encode({ ...this.#inputs.sketch(this.#editor.text), look: this.#results.preferred });
    history.replaceState(null, "", `#playground/${this.#link}`);
    try {
      await navigator.clipboard.writeText(location.href);
      this.#status.textContent = "The link is copied; it holds the kernel and its inputs.";
    } catch {
      this.#status.textContent = "The address above is the link; it holds the kernel and its inputs.";
    }
  }
}
