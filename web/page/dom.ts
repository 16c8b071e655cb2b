/** Elements in one expression. */

type Attributes = Record<string, string | number | boolean | undefined>;

/** An element with attributes and children. An attribute that is `false` or `undefined` is left out. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** As `el`, for SVG. */
export function svg(tag: string, attributes: Attributes = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** A label above a control, and a hint below. */
export function labelled(text: string, control: HTMLElement, hint?: HTMLElement | string): HTMLElement {
  const label = el("label", {}, el("span", { class: "label" }, text), control);
  if (hint) label.append(typeof hint === "string" ? el("span", { class: "hint" }, hint) : hint);
  return label;
}

export function select(options: readonly (readonly [value: string, text: string])[], chosen: string, attributes: Attributes = {}): HTMLSelectElement {
  return el("select", attributes, ...options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
}

export function button(text: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

/** Offers a file to be saved. */
export function save(blob: Blob, name: string): void {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Three significant digits, units of milliseconds. */
export function milliseconds(time: number): string {
  if (time >= 1000) return `${Number((time / 1000).toPrecision(3))} s`;
  return `${time >= 100 ? time.toFixed(0) : time.toPrecision(Math.max(1, time < 0.1 ? 1 : time < 1 ? 2 : 3))} ms`;
}
