// The ids of a dispatch in three dimensions.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

@compute @workgroup_size(4, 2, 2)
fn ids(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) place: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) count: vec3u,
) {
    let side = count * vec3u(4u, 2u, 2u);
    let fits = all(id == group * vec3u(4u, 2u, 2u) + local) && place == local.x + 4u * local.y + 8u * local.z;
    answer[id.x + side.x * (id.y + side.y * id.z)] = select(0u, 1000000u, fits) + id.x + 100u * id.y + 10000u * id.z;
}
