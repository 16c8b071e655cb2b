/** Pictures as inputs: a file, a video's, or what the camera sees. */

/** A file's picture, drawn into a size: RGBA bytes. */
export async function openImage(file: Blob & { name?: string }, width: number, height: number): Promise<{ name: string; bytes: ArrayBuffer }> {
  const image = await createImageBitmap(file);
  const bytes = drawnInto(image, image.width, image.height, width, height);
  image.close();
  return { name: file.name ?? "picture", bytes };
}

/** A picture's own sides, made smaller where one is longer than `longest`. */
export async function fitting(file: Blob, longest: number): Promise<[number, number]> {
  const image = await createImageBitmap(file);
  const scale = Math.min(1, longest / Math.max(image.width, image.height));
  const sides: [number, number] = [Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale))];
  image.close();
  return sides;
}

let canvas: OffscreenCanvas | undefined;

/** The middle of a picture, as large as fits, in a size. */
function drawnInto(source: CanvasImageSource, fromWidth: number, fromHeight: number, width: number, height: number): ArrayBuffer {
  canvas ??= new OffscreenCanvas(1, 1);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("the browser gives no canvas");
  const scale = Math.max(width / fromWidth, height / fromHeight);
  const [drawnWidth, drawnHeight] = [fromWidth * scale, fromHeight * scale];
  context.drawImage(source, (width - drawnWidth) / 2, (height - drawnHeight) / 2, drawnWidth, drawnHeight);
  return context.getImageData(0, 0, width, height).data.buffer as ArrayBuffer;
}

/** Where moving pictures come from: the camera, or a file's video, again and again. */
export type Source = "camera" | Blob;

/** Moving pictures, while they are open. Nothing of them leaves the page. */
export class Film {
  readonly #video = document.createElement("video");
  #stream: MediaStream | undefined;
  #url: string | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Opens the source, then calls `send` with each new picture. */
  async open(source: Source, width: number, height: number, send: (bytes: ArrayBuffer) => void): Promise<void> {
    this.close();
    const video = this.#video;
    [video.muted, video.playsInline, video.loop] = [true, true, true];
    if (source === "camera") video.srcObject = this.#stream = await camera(width, height);
    else video.src = this.#url = URL.createObjectURL(source);
    try {
      await video.play();
    } catch {
      throw new Error(source === "camera" ? "The camera gives no picture." : "The browser cannot play this video.");
    }
    let shown = -1;
    this.#timer = setInterval(() => {
      if (video.videoWidth === 0 || video.currentTime === shown) return;
      shown = video.currentTime;
      send(drawnInto(video, video.videoWidth, video.videoHeight, width, height));
    }, 33);
  }

  /** Stands still, or goes on. */
  set playing(playing: boolean) {
    if (this.#timer === undefined) return;
    if (playing) void this.#video.play().catch(() => undefined);
    else this.#video.pause();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = undefined;
    this.#video.srcObject = null;
    this.#video.removeAttribute("src");
    if (this.#url !== undefined) URL.revokeObjectURL(this.#url);
    this.#url = undefined;
  }
}

async function camera(width: number, height: number): Promise<MediaStream> {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error("This page has no access to a camera: that needs https or localhost.");
  try {
    return await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: width * 2 }, height: { ideal: height * 2 } } });
  } catch {
    throw new Error("There is no camera, or the page may not use it.");
  }
}

/** A video's own size, or an error where the browser cannot play it. */
export async function videoSize(file: Blob): Promise<[number, number]> {
  const video = document.createElement("video");
  const url = URL.createObjectURL(file);
  try {
    await new Promise<void>((resolve, reject) => {
      video.onloadedmetadata = () => (video.videoWidth > 0 ? resolve() : reject(new Error("it has no picture")));
      video.onerror = () => reject(new Error("the browser cannot play this video"));
      video.preload = "metadata";
      video.src = url;
    });
    return [video.videoWidth, video.videoHeight];
  } finally {
    video.removeAttribute("src");
    URL.revokeObjectURL(url);
  }
}
