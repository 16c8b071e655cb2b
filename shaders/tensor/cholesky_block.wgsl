// A workgroup makes the Cholesky factor of a symmetric matrix of at most 32 rows: words[0] = (rows). Given: element(batch, row, column) -> f32,
// of which the lower triangle is read; y, which has for each matrix the factor, 0 above the diagonal, then 1 where all pivots were positive.

const LANES = 64u;

@compute @workgroup_size(LANES)
fn cholesky_block(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let n = words[0].x;
    let base = group.x * (n * n + 1u);
    for (var i = lane; i < n * n; i += LANES) {
        var value = 0.0;
        if i % n <= i / n { value = element(group.x, i / n, i % n); }
        y[base + i] = value;
    }
    var positive = 1.0;
    storageBarrier();
    for (var j = 0u; j < n; j++) {
        let pivot = y[base + j * n + j];
        // Nor is NaN positive.
        if !(pivot > 0.0) { positive = 0.0; }
        let root = sqrt(max(pivot, 0.0));
        storageBarrier();
        if positive != 0.0 {
            for (var i = j + lane; i < n; i += LANES) { y[base + i * n + j] = select(y[base + i * n + j] / root, root, i == j); }
        }
        storageBarrier();
        let c = lane % 32u;
        if c > j && c < n {
            let factor = y[base + c * n + j];
            // A row before the column has nothing to store.
            for (var i = max(c, j + 1u) + lane / 32u; i < n; i += LANES / 32u) {
                y[base + i * n + c] -= y[base + i * n + j] * factor;
            }
        }
        storageBarrier();
    }
    if lane == 0u { y[base + n * n] = positive; }
}
