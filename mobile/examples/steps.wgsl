struct Grid { weights: vec2u }
override factor: u32 = 2;
@group(0) @binding(0) var<uniform> grid: Grid;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

// Two rows of four in each workgroup; eight columns.
@compute @workgroup_size(4, 2)
fn steps(@builtin(global_invocation_id) id: vec3u) {
    counts[id.y * 8 + id.x] += factor * (grid.weights.x * id.x + grid.weights.y * id.y);
}

@compute @workgroup_size(1)
fn clear() {
    counts[0] = 0;
}
