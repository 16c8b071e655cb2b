// The nearest of 32 centres for each point of four dimensions.

struct Params { count: u32, centres: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> points: array<vec4f>;
@group(0) @binding(2) var<storage, read> centres: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> nearest: array<u32>;

@compute @workgroup_size(128)
fn kmeans(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.count { return; }
    let point = points[id.x];
    var best = 0u;
    var least = 1e30;
    for (var k = 0u; k < params.centres; k++) {
        let way = point - centres[k];
        let squared = dot(way, way);
        if squared < least {
            least = squared;
            best = k;
        }
    }
    nearest[id.x] = best;
}
