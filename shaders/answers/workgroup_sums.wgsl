// A tree of sums in workgroup memory: a store before a barrier is read after it.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<workgroup> sums: array<u32, 128>;

@compute @workgroup_size(128)
fn workgroup_sums(@builtin(local_invocation_index) place: u32, @builtin(workgroup_id) group: vec3u) {
    sums[place] = place * place + group.x;
    workgroupBarrier();
    for (var stride = 64u; stride > 0u; stride >>= 1u) {
        if place < stride { sums[place] += sums[place + stride]; }
        workgroupBarrier();
    }
    if place == 0u { answer[group.x] = sums[0]; }
}
