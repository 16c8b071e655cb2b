// Steps until z = z^2 + c leaves the circle of radius 2, at most `limit`: c over [-2, 1] x [-1.5, 1.5].

struct Picture {
    width: u32,
    height: u32,
    limit: u32,
}

@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read_write> steps: array<u32>;

@compute @workgroup_size(16, 16)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= picture.width || id.y >= picture.height {
        return;
    }
    let c_x = f32(id.x) * (3.0 / f32(picture.width)) - 2.0;
    let c_y = f32(id.y) * (3.0 / f32(picture.height)) - 1.5;
    var x = 0.0;
    var y = 0.0;
    var n = 0u;
    while n < picture.limit && x * x + y * y <= 4.0 {
        let next = x * x - y * y + c_x;
        y = 2.0 * x * y + c_y;
        x = next;
        n++;
    }
    steps[id.y * picture.width + id.x] = n;
}
