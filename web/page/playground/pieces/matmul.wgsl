// c = a b for square matrices, by tiles of 16 x 16 in workgroup memory.
struct Size {
    side: u32,
}
@group(0) @binding(0) var<uniform> size: Size;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

var<workgroup> left: array<f32, 256>;
var<workgroup> right: array<f32, 256>;

@compute @workgroup_size(16, 16)
fn matmul(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_id) at: vec3u,
) {
    let n = size.side;
    let lane = at.y * 16u + at.x;
    var sum = 0.0;
    for (var tile = 0u; tile < n; tile += 16u) {
        // Nobody may still read the tile before.
        workgroupBarrier();
        left[lane] = select(0.0, a[id.y * n + tile + at.x], id.y < n && tile + at.x < n);
        right[lane] = select(0.0, b[(tile + at.y) * n + id.x], tile + at.y < n && id.x < n);
        workgroupBarrier();
        for (var k = 0u; k < 16u; k++) {
            sum += left[at.y * 16u + k] * right[k * 16u + at.x];
        }
    }
    if id.x < n && id.y < n {
        c[id.y * n + id.x] = sum;
    }
}
