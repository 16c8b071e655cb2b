// Running sums of each run of 1,024 values, four per invocation, and the sum of each run.

@group(0) @binding(0) var<storage, read> values: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> running: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> totals: array<u32>;

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn scan(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(global_invocation_id) id: vec3u,
) {
    var four = values[id.x];
    four.y += four.x;
    four.z += four.y;
    four.w += four.z;
    sums[local] = four.w;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
        var left = 0u;
        if local >= step { left = sums[local - step]; }
        workgroupBarrier();
        sums[local] += left;
        workgroupBarrier();
    }
    running[id.x] = four + vec4u(sums[local] - four.w);
    if local == 255u { totals[group.x] = sums[255]; }
}
