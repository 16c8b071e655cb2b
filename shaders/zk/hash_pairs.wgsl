// The digest of each pair of digests: a level of a tree. `pair_block(i, ...)` pads.
@group(0) @binding(0) var<uniform> count: u32;
@group(0) @binding(1) var<storage> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn hash_pairs(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= count { return; }
    var state = hash_start();
    for (var block = 0u; block < PAIR_BLOCKS; block++) {
        var words: array<u32, BLOCK_WORDS>;
        for (var word = 0u; word < BLOCK_WORDS; word++) {
            let at = block * BLOCK_WORDS + word;
            words[word] = padding(at);
            if at < 16u { words[word] = x[id.x * 16u + at]; }
        }
        state = hash_block(state, words);
    }
    let digest = hash_end(state);
    for (var word = 0u; word < 8u; word++) { y[id.x * 8u + word] = digest[word]; }
}
