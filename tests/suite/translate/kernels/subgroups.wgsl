diagnostic(off, subgroup_uniformity);
@group(0) @binding(0) var<storage, read_write> data: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> votes: array<vec4u>;

@compute @workgroup_size(48)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32) {
    let x = data[id.x];
    var sum = subgroupAdd(x);
    if lane < size / 2u { sum += subgroupExclusiveAdd(x); }
    data[id.x] = sum + subgroupShuffleXor(x, 1u) + quadSwapX(x);
    votes[id.x] = subgroupBallot(x.x > x.y);
}
