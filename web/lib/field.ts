/** `cantus-web/field`: the field operations alone, from the small build without a WGSL front end. */
import init, { RawEngine } from "../pkg/field/cantus.js";
import { FieldEngine, backendName } from "./engine.js";
import type { EngineOptions } from "./types.js";

export { Tensor } from "./tensor.js";
export type * from "./types.js";

let loaded: Promise<unknown> | undefined;

export class Engine extends FieldEngine {
  /** Loads the module once and opens the best device, or the one asked for. */
  static async create(options: EngineOptions = {}): Promise<Engine> {
    await (loaded ??= init({ module_or_path: new URL("../pkg/field/cantus_bg.wasm", import.meta.url) }));
    return new Engine(await RawEngine.open(backendName(options), options.lowPower ?? false));
  }
}
