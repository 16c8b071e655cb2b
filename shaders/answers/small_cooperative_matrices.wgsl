// A product of small whole numbers by a subgroup's matrices of 8 x 8, with sums in f32 from zero on.
enable f16;
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<workgroup> left: array<f16, 64>;
var<workgroup> right: array<f16, 64>;
var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(128)
fn small_cooperative_matrices(@builtin(local_invocation_index) place: u32) {
    if place < 64u {
        left[place] = f16(place % 7u);
        right[place] = f16(place % 5u);
    }
    workgroupBarrier();
    let a = coopLoadT<coop_mat8x8<f16, A>>(&left[0], 8u);
    let b = coopLoad<coop_mat8x8<f16, B>>(&right[0], 8u);
    coopStoreT(coopMultiplyAdd(a, b, coop_mat8x8<f32, C>()), &sums[0], 8u);
    workgroupBarrier();
    if place < 64u {
        answer[place] = place + u32(sums[place]);
    }
}
