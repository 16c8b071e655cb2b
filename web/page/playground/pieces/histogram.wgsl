// How often values of 0 to 1 fall into each of 64 bins. Each workgroup counts for itself first.
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 64>;

var<workgroup> own: array<atomic<u32>, 64>;

@compute @workgroup_size(64)
fn histogram(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if id.x < arrayLength(&values) {
        let v = values[id.x];
        // Two waves over even noise: low and high values are the most frequent.
        let wave = 0.5 + 0.25 * (sin(v * 97.0) + sin(v * 331.0));
        atomicAdd(&own[u32(clamp(wave, 0.0, 0.999) * 64.0)], 1u);
    }
    workgroupBarrier();
    atomicAdd(&bins[lane], atomicLoad(&own[lane]));
}
