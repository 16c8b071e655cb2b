/** Colour maps: the CLI's own (colormaps.json is written by its tests), 256 colours each. */
import maps from "./colormaps.json";

export const COLORS = 256;

export type ColormapName = keyof typeof maps;

export const colormapNames = Object.keys(maps) as ColormapName[];

const palettes = new Map<ColormapName, Uint8ClampedArray<ArrayBuffer>>();

/** The colours as RGBA bytes, one after another. */
export function palette(name: ColormapName): Uint8ClampedArray<ArrayBuffer> {
  const known = palettes.get(name);
  if (known) return known;
  const digits = maps[name];
  const colors = new Uint8ClampedArray(COLORS * 4);
  for (let index = 0; index < COLORS; index++) {
    const rgb = Number.parseInt(digits.slice(index * 6, index * 6 + 6), 16);
    colors.set([rgb >> 16, (rgb >> 8) & 255, rgb & 255, 255], index * 4);
  }
  palettes.set(name, colors);
  return colors;
}

/** A CSS gradient that shows the map. */
export function gradient(name: ColormapName): string {
  const stops = Array.from({ length: 17 }, (_, stop) => {
    const index = Math.round((stop * (COLORS - 1)) / 16);
    return `#${maps[name].slice(index * 6, index * 6 + 6)}`;
  });
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

/** Values to pixels: `low` and below take the first colour, `high` and above the last; NaN the first. As the CLI does, in float32. */
export function shade(values: ArrayLike<number>, pixels: Uint32Array, name: ColormapName, low: number, high: number): void {
  const colors = new Uint32Array(palette(name).buffer);
  const first = Math.fround(low);
  const scale = Math.fround(COLORS / (high - low));
  for (let i = 0; i < pixels.length; i++) {
    const place = Math.fround(Math.fround((values[i] as number) - first) * scale);
    // Not `Math.min(Math.max(..))`: a NaN has to fall through to 0.
    const index = place >= COLORS ? COLORS - 1 : place > 0 ? place | 0 : 0;
    pixels[i] = colors[index] as number;
  }
}
