/** Line plots as SVG, drawn by hand: axes with round ticks, linear or by powers of ten. */
import { svg } from "./dom.js";

export interface Line {
  name: string;
  /** A CSS class for its colour: `one` or `two`. */
  color: string;
  points: readonly (readonly [x: number, y: number])[];
}

export interface Axes {
  label: string;
  x: string;
  y: string;
  logarithmic?: boolean;
  /** Text of a tick; numbers by default. */
  xTick?: (value: number) => string;
}

const [WIDTH, HEIGHT] = [720, 320];
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 14, 40];

/** Round numbers within a range. */
function ticks(low: number, high: number, logarithmic: boolean): number[] {
  if (logarithmic) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 10 ** (first + i));
  }
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

export function tickText(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(0).replace("e+", "e").replace(/^1e/, "10^");
  return String(Number(value.toPrecision(4)));
}

function range(values: number[], logarithmic: boolean): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value) || (logarithmic && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return logarithmic ? [1, 10] : [0, 1];
  if (logarithmic) return [10 ** Math.floor(Math.log10(low)), 10 ** Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1)];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

export function plot(lines: readonly Line[], axes: Axes): SVGElement {
  const logarithmic = axes.logarithmic ?? false;
  const all = lines.flatMap(({ points }) => [...points]);
  const [lowX, highX] = range(all.map(([x]) => x), false);
  const xs = logarithmic ? [...new Set(all.map(([x]) => x))].sort((a, b) => a - b) : ticks(lowX, highX, false);
  const [lowY, highY] = range(all.map(([, y]) => y), logarithmic);
  const along = (value: number, low: number, high: number) =>
    logarithmic ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low) || 1) : (value - low) / (high - low);
  const atX = (x: number) => LEFT + along(x, lowX, highX) * (WIDTH - LEFT - RIGHT);
  const atY = (y: number) => HEIGHT - BOTTOM - along(y, lowY, highY) * (HEIGHT - TOP - BOTTOM);
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": axes.label });
  for (const y of ticks(lowY, highY, logarithmic)) {
    chart.append(
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: atY(y), y2: atY(y), class: "grid" }),
      svg("text", { x: LEFT - 8, y: atY(y) + 4, "text-anchor": "end" }, tickText(y)),
    );
  }
  for (const x of xs) {
    chart.append(svg("text", { x: atX(x), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, (axes.xTick ?? tickText)(x)));
  }
  chart.append(
    svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle", class: "axis" }, axes.x),
    svg("text", { x: LEFT, y: TOP - 3, class: "axis" }, axes.y),
  );
  for (const { name, color, points } of lines) {
    const drawn = points.filter(([, y]) => Number.isFinite(y) && (!logarithmic || y > 0));
    const path = drawn.map(([x, y], i) => `${i ? "L" : "M"}${atX(x).toFixed(1)} ${atY(y).toFixed(1)}`).join("");
    const line = svg("path", { d: path, class: `line ${color}` });
    line.append(svg("title", {}, name));
    chart.append(line);
    if (drawn.length <= 16) for (const [x, y] of drawn) chart.append(svg("circle", { cx: atX(x), cy: atY(y), r: 3, class: color }));
  }
  return chart;
}
