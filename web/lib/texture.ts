/** Textures, as the package shows them, and the pixels of a page that they are made of. */
import type { RawTensor, RawTexture } from "../pkg/playground/cantus.js";
import { Tensor } from "./tensor.js";
import type { ImageSource, Sampler, SamplerDescriptor, TexelArray, TextureFormat } from "./types.js";

/**
 * An image, or layers, levels or a block of them, on the engine's device; a kernel's `texture_*` variables are bound to it. The texels lie in a buffer of
 * the engine's own, so that every device runs every builtin: pictures of the page are copied into it. Views share the texels. The memory is given back
 * when all of them are freed or collected.
 */
export class Texture {
  /** @internal */
  constructor(/** @internal */ readonly raw: RawTexture) {}

  get format(): TextureFormat {
    return this.raw.format as TextureFormat;
  }

  /** Width, height, and depth or layers of the first level. */
  get size(): [number, number, number] {
    const [width = 1, height = 1, depth = 1] = this.raw.size;
    return [width, height, depth];
  }

  get width(): number {
    return this.size[0];
  }

  get height(): number {
    return this.size[1];
  }

  /** Levels of detail of the whole texture. */
  get levels(): number {
    return this.raw.levels;
  }

  /** The name of the device it is on. */
  get device(): string {
    return this.raw.device;
  }

  /**
   * The texels of all levels, in 32-bit words. Its `gpuBuffer` is what a page's own WebGPU draws from without a copy: a texel of 8-bit channels is one
   * word, its first channel in the lowest byte.
   */
  get texels(): Tensor<Uint32Array> {
    return new Tensor(this.raw.texels() as RawTensor);
  }

  /** A view of one level: a kernel may read level n while it writes level n + 1. */
  level(level: number): Texture {
    return new Texture(this.raw.level(level));
  }

  /** A view of `count` layers from `first` on. */
  layers(first: number, count: number): Texture {
    return new Texture(this.raw.layers(first, count));
  }

  /** The image with all levels of detail, each the means of two by two texels of the one before. */
  async withAllLevels(): Promise<Texture> {
    return new Texture((await this.raw.withAllLevels()) as RawTexture);
  }

  /** The texels of the first level, after all work so far: row after row, without padding. */
  async read(): Promise<TexelArray> {
    return (await this.raw.read()) as TexelArray;
  }

  /**
   * Overwrites the first level: with texels as `read` gives them, or their bytes, or with a picture of the page of the same size, drawn anew for each frame of
   * a video. A picture needs a format of four 8-bit channels.
   */
  async write(source: ArrayBufferView | ArrayBuffer | ImageSource): Promise<void> {
    const bytes = asBytes(source);
    if (bytes) return void (await this.raw.write(bytes));
    const [width, height] = this.size;
    const { data } = await pixelsOf(source as ImageSource, [width, height]);
    await this.raw.write(ordered(data, this.format));
  }

  /**
   * The first level as a picture's pixels, after all work so far. Normalized integers and floats from 0 to 1 become 0 to 255, bytes stay as they are, and one
   * channel is grey.
   */
  async imageData(): Promise<ImageData> {
    const [width, height] = this.size;
    const image = new ImageData(width, height);
    await this.raw.pixels(image.data);
    return image;
  }

  /** Draws the first level on a canvas, which takes its size, by `imageData`. The canvas has a context "2d", or none yet. */
  async draw(canvas: HTMLCanvasElement | OffscreenCanvas): Promise<void> {
    const image = await this.imageData();
    if (canvas.width !== image.width || canvas.height !== image.height) [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d") as CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D | null;
    if (!context) throw invalid("the canvas", 'it has a context other than "2d"');
    context.putImageData(image, 0, 0);
  }

  /** Gives the memory back, unless a view still holds it. The texture must not be used afterwards. */
  free(): void {
    this.raw.free();
  }
}

/** An error as the engine's own. */
function invalid(what: string, reason: string): Error {
  return Object.assign(new Error(`${what}: ${reason}`), { name: "CantusError", code: "InvalidInput" });
}

/** The bytes of what holds bytes, without a copy. */
export function asBytes(source: unknown): Uint8Array | undefined {
  if (source instanceof ArrayBuffer || (typeof SharedArrayBuffer !== "undefined" && source instanceof SharedArrayBuffer)) return new Uint8Array(source);
  return ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : undefined;
}

/** RGBA bytes in a format's order. */
export function ordered(data: Uint8ClampedArray, format: TextureFormat): Uint8Array {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (!format.startsWith("bgra")) return bytes;
  const turned = bytes.slice();
  for (let at = 0; at < turned.length; at += 4) [turned[at], turned[at + 2]] = [bytes[at + 2] as number, bytes[at] as number];
  return turned;
}

const is = <T>(name: string, source: unknown): source is T => {
  const type = (globalThis as Record<string, unknown>)[name];
  return typeof type === "function" && source instanceof (type as new () => T);
};

/** The canvas that pictures are drawn on, to read their pixels. */
let canvas: OffscreenCanvas | undefined;

/** The pixels of a picture of the page, as RGBA bytes in sRGB. `size` is the size it must have. */
export async function pixelsOf(source: ImageSource, size?: [number, number]): Promise<ImageData> {
  if (is<Blob>("Blob", source)) {
    const image = await createImageBitmap(source, { premultiplyAlpha: "none" }).catch((error: unknown) => {
      throw invalid("the picture", `the browser cannot read it (${String(error)})`);
    });
    try {
      return await pixelsOf(image, size);
    } finally {
      image.close();
    }
  }
  const [width, height] = sizeOf(source);
  if (!(width > 0 && height > 0)) throw invalid("the picture", "it has no pixels: wait until it is loaded");
  if (size && (size[0] !== width || size[1] !== height)) throw invalid("the picture", `it has ${width} x ${height} pixels, the texture ${size[0]} x ${size[1]}`);
  if (is<ImageData>("ImageData", source)) {
    if (source.data instanceof Uint8ClampedArray && source.colorSpace !== "display-p3") return source;
    throw invalid("the picture", "its pixels are not bytes in sRGB");
  }
  canvas ??= new OffscreenCanvas(1, 1);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw invalid("the picture", "the browser gives no canvas to read it by");
  try {
    context.clearRect(0, 0, width, height);
    context.drawImage(source, 0, 0);
    return context.getImageData(0, 0, width, height);
  } catch (error) {
    throw invalid("the picture", `the browser does not let its pixels be read (${String(error)})`);
  }
}

function sizeOf(source: Exclude<ImageSource, Blob>): [number, number] {
  if (is<HTMLVideoElement>("HTMLVideoElement", source)) return [source.videoWidth, source.videoHeight];
  if (is<HTMLImageElement>("HTMLImageElement", source)) return [source.naturalWidth, source.naturalHeight];
  if (is<VideoFrame>("VideoFrame", source)) return [source.displayWidth, source.displayHeight];
  const { width, height } = source as { width: number; height: number };
  return [width, height];
}

/** A sampler's fields, all of them. */
export function sampling(sampler: Sampler): Required<Omit<SamplerDescriptor, "compare">> & { compare?: string | undefined } {
  const { addressModeU = "clamp-to-edge", addressModeV = "clamp-to-edge", addressModeW = "clamp-to-edge", magFilter = "nearest", minFilter = "nearest", mipmapFilter = "nearest", lodMinClamp = 0, lodMaxClamp = 32, compare } =
    typeof sampler === "string" ? { magFilter: sampler, minFilter: sampler, mipmapFilter: sampler } : sampler;
  return { addressModeU, addressModeV, addressModeW, magFilter, minFilter, mipmapFilter, lodMinClamp, lodMaxClamp, compare };
}
