// Points of a grid on the square [-1, 1] x [-1, 1], and the tile of it that one dispatch computes.

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

// -1 + 2 i / (n - 1), or -1 if n is 1.
//
// As (i - (n - 1 - i)) / (n - 1): whole numbers, exact up to n = 2^24, so that only the division rounds, the middle is
// exactly 0 and the two halves mirror each other. Beyond 2^24 the conversions round too, to an error below 2e-7.
fn unit_coordinate(i: u32, n: u32) -> f32 {
    let last = max(n, 2u) - 1u;
    return (f32(i) - f32(last - i)) / f32(last);
}

// The point of column `id.x` and row `id.y` of the tile.
fn unit_point(grid: Grid, id: vec2u) -> vec2f {
    return vec2f(
        unit_coordinate(grid.first_column + id.x, grid.width),
        unit_coordinate(grid.first_row + id.y, grid.height),
    );
}
