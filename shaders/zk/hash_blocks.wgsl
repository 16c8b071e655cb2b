// The digest of each message, whose padded blocks lie one after the other from `starts[i]` to `starts[i + 1]`.
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> blocks: array<u32>;
@group(0) @binding(2) var<storage> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn hash_blocks(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= count { return; }
    var state = hash_start();
    for (var block = starts[id.x]; block < starts[id.x + 1u]; block++) {
        var words: array<u32, BLOCK_WORDS>;
        for (var word = 0u; word < BLOCK_WORDS; word++) { words[word] = blocks[block * BLOCK_WORDS + word]; }
        state = hash_block(state, words);
    }
    let digest = hash_end(state);
    for (var word = 0u; word < 8u; word++) { y[id.x * 8u + word] = digest[word]; }
}
