// One step of heat through a plate, by Jacobi's method: each place becomes the mean of its four neighbours. The rim stays.

struct Plate { width: u32, height: u32 }
@group(0) @binding(0) var<uniform> plate: Plate;
@group(0) @binding(1) var<storage> before: array<f32>;
@group(0) @binding(2) var<storage, read_write> after: array<f32>;

@compute @workgroup_size(16, 16)
fn heat(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= plate.width || id.y >= plate.height { return; }
    let at = id.y * plate.width + id.x;
    if id.x == 0 || id.y == 0 || id.x == plate.width - 1 || id.y == plate.height - 1 {
        after[at] = before[at];
        return;
    }
    after[at] = 0.25 * (before[at - 1] + before[at + 1] + before[at - plate.width] + before[at + plate.width]);
}
