// Fourier transforms of 1,024 complex numbers each, by five rounds of radix 4 in workgroup memory (Stockham's order).

@group(0) @binding(0) var<storage, read> signal: array<vec2f>;
@group(0) @binding(1) var<storage, read_write> spectrum: array<vec2f>;

const TAU = 6.283185307179586;
var<workgroup> line: array<vec2f, 1024>;

fn times(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(256)
fn fft(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3u) {
    let base = group.x * 1024u;
    for (var k = 0u; k < 4u; k++) {
        line[local + k * 256u] = signal[base + local + k * 256u];
    }
    for (var width = 1u; width < 1024u; width *= 4u) {
        workgroupBarrier();
        let within = local % width;
        var v: array<vec2f, 4>;
        for (var k = 0u; k < 4u; k++) {
            let angle = -TAU * f32(within * k) / f32(width * 4u);
            v[k] = times(line[local + k * 256u], vec2f(cos(angle), sin(angle)));
        }
        let even = v[0] + v[2];
        let difference = v[0] - v[2];
        let odd = v[1] + v[3];
        let turned = vec2f(v[1].y - v[3].y, v[3].x - v[1].x);
        let place = (local / width) * width * 4u + within;
        workgroupBarrier();
        line[place] = even + odd;
        line[place + width] = difference + turned;
        line[place + 2u * width] = even - odd;
        line[place + 3u * width] = difference - turned;
    }
    workgroupBarrier();
    for (var k = 0u; k < 4u; k++) {
        spectrum[base + local + k * 256u] = line[local + k * 256u];
    }
}
