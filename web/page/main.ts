/** The frame of the page: three views by the address's hash, each made when it is first shown; light or dark. */
import "./style.css";
import { button, el } from "./dom.js";
import { keep, kept } from "./keep.js";
import { failure } from "./rpc.js";
import { sentence } from "./say.js";

export interface View {
  readonly element: HTMLElement;
  /** Shown, with the part of the hash after the view's name. */
  show(rest: string): void;
  hide(): void;
}

const makers: Record<string, () => Promise<View>> = {
  field: async () => new (await import("./field/view.js")).FieldView(),
  playground: async () => new (await import("./playground/view.js")).PlaygroundView(),
  bench: async () => new (await import("./bench/view.js")).BenchView(),
};

const content = document.querySelector<HTMLElement>("#content");
const views = new Map<string, Promise<View>>();
let shown: View | undefined;

async function route(): Promise<void> {
  const [name = "", ...rest] = location.hash.slice(1).split("/");
  const chosen = name in makers ? name : "field";
  for (const link of document.querySelectorAll<HTMLElement>("[data-view]")) {
    if (link.dataset["view"] === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const made = views.get(chosen) ?? makers[chosen]?.();
  if (!made) return;
  views.set(chosen, made);
  let view: View;
  try {
    view = await made;
  } catch (error) {
    // Asked for again, it may be there: a part of the page was not.
    views.delete(chosen);
    shown?.hide();
    shown = undefined;
    const fault = el("div", { class: "panel fault", role: "alert" }, el("h1", {}, "This view cannot be shown"), el("p", { class: "lead" }, sentence(failure(error))), button("Load it again", () => location.reload(), { class: "primary" }));
    content?.replaceChildren(fault);
    return;
  }
  // Another view may have been chosen while this one was loading.
  const [now = ""] = location.hash.slice(1).split("/");
  if ((now in makers ? now : "field") !== chosen) return;
  if (shown !== view) {
    shown?.hide();
    shown = view;
    content?.replaceChildren(view.element);
  }
  view.show(rest.join("/"));
}

const theme = document.querySelector<HTMLSelectElement>("#theme");
function applyTheme(choice: string): void {
  document.documentElement.dataset["theme"] = choice;
  keep("theme", choice);
}
if (theme) {
  theme.value = kept("theme") ?? "auto";
  applyTheme(theme.value);
  theme.addEventListener("change", () => applyTheme(theme.value));
}

window.addEventListener("hashchange", () => void route());
void route();

// From the second visit on the page works without a connection. Without service workers it works as before.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  window.addEventListener("load", () => void navigator.serviceWorker.register(new URL("service.js", document.baseURI)).catch(() => undefined));
}
