// The sum of each block of 64 numbers.
@group(0) @binding(0) var<storage> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> part: array<u32, 64>;

@compute @workgroup_size(64)
fn sum(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(workgroup_id) block: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    part[lane] = select(0u, numbers[min(id.x, arrayLength(&numbers) - 1u)], id.x < arrayLength(&numbers));
    for (var step = 32u; step > 0u; step /= 2u) {
        workgroupBarrier();
        if lane < step { part[lane] += part[lane + step]; }
    }
    if lane == 0u { sums[block.x] = part[0]; }
}
