// y = x / sqrt(mean(x * x) + EPSILON) * weight for each row: a workgroup for each, a tree over workgroup memory.

struct Params {
    rows: u32,
    quads: u32,
}

override WIDTH: u32 = 64u;
override EPSILON: f32 = 1e-5;

@group(0) @binding(0) var<storage> x: array<vec4f>;
@group(0) @binding(1) var<storage> weight: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> partial: array<f32, WIDTH>;

@compute @workgroup_size(WIDTH)
fn rms_norm(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
    if group.x >= params.rows {
        return;
    }
    let row = group.x * params.quads;
    var sum = 0.0;
    for (var k = t; k < params.quads; k += WIDTH) {
        let v = x[row + k];
        sum += dot(v, v);
    }
    partial[t] = sum;
    workgroupBarrier();
    for (var half = WIDTH / 2u; half > 0u; half /= 2u) {
        if t < half {
            partial[t] += partial[t + half];
        }
        workgroupBarrier();
    }
    let factor = inverseSqrt(partial[0] / f32(params.quads * 4u) + EPSILON);
    for (var k = t; k < params.quads; k += WIDTH) {
        y[row + k] = x[row + k] * factor * weight[k];
    }
}
