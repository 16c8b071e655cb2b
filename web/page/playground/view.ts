/** The playground: a document of kernels, its result beside it, running while it is changed; a gallery, share links, other forms. */
import type { Backend, Change, Comparison, Frame, Job, Outcome, Parsed, Pointer, Seen } from "../compute/protocol.js";
import { startCompute } from "../compute/start.js";
import { button, el, labelled, select } from "../dom.js";
import { keep, kept } from "../keep.js";
import type { View } from "../main.js";
import { Cancelled, type Failure, type Remote, failure } from "../rpc.js";
import { sentence } from "../say.js";
import { Editor } from "./editor.js";
import { type Form, written } from "./forms.js";
import { pieces } from "./gallery.js";
import { type Changed, Inputs, amount } from "./inputs.js";
import { checked, decode, encode, packed } from "./link.js";
import { Film } from "./pictures.js";
import { Results } from "./results.js";
import type { Sketch } from "./sketch.js";

/** Quiet time after a keystroke before the text is parsed. */
const PAUSE_MS = 250;
/** The time after which a worker that does not answer is assumed to be stuck in a kernel. It is ended, and another takes over. */
const PATIENCE_MS = 2000;
const KEPT = "playground";
/** Operations of a frame beyond which it waits for Run: seconds of a GPU's time, minutes of a processor's. */
const MUCH = 2 ** 38;

export class PlaygroundView implements View {
  readonly element: HTMLElement;
  readonly #editor: Editor;
  readonly #inputs = new Inputs((what) => this.#changed(what));
  readonly #results = new Results(() => this.#looked(), (pointer) => this.#pointed(pointer));
  readonly #problem = el("div", { class: "problem", role: "alert", id: "problem" });
  readonly #status = el("p", { class: "hint", role: "status", id: "status" });
  readonly #run = button("Run", () => void this.#start(true), { class: "primary", id: "run", title: "From the beginning (Ctrl+Enter)" });
  readonly #pause = button("Pause", () => this.#toggle(), { id: "pause", hidden: true });
  readonly #compare = button("Compare", () => void this.#race(), { id: "compare", title: "Run on WebGPU and on the CPU" });
  readonly #cancel = button("Cancel", () => this.#stop(), { id: "cancel", hidden: true });
  readonly #backend = select([["webgpu", "WebGPU"], ["cpu", "CPU in WebAssembly"]], "cpu", { id: "run-on", "aria-label": "Run on" });
  readonly #example = select([["", "Your own"], ...pieces.map(({ id, title }) => [id, title] as const)], "", { id: "example", "aria-label": "Piece" });
  readonly #about = el("div", { class: "about", id: "about" });
  readonly #gallery = el("dialog", { class: "gallery", id: "gallery", "aria-label": "Gallery" });
  readonly #forms = el("dialog", { class: "forms", id: "forms", "aria-label": "The kernel as a program" });
  /** The sources of the inputs, by name. */
  readonly #films = new Map<string, { film: Film; key: string }>();
  #remote: Remote;
  #ready: Promise<void>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The latest parse and the latest run; answers of earlier ones are dropped. */
  #turn = 0;
  #round = 0;
  #loading = false;
  #link = "";
  #playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  #moves = false;
  #visible = false;
  #noGpu: string | undefined;
  /** The amount of work that was confirmed: it runs again without asking. */
  #allowed = 0;
  /** Resolves when it is known whether there is WebGPU. */
  #gpu: Promise<void> = Promise.resolve();

  constructor() {
    this.#remote = startCompute();
    this.#editor = new Editor("", () => this.#edited(), () => void this.#start(true));
    this.#example.addEventListener("change", () => this.#choose(this.#example.value));
    this.#backend.addEventListener("change", () => void this.#start(false));
    const head = el(
      "div",
      { class: "row spread head" },
      el("h1", {}, "Playground"),
      el("div", { class: "row" }, this.#example, button("Gallery", () => this.#openGallery(), { id: "open-gallery" }), button("Use it", () => this.#openForms(), { id: "open-forms", title: "As npm, Rust or command line" }), button("Share", () => void this.#share(), { id: "share" })),
    );
    const editor = el("div", { class: "editor" });
    editor.append(this.#editor.view.dom);
    this.element = el(
      "div",
      { class: "playground view" },
      el("div", { class: "panel code" }, head, editor, this.#problem),
      el(
        "div",
        { class: "panel side" },
        el("h2", { class: "hidden" }, "Result"),
        this.#results.element,
        el("div", { class: "row controls" }, this.#run, this.#pause, this.#compare, this.#cancel, this.#backend),
        this.#status,
        this.#about,
        el("h2", {}, "Inputs"),
        this.#inputs.element,
      ),
      this.#gallery,
      this.#forms,
    );
    this.#takePictures();
    this.#ready = this.#openDevices();
    window.addEventListener("pagehide", () => this.#keep());
  }

  /** A picture that is dropped on the view, or pasted, becomes the kernel's input. */
  #takePictures(): void {
    const take = (data: DataTransfer | null): boolean => {
      const picture = [...(data?.files ?? [])].find(({ type }) => type.startsWith("image/"));
      if (!picture) return false;
      if (!this.#inputs.take(picture)) this.#say("The kernel has no input that takes a picture: a variable of type texture_2d<f32>.");
      return true;
    };
    this.element.addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    this.element.addEventListener("drop", (event) => {
      if (take(event.dataTransfer)) event.preventDefault();
    });
    document.addEventListener("paste", (event) => {
      if (this.#visible && take(event.clipboardData)) event.preventDefault();
    });
  }

  /** The engine's own choice stands until someone chooses. */
  async #openDevices(): Promise<void> {
    try {
      const { backend } = await this.#remote.call<{ backend: Backend; name: string }>("best");
      this.#backend.value = backend;
    } catch (error) {
      if (!(error instanceof Cancelled)) this.#say(sentence(error as Failure));
      return;
    }
    this.#gpu = this.#remote.call("device", "webgpu").then(
      () => undefined,
      (error: Error) => void (error instanceof Cancelled || this.#withoutGpu(sentence(error as Failure))),
    );
  }

  #withoutGpu(why: string): void {
    this.#noGpu = why;
    this.#backend.value = "cpu";
    for (const option of this.#backend.options) option.disabled = option.value === "webgpu";
    this.#compare.disabled = true;
    this.#compare.title = why;
  }

  show(rest: string): void {
    this.#visible = true;
    if (rest && rest !== this.#link) {
      this.#link = rest;
      if (pieces.some(({ id }) => id === rest)) this.#choose(rest);
      else void this.#open(rest);
    } else if (!this.#editor.text) this.#again();
    else if (this.#moves) void this.#start(false);
  }

  hide(): void {
    this.#visible = false;
    this.#keep();
    this.#closeFilms();
    this.#round++;
    void this.#remote.call("halt").catch(() => undefined);
  }

  /** Opens the text that was edited last, or else the first piece. */
  #again(): void {
    const text = kept(KEPT);
    if (text !== undefined) {
      try {
        const { example, sketch } = JSON.parse(text) as { example: string; sketch: unknown };
        this.#load(checked(sketch), example);
        return;
      } catch {
        // What was kept cannot be read: the first piece.
      }
    }
    this.#choose(pieces[0]?.id ?? "");
  }

  #keep(): void {
    if (!this.#editor.text || !this.#inputs.parsed) return;
    const { sketch } = packed(this.#inputs.sketch(this.#editor.text, this.#results.shown));
    keep(KEPT, JSON.stringify({ example: this.#example.value, sketch: { ...sketch, look: this.#results.shown } }));
  }

  #choose(id: string): void {
    const found = pieces.find((piece) => piece.id === id);
    if (!found) return;
    this.#load(found.sketch, id);
    this.#scroll();
  }

  async #open(link: string): Promise<void> {
    try {
      this.#load(await decode(link), "");
    } catch (error) {
      if (!this.#editor.text) this.#again();
      this.#say(`The link cannot be opened: ${(error as Error).message}.`);
    }
  }

  #load(sketch: Sketch, example: string): void {
    this.#round++;
    this.#example.value = pieces.some(({ id }) => id === example) ? example : "";
    const piece = pieces.find(({ id }) => id === this.#example.value);
    this.#about.replaceChildren(...(piece?.lines ?? []).map((line) => el("p", {}, line)));
    this.#inputs.load(sketch);
    const shown = sketch.fills[sketch.look?.name ?? ""];
    this.#results.prefer(sketch.look, shown && "width" in shown ? shown.width * shown.height : shown && "length" in shown ? shown.length : 0);
    this.#problem.replaceChildren();
    this.#say("");
    this.#loading = true;
    this.#editor.text = sketch.wgsl;
    this.#loading = false;
    void this.#parse().then((good) => {
      if (!good) return;
      if (sketch.race) void this.#race();
      else void this.#start(false);
    });
  }

  #edited(): void {
    if (this.#loading) return;
    this.#soon("kernel");
  }

  #changed(what: Changed): void {
    if (what === "uniforms" && this.#moves && !this.#inputs.problem) {
      this.#check();
      this.#change({ uniforms: this.#inputs.uniforms });
      return;
    }
    this.#soon(what);
  }

  /** After a pause: parsed again where the text changed, and run. */
  #soon(what: Changed): void {
    clearTimeout(this.#timer);
    this.#check();
    this.#timer = setTimeout(() => {
      void (what === "kernel" ? this.#parse() : Promise.resolve(true)).then((good) => {
        this.#keep();
        if (good) void this.#start(false);
      });
    }, what === "uniforms" ? 60 : PAUSE_MS);
  }

  /** Inputs that cannot be used stop Run, and say why. */
  #check(): boolean {
    const { problem } = this.#inputs;
    this.#run.disabled = problem !== undefined || !this.#inputs.parsed;
    if (problem) this.#say(problem);
    else if (this.#status.dataset["kind"] === "input") this.#say("");
    if (problem) this.#status.dataset["kind"] = "input";
    return problem === undefined;
  }

  #say(text: string): void {
    this.#status.textContent = text;
    delete this.#status.dataset["kind"];
  }

  /** Shows inputs and errors of the present text; false when it is no kernel. */
  async #parse(): Promise<boolean> {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    try {
      const parsed = await this.#patiently<Parsed>("parse", { wgsl: this.#editor.text, overrides: this.#inputs.overrides });
      if (turn !== this.#turn) return false;
      this.#inputs.show(parsed, this.#results.shown);
      this.#results.offer(this.#inputs.outputs);
      this.#moves = parsed.moves || parsed.entryPoints.length > 1;
      this.#blame(undefined);
      return true;
    } catch (error) {
      if (turn === this.#turn && !(error instanceof Cancelled)) this.#blame(failure(error));
      return false;
    }
  }

  /** A call to a worker that may be in a kernel without an end: then another worker answers. */
  async #patiently<T>(method: string, argument: unknown): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const remote = this.#remote;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), this.#element("busy") ? PATIENCE_MS : 20_000);
    });
    try {
      const answer = await Promise.race([remote.call<T>(method, argument), late]);
      if (answer !== "late") return answer;
      if (remote === this.#remote) this.#restart();
      return await this.#remote.call<T>(method, argument);
    } finally {
      clearTimeout(timer);
    }
  }

  #element(state: string): boolean {
    return this.element.getAttribute(`aria-${state}`) === "true";
  }

  #blame(error: Failure | undefined): void {
    this.#editor.mark(error);
    const text = error !== undefined && error.offset !== undefined;
    this.#run.disabled = text || this.#inputs.problem !== undefined;
    if (!error) {
      this.#problem.replaceChildren();
      return;
    }
    const known = text ? error.message : sentence(error);
    const [first = "", ...report] = known.split("\n");
    const place = error.line === undefined ? [] : [button(`Line ${error.line}, column ${error.column}`, () => this.#editor.go(error), { class: "place" })];
    this.#problem.replaceChildren(el("p", {}, report[0]?.replace(/^error: /, "") || first), ...place, ...(report.length > 1 ? [el("pre", { tabindex: 0 }, report.slice(1).join("\n"))] : []));
  }

  #job(): Job {
    return this.#inputs.job(this.#editor.text, this.#results.shown);
  }

  /** Runs what is shown: once, or frame after frame where it moves. What ran before ends. */
  async #start(asked: boolean): Promise<void> {
    const round = ++this.#round;
    if (!this.#inputs.parsed || !this.#check() || !this.#visible) return;
    await this.#ready;
    if (round !== this.#round) return;
    if (asked) this.#scroll();
    const look = this.#results.look;
    const operations = this.#inputs.operations(this.#results.shown);
    if (operations > MUCH && !asked && operations !== this.#allowed) {
      await this.#patiently("halt", undefined);
      this.#pause.hidden = true;
      this.#busy(false);
      return this.#say(`This is about ${amount(operations)} operations${this.#moves ? " a frame" : ""}, which may take long. Run starts it.`);
    }
    if (asked) {
      this.#allowed = operations;
      this.#blame(undefined);
    }
    const animated = (this.#moves || this.#inputs.films.length > 0) && look !== undefined;
    this.#pause.hidden = !animated;
    this.#busy(true);
    try {
      await this.#patiently("halt", undefined);
      if (round !== this.#round) return;
      const job = this.#job();
      const backend = this.#backend.value as Backend;
      if (animated) {
        this.#playing ||= asked;
        this.#pause.textContent = this.#playing ? "Pause" : "Play";
        const ended = this.#remote.call("animate", { job, backend, look }, { report: (frame: Frame) => this.#frame(round, frame) });
        if (!this.#playing) this.#change({ playing: false });
        void this.#openFilms();
        await ended;
        return;
      }
      this.#closeFilms();
      const outcome = await this.#remote.call<Outcome>("run", { job, backend, ...(look && { look }) });
      if (round !== this.#round) return;
      this.#blame(undefined);
      this.#results.show(outcome);
      if (look) this.#results.draw(await this.#remote.call<Seen>("look", look));
      this.#done(outcome.outputs.length > 0 ? "" : "The kernel writes no binding.");
    } catch (error) {
      if (round === this.#round) this.#failed(error);
    } finally {
      if (round === this.#round) this.#busy(false);
    }
  }

  #done(text: string): void {
    this.#busy(false);
    this.#say(text);
    this.element.dataset["runs"] = String(Number(this.element.dataset["runs"] ?? 0) + 1);
  }

  #frame(round: number, { seen, frames, rate, milliseconds: took }: Frame): void {
    if (round !== this.#round) return;
    if (frames === 1) {
      this.#blame(undefined);
      this.#busy(false);
      if (this.#status.textContent === "Running…") this.#say("");
    }
    this.#results.draw(seen);
    this.#results.element.dataset["frames"] = String(frames);
    const where = this.#backend.selectedOptions[0]?.textContent ?? "";
    this.#results.say(el("strong", {}, where), rate > 0 ? `, ${rate.toFixed(rate < 10 ? 1 : 0)} frames/s, ${took.toFixed(0)} ms each` : this.#playing ? "" : ", paused");
  }

  #failed(error: unknown): void {
    if (error instanceof Cancelled) return this.#say("Cancelled.");
    const known = failure(error);
    this.#say("");
    // A trap leaves the module as it was when it trapped: a fresh one is needed.
    if (known.name === "RuntimeError" || known.name === "RangeError" || known.name === "Silence") this.#restart();
    if (known.code === "DeviceLost" || known.code === "TensorLost") {
      this.#restart();
      this.#backend.value = "cpu";
      void this.#start(false).then(() => undefined);
      this.#say(`${sentence(known)} It goes on with the CPU.`);
      return;
    }
    if (known.name === "Stopped") this.#editor.markLine(Number(/line (\d+)/.exec(known.message)?.[1] ?? 0), known.message);
    else if (known.code === "NoDevice") this.#withoutGpu(sentence(known));
    const text = known.offset !== undefined;
    if (text) this.#blame(known);
    else {
      const [first = "", ...report] = sentence(known).split("\n");
      this.#problem.replaceChildren(el("p", {}, first), ...(report.length > 0 ? [el("pre", { tabindex: 0 }, report.join("\n"))] : []));
    }
  }

  async #race(): Promise<void> {
    const round = ++this.#round;
    if (!(await this.#parse()) || !this.#check()) return;
    await this.#ready;
    await this.#gpu;
    if (round !== this.#round) return;
    if (this.#noGpu) return void this.#start(false);
    this.#pause.hidden = true;
    this.#busy(true);
    const look = this.#results.look;
    try {
      await this.#patiently("halt", undefined);
      const found = await this.#remote.call<Comparison>("compare", { job: this.#job(), ...(look && { look }) });
      if (round !== this.#round) return;
      this.#blame(undefined);
      this.#results.showComparison(found);
      if (look) this.#results.draw(await this.#remote.call<Seen>("look", look));
      this.#done("");
      this.#scroll();
    } catch (error) {
      if (round === this.#round) this.#failed(error);
    } finally {
      if (round === this.#round) this.#busy(false);
    }
  }

  #busy(busy: boolean): void {
    this.#cancel.hidden = !busy;
    this.#run.disabled = this.#inputs.problem !== undefined;
    this.element.setAttribute("aria-busy", String(busy));
    if (busy) this.#say("Running…");
    else if (this.#status.textContent === "Running…") this.#say("");
  }

  #toggle(): void {
    this.#playing = !this.#playing;
    this.#pause.textContent = this.#playing ? "Pause" : "Play";
    this.#change({ playing: this.#playing });
    for (const { film } of this.#films.values()) film.playing = this.#playing;
  }

  #change(change: Change, transfer: Transferable[] = []): void {
    void this.#remote.call("change", change, { transfer }).catch(() => undefined);
  }

  #pointed(pointer: Pointer): void {
    if (!this.#pause.hidden) this.#change({ pointer });
  }

  #looked(): void {
    const look = this.#results.look;
    if (!look) return;
    if (!this.#pause.hidden) return this.#change({ look });
    void this.#remote.call<Seen>("look", look).then(
      (seen) => this.#results.draw(seen),
      (error: Error) => error instanceof Cancelled || this.#say(sentence(error as Failure)),
    );
  }

  /** The camera and the videos that inputs ask for; those that are open already go on. */
  async #openFilms(): Promise<void> {
    const wanted = this.#inputs.films;
    for (const [name, { film }] of this.#films) {
      if (wanted.some((one) => one.name === name)) continue;
      film.close();
      this.#films.delete(name);
    }
    for (const { name, source, width, height } of wanted) {
      const key = `${source === "camera" ? source : this.#numberOf(source)} ${width} ${height}`;
      const known = this.#films.get(name);
      if (known?.key === key) {
        known.film.playing = this.#playing;
        continue;
      }
      known?.film.close();
      const film = new Film();
      this.#films.set(name, { film, key });
      try {
        await film.open(source, width, height, (bytes) => this.#change({ feed: { [name]: bytes } }, [bytes]));
        film.playing = this.#playing;
      } catch (error) {
        this.#films.delete(name);
        this.#say((error as Error).message);
      }
    }
  }

  /** Files have no names of their own. */
  readonly #numbers = new WeakMap<Blob, number>();
  #number = 0;

  #numberOf(file: Blob): number {
    const known = this.#numbers.get(file) ?? ++this.#number;
    this.#numbers.set(file, known);
    return known;
  }

  #closeFilms(): void {
    for (const { film } of this.#films.values()) film.close();
    this.#films.clear();
  }

  #stop(): void {
    this.#round++;
    this.#restart();
    this.#busy(false);
    this.#pause.hidden = true;
    this.#say("Cancelled.");
    this.#run.focus();
  }

  #restart(): void {
    this.#remote.leave("leave");
    this.#remote = startCompute();
  }

  /** Brings the result into sight, where it is not. */
  #scroll(): void {
    if (this.element.isConnected) this.#results.element.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  #openGallery(): void {
    if (this.#gallery.childElementCount === 0) {
      const cards = pieces.map(({ id, title, lines, thumb }) => {
        const card = button("", () => {
          this.#gallery.close();
          history.replaceState(null, "", `#playground/${id}`);
          this.#link = id;
          this.#choose(id);
        }, { class: "card", "data-piece": id });
        card.append(thumb ? el("img", { src: thumb, alt: "", width: 160, height: 120, loading: "lazy" }) : el("span", { class: "no-thumb" }), el("strong", {}, title), ...lines.map((line) => el("span", {}, line)));
        return card;
      });
      this.#gallery.append(el("div", { class: "row spread" }, el("h2", {}, "Gallery"), button("Close", () => this.#gallery.close())), el("div", { class: "cards" }, ...cards));
    }
    this.#gallery.showModal();
  }

  #openForms(): void {
    const { parsed } = this.#inputs;
    if (!parsed || this.#inputs.problem) return this.#say(this.#inputs.problem ?? "The kernel has an error: correct it first.");
    const shape = { job: this.#job(), bindings: parsed.bindings, textures: parsed.textures, shown: this.#results.shown, name: this.#example.value || "kernel" };
    const text = el("pre", { tabindex: 0, id: "form-text" });
    const forms: readonly (readonly [Form, string])[] = [["npm", "npm"], ["rust", "Rust"], ["cli", "Command line"]];
    const chosen = select(forms, "npm", { id: "form", "aria-label": "Form" });
    const show = () => {
      try {
        text.textContent = written(chosen.value as Form, shape);
      } catch (error) {
        text.textContent = (error as Error).message;
      }
    };
    chosen.addEventListener("change", show);
    const copied = el("span", { class: "hint", role: "status" });
    const copy = button("Copy", () => void navigator.clipboard.writeText(text.textContent ?? "").then(() => (copied.textContent = "Copied."), () => (copied.textContent = "The browser gives no access to the clipboard.")), { id: "form-copy" });
    show();
    this.#forms.replaceChildren(el("div", { class: "row spread" }, el("h2", {}, "The kernel as a program"), button("Close", () => this.#forms.close())), el("div", { class: "row" }, labelled("For", chosen), copy, copied), text);
    this.#forms.showModal();
  }

  async #share(): Promise<void> {
    const { sketch, left } = packed(this.#inputs.sketch(this.#editor.text, this.#results.shown));
    this.#link = await encode({ ...sketch, look: this.#results.shown });
    history.replaceState(null, "", `#playground/${this.#link}`);
    const without = left.length > 0 ? ` Too large for a link and left out: ${left.join(", ")}.` : "";
    const camera = this.#inputs.films.some(({ source }) => source === "camera") ? " The camera's picture is not in it." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      this.#say(`The link is copied; it holds the kernel and its inputs.${without}${camera}`);
    } catch {
      this.#say(`The address above is the link; it holds the kernel and its inputs.${without}${camera}`);
    }
  }
}
