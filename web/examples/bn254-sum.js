// A sum of multiples of BN254's points: the commitment of most proof systems.
//
//   import { Engine } from "cantus/proofs";
//   import { multiples, scalars } from "cantus/examples/bn254-sum.js";
//
//   const engine = await Engine.create();
//   const sum = await engine.multiScalarMul(scalars(1 << 14, 21n), multiples(1 << 14));
//
// Numbers are 32 bytes, big-endian; a point is x and y, as Ethereum's precompiles take them (EIP-196).

/** The order of the coordinates' field, and the number of points. */
const P = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;
const R = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;

const mod = (x) => ((x % P) + P) % P;

/** x^-1, by Fermat's theorem. */
function inverse(x) {
  let result = 1n;
  for (let exponent = P - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * x) % P;
    x = (x * x) % P;
  }
  return result;
}

function bytes(numbers) {
  const view = new DataView(new ArrayBuffer(32 * numbers.length));
  numbers.forEach((number, at) => {
    for (const word of [3, 2, 1, 0]) view.setBigUint64(32 * at + 8 * (3 - word), number >> BigInt(64 * word));
  });
  return new Uint8Array(view.buffer);
}

/** The generator's multiples by 1, 2, 3, …: in place of points that a setup would give. */
export function multiples(count) {
  const points = [[1n, 2n]];
  while (points.length < count) {
    // All so far plus the last, which is plus itself: slopes, whose denominators share an inversion.
    const [X, Y] = points.at(-1);
    const some = points.slice(0, count - points.length);
    const [rises, runs] = [[], []];
    for (const [x, y] of some) {
      rises.push(x === X ? 3n * x * x : Y - y);
      runs.push(x === X ? 2n * y : mod(X - x));
    }
    const products = [1n];
    for (const run of runs) products.push((products.at(-1) * run) % P);
    let rest = inverse(products.at(-1));
    const slopes = [];
    for (let at = runs.length - 1; at >= 0; at--) {
      slopes[at] = mod(rises[at] * ((rest * products[at]) % P));
      rest = (rest * runs[at]) % P;
    }
    some.forEach(([x, y], at) => {
      const sum = mod(slopes[at] * slopes[at] - x - X);
      points.push([sum, mod(slopes[at] * (x - sum) - y)]);
    });
  }
  return bytes(points.slice(0, count).flat());
}

/** Numbers that nobody chose, below the number of points. */
export function scalars(count, seed) {
  let state = seed;
  const limb = () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return state >> 32n;
  };
  return bytes(
    Array.from({ length: count }, () => {
      let number = 0n;
      for (let place = 0n; place < 8n; place++) number |= limb() << (32n * place);
      return number % R;
    }),
  );
}
