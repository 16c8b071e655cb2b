/** The editor: CodeMirror with WGSL's colours, and the engine's errors underlined where they are. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import type { Failure } from "../rpc.js";
import { wgsl } from "./wgsl.js";

export class Editor {
  readonly view: EditorView;

  /** `changed` is called on each edit, `run` on Ctrl+Enter. */
  constructor(text: string, changed: () => void, run: () => void) {
    this.view = new EditorView({
      doc: text,
      extensions: [
        lineNumbers(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        drawSelection(),
        history(),
        bracketMatching(),
        indentOnInput(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        // Escape, then Tab leaves the editor: the keyboard is not trapped.
        keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }, indentWithTab, ...defaultKeymap, ...historyKeymap]),
        wgsl,
        EditorView.contentAttributes.of({ "aria-label": "WGSL kernel. Escape, then Tab leaves the editor.", spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** Underlines the place of an error; without one, takes the underline away. */
  mark(error?: Failure): void {
    const diagnostics: Diagnostic[] = [];
    if (error?.offset !== undefined) {
      const [from, to] = this.#range(error.offset, error.length ?? 0);
      diagnostics.push({ from, to, severity: "error", message: error.message.split("\n").slice(1, 2).join("") || error.message });
    }
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** Underlines a line of the text. */
  markLine(line: number, message: string): void {
    if (line < 1 || line > this.view.state.doc.lines) return;
    const { from, to } = this.view.state.doc.line(line);
    this.view.dispatch(setDiagnostics(this.view.state, [{ from, to, severity: "warning", message }]));
  }

  /** Puts the cursor at an error. */
  go(error: Failure): void {
    const [from] = this.#range(error.offset ?? 0, 0);
    this.view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    this.view.focus();
  }

  /** The engine counts bytes, the editor UTF-16 units. */
  #range(offset: number, length: number): [number, number] {
    const bytes = new TextEncoder().encode(this.text);
    const units = (count: number) => new TextDecoder().decode(bytes.subarray(0, count)).length;
    const from = Math.min(units(offset), this.view.state.doc.length);
    const to = Math.min(units(offset + length), this.view.state.doc.length);
    return [from, Math.max(to, from)];
  }
}
