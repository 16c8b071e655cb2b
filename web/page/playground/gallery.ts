/** The playground's pieces: each a document with its inputs, and three lines about it. */
import field from "../../../shaders/src/prepared/field.wgsl?raw";
import phi from "../../../shaders/src/prepared/phi_pattern.wgsl?raw";
import sha256 from "../../../shaders/zk/sha256.wgsl?raw";
import type { Fill } from "../compute/protocol.js";
import weights from "./digits/weights.json";
import type { Shown, Sketch } from "./sketch.js";

const texts = import.meta.glob<string>("./pieces/*.wgsl", { query: "?raw", import: "default", eager: true });
const pictures = import.meta.glob<string>("./thumbs/*.webp", { query: "?url", import: "default", eager: true });

export interface Piece {
  id: string;
  title: string;
  /** Notes for the reader: the subject, the method, and things to try. */
  lines: readonly [string, string, string];
  thumb: string | undefined;
  sketch: Sketch;
}

const zeros = (length: number): Fill => ({ kind: "zeros", length });
const random = (length: number): Fill => ({ kind: "random", length });
const look = (width: number, name = "picture"): Shown => ({ name, kind: "rgba", width });

/** A picture that the visitor may replace, and an empty one as large. */
const image: Fill = { kind: "pattern", width: 512, height: 384 };
const empty: Fill = { kind: "blank", width: 512, height: 384 };

type Rest = Omit<Sketch, "wgsl" | "overrides" | "uniforms"> & { uniforms?: Sketch["uniforms"] };

function piece(id: string, title: string, lines: Piece["lines"], rest: Rest, wgsl = texts[`./pieces/${id}.wgsl`] ?? ""): Piece {
  return { id, title, lines, thumb: pictures[`./thumbs/${id}.webp`], sketch: { overrides: {}, uniforms: {}, ...rest, wgsl } };
}

/** A picture's pixels, and vectors of as many. */
const pixels = (side: number, height = side) => zeros(side * height);

const grid = (side: number) => ({ "grid.width": [side], "grid.height": [side], "grid.first_row": [0], "grid.first_column": [0], "grid.tile_width": [side], "grid.tile_height": [side] });

/** The linked texts of the library say where they came from in their first lines; they stay. */
export const pieces: readonly Piece[] = [
  piece(
    "waves",
    "Waves",
    ["Six sources on a slow circle send waves that add up and cancel.", "One invocation a pixel: no pixel knows of another.", "Press in the picture for a seventh source; change the wavelength."],
    { fills: { picture: pixels(512) }, uniforms: { "view.wavelength": [0.24], "view.spread": [0.62] }, ranges: { "view.wavelength": [0.08, 0.6], "view.spread": [0, 1.2] }, look: look(512) },
  ),
  piece(
    "fluid",
    "Fluid",
    ["Ink in a fluid, stirred by three hidden spoons and by you.", "Five kernels a frame; the pressure is found in twelve rounds.", "Press to stir; more swirl makes it wilder."],
    {
      fills: { flow: zeros(2 * 192 * 192), carried: zeros(2 * 192 * 192), pressure: zeros(2 * 192 * 192), dye: zeros(4 * 192 * 192), spread: zeros(4 * 192 * 192), picture: pixels(192) },
      uniforms: { "view.swirl": [0.55] },
      ranges: { "view.swirl": [0, 1.5] },
      steps: [{ run: ["advect", "diverge"] }, { run: ["relax", "relax_back"], times: 6 }, { run: ["project"] }],
      look: look(192),
    },
  ),
  piece(
    "reaction",
    "Reaction and diffusion",
    ["Two substances feed on each other, and corals grow.", "Gray and Scott's equations, sixteen steps a frame in two buffers.", "Press to seed; feed and kill decide whether spots or worms live."],
    {
      fills: { now: zeros(2 * 256 * 256), later: zeros(2 * 256 * 256), picture: pixels(256) },
      uniforms: { "view.feed": [0.0545], "view.kill": [0.062] },
      ranges: { "view.feed": [0.01, 0.09], "view.kill": [0.045, 0.07] },
      steps: [{ run: ["seed"], once: true }, { run: ["react", "back"], times: 8 }, { run: ["paint"] }],
      look: look(256),
    },
  ),
  piece(
    "raymarcher",
    "Ray marcher",
    ["Shapes that melt into each other, without a single triangle.", "Each ray walks on by the distance to the nearest surface.", "Move the pointer to walk around; blend says how soft they are."],
    { fills: { picture: pixels(288) }, uniforms: { "view.blend": [0.28] }, ranges: { "view.blend": [0.02, 0.6] }, look: look(288) },
  ),
  piece(
    "pathtracer",
    "Path tracer",
    ["Light in a small room, found by following chance.", "One more path a pixel each frame; the mean grows clear.", "Wait, and the noise goes; click to begin again."],
    { fills: { sum: zeros(4 * 256 * 256), picture: pixels(256) }, uniforms: { "view.bounces": [5] }, ranges: { "view.bounces": [1, 12] }, look: look(256) },
  ),
  piece(
    "nbody",
    "Two galaxies",
    ["A thousand stars in two discs fall through each other.", "Every star feels every other one: a million pulls a frame.", "Press to add a black hole where the pointer is."],
    {
      fills: { stars: zeros(4 * 1024), moved: zeros(4 * 1024), glow: pixels(384), picture: pixels(384) },
      uniforms: { "view.gravity": [0.16] },
      ranges: { "view.gravity": [0, 0.6] },
      steps: [{ run: ["scatter"], once: true, count: [1024, 1, 1] }, { run: ["move_", "draw"], times: 2, count: [1024, 1, 1] }, { run: ["paint"] }],
      look: look(384),
    },
  ),
  piece(
    "boids",
    "Flock",
    ["Six hundred birds, and nobody leads.", "Each keeps its distance, flies as its neighbours, stays near them.", "Press to frighten them; let them see farther."],
    {
      fills: { birds: zeros(4 * 600), moved: zeros(4 * 600), sky: zeros(4 * 320 * 320), picture: pixels(320) },
      uniforms: { "view.sight": [26], "view.cohesion": [0.5] },
      ranges: { "view.sight": [5, 80], "view.cohesion": [0, 2] },
      steps: [{ run: ["gather"], once: true, count: [600, 1, 1] }, { run: ["fly", "draw"], count: [600, 1, 1] }, { run: ["fade"] }],
      look: look(320),
    },
  ),
  piece(
    "mandelbrot",
    "Mandelbrot zoom",
    ["Down into the seahorses' valley and up again.", "Loops that end after other numbers of rounds beside each other.", "More rounds show more of the edge; deeper soon ends f32."],
    { fills: { picture: pixels(384) }, uniforms: { "view.rounds": [220], "view.depth": [12] }, ranges: { "view.rounds": [20, 1000], "view.depth": [0, 17] }, look: look(384) },
  ),
  piece(
    "spiral",
    "Spiral wave",
    ["The wave of the view Field, with a whole number of arms.", "A sine of distance and angle, damped from the middle.", "Try arms from 1 to 12, and another frequency."],
    { fills: { values: pixels(512) }, uniforms: { "view.arms": [5], "view.frequency": [528], "view.damping": [1] }, ranges: { "view.arms": [0, 12], "view.frequency": [100, 1000], "view.damping": [0, 4] }, look: { name: "values", kind: "picture", width: 512, map: "magma", range: [-0.8, 0.8] } },
  ),
  piece(
    "life",
    "Game of life",
    ["Cells live with two or three neighbours, and are born with three.", "Two buffers in turn, so that nobody reads what is being written.", "Press and draw to sow new cells."],
    { fills: { cells: random(256 * 256), next: pixels(256), heat: pixels(256), picture: pixels(256) }, steps: [{ run: ["evolve", "show"] }], look: look(256) },
  ),
  piece(
    "ripples",
    "Ripples",
    ["Drops fall into a shallow tank with a tiled floor.", "Each cell's height follows its four neighbours, twice a frame.", "Press to touch the water; damp it until it is honey."],
    { fills: { water: zeros(2 * 288 * 288), next: zeros(2 * 288 * 288), picture: pixels(288) }, uniforms: { "view.damping": [0.4] }, ranges: { "view.damping": [0, 5] }, steps: [{ run: ["wave", "paint"] }], look: look(288) },
  ),
  piece(
    "cloth",
    "Cloth",
    ["Red and white squares on a line, in the wind.", "2,304 points hold their distance to eight neighbours each.", "Press to push it; turn the wind up to a storm."],
    {
      fills: { points: zeros(4 * 48 * 48), moved: zeros(4 * 48 * 48), before: zeros(4 * 48 * 48), canvas: pixels(320), picture: pixels(320) },
      uniforms: { "view.wind": [1] },
      ranges: { "view.wind": [0, 3] },
      steps: [{ run: ["hang"], once: true, count: [48, 48, 1] }, { run: ["fall"], count: [48, 48, 1] }, { run: ["settle", "settle_back"], times: 8, count: [48, 48, 1] }, { run: ["draw"], count: [48, 48, 1] }, { run: ["paint"] }],
      look: look(320),
    },
  ),
  piece(
    "digits",
    "Digits",
    ["Draw a digit on the left; a small network says what it is.", "7,000 weights, trained on strokes that a script of ours makes up.", "Press on the right half to wipe it clean."],
    {
      fills: { weights: { kind: "numbers", numbers: weights }, ink: pixels(224), box: zeros(4), seen: zeros(228), answer: zeros(10), picture: pixels(448, 224) },
      uniforms: { "view.thickness": [8], "view.clear": [0] },
      ranges: { "view.thickness": [3, 16], "view.clear": [0, 1] },
      steps: [{ run: ["draw", "measure"], count: [224, 224, 1] }, { run: ["sample"], count: [196, 1, 1] }, { run: ["hidden"], count: [32, 1, 1] }, { run: ["output"], count: [10, 1, 1] }, { run: ["show"] }],
      look: look(448),
    },
  ),
  piece(
    "camera",
    "Camera",
    ["Your camera's picture as a drawing; it stays on this machine.", "A blur by rows, by columns, then the slope of the brightness.", "Choose Camera, or a picture of yours, for the input camera."],
    { fills: { camera: pixels(320, 240), across: zeros(4 * 320 * 240), soft: zeros(4 * 320 * 240), picture: pixels(320, 240) }, uniforms: { "view.blur": [1.2], "view.edges": [0.85] }, ranges: { "view.blur": [0, 5], "view.edges": [0, 1] }, steps: [{ run: ["blur_rows", "blur_columns", "edges"] }], look: look(320) },
  ),
  piece(
    "kaleidoscope",
    "Kaleidoscope",
    ["A picture in a ring of mirrors that turns.", "Each pixel finds its place in the first wedge, and a sampler blends four texels.", "Drop a picture on the page, paste one, or choose the camera."],
    { fills: { image, picture: empty }, uniforms: { "view.mirrors": [6], "view.zoom": [1.2] }, ranges: { "view.mirrors": [1, 16], "view.zoom": [0.3, 4] }, look: look(512) },
  ),
  piece(
    "fft",
    "Fourier",
    ["A picture on the left, all of its frequencies on the right.", "Rows, then columns: butterflies in workgroup memory.", "Press to move the shape: the spectrum stays. Try shapes 0 to 2."],
    {
      fills: { image: zeros(2 * 256 * 256), picture: pixels(512, 256) },
      uniforms: { "view.shape": [0] },
      ranges: { "view.shape": [0, 2] },
      steps: [{ run: ["draw"], count: [256, 256, 1] }, { run: ["rows", "columns"], count: [256, 1, 1], unit: "workgroups" }, { run: ["spectrum"], count: [256, 256, 1] }],
      look: look(512),
    },
  ),
  piece(
    "sort",
    "Sorting rows",
    ["256 shuffled rows sort themselves in front of you.", "Even pairs, then odd pairs: every pair at the same time.", "When all is in order it waits a little, and shuffles."],
    { fills: { values: pixels(256), picture: pixels(256) }, uniforms: { "view.pause": [60] }, ranges: { "view.pause": [1, 240] }, steps: [{ run: ["shuffle", "even", "odd", "paint"] }], look: look(256) },
  ),
  piece(
    "slits",
    "Two slits",
    ["An electron on fourteen qubits: the hue is the phase of each amplitude.", "A step is a circuit: Fourier's transform by gates, and phases between.", "Press to set it down elsewhere; move the slits apart."],
    {
      fills: { amplitudes: zeros(2 * 128 * 128), job: zeros(4), picture: pixels(384) },
      uniforms: { "view.momentum": [0.9], "view.distance": [11], "view.speed": [0.5] },
      ranges: { "view.momentum": [0, 1.5], "view.distance": [3, 40], "view.speed": [0, 1] },
      steps: [{ run: ["press"], count: [1, 1, 1] }, { run: ["begin"], count: [16384, 1, 1] }, { run: ["apply", "advance"], times: 30, count: [8192, 1, 1] }, { run: ["paint"], count: [384, 384, 1] }],
      look: look(384),
    },
  ),
  piece(
    "hashes",
    "Hash race",
    ["16,384 SHA-256 hashes a frame, one a pixel.", "Bright is a hash with many zeros in front; the row on top is the best.", "Each zero more is twice as rare. Another seed, another race."],
    { fills: { best: zeros(1), heat: pixels(128), picture: pixels(128) }, uniforms: { "view.seed": [1] }, ranges: { "view.seed": [0, 100] }, steps: [{ run: ["search", "paint"] }], look: look(128) },
    `${texts["./pieces/hashes.wgsl"] ?? ""}\n${sha256}`,
  ),
  piece(
    "sobel",
    "Edges",
    ["The edges of a picture, by Sobel's two slopes.", "Nine texels around each one; the hue is the edge's direction.", "Drop a picture on the page, paste one, or choose the camera."],
    { fills: { image, edges: empty }, uniforms: { "view.ink": [0.1], "view.gain": [1.2] }, ranges: { "view.ink": [0, 1], "view.gain": [0.1, 5] }, look: look(512, "edges") },
  ),
  piece(
    "tiltshift",
    "Tilt-shift, by tiles",
    ["A blur that leaves a strip sharp: the scene becomes a model.", "A workgroup loads 32 × 32 texels once and shares them in its memory.", "Drop a picture of a street from above, and move the focus."],
    { fills: { image, model: empty }, uniforms: { "view.blur": [3], "view.focus": [0.62], "view.strip": [0.08] }, ranges: { "view.blur": [0, 4], "view.focus": [0, 1], "view.strip": [0, 0.4] }, look: look(512, "model") },
  ),
  piece(
    "matmul",
    "Matrix race",
    ["A product of two matrices on the GPU and on the CPU.", "Tiles of 16 × 16 go through workgroup memory.", "Compare runs both, and says how far the results differ."],
    { fills: { a: random(256 * 256), b: random(256 * 256), c: pixels(256) }, uniforms: { "size.side": [256] }, ranges: { "size.side": [16, 256] }, count: [256, 256, 1], look: { name: "c", kind: "picture", width: 256 }, race: true },
  ),
  piece(
    "field",
    "Field, as shipped",
    ["The kernel behind the view Field and `cantus field`.", "Polynomials of the library's own in place of the GPU's sine.", "The line on the left is where the angle starts over."],
    { fills: { values: pixels(512) }, uniforms: { ...grid(512), "wave.number": [8.54296875, 0.000338], "wave.phase": [0.5] }, ranges: { "wave.phase": [0, 12] }, count: [512, 512, 1], look: { name: "values", kind: "picture", width: 512 } },
    field,
  ),
  piece(
    "phi",
    "Golden spiral, as shipped",
    ["The pattern of the golden ratio, `cantus pattern`.", "Only the grid's sides go in.", "Choose other colours above the picture."],
    { fills: { values: pixels(512) }, uniforms: grid(512), count: [512, 512, 1], look: { name: "values", kind: "picture", width: 512, map: "twilight" } },
    phi,
  ),
  piece(
    "histogram",
    "Histogram",
    ["How often values fall into each of 64 bins.", "Workgroups count for themselves first, then add up, with atomics.", "Fill `values` with a .npy file of yours."],
    { fills: { values: random(65536), bins: zeros(64) }, count: [65536, 1, 1], look: { name: "bins", kind: "plot" } },
  ),
  piece(
    "saxpy",
    "saxpy, the first kernel",
    ["y = a x + y, one invocation for each element.", "All that a kernel has: a uniform, two buffers, an entry point.", "Change the text: it runs as you type."],
    { fills: { x: { kind: "range", length: 1024 }, y: { kind: "ones", length: 1024 } }, uniforms: { "params.a": [2] }, ranges: { "params.a": [-10, 10] }, count: [1024, 1, 1], look: { name: "y", kind: "numbers" } },
  ),
];
