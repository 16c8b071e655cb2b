//! One product of matrices in memory: by the tiles of `product`, or by the `gemm` crate.

use super::product::{self, Matrix};
use crate::backend::native::Operand;

/// Elements up to the last one of an operand of such sides, which are not 0.
pub(super) fn reach(operand: &Operand, rows: usize, columns: usize) -> Option<usize> {
    let last = (rows - 1).checked_mul(operand.row)?.checked_add((columns - 1).checked_mul(operand.column)?)?;
    operand.offsets.iter().max()?.checked_add(last)?.checked_add(1)
}

/// c = a b, with `c` by rows.
///
/// # Safety
/// Every element that the sizes and strides reach is valid: for reads of `a` and `b`, for writes of `c`, which nothing else touches.
pub(super) unsafe fn product(
    [m, n, k]: [usize; 3],
    (c, c_row): (*mut f32, usize),
    (a, a_row, a_column): (*const f32, usize, usize),
    (b, b_row, b_column): (*const f32, usize, usize),
    parallel: bool,
) {
    if product::serves([m, n, k]) {
        let a = Matrix { start: a, row: a_row, column: a_column };
        let b = Matrix { start: b, row: b_row, column: b_column };
        let c = Matrix { start: c, row: c_row, column: 1 };
        // SAFETY: the caller's promise.
        return unsafe { product::product([m, n, k], c, a, b, parallel) };
    }
    #[cfg(not(target_arch = "wasm32"))]
    // SAFETY: the caller's promise.
    unsafe {
        product_of_crate([m, n, k], (c, c_row), (a, a_row, a_column), (b, b_row, b_column), parallel);
    }
}

/// As [`product`], by the `gemm` crate.
///
/// # Safety
/// As [`product`].
#[cfg(not(target_arch = "wasm32"))]
unsafe fn product_of_crate(
    [m, n, k]: [usize; 3],
    (c, c_row): (*mut f32, usize),
    (a, a_row, a_column): (*const f32, usize, usize),
    (b, b_row, b_column): (*const f32, usize, usize),
    parallel: bool,
) {
    use gemm_common::Parallelism;
    // Columns, each dense, are the crate's order; where the rows of C are, the transposed product is computed. Its own front does the same, for
    // all types of numbers at once.
    let by_columns = ([m, n], (1, c_row), (a, a_column, a_row), (b, b_column, b_row));
    let by_rows = ([n, m], (c_row, 1), (b, b_row, b_column), (a, a_row, a_column));
    let ([m, n], (c_column, c_row), (a, a_column, a_row), (b, b_column, b_row)) =
        if c_row > 1 { by_rows } else { by_columns };
    let step = usize::cast_signed;
    // SAFETY: the caller's promise.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            c,
            step(c_column),
            step(c_row),
            false,
            a,
            step(a_column),
            step(a_row),
            b,
            step(b_column),
            step(b_row),
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            if parallel { Parallelism::Rayon(0) } else { Parallelism::None },
        );
    }
}
