// Sorts each run of 512 values in workgroup memory, by Batcher's bitonic network.

@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> ordered: array<u32>;

var<workgroup> run: array<u32, 512>;

@compute @workgroup_size(256)
fn bitonic(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3u) {
    let base = group.x * 512u;
    run[local] = values[base + local];
    run[local + 256u] = values[base + local + 256u];
    for (var size = 2u; size <= 512u; size <<= 1u) {
        for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
            workgroupBarrier();
            let low = 2u * stride * (local / stride) + local % stride;
            let high = low + stride;
            let a = run[low];
            let b = run[high];
            if (a > b) == ((low & size) == 0u) {
                run[low] = b;
                run[high] = a;
            }
        }
    }
    workgroupBarrier();
    ordered[base + local] = run[local];
    ordered[base + local + 256u] = run[local + 256u];
}
