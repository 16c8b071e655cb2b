/** The front page: the field, computed here by the page's own worker. It starts after the page was painted, and stops while nobody sees it. */
import type { DeviceReport, FieldSettings } from "../../web/page/field/protocol.js";
import { Remote } from "../../web/page/rpc.js";

const stage = document.querySelector<HTMLElement>("#stage");
const device = document.querySelector<HTMLElement>("#device");
const button = document.querySelector<HTMLButtonElement>("#play");

/** Opens a device and computes, frame after frame. */
async function start(picture: HTMLElement, says: HTMLElement, button: HTMLButtonElement): Promise<void> {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const side = innerWidth < 700 ? 384 : 512;
  const settings: FieldSettings = { width: side, height: side, frequency: 528, speed: 1, map: "twilight", playing: !still };
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "A damped spiral wave, computed in this browser");
  const remote = new Remote(new Worker(new URL("../../web/page/field/worker.ts", import.meta.url), { type: "module", name: "field" }));
  const offscreen = canvas.transferControlToOffscreen();
  const opened = await remote.call<DeviceReport>("open", { canvas: offscreen, settings, backend: "auto" }, { transfer: [offscreen] });
  says.textContent = `Computed in your browser now: ${opened.name}.`;
  let wanted = !still;
  let seen = true;
  let playing = !still;
  const set = () => {
    const now = wanted && seen && !document.hidden;
    if (now !== playing) void remote.call("set", { playing: now });
    playing = now;
    button.textContent = wanted ? "Pause" : "Play";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    wanted = !wanted;
    set();
  });
  document.addEventListener("visibilitychange", set);
  new IntersectionObserver(([entry]) => {
    seen = entry?.isIntersecting ?? true;
    set();
  }).observe(picture);
  set();
  // The canvas takes the picture's place with its first frame.
  await remote.call("animate", undefined, { report: () => canvas.isConnected || picture.append(canvas) });
}

/** When the browser has painted and has nothing else to do. */
function later(work: () => void): void {
  requestAnimationFrame(() => setTimeout(() => ("requestIdleCallback" in window ? requestIdleCallback(work, { timeout: 1500 }) : work()), 0));
}

if (stage && device && button) {
  const begin = () =>
    later(() =>
      start(stage, device, button).catch((error: unknown) => {
        // The picture stays: it is the same wave, computed elsewhere.
        device.textContent = `Nothing could be computed in this browser (${error instanceof Error ? error.message : String(error)}). The picture was computed by the program.`;
        button.hidden = true;
      }),
    );
  if (document.readyState === "complete") begin();
  else addEventListener("load", begin, { once: true });
}
