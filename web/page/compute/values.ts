/** Numbers for bindings: fills and `.npy` files as typed arrays by WGSL scalar. */
import type { TypedArray } from "../../lib/types.js";
import type { Fill } from "./protocol.js";

/** Values at most in one binding of the page. */
const MOST = 1 << 28;

const arrays = {
  f32: Float32Array,
  f64: Float64Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
} as const;

type Known = keyof typeof arrays;

/** How many values a fill has; an error where that is no number, or more than the page takes. */
export function lengthOf(fill: Fill, scalar: string, words: number): number {
  const length = countOf(fill, scalar, words);
  if (!(length > 0) || !Number.isInteger(length)) throw new Error("the number of values is missing: give a whole number from 1");
  if (length > MOST) throw new Error(`${length} values are more than the page takes (${MOST})`);
  return length;
}

/** True if the page sends its pictures while the kernel runs. */
export function isMoving(fill: Fill): fill is Extract<Fill, { kind: "camera" | "video" }> {
  return fill.kind === "camera" || fill.kind === "video";
}

function countOf(fill: Fill, scalar: string, words: number): number {
  if (fill.kind === "numbers") return fill.numbers.length;
  if (fill.kind === "file") return fill.bytes.byteLength;
  if ("width" in fill) return fill.width * fill.height * (scalar === "f32" ? words : 1);
  return fill.length;
}

/**
 * The fill's values for elements of that scalar. `words` is how many scalars an element has: pictures become one brightness or four
 * colours of f32, or one packed word of u32. Counting, ones and random numbers of 32 bits are made on the device instead.
 */
export function filled(fill: Fill, scalar: string, words: number): TypedArray {
  const length = lengthOf(fill, scalar, words);
  if (fill.kind === "image") return colors(fill.bytes, scalar, words);
  if (isMoving(fill) || fill.kind === "blank" || fill.kind === "pattern") return made(scalar, length, () => 0);
  if (fill.kind === "numbers") return made(scalar, length, (index) => fill.numbers[index] ?? 0);
  if (fill.kind === "file") {
    const { values } = readNpy(fill.bytes, fill.name);
    if (!(values.length > 0)) throw new Error(`${fill.name}: it has no values`);
    if (scalar === "f32" && values instanceof Float32Array) return values;
    return made(scalar, values.length, (index) => Number(values[index]));
  }
  if (fill.kind === "zeros") return made(scalar, length, () => 0);
  if (fill.kind === "ones") return made(scalar, length, () => 1);
  if (fill.kind === "range") return made(scalar, length, (index) => index);
  return made(scalar, length, scalar.startsWith("f") ? random : (index) => Math.round(random(index)));
}

function made(scalar: string, length: number, at: (index: number) => number): TypedArray {
  if (scalar === "f16") {
    const values = new Uint16Array(length);
    for (let i = 0; i < length; i++) values[i] = halfBits(at(i));
    return values;
  }
  if (!(scalar in arrays)) throw new Error(`the page has no values of ${scalar}`);
  const values = new arrays[scalar as Known](length);
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    for (let i = 0; i < length; i++) values[i] = BigInt(Math.trunc(at(i)) || 0);
  } else {
    for (let i = 0; i < length; i++) values[i] = at(i);
  }
  return values;
}

/** RGBA bytes as the values of a binding. */
export function colors(bytes: ArrayBuffer, scalar: string, words: number): Float32Array | Uint32Array {
  if (scalar === "u32") return new Uint32Array(bytes);
  if (scalar !== "f32") throw new Error(`a picture fills array<u32>, array<f32> or array<vec4f>, not elements of ${scalar}`);
  const from = new Uint8Array(bytes);
  const values = new Float32Array((from.length / 4) * words);
  for (let pixel = 0; pixel * 4 < from.length; pixel++) {
    const [r, g, b, a] = [0, 1, 2, 3].map((part) => (from[pixel * 4 + part] ?? 0) / 255) as [number, number, number, number];
    if (words === 4) values.set([r, g, b, a], pixel * 4);
    // Brightness by Rec. 709.
    else values[pixel * words] = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  return values;
}

/** The same numbers from 0 to 1 each time: a hash of the index (lowbias32 by Chris Wellons, public domain). As in session.ts. */
function random(index: number): number {
  let x = (index + 0x9e3779b9) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 8) / 2 ** 24;
}

export interface Npy {
  values: ArrayLike<number | bigint>;
  shape: number[];
  /** A description of the conversion, for people. */
  note?: string;
}

/**
 * A `.npy` file (versions 1 to 3), by the same rules as the program: either order of bytes, Fortran order turned to C order, f64 to f32 with a
 * word, bool as 0 and 1.
 */
export function readNpy(bytes: ArrayBuffer, name: string): Npy {
  const fault = (why: string) => new Error(`${name || "the file"}: ${why}`);
  if (bytes.byteLength === 0) throw new Error("no file is chosen");
  const view = new DataView(bytes);
  if (bytes.byteLength < 12 || view.getUint32(0) !== 0x934e554d) throw fault("this is not a .npy file (numpy.save writes one)");
  const wide = view.getUint8(6) >= 2;
  const start = wide ? 12 : 10;
  const data = start + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  if (data > bytes.byteLength) throw fault("it ends before its header does");
  const header = new TextDecoder().decode(bytes.slice(start, data));
  const kind = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? "";
  const sides = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1];
  if (sides === undefined) throw fault("its header has no shape");
  const shape = sides.split(",").filter((side) => side.trim()).map(Number);
  const length = shape.reduce((product, side) => product * side, 1);
  if (!Number.isSafeInteger(length) || length < 0) throw fault("its header has no shape");
  const size = Number(kind.slice(2));
  const big = kind.startsWith(">");
  const get = reader(view, kind.slice(1), !big);
  if (!get) throw fault(`its elements are ${kind || "not named"}; the page reads floats of 16 to 64 bits, integers of 8 to 64, and bool`);
  if (bytes.byteLength - data < length * size) throw fault("it ends before its last value");
  const exact = kind === "<f4" ? new Float32Array(bytes.slice(data, data + length * size)) : undefined;
  const notes = kind.slice(1) === "f8" ? ["its f64 values are rounded to f32"] : [];
  const read = exact ?? Array.from({ length }, (_, i) => get(data + i * size));
  const fortran = /'fortran_order':\s*True/.test(header) && shape.filter((side) => side > 1).length > 1;
  if (fortran) notes.push("its values were reordered to C order");
  const values = fortran ? inRows(read, shape) : read;
  return { values, shape, ...(notes.length > 0 && { note: notes.join("; ") }) };
}

function reader(view: DataView, kind: string, little: boolean): ((place: number) => number | bigint) | undefined {
  switch (kind) {
    case "f2": return (place) => halfValue(view.getUint16(place, little));
    case "f4": return (place) => view.getFloat32(place, little);
    case "f8": return (place) => view.getFloat64(place, little);
    case "i1": return (place) => view.getInt8(place);
    case "i2": return (place) => view.getInt16(place, little);
    case "i4": return (place) => view.getInt32(place, little);
    case "i8": return (place) => view.getBigInt64(place, little);
    case "u1": return (place) => view.getUint8(place);
    case "u2": return (place) => view.getUint16(place, little);
    case "u4": return (place) => view.getUint32(place, little);
    case "u8": return (place) => view.getBigUint64(place, little);
    case "b1": return (place) => (view.getUint8(place) ? 1 : 0);
    default: return undefined;
  }
}

/** Values whose first axis is the fastest, with the last as the fastest. */
function inRows(values: ArrayLike<number | bigint>, shape: number[]): Float32Array | (number | bigint)[] {
  const sorted: (number | bigint)[] = new Array(values.length);
  const place = shape.map(() => 0);
  for (let to = 0; to < values.length; to++) {
    let [from, stride] = [0, 1];
    for (const [axis, side] of shape.entries()) {
      from += (place[axis] ?? 0) * stride;
      stride *= side;
    }
    sorted[to] = values[from] ?? 0;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place[axis] = ((place[axis] ?? 0) + 1) % (shape[axis] ?? 1);
      if (place[axis] !== 0) break;
    }
  }
  return values instanceof Float32Array ? Float32Array.from(sorted as number[]) : sorted;
}

/** Values read from a tensor as numbers: halves from their bits, 64-bit integers rounded to what a number holds. */
export function numbersOf(values: TypedArray): ArrayLike<number> {
  if (values instanceof Uint16Array) return Float64Array.from(values, halfValue);
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) return Float64Array.from(values as Iterable<bigint>, Number);
  return values;
}

/** IEEE half precision to a number. */
export function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** A number to IEEE half precision, to the nearest, ties to even. */
export function halfBits(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  // The distance between halves around the value; below the normal range it stays the same.
  const step = Math.max(Math.floor(Math.log2(size || 2 ** -24)), -14) - 10;
  const scaled = size / 2 ** step;
  let units = Math.round(scaled);
  if (units - scaled === 0.5 && units % 2 === 1) units--;
  // Units of the smallest half: the exponent's bits follow from carrying on.
  return sign | (step === -24 && units < 1024 ? units : ((step + 24) << 10) + units);
}
