/** A document of the playground with everything it runs on: what examples are, what links hold, what is kept over a reload. */
import type { ColormapName } from "../colormap.js";
import type { Fill, Step } from "../compute/protocol.js";

/** How a result is looked at. */
export interface Shown {
  name?: string;
  kind: "numbers" | "picture" | "rgba" | "plot";
  width?: number;
  map?: ColormapName;
  /** The values of a picture's first and last colour; those of the values where left out. */
  range?: [number, number];
}

export interface Sketch {
  wgsl: string;
  /** Which entry points run, and how often; all of them in turn where left out. */
  steps?: Step[];
  fills: Record<string, Fill>;
  uniforms: Record<string, number[]>;
  /** Ends of sliders. */
  ranges?: Record<string, [number, number]>;
  overrides: Record<string, number>;
  /** How much is dispatched; as much as the result has values where left out. */
  count?: [number, number, number];
  unit?: "invocations" | "workgroups";
  rounds?: number;
  look?: Shown;
  /** Both devices are measured at once. */
  race?: boolean;
}
