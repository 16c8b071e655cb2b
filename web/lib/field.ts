/** `cantus/field`: the field operations alone, from the small build without a WGSL front end. */
import init, { RawEngine } from "../pkg/field/cantus.js";
import { FieldEngine, backendName, loader } from "./engine.js";
import type { EngineOptions } from "./types.js";

export { Tensor } from "./tensor.js";
export type * from "./types.js";

const load = loader(init, new URL("../pkg/field/cantus_bg.wasm", import.meta.url));

export class Engine extends FieldEngine {
  /** Loads the module once and opens the best device, or the one asked for. */
  static async create(options: EngineOptions = {}): Promise<Engine> {
    await load();
    return new Engine(await RawEngine.open(backendName(options), options.lowPower ?? false));
  }
}
