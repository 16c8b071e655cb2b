// 70,000 workgroups along x: more than most devices take in one dimension.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

@compute @workgroup_size(2)
fn large_dispatch(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) count: vec3u,
) {
    answer[id.x] = group.x * 2u + select(0u, 1u, count.x == 70000u && id.x / 2u == group.x);
}
