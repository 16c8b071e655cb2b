// A kernel computes the picture, on the GPU or on the processor; the canvas shows it.
import { Engine } from "cantus";
import waves from "./waves.wgsl?raw";

const canvas = document.getElementById("picture");
const status = document.getElementById("status");

/** RGBA bytes from dark blue over white to dark red. */
function colors() {
  const all = new Uint8ClampedArray(4 * 256);
  for (let i = 0; i < 256; i++) {
    const x = i / 127.5 - 1;
    all.set([255 * (1 + Math.min(x, 0)), 255 * (1 - Math.abs(x)), 255 * (1 - Math.max(x, 0)), 255], 4 * i);
  }
  return all;
}

async function run() {
  const engine = await Engine.create();
  status.textContent = `${engine.device} (${engine.backend})`;
  const { width, height } = canvas;
  const picture = await engine.zeros([height, width]);
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const map = colors();
  const frame = async (milliseconds) => {
    await engine.dispatch(waves, { bindings: { picture }, uniforms: { "params.time": milliseconds / 200 }, invocations: [width, height] });
    await picture.shade(image.data, map);
    context.putImageData(image, 0, 0);
    requestAnimationFrame((next) => frame(next).catch(fail));
  };
  await frame(performance.now());
}

function fail(error) {
  status.textContent = error.message;
  throw error;
}

run().catch(fail);
