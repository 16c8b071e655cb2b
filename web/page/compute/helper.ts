/** A worker that lends itself to the CPU's threads: the same module on the same memory. It ends with the worker that started it. */
import init, { help } from "../../pkg/threads/cantus.js";

self.onmessage = async ({ data }: MessageEvent<{ module: WebAssembly.Module; memory: WebAssembly.Memory }>) => {
  await init({ module_or_path: data.module, memory: data.memory });
  self.postMessage("here");
  help();
};
