/** Share links: a sketch as deflated JSON in the address's hash. Nothing is sent anywhere. */
import type { Sketch } from "./examples.js";

/** Text at most in a link: browsers and chats cut longer ones. */
const LONGEST = 200_000;

export async function encode(sketch: Sketch): Promise<string> {
  const json = new Blob([JSON.stringify(sketch)]);
  const packed = await new Response(json.stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  let binary = "";
  for (const byte of new Uint8Array(packed)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The sketch of a link. Whatever it holds, what comes out has a sketch's shape. */
export async function decode(text: string): Promise<Sketch> {
  if (text.length > LONGEST) throw new Error("the link is too long");
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const json = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  return checked(JSON.parse(json));
}

function checked(value: unknown): Sketch {
  const fault = () => new Error("the link holds no kernel");
  if (!isRecord(value) || typeof value["wgsl"] !== "string") throw fault();
  const { wgsl, entryPoint, fills, uniforms, overrides, count, unit, look } = value;
  const sketch: Sketch = { wgsl, fills: {}, uniforms: {}, overrides: {}, count: [1, 1, 1], unit: unit === "workgroups" ? "workgroups" : "invocations" };
  if (typeof entryPoint === "string") sketch.entryPoint = entryPoint;
  for (const [name, fill] of entries(fills)) {
    if (!isRecord(fill)) continue;
    const { kind, length, numbers } = fill;
    if (kind === "numbers" && Array.isArray(numbers)) sketch.fills[name] = { kind, numbers: numbers.map(Number) };
    else if (kind === "zeros" || kind === "ones" || kind === "range" || kind === "random") sketch.fills[name] = { kind, length: Number(length) };
  }
  for (const [path, numbers] of entries(uniforms)) if (Array.isArray(numbers)) sketch.uniforms[path] = numbers.map(Number);
  for (const [name, number] of entries(overrides)) sketch.overrides[name] = Number(number);
  if (Array.isArray(count)) sketch.count = [Number(count[0] ?? 1), Number(count[1] ?? 1), Number(count[2] ?? 1)];
  if (isRecord(look) && (look["kind"] === "numbers" || look["kind"] === "picture" || look["kind"] === "plot")) {
    sketch.look = { kind: look["kind"], ...(typeof look["width"] === "number" && { width: look["width"] }) };
  }
  return sketch;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const entries = (value: unknown): [string, unknown][] => (isRecord(value) ? Object.entries(value) : []);
