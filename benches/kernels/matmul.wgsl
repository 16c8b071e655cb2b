// c = a b, square matrices of a multiple of 16 rows, by tiles of 16 x 16 in workgroup memory.

@group(0) @binding(0) var<uniform> side: u32;
@group(0) @binding(1) var<storage> a: array<f32>;
@group(0) @binding(2) var<storage> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

const TILE = 16u;

var<workgroup> a_tile: array<f32, TILE * TILE>;
var<workgroup> b_tile: array<f32, TILE * TILE>;

@compute @workgroup_size(TILE, TILE)
fn matmul(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let row = group.y * TILE + local.y;
    let column = group.x * TILE + local.x;
    var sum = 0.0;
    for (var tile = 0u; tile < side / TILE; tile++) {
        a_tile[local.y * TILE + local.x] = a[row * side + tile * TILE + local.x];
        b_tile[local.y * TILE + local.x] = b[(tile * TILE + local.y) * side + column];
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += a_tile[local.y * TILE + k] * b_tile[k * TILE + local.x];
        }
        workgroupBarrier();
    }
    c[row * side + column] = sum;
}
