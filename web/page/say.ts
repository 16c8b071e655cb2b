/** Errors in sentences for people: what happened, and what to do. */
import type { Failure } from "./rpc.js";

export function sentence({ code, name, message }: Pick<Failure, "code" | "name" | "message">): string {
  switch (code) {
    case "NoDevice":
      return "This browser offers no WebGPU here. Kernels run on the CPU instead. Chrome, Edge, Safari 26 and Firefox 141 have it, where the system's graphics driver allows it.";
    case "DeviceLost":
    case "TensorLost":
      return "The GPU was lost: its driver was reset, or the browser took it away.";
    case "OutOfMemory":
    case "MemoryLimit":
      return "There is not enough memory for these inputs: choose fewer values.";
    case "Timeout":
      return "The kernel made no progress for ten seconds and was stopped: a loop in it may have no end.";
    case "Unsupported":
      return message.includes("SIMD") ? `This browser is too old for the page: ${message}` : message;
    default:
  }
  if (name === "RangeError" && /alloc|length|memory/i.test(message)) return "There is not enough memory for these inputs: choose fewer values.";
  if (name === "RuntimeError") return "The computing module failed and was restarted. If it fails again, the inputs may be too large.";
  if (/dynamically imported module|Failed to fetch|Importing a module|NetworkError|load failed/i.test(message)) return "A part of the page could not be loaded: the connection may be gone.";
  return message;
}
