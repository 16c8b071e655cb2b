/** `cantus/proofs`: tensors, the field operations and sums of multiples of points, from a module of its own. */
import init, { RawEngine } from "../pkg/proofs/cantus.js";
import { FieldEngine, backendName, loader } from "./engine.js";
import type { EngineOptions } from "./types.js";

export { Tensor } from "./tensor.js";
export type * from "./types.js";

const load = loader(init, new URL("../pkg/proofs/cantus_bg.wasm", import.meta.url));

export class Engine extends FieldEngine {
  /** Loads the module once and opens the best device, or the one asked for. */
  static async create(options: EngineOptions = {}): Promise<Engine> {
    await load();
    return new Engine(await RawEngine.open(backendName(options), options.lowPower ?? false));
  }

  /**
   * The sum of points of BN254's first group, each times the scalar at its place. A scalar is 32 bytes, big-endian, below the number of points; a
   * point is x and y, 32 bytes each, and infinity is zeros (EIP-196). Rejects with `InvalidInput` where bytes are not a point, with `Shape` where
   * there are not as many of both. Not constant-time: not for secrets that others may observe.
   */
  multiScalarMul(scalars: Uint8Array, points: Uint8Array): Promise<Uint8Array> {
    return (this.raw as unknown as RawEngine).multiScalarMul(scalars, points) as Promise<Uint8Array>;
  }
}
