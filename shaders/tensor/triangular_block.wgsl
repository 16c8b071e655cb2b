// An invocation solves a triangular system of at most 32 unknowns for one column on the right: words[0] = (unknowns, columns, matrices).
// Given: UPPER, whether the triangle is the upper one; UNIT, whether its diagonal counts as 1; matrix(batch, row, column) -> f32,
// right(batch, row, column) -> f32; y.

@compute @workgroup_size(64)
fn triangular_block(@builtin(global_invocation_id) id: vec3u) {
    let n = words[0].x;
    let columns = words[0].y;
    if id.x >= words[0].z * columns { return; }
    let batch = id.x / columns;
    let column = id.x % columns;
    var solved: array<f32, 32>;
    for (var step = 0u; step < n; step++) {
        let row = select(step, n - 1u - step, UPPER);
        var value = right(batch, row, column);
        for (var earlier = 0u; earlier < step; earlier++) {
            value -= matrix(batch, row, select(earlier, n - 1u - earlier, UPPER)) * solved[earlier];
        }
        if !UNIT { value /= matrix(batch, row, row); }
        solved[step] = value;
        y[(batch * n + row) * columns + column] = value;
    }
}
