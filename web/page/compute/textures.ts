/** The textures of a kernel of the playground: how they begin, and what pictures fill them. */
import type { Engine, Texture } from "../../lib/index.js";
import type { TextureBinding, TextureFormat } from "../../lib/types.js";
import type { Fill } from "./protocol.js";
import { isMoving } from "./values.js";

const FORMATS: Record<TextureBinding["sampleType"], TextureFormat> = { float: "rgba8unorm", uint: "rgba8uint", sint: "rgba8sint", depth: "depth32float" };

/** Adds the textures of an entry point to those of others. One that stores to it says that it is a result, and its format. */
export function joined(all: Map<string, TextureBinding>, more: readonly TextureBinding[]): void {
  for (const texture of more) {
    const known = all.get(texture.name);
    if (!known) all.set(texture.name, texture);
    else all.set(texture.name, { ...(known.access === "read" ? texture : known), format: known.format ?? texture.format });
  }
}

/** The format that the page makes for a texture. */
export const formatOf = ({ format, sampleType }: TextureBinding): TextureFormat => format ?? FORMATS[sampleType];

/** True if a picture's bytes are its texels. */
export const takesPictures = (binding: TextureBinding): boolean => binding.dimension === "2d" && !binding.multisampled && /^rgba8u/.test(formatOf(binding));

/** The texture that a fill makes. */
export async function textureOf(engine: Engine, binding: TextureBinding, fill: Fill): Promise<Texture> {
  if (!("width" in fill)) throw new Error("it is a texture, and takes a picture");
  if ((binding.dimension !== "2d" && binding.dimension !== "2d-array") || binding.multisampled) throw new Error(`the page makes images, and no ${binding.type}`);
  const { width, height } = fill;
  const descriptor = { format: formatOf(binding), size: [width, height] as const };
  if (fill.kind === "blank" || isMoving(fill)) return engine.texture(descriptor);
  if (!takesPictures(binding)) throw new Error(`a picture fills textures of four 8-bit channels, not of ${descriptor.format}`);
  if (fill.kind === "pattern") return engine.texture(descriptor, pattern(width, height));
  return engine.texture(descriptor, fill.bytes);
}

/** A picture that needs no file: a sun over hills and a floor of squares, as RGBA bytes. */
export function pattern(width: number, height: number): Uint8ClampedArray {
  const pixels = new Uint8ClampedArray(4 * width * height);
  const aspect = width / height;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [u, v] = [x / width, y / height];
      const mist = Math.min(1, 1.4 * v);
      let color: readonly number[] = [90 + 150 * mist, 150 + 55 * mist, 210 - 50 * mist];
      if (Math.hypot((u - 0.7) * aspect, v - 0.3) < 0.13) color = [255, 235, 140];
      if (v > 0.6 + 0.08 * Math.sin(9 * u) + 0.03 * Math.sin(31 * u)) color = [58, 112, 82];
      if (v > 0.76 + 0.05 * Math.cos(7 * u)) color = (Math.floor(u * 20 * aspect) + Math.floor(v * 20)) % 2 ? [200, 88, 66] : [245, 240, 225];
      pixels.set([...color, 255], 4 * (y * width + x));
    }
  }
  return pixels;
}
