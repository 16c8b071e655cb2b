// How often a word of bytes comes in a text: each place is compared byte by byte until one differs.

struct Params { length: u32, word_length: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> text: array<u32>;
@group(0) @binding(2) var<storage, read> word: array<u32>;
@group(0) @binding(3) var<storage, read_write> found: array<u32>;

fn letter(at: u32) -> u32 {
    return (text[at / 4u] >> (8u * (at % 4u))) & 0xffu;
}

@compute @workgroup_size(256)
fn search(@builtin(global_invocation_id) id: vec3u) {
    if id.x + params.word_length > params.length { return; }
    var same = true;
    for (var i = 0u; i < params.word_length; i++) {
        if letter(id.x + i) != ((word[i / 4u] >> (8u * (i % 4u))) & 0xffu) {
            same = false;
            break;
        }
    }
    found[id.x] = select(0u, 1u, same);
}
