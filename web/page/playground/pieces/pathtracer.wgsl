// Light found by chance: each frame sends one more path a pixel through a small room, and the mean grows clear. A click starts over.
struct View {
    resolution: vec2f,
    frame: u32,
    mouse: vec3f,
    bounces: u32,
}
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> sum: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> picture: array<u32>;

var<private> state: u32;

fn chance() -> f32 {
    state = state * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return f32(((word >> 22u) ^ word) >> 8u) / 16777216.0;
}

fn ball(i: u32) -> vec4f {
    switch i {
        case 0u: { return vec4f(-0.45, -0.62, -0.25, 0.38); }
        case 1u: { return vec4f(0.42, -0.66, 0.12, 0.34); }
        case 2u: { return vec4f(0.02, -0.82, 0.62, 0.18); }
        default: { return vec4f(0.0, 1.85, 0.0, 1.0); }
    }
}

fn ball_color(i: u32) -> vec3f {
    switch i {
        case 0u: { return vec3f(0.96, 0.95, 0.93); }
        case 1u: { return vec3f(0.90, 0.66, 0.25); }
        default: { return vec3f(0.35, 0.62, 0.80); }
    }
}

@compute @workgroup_size(8, 8)
fn trace(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2u(view.resolution);
    if any(id.xy >= size) { return; }
    let i = id.y * size.x + id.x;
    state = i * 9781u + view.frame * 26699u + 1u;
    state = u32(chance() * 16777216.0) * 7919u + view.frame;
    let p = ((vec2f(id.xy) + vec2f(chance(), chance())) * 2.0 - view.resolution) / view.resolution.y;
    var from_ = vec3f(0.0, 0.0, 3.4);
    var ray = normalize(vec3f(p.x, -p.y, -2.6));
    var weight = vec3f(1.0);
    var light = vec3f();
    for (var bounce = 0u; bounce < view.bounces; bounce++) {
        // The room's five walls, from -1 to 1; the front is open.
        var far = 1e9;
        var normal = vec3f();
        var color = vec3f(0.80, 0.78, 0.74);
        for (var axis = 0u; axis < 3u; axis++) {
            let way = ray[axis];
            if abs(way) < 1e-6 { continue; }
            let wall = select(-1.0, 1.0, way > 0.0);
            let t = (wall - from_[axis]) / way;
            if t > 1e-4 && t < far && !(axis == 2u && wall > 0.0) {
                far = t;
                normal = vec3f();
                normal[axis] = -wall;
                color = vec3f(0.80, 0.78, 0.74);
                if axis == 0u { color = select(vec3f(0.72, 0.16, 0.12), vec3f(0.16, 0.45, 0.26), wall > 0.0); }
            }
        }
        var hit = 9u;
        for (var b = 0u; b < 4u; b++) {
            let sphere = ball(b);
            let to = sphere.xyz - from_;
            let along = dot(to, ray);
            let root = sphere.w * sphere.w - dot(to, to) + along * along;
            if root > 0.0 {
                let t = along - sqrt(root);
                if t > 1e-3 && t < far {
                    far = t;
                    hit = b;
                    normal = normalize(from_ + ray * t - sphere.xyz);
                    color = ball_color(b);
                }
            }
        }
        if far > 1e8 { break; }
        if hit == 3u {
            light += weight * vec3f(7.5, 6.6, 5.4);
            break;
        }
        from_ += ray * far + normal * 1e-4;
        weight *= color;
        if hit == 0u {
            ray = reflect(ray, normal);
        } else {
            // A direction about the normal, by its cosine.
            let u = 2.0 * chance() - 1.0;
            let angle = 6.2832 * chance();
            let around = sqrt(1.0 - u * u) * vec2f(cos(angle), sin(angle));
            let diffuse = normalize(normal + vec3f(around, u) * 0.999);
            ray = select(diffuse, normalize(reflect(ray, normal) + 0.25 * diffuse), hit == 1u);
        }
    }
    var total = sum[i] + vec4f(min(light, vec3f(12.0)), 1.0);
    if view.mouse.z > 0.0 || view.frame == 0u { total = vec4f(light, 1.0); }
    sum[i] = total;
    let mean = total.rgb / total.w;
    picture[i] = pack4x8unorm(vec4f(pow(mean / (mean + 0.6) * 1.35, vec3f(0.62)), 1.0));
}
