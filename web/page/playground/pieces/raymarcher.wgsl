// A scene of distances: each ray steps on by how far the nearest surface is. Light, shadow and mist from the same function.
struct View {
    resolution: vec2f,
    time: f32,
    mouse: vec3f,
    blend: f32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

fn soft_min(a: f32, b: f32, k: f32) -> f32 {
    let h = clamp(0.5 + 0.5 * (b - a) / k, 0.0, 1.0);
    return mix(b, a, h) - k * h * (1.0 - h);
}

fn scene(p: vec3f) -> f32 {
    let t = view.time;
    let ball = length(p - vec3f(0.75 * sin(t * 0.9), 0.55 + 0.35 * sin(t * 1.3), 0.75 * cos(t * 0.9))) - 0.42;
    let second = length(p - vec3f(-0.6 * sin(t * 0.7), 0.8, -0.6 * cos(t * 1.1))) - 0.33;
    let ring = length(vec2f(length(p.xz) - 0.95, p.y - 0.35)) - 0.2;
    let shapes = soft_min(soft_min(ball, ring, view.blend), second, view.blend);
    return min(shapes, p.y + 0.15);
}

@compute @workgroup_size(8, 8)
fn march(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let p = (vec2f(id.xy) * 2.0 - view.resolution) / view.resolution.y;
    let angle = 0.25 * view.time + view.mouse.x / view.resolution.x * 6.2832;
    let eye = vec3f(3.1 * cos(angle), 1.7, 3.1 * sin(angle));
    let forward = normalize(vec3f(0.0, 0.35, 0.0) - eye);
    let right = normalize(cross(forward, vec3f(0.0, 1.0, 0.0)));
    let ray = normalize(forward * 1.7 + right * p.x - cross(right, forward) * p.y);
    var far = 0.0;
    var near = 1.0;
    for (var i = 0; i < 56 && near > 0.002 && far < 9.0; i++) {
        near = scene(eye + ray * far);
        far += near;
    }
    let sky = mix(vec3f(0.94, 0.80, 0.66), vec3f(0.42, 0.60, 0.74), clamp(0.5 - p.y * 0.5, 0.0, 1.0));
    var color = sky;
    if far < 9.0 {
        let at = eye + ray * far;
        let e = vec2f(0.003, 0.0);
        let normal = normalize(vec3f(scene(at + e.xyy) - scene(at - e.xyy), scene(at + e.yxy) - scene(at - e.yxy), scene(at + e.yyx) - scene(at - e.yyx)));
        let light = normalize(vec3f(0.7, 0.9, 0.25));
        var shadow = 1.0;
        var step = 0.05;
        for (var i = 0; i < 16 && step < 3.0; i++) {
            let open = scene(at + normal * 0.01 + light * step);
            shadow = min(shadow, 9.0 * open / step);
            step += clamp(open, 0.04, 0.4);
        }
        let lit = max(dot(normal, light), 0.0) * clamp(shadow, 0.0, 1.0);
        let tile = select(0.85, 1.0, (i32(floor(at.x * 2.0)) + i32(floor(at.z * 2.0))) % 2 == 0);
        let base = select(vec3f(0.86, 0.36, 0.22), vec3f(0.78, 0.76, 0.70) * tile, at.y < -0.14);
        let open_sky = 0.5 + 0.5 * normal.y;
        let gleam = pow(max(dot(reflect(ray, normal), light), 0.0), 24.0) * 0.35 * clamp(shadow, 0.0, 1.0);
        color = base * (vec3f(1.25, 1.1, 0.9) * lit + vec3f(0.30, 0.36, 0.45) * open_sky) + gleam;
        color = mix(color, sky, 1.0 - exp(-0.02 * far * far));
    }
    picture[id.y * size.x + id.x] = pack4x8unorm(vec4f(sqrt(clamp(color * color * 1.05, vec3f(0.0), vec3f(1.0))), 1.0));
}
