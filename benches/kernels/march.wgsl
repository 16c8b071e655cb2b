// Spheres on a plane, by marching along each ray until something is near; normals by differences.

struct Params { width: u32, height: u32, time: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> picture: array<f32>;

fn sphere(at: vec3f, centre: vec3f, radius: f32) -> f32 {
    return length(at - centre) - radius;
}

fn scene(at: vec3f) -> f32 {
    let cell = vec3f(at.x - 4.0 * round(at.x / 4.0), at.y, at.z - 4.0 * round(at.z / 4.0));
    let ball = sphere(cell, vec3f(0.0, 0.2 * sin(params.time), 0.0), 1.0);
    let box = length(max(abs(cell - vec3f(2.0, 0.0, 0.0)) - vec3f(0.4), vec3f(0.0))) - 0.1;
    return min(min(ball, box), at.y + 1.0);
}

fn normal(at: vec3f) -> vec3f {
    let h = 0.001;
    return normalize(vec3f(
        scene(at + vec3f(h, 0.0, 0.0)) - scene(at - vec3f(h, 0.0, 0.0)),
        scene(at + vec3f(0.0, h, 0.0)) - scene(at - vec3f(0.0, h, 0.0)),
        scene(at + vec3f(0.0, 0.0, h)) - scene(at - vec3f(0.0, 0.0, h)),
    ));
}

@compute @workgroup_size(8, 8)
fn march(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.width || id.y >= params.height { return; }
    let size = vec2f(f32(params.width), f32(params.height));
    let pixel = (2.0 * (vec2f(id.xy) + 0.5) - size) / size.y;
    let origin = vec3f(0.0, 1.5, -6.0);
    let ray = normalize(vec3f(pixel.x, -pixel.y - 0.2, 1.5));
    var distance = 0.0;
    var hit = false;
    for (var step = 0; step < 96; step++) {
        let near = scene(origin + distance * ray);
        if near < 0.001 {
            hit = true;
            break;
        }
        distance += near;
        if distance > 40.0 { break; }
    }
    var light = 0.1;
    if hit {
        let at = origin + distance * ray;
        light = (0.2 + 0.8 * max(dot(normal(at), normalize(vec3f(0.5, 1.0, -0.7))), 0.0)) * exp(-0.05 * distance);
    }
    picture[id.y * params.width + id.x] = light;
}
