// For runs of buckets: the sum of k times the k-th, from 1, and the sum of all. Buckets without a sum are 0xffffffff among the places.
struct Sizes { count: u32, run: u32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage> places: array<u32>;
@group(0) @binding(2) var<storage> sums: array<Point>;
@group(0) @binding(3) var<storage, read_write> y: array<Point>;

@compute @workgroup_size(64)
fn msm_weigh(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= sizes.count { return; }
    var running = infinity();
    var weighted = infinity();
    for (var left = sizes.run; left > 0u; left--) {
        let place = places[id.x * sizes.run + left - 1u];
        if place != 0xffffffffu { running = point_add(running, sums[place]); }
        weighted = point_add(weighted, running);
    }
    y[2u * id.x] = weighted;
    y[2u * id.x + 1u] = running;
}
