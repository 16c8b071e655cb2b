// What the invocations of a subgroup say about each other fits.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

@compute @workgroup_size(128)
fn subgroups(
    @builtin(local_invocation_index) place: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let count = subgroupAdd(1u);
    let before = subgroupExclusiveAdd(1u);
    let largest = subgroupMax(lane);
    let first = subgroupBroadcastFirst(place);
    let swapped = subgroupShuffleXor(lane, 1u);
    answer[place] = select(0u, 1u, count == size) | select(0u, 2u, before == lane) | select(0u, 4u, largest == size - 1u)
        | select(0u, 8u, first == subgroupBroadcast(place, 0u)) | select(0u, 16u, swapped == (lane ^ 1u));
}
