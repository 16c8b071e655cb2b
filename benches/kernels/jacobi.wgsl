// One step of Jacobi's method on a grid of five points: the mean of four neighbours; the rim stays.

struct Params { width: u32, height: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> before: array<f32>;
@group(0) @binding(2) var<storage, read_write> after: array<f32>;

@compute @workgroup_size(16, 16)
fn jacobi(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.width || id.y >= params.height { return; }
    let at = id.y * params.width + id.x;
    if id.x == 0u || id.y == 0u || id.x == params.width - 1u || id.y == params.height - 1u {
        after[at] = before[at];
        return;
    }
    after[at] = 0.25 * (before[at - 1u] + before[at + 1u] + before[at - params.width] + before[at + params.width]);
}
