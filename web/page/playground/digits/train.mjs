// Trains the network of the gallery's piece "Digits" and writes weights.json beside it: `node train.mjs`, about a minute, the same every time.
// No data set: digits are strokes described here, bent, turned, stretched and drawn as a hand might. 14 x 14 inputs, 32 hidden units, 10 outputs.
import { writeFileSync } from "node:fs";

const SIDE = 14;
const HIDDEN = 32;

let state = 12345;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  let x = state;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
};
const around = (size) => (random() + random() + random() - 1.5) * 1.4 * size;

/** Points of an arc, angles in turns from the right, downwards. */
function arc(cx, cy, rx, ry, from, to) {
  return Array.from({ length: 17 }, (_, i) => {
    const angle = 2 * Math.PI * (from + ((to - from) * i) / 16);
    return [cx + rx * Math.cos(angle), cy + ry * Math.sin(angle)];
  });
}

/** Ways to write each digit, as strokes in a square of 1, y downwards. */
const SHAPES = [
  [[arc(0.5, 0.5, 0.3, 0.45, -0.25, 0.75)], [arc(0.5, 0.5, 0.22, 0.45, -0.3, 0.72)]],
  [[[[0.5, 0.05], [0.5, 0.95]]], [[[0.3, 0.25], [0.52, 0.05], [0.52, 0.95]]], [[[0.28, 0.28], [0.52, 0.05], [0.52, 0.95]], [[0.3, 0.95], [0.74, 0.95]]]],
  [[[...arc(0.5, 0.28, 0.27, 0.23, -0.48, 0.1), [0.22, 0.95], [0.8, 0.95]]], [[...arc(0.5, 0.28, 0.27, 0.23, -0.45, 0.12), [0.35, 0.8], ...arc(0.3, 0.86, 0.1, 0.08, -0.25, -0.9), [0.5, 0.86], [0.8, 0.93]]], [[...arc(0.48, 0.3, 0.28, 0.25, -0.4, 0.14), [0.2, 0.93], [0.5, 0.9], [0.82, 0.95]]]],
  [[[...arc(0.47, 0.28, 0.25, 0.22, -0.42, 0.22), ...arc(0.47, 0.72, 0.29, 0.23, -0.22, 0.42)]], [[[0.22, 0.06], [0.75, 0.06], [0.45, 0.42], ...arc(0.45, 0.68, 0.28, 0.26, -0.25, 0.42)]]],
  [[[[0.62, 0.05], [0.2, 0.62], [0.85, 0.62]], [[0.62, 0.3], [0.62, 0.95]]], [[[0.28, 0.05], [0.22, 0.5], [0.78, 0.5]], [[0.72, 0.08], [0.68, 0.95]]], [[[0.66, 0.95], [0.66, 0.05], [0.2, 0.65], [0.85, 0.65]]]],
  [[[[0.75, 0.06], [0.32, 0.06], [0.28, 0.45], ...arc(0.46, 0.68, 0.29, 0.26, -0.36, 0.4)]], [[[0.32, 0.08], [0.28, 0.45], ...arc(0.46, 0.68, 0.29, 0.26, -0.36, 0.4)], [[0.32, 0.08], [0.78, 0.06]]]],
  [[[[0.66, 0.05], [0.4, 0.32], ...arc(0.5, 0.7, 0.25, 0.25, -0.45, 0.6)]], [[...arc(0.72, 0.5, 0.45, 0.45, -0.27, -0.5), ...arc(0.5, 0.7, 0.24, 0.25, -0.5, 0.55)]], [[[0.35, 0.05], [0.26, 0.6], ...arc(0.5, 0.72, 0.24, 0.22, -0.5, 0.55)]]],
  [[[[0.2, 0.06], [0.78, 0.06], [0.42, 0.95]]], [[[0.2, 0.06], [0.78, 0.06], [0.42, 0.95]], [[0.35, 0.5], [0.7, 0.5]]], [[[0.2, 0.16], [0.22, 0.06], [0.78, 0.08], [0.56, 0.4], [0.46, 0.95]]]],
  [[[...arc(0.5, 0.27, 0.22, 0.21, 0.25, -0.75)], [...arc(0.5, 0.71, 0.27, 0.24, -0.25, 0.75)]], [[[0.7, 0.16], ...arc(0.48, 0.27, 0.22, 0.2, -0.12, -0.7), [0.5, 0.48], ...arc(0.5, 0.72, 0.26, 0.23, -0.1, 0.7), [0.5, 0.48], [0.72, 0.2]]]],
  [[[...arc(0.5, 0.3, 0.25, 0.25, 0, -1), [0.74, 0.5], [0.7, 0.95]]], [[...arc(0.5, 0.3, 0.25, 0.25, -0.05, -1), [0.75, 0.5], ...arc(0.48, 0.7, 0.27, 0.25, 0.02, 0.35)]], [[...arc(0.48, 0.28, 0.24, 0.23, 0, -1), [0.72, 0.3], [0.5, 0.95]]]],
];

/** A digit as a hand might draw it: the values of the 14 x 14 squares of its box. */
export function drawn(digit) {
  const ways = SHAPES[digit];
  const way = ways[Math.floor(random() * ways.length)];
  const [turn, shear] = [around(0.22), around(0.3)];
  const [wide, high] = [0.7 + 0.6 * random(), 0.8 + 0.4 * random()];
  const bends = Array.from({ length: 4 }, () => [around(0.07), 2 + 5 * random(), 6.3 * random()]);
  const strokes = way.map((stroke) => {
    const [dx, dy] = [around(0.03), around(0.03)];
    return stroke.map(([x0, y0]) => {
      let [x, y] = [x0 - 0.5 + dx + around(0.008), y0 - 0.5 + dy + around(0.008)];
      const [before, under] = [x, y];
      x += bends[0][0] * Math.sin(bends[0][1] * under + bends[0][2]) + bends[1][0] * Math.sin(bends[1][1] * before + bends[1][2]);
      y += bends[2][0] * Math.sin(bends[2][1] * before + bends[2][2]) + bends[3][0] * Math.sin(bends[3][1] * under + bends[3][2]);
      x = (x + shear * y) * wide;
      y *= high;
      return [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)];
    });
  });
  return sampled(strokes, 0.025 + 0.045 * random());
}

/** Strokes of a thickness, within a square box about them, as the kernel samples what is drawn. */
function sampled(strokes, thickness) {
  const points = strokes.flat();
  const box = [0, 1].map((axis) => [Math.min(...points.map((p) => p[axis])) - thickness, Math.max(...points.map((p) => p[axis])) + thickness]);
  const side = Math.max(box[0][1] - box[0][0], box[1][1] - box[1][0]) * 1.1;
  const middle = box.map(([low, high]) => (low + high) / 2);
  const values = new Float32Array(SIDE * SIDE);
  for (let cell = 0; cell < SIDE * SIDE; cell++) {
    let ink = 0;
    for (let sub = 0; sub < 4; sub++) {
      const x = middle[0] + (((cell % SIDE) + 0.25 + 0.5 * (sub % 2)) / SIDE - 0.5) * side;
      const y = middle[1] + ((Math.floor(cell / SIDE) + 0.25 + 0.5 * (sub >> 1)) / SIDE - 0.5) * side;
      let least = Infinity;
      for (const stroke of strokes) {
        for (let i = 0; i + 1 < stroke.length; i++) {
          const [[ax, ay], [bx, by]] = [stroke[i], stroke[i + 1]];
          const [ux, uy] = [bx - ax, by - ay];
          const t = Math.max(0, Math.min(1, ((x - ax) * ux + (y - ay) * uy) / (ux * ux + uy * uy || 1)));
          least = Math.min(least, Math.hypot(x - ax - t * ux, y - ay - t * uy));
        }
      }
      if (least < thickness) ink += 0.25;
    }
    values[cell] = ink;
  }
  return values;
}

function make(count) {
  return Array.from({ length: count }, (_, i) => ({ digit: i % 10, values: drawn(i % 10) }));
}

const inputs = SIDE * SIDE;
const normal = (count, size) => Float32Array.from({ length: count }, () => around(size));
// One list: weights of the hidden units, their biases, weights of the outputs, their biases.
const all = [normal(inputs * HIDDEN, 0.12), normal(HIDDEN, 0.01), normal(HIDDEN * 10, 0.25), normal(10, 0.01)];
const speeds = all.map((part) => new Float32Array(part.length));
const squares = all.map((part) => new Float32Array(part.length));

function forward(values, [w1, b1, w2, b2]) {
  const hidden = new Float32Array(HIDDEN);
  for (let h = 0; h < HIDDEN; h++) {
    let sum = b1[h];
    for (let i = 0; i < inputs; i++) if (values[i]) sum += w1[h * inputs + i] * values[i];
    hidden[h] = Math.max(0, sum);
  }
  const out = Float32Array.from({ length: 10 }, (_, o) => hidden.reduce((sum, value, h) => sum + w2[o * HIDDEN + h] * value, b2[o]));
  return { hidden, out };
}

const best = (out) => out.indexOf(Math.max(...out));
const right = (samples, weights) => samples.filter(({ digit, values }) => best(forward(values, weights).out) === digit).length / samples.length;

let step = 0;
const BATCH = 50;
const ROUNDS = Number(process.argv[2] ?? 2600);
for (let round = 0; round < ROUNDS; round++) {
  const gradients = all.map((part) => new Float32Array(part.length));
  for (const { digit, values } of make(BATCH)) {
    const { hidden, out } = forward(values, all);
    const most = Math.max(...out);
    const powers = out.map((value) => Math.exp(value - most));
    const total = powers.reduce((a, b) => a + b);
    const back = new Float32Array(HIDDEN);
    for (let o = 0; o < 10; o++) {
      const fault = powers[o] / total - (o === digit ? 1 : 0);
      gradients[3][o] += fault;
      for (let h = 0; h < HIDDEN; h++) {
        gradients[2][o * HIDDEN + h] += fault * hidden[h];
        back[h] += fault * all[2][o * HIDDEN + h];
      }
    }
    for (let h = 0; h < HIDDEN; h++) {
      if (hidden[h] === 0) continue;
      gradients[1][h] += back[h];
      for (let i = 0; i < inputs; i++) if (values[i]) gradients[0][h * inputs + i] += back[h] * values[i];
    }
  }
  // Adam.
  step++;
  const rate = 0.004 * (1 - round / ROUNDS) + 0.0002;
  for (const [part, weights] of all.entries()) {
    for (let i = 0; i < weights.length; i++) {
      const g = gradients[part][i] / BATCH;
      speeds[part][i] = 0.9 * speeds[part][i] + 0.1 * g;
      squares[part][i] = 0.999 * squares[part][i] + 0.001 * g * g;
      weights[i] -= (rate * (speeds[part][i] / (1 - 0.9 ** step))) / (Math.sqrt(squares[part][i] / (1 - 0.999 ** step)) + 1e-8);
    }
  }
}

// Whole numbers of 1/32: what the piece computes with.
const whole = all.map((part) => Int16Array.from(part, (value) => Math.round(value * 32)));
const rounded = whole.map((part) => Float32Array.from(part, (value) => value / 32));
const test = make(2000);
console.log(`right: ${(100 * right(test, all)).toFixed(1)} %, with rounded weights ${(100 * right(test, rounded)).toFixed(1)} %`);
writeFileSync(new URL("weights.json", import.meta.url), `${JSON.stringify(whole.flatMap((part) => [...part]))}\n`);
