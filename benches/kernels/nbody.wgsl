// Gravity of all bodies on each, one after the other: the acceleration of each body.

struct Params { count: u32, softening: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bodies: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> accelerations: array<vec4f>;

@compute @workgroup_size(64)
fn nbody(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i >= params.count { return; }
    let place = bodies[i].xyz;
    var sum = vec3f(0.0);
    for (var j = 0u; j < params.count; j++) {
        let other = bodies[j];
        let way = other.xyz - place;
        let squared = dot(way, way) + params.softening;
        let inverse = inverseSqrt(squared);
        sum += way * (other.w * inverse * inverse * inverse);
    }
    accelerations[i] = vec4f(sum, 0.0);
}
