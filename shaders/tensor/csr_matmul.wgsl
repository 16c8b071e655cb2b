// An invocation makes an element of a product of a sparse matrix and a dense one: words[0] = (rows, columns of the dense one). Given:
// start(i) -> u32, where the entries of row i begin and those of the one before it end; column(entry) -> u32; value_of(entry) -> f32;
// dense(row, column) -> f32; store(row, column, value).

@compute @workgroup_size(64)
fn csr_matmul(@builtin(global_invocation_id) id: vec3u) {
    let width = words[0].y;
    if id.x >= words[0].x * width { return; }
    let row = id.x / width;
    let at = id.x % width;
    let end = start(row + 1u);
    var sum = 0.0;
    for (var i = start(row); i < end; i++) { sum += value_of(i) * dense(column(i), at); }
    store(row, at, sum);
}
