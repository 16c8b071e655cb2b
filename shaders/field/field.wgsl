// Damped spiral wave: sin(0.01 f r + PHI a + PHI_PHI t) exp(-LAMBDA r) on [-1, 1] x [-1, 1], row-major, with
// r = PHI sqrt(x^2 + y^2) and a = atan2(y, x). One invocation per value; x is the column.
// Definition and tolerance: docs of cantus::ops::field.
import package::lib::grid::{Grid, unit_point};
import package::lib::math::{PHI, accurate_atan2, accurate_exp, accurate_sin_product};

struct Wave {
    // 0.01 f PHI, radians per unit of length, in two parts: the first has 12 significant bits.
    number: vec2f,
    // PHI_PHI t, reduced to [-pi, pi].
    phase: f32,
}

@group(0) @binding(0) var<uniform> grid: Grid;
@group(0) @binding(1) var<uniform> wave: Wave;
@group(0) @binding(2) var<storage, read_write> values: array<f32>;

@compute @workgroup_size(256, 1, 1)
fn field(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= grid.tile_width) | (id.y >= grid.tile_height) { return; }
    let p = unit_point(grid, id.xy);
    let distance = sqrt(p.x * p.x + p.y * p.y);
    let angle = accurate_atan2(p.y, p.x);
    // LAMBDA r is the distance itself: LAMBDA PHI = 1.
    let value = accurate_sin_product(wave.number, distance, PHI * angle + wave.phase) * accurate_exp(-distance);
    values[id.y * grid.tile_width + id.x] = value;
}
