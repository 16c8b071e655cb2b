// A tile of a matrix product by each workgroup, 4 PARTS x 4 PARTS values by each invocation. words[0] = (rows, columns, depth of the
// product). Given: load_a(batch, row, k) -> f32, load_b(batch, k, column) -> f32, store(batch, row, column, value); and, written out for
// each of an invocation's vectors: the sums, a step of all of them, and their storing.

// Invocations along each side of a workgroup.
const SIDE = 16u;
// Steps of the depth that are in workgroup memory at a time.
const DEPTH = 16u;
// Vectors of four that an invocation takes from each tile in a step.
const PARTS = 1u;
// Neighbouring invocations read along k of a, and along the columns of b, where these are true.
const A_ALONG_K = true;
const B_ALONG_COLUMNS = true;

const LANES = SIDE * SIDE;
const VECTORS = SIDE * PARTS;
const TILE = 4u * VECTORS;

// By k, then by row of a or column of b.
var<workgroup> tile_a: array<vec4f, DEPTH * VECTORS>;
var<workgroup> tile_b: array<vec4f, DEPTH * VECTORS>;

fn element_a(batch: u32, row: u32, k: u32) -> f32 {
    if row < words[0].x && k < words[0].z { return load_a(batch, row, k); }
    return 0.0;
}

fn element_b(batch: u32, k: u32, column: u32) -> f32 {
    if column < words[0].y && k < words[0].z { return load_b(batch, k, column); }
    return 0.0;
}

fn store_row(batch: u32, row: u32, column: u32, values: vec4f) {
    if row >= words[0].x { return; }
    if column < words[0].y { store(batch, row, column, values.x); }
    if column + 1u < words[0].y { store(batch, row, column + 1u, values.y); }
    if column + 2u < words[0].y { store(batch, row, column + 2u, values.z); }
    if column + 3u < words[0].y { store(batch, row, column + 3u, values.w); }
}

@compute @workgroup_size(SIDE, SIDE)
fn matmul(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let batch = group.z;
    let row = group.y * TILE;
    let column = group.x * TILE;
    // SUMS
    for (var base = 0u; base < words[0].z; base += DEPTH) {
        for (var i = lane; i < DEPTH * VECTORS; i += LANES) {
            let d = select(i / VECTORS, i % DEPTH, A_ALONG_K);
            let r = select(i % VECTORS, i / DEPTH, A_ALONG_K);
            let begin = row + 4u * r;
            let k = base + d;
            tile_a[d * VECTORS + r] = vec4f(
                element_a(batch, begin, k),
                element_a(batch, begin + 1u, k),
                element_a(batch, begin + 2u, k),
                element_a(batch, begin + 3u, k),
            );
        }
        for (var i = lane; i < DEPTH * VECTORS; i += LANES) {
            let d = select(i % DEPTH, i / VECTORS, B_ALONG_COLUMNS);
            let c = select(i / DEPTH, i % VECTORS, B_ALONG_COLUMNS);
            let begin = column + 4u * c;
            let k = base + d;
            tile_b[d * VECTORS + c] = vec4f(
                element_b(batch, k, begin),
                element_b(batch, k, begin + 1u),
                element_b(batch, k, begin + 2u),
                element_b(batch, k, begin + 3u),
            );
        }
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            // STEP
        }
        workgroupBarrier();
    }
    let to_row = row + 4u * PARTS * local.y;
    let to_column = column + 4u * PARTS * local.x;
    // STORE
}
