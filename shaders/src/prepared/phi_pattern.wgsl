// Golden-ratio spiral: sin(10 PHI_PHI r + PHI a) on [-1, 1] x [-1, 1], row-major, with (r, a) the polar coordinates.
// One invocation per value; x is the column.
// Definition and tolerance: docs of cantus::ops::phi_pattern.



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

// lib/grid.wgsl
struct Grid {
    // The whole grid.
    width: u32,
    height: u32,
    // Where the tile begins in it, and its size: whole grids are one tile that begins at 0, 0.
    first_column: u32,
    first_row: u32,
    tile_width: u32,
    tile_height: u32,
}
fn unit_coordinate(i: u32, n: u32) -> f32 {
    let last = max(n, 2u) - 1u;
    return (f32(i) - f32(last - i)) / f32(last);
}
fn unit_point(grid: Grid, id: vec2u) -> vec2f {
    return vec2f(
        unit_coordinate(grid.first_column + id.x, grid.width),
        unit_coordinate(grid.first_row + id.y, grid.height),
    );
}

// lib/math.wgsl
const PHI: f32 = 1.618033988749895;
const PI: f32 = 3.141592653589793;
const HALF_PI: f32 = 1.5707963267948966;
const PER_PI: f32 = 0.3183098861837907;
const PI_1: f32 = 3.140625;
const PI_2: f32 = 9.67502593994140625e-4;
const PI_3: f32 = 1.5099580252808664e-7;
fn sin_half_turns(t: f32, n: f32, odd: bool) -> f32 {
    let r = (t - n * PI_2) - n * PI_3;
    let s = r * r;
    let p = ((2.60606748e-6 * s - 1.9809806e-4) * s + 8.33306275e-3) * s - 0.166666582;
    let sine = s * r * p + r;
    return select(sine, -sine, odd);
}
fn accurate_sin_product(k: vec2f, r: f32, phase: f32) -> f32 {
    let r_high = bitcast<f32>(bitcast<u32>(r) & 0xfffff000u);
    let product = k.x * r_high;
    let rest = k.x * (r - r_high) + k.y * r + phase;
    let n = round((product + rest) * PER_PI);
    let t = clamp(product - n * PI_1, -64.0, 64.0);
    return sin_half_turns(t + rest, n, (i32(n) & 1) != 0);
}
fn accurate_atan2(y: f32, x: f32) -> f32 {
    let ax = abs(x);
    let ay = abs(y);
    let a = min(ax, ay) / max(max(ax, ay), 1.17549435e-38);
    let s = a * a;
    var p = (2.91944528e-3 * s - 1.63632408e-2) * s + 4.32047658e-2;
    p = ((p * s - 7.55166113e-2) * s + 0.106657691) * s - 0.14211002;
    p = (p * s + 0.199937671) * s - 0.333331525;
    let octant = s * a * p + a;
    let quadrant = select(octant, HALF_PI - octant, ay > ax);
    let half_plane = select(quadrant, PI - quadrant, x < 0.0);
    return select(half_plane, -half_plane, y < 0.0);
}
