/** The CPU on the processor's threads: a module of its own, whose memory workers share. Only an isolated page may have such memory. */
import { Engine } from "../../lib/index.js";
import init, { RawEngine, RawKernel } from "../../pkg/threads/cantus.js";

/** Threads at most: beyond it they cost more than they bring here. */
const MOST = 16;
/** How long a helper may take to come, in milliseconds; the others begin without it. */
const PATIENCE = 5000;

/** The engine on the CPU, with threads. */
export class ThreadedEngine extends Engine {
  private constructor(
    raw: RawEngine,
    readonly threads: number,
  ) {
    super(raw);
  }

  /** True if the page may start threads and there are processors for them. */
  static get possible(): boolean {
    return self.crossOriginIsolated && navigator.hardwareConcurrency > 1;
  }

  static override async create(): Promise<ThreadedEngine> {
    const module = await WebAssembly.compileStreaming(fetch(new URL("../../pkg/threads/cantus_bg.wasm", import.meta.url)));
    const { memory } = await init({ module_or_path: module });
    const helpers = Math.min(navigator.hardwareConcurrency, MOST) - 1;
    const here = await Promise.all(Array.from({ length: helpers }, () => helper(module, memory)));
    return new ThreadedEngine(await RawEngine.open("cpu", false), 1 + here.filter(Boolean).length);
  }

  protected override parse(wgsl: string): RawKernel {
    return new RawKernel(wgsl, []);
  }
}

/** Starts a helper; whether it came. */
function helper(module: WebAssembly.Module, memory: WebAssembly.Memory): Promise<boolean> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("./helper.ts", import.meta.url), { type: "module", name: "thread" });
    worker.onmessage = () => resolve(true);
    worker.onerror = () => resolve(false);
    setTimeout(() => resolve(false), PATIENCE);
    worker.postMessage({ module, memory });
  });
}
