// Four bytes and two halves in a word.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<f32>;

@compute @workgroup_size(1)
fn packing() {
    let v = vec4f(given[0], given[1], given[2], given[3]);
    answer[0] = pack4x8unorm(v);
    answer[1] = pack4x8snorm(v);
    answer[2] = pack2x16unorm(v.xy);
    answer[3] = pack2x16snorm(v.zw);
    answer[4] = pack2x16float(v.zy);
    let halves = unpack2x16float(answer[4]);
    answer[5] = bitcast<u32>(halves.x);
    answer[6] = bitcast<u32>(halves.y);
    answer[7] = bitcast<u32>(unpack4x8unorm(answer[0]).w);
}
