/** Numbers for bindings, and back: fills, `.npy` files, typed arrays by WGSL scalar. */
import type { TypedArray } from "../../lib/types.js";
import type { Fill } from "./protocol.js";

/** Values at most in one binding of the page. */
const MOST = 1 << 27;

const arrays = {
  f32: Float32Array,
  f64: Float64Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
} as const;

type Known = keyof typeof arrays;

/** A typed array of the fill's values for elements of that scalar. */
export function filled(fill: Fill, scalar: string): TypedArray {
  const number = source(fill);
  if (!(number.length > 0)) throw new Error("there are no values: say how many");
  if (number.length > MOST) throw new Error(`${number.length} values are more than the page takes (${MOST})`);
  if (scalar === "f16") return Uint16Array.from({ length: number.length }, (_, i) => halfBits(number.at(i)));
  if (!(scalar in arrays)) throw new Error(`the page has no values of ${scalar}`);
  const values = new arrays[scalar as Known](number.length);
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    for (let i = 0; i < values.length; i++) values[i] = BigInt(Math.trunc(number.at(i)));
  } else {
    for (let i = 0; i < values.length; i++) values[i] = number.at(i);
  }
  return values;
}

interface Source {
  length: number;
  at(index: number): number;
}

function source(fill: Fill): Source {
  switch (fill.kind) {
    case "zeros":
      return { length: fill.length, at: () => 0 };
    case "ones":
      return { length: fill.length, at: () => 1 };
    case "range":
      return { length: fill.length, at: (index) => index };
    case "random":
      return { length: fill.length, at: random };
    case "numbers":
      return { length: fill.numbers.length, at: (index) => fill.numbers[index] ?? 0 };
    case "file": {
      const values = readNpy(fill.bytes, fill.name);
      return { length: values.length, at: (index) => Number(values[index]) };
    }
  }
}

/** The same numbers from 0 to 1 each time: a hash of the index (lowbias32 by Chris Wellons, public domain). */
function random(index: number): number {
  let x = (index + 0x9e3779b9) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

/** The values of a `.npy` file (versions 1 to 3, little-endian, C order). */
export function readNpy(bytes: ArrayBuffer, name: string): ArrayLike<number | bigint> {
  const fault = (why: string) => new Error(`${name}: ${why}`);
  const view = new DataView(bytes);
  if (bytes.byteLength < 12 || view.getUint32(0) !== 0x934e554d) throw fault("this is no .npy file");
  const wide = view.getUint8(6) >= 2;
  const start = wide ? 12 : 10;
  const data = start + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  if (data > bytes.byteLength) throw fault("it ends before its header does");
  const header = new TextDecoder().decode(bytes.slice(start, data));
  const kind = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? "";
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1];
  if (shape === undefined) throw fault("its header has no shape");
  if (/'fortran_order':\s*True/.test(header) && shape.split(",").filter((side) => side.trim()).length > 1) {
    throw fault("it is in Fortran order (save it with numpy.ascontiguousarray)");
  }
  const types = { "<f4": Float32Array, "<f8": Float64Array, "<i4": Int32Array, "<u4": Uint32Array, "<i8": BigInt64Array, "<u8": BigUint64Array, "|u1": Uint8Array, "|i1": Int8Array, "|b1": Uint8Array, "<i2": Int16Array, "<u2": Uint16Array } as const;
  const type = types[kind as keyof typeof types];
  if (!type) throw fault(`its elements are ${kind || "not named"}; the page reads ${Object.keys(types).join(", ")}`);
  const length = shape.split(",").filter((side) => side.trim()).reduce((product, side) => product * Number(side), 1);
  if (bytes.byteLength - data < length * type.BYTES_PER_ELEMENT) throw fault("it ends before its last value");
  return new type(bytes.slice(data, data + length * type.BYTES_PER_ELEMENT));
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
