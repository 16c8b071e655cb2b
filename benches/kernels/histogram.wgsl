// How many values lie in each of 256 bins: counted per workgroup, then added up.

struct Params { count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> bins: array<atomic<u32>, 256>;

var<workgroup> counts: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn histogram(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    atomicStore(&counts[local], 0u);
    workgroupBarrier();
    for (var at = group.x * 256u + local; at < params.count; at += groups.x * 256u) {
        atomicAdd(&counts[values[at] & 255u], 1u);
    }
    workgroupBarrier();
    let count = atomicLoad(&counts[local]);
    if count != 0u {
        atomicAdd(&bins[local], count);
    }
}
