// A pass of a radix sort: each run of 256 keys is sorted by four bits, one after the other, by scans in workgroup memory;
// and how often each of the 16 digits comes in it.

struct Params { shift: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> ordered: array<u32>;
@group(0) @binding(3) var<storage, read_write> digits: array<u32>;

var<workgroup> run: array<u32, 256>;
var<workgroup> sums: array<u32, 256>;
var<workgroup> counts: array<atomic<u32>, 16>;

@compute @workgroup_size(256)
fn radix(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(global_invocation_id) id: vec3u,
) {
    var key = keys[id.x];
    if local < 16u {
        atomicStore(&counts[local], 0u);
    }
    workgroupBarrier();
    atomicAdd(&counts[(key >> params.shift) & 15u], 1u);
    for (var bit = 0u; bit < 4u; bit++) {
        let one = (key >> (params.shift + bit)) & 1u;
        sums[local] = 1u - one;
        workgroupBarrier();
        for (var step = 1u; step < 256u; step <<= 1u) {
            var left = 0u;
            if local >= step {
                left = sums[local - step];
            }
            workgroupBarrier();
            sums[local] += left;
            workgroupBarrier();
        }
        let zeros = sums[255];
        var place = sums[local] - 1u;
        if one == 1u {
            place = zeros + local - sums[local];
        }
        run[place] = key;
        workgroupBarrier();
        key = run[local];
        workgroupBarrier();
    }
    ordered[id.x] = key;
    if local < 16u {
        digits[group.x * 16u + local] = atomicLoad(&counts[local]);
    }
}
