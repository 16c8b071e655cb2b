/** Pictures as inputs: a file, or what the camera sees. */

/** A file's picture, drawn into a size: RGBA bytes. */
export async function openImage(file: Blob & { name?: string }, width: number, height: number): Promise<{ name: string; bytes: ArrayBuffer }> {
  const image = await createImageBitmap(file);
  const bytes = drawnInto(image, image.width, image.height, width, height);
  image.close();
  return { name: file.name ?? "picture", bytes };
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

/** The camera, while it is open. Nothing of it leaves the page. */
export class Camera {
  readonly #video = document.createElement("video");
  #stream: MediaStream | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Asks for the camera, then calls `send` with each new picture. */
  async open(width: number, height: number, send: (bytes: ArrayBuffer) => void): Promise<void> {
    this.close();
    if (!navigator.mediaDevices?.getUserMedia) throw new Error("This page has no access to a camera: it takes https, or this machine.");
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: width * 2 }, height: { ideal: height * 2 } } });
    } catch {
      throw new Error("There is no camera, or the page may not use it.");
    }
    this.#video.muted = true;
    this.#video.playsInline = true;
    this.#video.srcObject = this.#stream;
    await this.#video.play();
    this.#timer = setInterval(() => {
      if (this.#video.videoWidth > 0) send(drawnInto(this.#video, this.#video.videoWidth, this.#video.videoHeight, width, height));
    }, 50);
  }

  close(): void {
    clearInterval(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = undefined;
    this.#video.srcObject = null;
  }
}
