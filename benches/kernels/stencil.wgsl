// A 3 x 3 filter over an image; beyond the rim lies the nearest pixel.

struct Params { width: i32, height: i32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> image: array<f32>;
@group(0) @binding(2) var<storage, read_write> filtered: array<f32>;

const WEIGHTS = array<f32, 9>(1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0);

@compute @workgroup_size(16, 16)
fn stencil(@builtin(global_invocation_id) id: vec3u) {
    let x = i32(id.x);
    let y = i32(id.y);
    if x >= params.width || y >= params.height { return; }
    var weights = WEIGHTS;
    var sum = 0.0;
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            let column = clamp(x + dx, 0, params.width - 1);
            let row = clamp(y + dy, 0, params.height - 1);
            sum += weights[(dy + 1) * 3 + dx + 1] * image[row * params.width + column];
        }
    }
    filtered[y * params.width + x] = sum / 16.0;
}
