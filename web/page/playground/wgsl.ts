/** WGSL for the editor: a tokeniser for colours, nothing more. The engine itself says what is wrong. */
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

const words = (text: string) => new Set(text.split(" "));
const keywords = words("alias break case const const_assert continue continuing default diagnostic discard else enable fn for if let loop override requires return struct switch var while true false");
const types = words("array atomic bool f16 f32 f64 i32 i64 u32 u64 vec2 vec3 vec4 vec2f vec3f vec4f vec2u vec3u vec4u vec2i vec3i vec4i vec2h vec3h vec4h mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 mat2x2f mat3x3f mat4x4f ptr storage uniform workgroup private function read read_write");

const language = StreamLanguage.define<{ depth: number }>({
  name: "wgsl",
  startState: () => ({ depth: 0 }),
  token(stream, state) {
    if (state.depth > 0) {
      // Block comments nest.
      while (!stream.eol()) {
        if (stream.match("*/")) {
          if (--state.depth === 0) return "comment";
        } else if (stream.match("/*")) state.depth++;
        else stream.next();
      }
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.depth = 1;
      return "comment";
    }
    if (stream.match(/^@\w+/)) return "annotation";
    if (stream.match(/^(0[xX][\da-fA-F]+(\.[\da-fA-F]*)?([pP][+-]?\d+)?|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[iufh]?/)) return "number";
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u) as RegExpMatchArray | null;
    if (word) {
      const [name] = word;
      if (keywords.has(name)) return "keyword";
      if (types.has(name)) return "type";
      return stream.match(/^\s*\(/, false) ? "function" : "variable";
    }
    stream.next();
    return null;
  },
  tokenTable: { annotation: tags.annotation, type: tags.typeName, function: tags.function(tags.variableName), variable: tags.variableName },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "{"] } },
});

const colors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.annotation, color: "var(--code-attribute)" },
]);

export const wgsl = [language, syntaxHighlighting(colors)];
