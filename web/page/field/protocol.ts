/** Messages between the field view and its worker. */
import type { ColormapName } from "../colormap.js";

export interface FieldSettings {
  width: number;
  height: number;
  /** In Hz. */
  frequency: number;
  /** Seconds of the wave per second. */
  speed: number;
  map: ColormapName;
  playing: boolean;
}

export interface DeviceReport {
  backend: "webgpu" | "cpu";
  /** Name and kind, for people. */
  name: string;
  /** Why this one. */
  why: string;
}

export interface FrameReport {
  /** Frames per second over the last half second; 0 while paused. */
  rate: number;
  /** The worker's own time per frame in milliseconds, everything but the kernel: median of the last frames. */
  overhead: number;
  /** Time per frame from start to done, median, in milliseconds. */
  frame: number;
  /** The wave's time. */
  time: number;
  frames: number;
}
