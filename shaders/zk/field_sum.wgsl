// Sums of stretches of rows, each by a workgroup: `load` gives the element of a row.
struct Sizes { length: u32, stretches: u32, stretch: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> a: array<Fe>;
@group(0) @binding(3) var<storage, read_write> y: array<Fe>;

var<workgroup> sums: array<Fe, 64>;

@compute @workgroup_size(64)
fn field_sum(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let end = min(sizes.length, (group.x + 1u) * sizes.stretch);
    var sum = fe_zero();
    for (var at = group.x * sizes.stretch + lane; at < end; at += 64u) {
        sum = fe_add(sum, load(group.y * sizes.length + at));
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var stride = 32u; stride > 0u; stride /= 2u) {
        if lane < stride { sums[lane] = fe_add(sums[lane], sums[lane + stride]); }
        workgroupBarrier();
    }
    if lane == 0u { y[group.y * sizes.stretches + group.x] = sums[0]; }
}
