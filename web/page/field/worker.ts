/** The field view's worker: owns the engine and the canvas, computes and draws frames. */
import { Engine } from "../../lib/field.js";
import { describe } from "../device.js";
import { serve } from "../rpc.js";
import { GpuPainter, PlainPainter } from "./painter.js";
import type { DeviceReport, FieldSettings, FrameReport } from "./protocol.js";

/** Frames under way at once: one computes while the one before is shown. */
const IN_FLIGHT = 2;
const REPORT_EVERY = 500;
/** The time in milliseconds after which a GPU that finishes nothing counts as lost. */
const SILENCE = 10_000;

type Painter = GpuPainter | PlainPainter;

interface State {
  engine: Engine;
  painter: Painter;
  settings: FieldSettings;
  time: number;
  dirty: boolean;
  lost: string | undefined;
}

let state: State | undefined;
/** Frames take turns with pictures: one at a time touches the canvas. */
let turn: Promise<unknown> = Promise.resolve();

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = turn.then(work, work);
  turn = next.catch(() => undefined);
  return next;
}

/** Computes and draws the present moment. Returns what the worker spent on it beside the kernel, which WebGPU runs elsewhere. */
async function draw({ engine, painter, settings, time }: State): Promise<number> {
  const { width, height, frequency, map } = settings;
  const start = performance.now();
  const tensor = await engine.field(width, height, { frequency, time });
  const { gpuBuffer } = tensor;
  if (painter instanceof GpuPainter) {
    if (!gpuBuffer) throw new Error("the field is no longer on the GPU");
    painter.paint(gpuBuffer, width, height, map);
    tensor.free();
    return performance.now() - start;
  }
  // On the CPU the kernel runs here: what comes after it is the page's own.
  await engine.finish();
  const computed = performance.now();
  await painter.paint(tensor, width, height, map);
  tensor.free();
  return performance.now() - computed;
}

const nextFrame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? 0;

async function animate(state: State, report: (value: FrameReport) => void): Promise<never> {
  let previous = performance.now();
  let reported = previous;
  let [frames, shown, inFlight, reports] = [0, 0, 0, 0];
  let progress = previous;
  let overheads: number[] = [];
  let times: number[] = [];
  for (;;) {
    await nextFrame();
    const now = performance.now();
    // A GPU process that died may not even say so.
    if (inFlight > 0 && now - progress > SILENCE) state.lost ??= "the GPU does not respond";
    if (state.lost !== undefined) throw Object.assign(new Error(state.lost), { code: "DeviceLost" });
    const { playing, speed } = state.settings;
    if ((playing || state.dirty) && inFlight < IN_FLIGHT) {
      if (playing) state.time += ((now - previous) / 1000) * speed;
      previous = now;
      state.dirty = false;
      try {
        overheads.push(await inTurn(() => draw(state)));
      } catch (error) {
        // What a lost device breaks says so in its own words first.
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (state.lost !== undefined) throw Object.assign(new Error(state.lost), { code: "DeviceLost" });
        throw error;
      }
      frames++;
      if (state.painter instanceof GpuPainter) {
        if (inFlight === 0) progress = performance.now();
        inFlight++;
        void state.painter.done().then(() => {
          inFlight--;
          progress = performance.now();
          shown++;
          times.push(performance.now() - now);
        });
      } else {
        shown++;
        times.push(performance.now() - now);
      }
    } else if (!playing) {
      previous = now;
    }
    const since = performance.now() - reported;
    // The first picture says so at once.
    if (since >= REPORT_EVERY || (reports === 0 && shown > 0)) {
      reports++;
      const rate = playing ? (shown * 1000) / since : 0;
      report({ rate, overhead: median(overheads), frame: median(times), time: state.time, frames });
      [overheads, times, shown] = [overheads.slice(-60), times.slice(-60), 0];
      reported = performance.now();
    }
  }
}

serve({
  async open({ canvas, settings, backend }: { canvas: OffscreenCanvas; settings: FieldSettings; backend: "auto" | "webgpu" | "cpu" }) {
    const [engine, why] = await choose(backend);
    const device = engine.gpuDevice;
    const painter = device ? new GpuPainter(canvas, device) : new PlainPainter(canvas);
    const opened: State = { engine, painter, settings, time: 0, dirty: true, lost: undefined };
    state = opened;
    void device?.lost.then(({ message }) => (opened.lost = message || "no reason given"));
    return { backend: engine.backend, name: describe(engine), why } satisfies DeviceReport;
  },

  /** Runs until the worker ends or the device is lost. */
  animate(_: undefined, report: (value: FrameReport) => void) {
    if (!state) throw new Error("nothing is open");
    return animate(state, report);
  },

  set(changes: Partial<FieldSettings> & { time?: number }) {
    if (!state) return;
    const { time, ...settings } = changes;
    Object.assign(state.settings, settings);
    if (time !== undefined) state.time = time;
    state.dirty = true;
  },

  /** The present moment as a PNG file. */
  picture() {
    return inTurn(async () => {
      if (!state) throw new Error("nothing is open");
      await draw(state);
      // In the same task as the drawing, while the canvas still holds it.
      return canvasOf(state).convertToBlob({ type: "image/png" });
    });
  },
});

const canvasOf = ({ painter }: State) => painter.canvas;

/** The engine's own choice, or the one asked for. */
async function choose(backend: "auto" | "webgpu" | "cpu"): Promise<[Engine, string]> {
  if (backend !== "auto") return [await Engine.create({ backend }), "asked for"];
  // Both at once: the first picture waits for them.
  const [engine, adapter] = await Promise.all([Engine.create(), "gpu" in navigator ? navigator.gpu.requestAdapter().catch(() => null) : null]);
  if (engine.backend === "webgpu") return [engine, "the best device here"];
  return [engine, adapter ? "WebGPU has no GPU of its own here: the CPU is faster" : "this browser offers no WebGPU"];
}
