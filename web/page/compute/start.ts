/** Starts a worker that computes; it loads the module when it is first asked. */
import { Remote } from "../rpc.js";

export function startCompute(): Remote {
  return new Remote(new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "compute" }));
}
