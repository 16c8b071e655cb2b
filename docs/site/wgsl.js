// WGSL for the guide's highlighter (highlight.js 10), which docs/site/build.mjs appends to it.
hljs.registerLanguage("wgsl", (hljs) => ({
  name: "WGSL",
  keywords: {
    keyword: "alias break case const const_assert continue continuing default diagnostic discard else enable fn for if let loop override requires return struct switch var while import",
    built_in:
      "array atomic bool f16 f32 i32 u32 mat2x2 mat2x2f mat3x3 mat3x3f mat4x4 mat4x4f ptr sampler texture_2d texture_storage_2d vec2 vec2f vec2i vec2u vec3 vec3f vec3i vec3u vec4 vec4f vec4i vec4u uniform storage workgroup private function read write read_write",
    literal: "true false",
  },
  contains: [
    hljs.C_LINE_COMMENT_MODE,
    hljs.C_BLOCK_COMMENT_MODE,
    { className: "number", begin: /\b(0x[0-9a-fA-F]+[iu]?|\d+(\.\d*)?(e[+-]?\d+)?[iufh]?)\b/, relevance: 0 },
    { className: "meta", begin: /@[a-z_]+/ },
    { className: "function", beginKeywords: "fn", end: /\(/, excludeEnd: true, contains: [hljs.UNDERSCORE_TITLE_MODE] },
  ],
}));
