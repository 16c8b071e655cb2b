/** Share links: a sketch as deflated JSON in the address's hash. Nothing is sent anywhere. */
import { type ColormapName, colormapNames } from "../colormap.js";
import type { Fill, Step } from "../compute/protocol.js";
import type { Shown, Sketch } from "./sketch.js";

/** Text at most in a link: browsers and chats cut longer ones. */
const LONGEST = 200_000;
/** Bytes of a file that a link still holds. */
const SMALL = 16_384;

/** The sketch as it goes into a link, and the inputs that stay behind: files that are too large, videos, and the camera's pictures. */
export function packed(sketch: Sketch): { sketch: Sketch; left: string[] } {
  const left: string[] = [];
  // A texture has sides, whatever fills it.
  const isTexture = (name: string) => new RegExp(`\\b${name}\\s*:\\s*texture_`).test(sketch.wgsl);
  const instead = (name: string, { width, height }: { width: number; height: number }) => (isTexture(name) ? { kind: "pattern", width, height } : { kind: "zeros", length: width * height });
  const fills = Object.entries(sketch.fills).map(([name, fill]): [string, unknown] => {
    if (fill.kind === "video") {
      left.push(fill.name || name);
      return [name, instead(name, fill)];
    }
    if (fill.kind !== "file" && fill.kind !== "image") return [name, fill];
    if (fill.bytes.byteLength <= SMALL) return [name, { ...fill, bytes: base64(new Uint8Array(fill.bytes)) }];
    left.push(fill.name || name);
    return [name, fill.kind === "image" ? instead(name, fill) : { kind: "zeros", length: 1024 }];
  });
  return { sketch: { ...sketch, fills: Object.fromEntries(fills) as Sketch["fills"] }, left };
}

export async function encode(sketch: Sketch): Promise<string> {
  const json = new Blob([JSON.stringify(sketch)]);
  const deflated = await new Response(json.stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  return base64(new Uint8Array(deflated)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

const bytesOf = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** The sketch of a link. Whatever it holds, what comes out has a sketch's shape. */
export async function decode(text: string): Promise<Sketch> {
  if (text.length > LONGEST) throw new Error("the link is too long");
  const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
  const json = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  return checked(JSON.parse(json));
}

/** A value of unknown make as a sketch. */
export function checked(value: unknown): Sketch {
  if (!isRecord(value) || typeof value["wgsl"] !== "string") throw new Error("the link holds no kernel");
  const { wgsl, entryPoint, steps, fills, uniforms, ranges, overrides, count, unit, rounds, look } = value;
  const sketch: Sketch = { wgsl, fills: {}, uniforms: {}, overrides: {} };
  // Links of the first version had one entry point.
  if (typeof entryPoint === "string") sketch.steps = [{ run: [entryPoint] }];
  if (Array.isArray(steps)) sketch.steps = steps.filter(isRecord).map(step);
  for (const [name, fill] of entries(fills)) {
    const known = isRecord(fill) && filling(fill);
    if (known) sketch.fills[name] = known;
  }
  for (const [path, numbers] of entries(uniforms)) if (Array.isArray(numbers)) sketch.uniforms[path] = numbers.map(Number);
  for (const [path, ends] of entries(ranges)) if (Array.isArray(ends)) (sketch.ranges ??= {})[path] = [Number(ends[0]), Number(ends[1])];
  for (const [name, number] of entries(overrides)) sketch.overrides[name] = Number(number);
  if (Array.isArray(count)) sketch.count = three(count);
  if (unit === "workgroups") sketch.unit = unit;
  if (typeof rounds === "number" && rounds >= 1) sketch.rounds = Math.floor(rounds);
  const shown = isRecord(look) && looking(look);
  if (shown) sketch.look = shown;
  return sketch;
}

const three = (count: unknown[]): [number, number, number] => [Number(count[0] ?? 1), Number(count[1] ?? 1), Number(count[2] ?? 1)];

function step({ run, times, once, count, unit }: Record<string, unknown>): Step {
  return {
    run: Array.isArray(run) ? run.map(String) : [],
    ...(typeof times === "number" && { times: Math.max(1, Math.min(1000, Math.floor(times))) }),
    ...(once === true && { once }),
    ...(Array.isArray(count) && { count: three(count) }),
    ...(unit === "workgroups" && { unit }),
  };
}

function filling({ kind, length, numbers, name, bytes, width, height }: Record<string, unknown>): Fill | undefined {
  const held = () => (typeof bytes === "string" ? (bytesOf(bytes).buffer as ArrayBuffer) : new ArrayBuffer(0));
  const sides = { width: Math.max(1, Number(width) || 1), height: Math.max(1, Number(height) || 1) };
  if (kind === "numbers" && Array.isArray(numbers)) return { kind, numbers: numbers.map(Number) };
  if (kind === "zeros" || kind === "ones" || kind === "range" || kind === "random") return { kind, length: Number(length) };
  if (kind === "file") return { kind, name: String(name), bytes: held() };
  if (kind === "image") return { kind, name: String(name), ...sides, bytes: held() };
  if (kind === "camera" || kind === "blank" || kind === "pattern") return { kind, ...sides };
  return undefined;
}

function looking({ name, kind, width, map, range }: Record<string, unknown>): Shown | undefined {
  if (kind !== "numbers" && kind !== "picture" && kind !== "rgba" && kind !== "plot") return undefined;
  return {
    kind,
    ...(typeof name === "string" && { name }),
    ...(typeof width === "number" && { width }),
    ...(colormapNames.includes(map as ColormapName) && { map: map as ColormapName }),
    ...(Array.isArray(range) && { range: [Number(range[0]), Number(range[1])] as [number, number] }),
  };
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const entries = (value: unknown): [string, unknown][] => (isRecord(value) ? Object.entries(value) : []);
