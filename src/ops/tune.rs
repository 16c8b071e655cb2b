//! Which variant of a kernel runs: shipped defaults per kind of device, and what was measured on this one.

use crate::tensor::Tensor;

/// A tiling of a matrix product: workgroups of `side` x `side` invocations with 4 x 4 values each, `depth` steps in workgroup memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatmulVariant {
    pub(super) side: usize,
    pub(super) depth: usize,
}

/// The variant for a product on the device where `output` is.
pub(super) fn matmul_variant(_output: &Tensor, [m, n, _k]: [usize; 3]) -> MatmulVariant {
    let side = if m.min(n) <= 48 { 8 } else { 16 };
    MatmulVariant { side, depth: 16 }
}
