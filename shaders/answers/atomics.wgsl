// Four workgroups of 64 count in storage and in workgroup memory.
@group(0) @binding(0) var<storage, read_write> answer: array<atomic<u32>>;

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(64)
fn atomics(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) place: u32) {
    atomicAdd(&answer[0], id.x);
    atomicMax(&answer[1], id.x ^ 0x55u);
    atomicXor(&answer[2], 1u << (id.x % 32u));
    atomicOr(&answer[3], 1u << (id.x % 32u));
    atomicAdd(&total, place + 1u);
    workgroupBarrier();
    if place == 0u { atomicAdd(&answer[4], atomicLoad(&total)); }
    // A count that only a compare-and-exchange makes; each round one invocation succeeds.
    loop {
        let seen = atomicLoad(&answer[5]);
        if atomicCompareExchangeWeak(&answer[5], seen, seen + 3u).exchanged { break; }
    }
}
