// A product of small whole numbers by a subgroup's matrices, with sums in f32.
enable f16;
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<workgroup> left: array<f16, 256>;
var<workgroup> right: array<f16, 256>;
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(128)
fn cooperative_matrices(@builtin(local_invocation_index) place: u32) {
    for (var i = place; i < 256u; i += 128u) {
        left[i] = f16(i % 7u);
        right[i] = f16(i % 5u);
        sums[i] = f32(i);
    }
    workgroupBarrier();
    let a = coopLoadT<coop_mat16x16<f16, A>>(&left[0], 16u);
    let b = coopLoad<coop_mat16x16<f16, B>>(&right[0], 16u);
    let c = coopLoadT<coop_mat16x16<f32, C>>(&sums[0], 16u);
    workgroupBarrier();
    coopStoreT(coopMultiplyAdd(a, b, c), &sums[0], 16u);
    workgroupBarrier();
    answer[2u * place] = u32(sums[2u * place]);
    answer[2u * place + 1u] = u32(sums[2u * place + 1u]);
}
