const SIDE = 16u;
@group(0) @binding(0) var<storage> a: array<f32>;
@group(0) @binding(1) var<storage> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> left: array<array<f32, SIDE>, SIDE>;
var<workgroup> right: array<array<f32, SIDE>, SIDE>;

@compute @workgroup_size(SIDE, SIDE)
fn multiply(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) here: vec3u) {
    let width = SIDE * 4u;
    var sum = 0.0;
    for (var tile = 0u; tile < width; tile += SIDE) {
        left[here.y][here.x] = a[id.y * width + tile + here.x];
        right[here.y][here.x] = b[(tile + here.y) * width + id.x];
        workgroupBarrier();
        for (var k = 0u; k < SIDE; k++) {
            sum = fma(left[here.y][k], right[k][here.x], sum);
        }
        workgroupBarrier();
    }
    c[id.y * width + id.x] = sum;
}
