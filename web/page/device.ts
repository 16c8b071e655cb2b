/** A device's name for people. */
import type { FieldEngine } from "../lib/engine.js";

/** WebGPU adapters often have no name of their own: vendor and architecture are shown instead. */
export function describe(engine: FieldEngine): string {
  const info = engine.gpuDevice?.adapterInfo;
  if (!info) return `CPU executor in WebAssembly, ${"threads" in engine && engine.threads !== 1 ? `${engine.threads} threads` : "one thread"}`;
  const words = info.description || [info.vendor, info.architecture].filter(Boolean).join(" ") || "adapter";
  return `${words} (WebGPU${info.isFallbackAdapter ? ", in software" : ""})`;
}
