// Golden-ratio spiral: sin(10 PHI_PHI r + PHI a) on [-1, 1] x [-1, 1], row-major, with (r, a) the polar coordinates.
// One invocation per value; x is the column.
// Definition and tolerance: docs of cantus::ops::phi_pattern.
import package::lib::grid::{Grid, unit_point};
import package::lib::math::{PHI, accurate_atan2, accurate_sin_product};

// 10 PHI_PHI; the first part has 12 significant bits.
const WAVE_NUMBER = vec2f(21.78125, 0.0033256793759939285);

@group(0) @binding(0) var<uniform> grid: Grid;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;

@compute @workgroup_size(256, 1, 1)
fn phi_pattern(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= grid.tile_width) | (id.y >= grid.tile_height) { return; }
    let p = unit_point(grid, id.xy);
    let distance = sqrt(p.x * p.x + p.y * p.y);
    let angle = accurate_atan2(p.y, p.x);
    values[id.y * grid.tile_width + id.x] = accurate_sin_product(WAVE_NUMBER, distance, PHI * angle);
}
