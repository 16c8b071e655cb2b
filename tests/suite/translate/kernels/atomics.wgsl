struct Counters { low: atomic<u32>, high: atomic<i32>, slots: array<atomic<u32>, 16> }
@group(0) @binding(0) var<storage, read_write> counters: Counters;
@group(0) @binding(1) var<storage, read_write> claimed: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    atomicMin(&counters.low, id.x);
    let before = atomicMax(&counters.high, i32(id.x) - 100);
    let slot = id.x % 16u;
    let taken = atomicCompareExchangeWeak(&counters.slots[slot], 0u, id.x + 1u);
    if taken.exchanged { claimed[slot] = taken.old_value + u32(before); }
    atomicStore(&counters.slots[(slot + 1u) % 16u], atomicExchange(&counters.slots[slot], 7u));
}
