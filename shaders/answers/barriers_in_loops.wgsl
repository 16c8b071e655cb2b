// Values walk around a ring, a step per round, with two barriers in each.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

var<workgroup> ring: array<u32, 64>;

@compute @workgroup_size(64)
fn barriers_in_loops(@builtin(local_invocation_index) place: u32) {
    ring[place] = place;
    workgroupBarrier();
    for (var round = 0u; round < given[0]; round++) {
        let next = ring[(place + 1u) % 64u];
        workgroupBarrier();
        ring[place] = next;
        workgroupBarrier();
    }
    answer[place] = ring[place];
}
