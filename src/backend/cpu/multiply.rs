//! One product of matrices in memory, by the tiles of `product`.

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
    let a = Matrix { start: a, row: a_row, column: a_column };
    let b = Matrix { start: b, row: b_row, column: b_column };
    let c = Matrix { start: c, row: c_row, column: 1 };
    // SAFETY: the caller's promise.
    unsafe { product::product([m, n, k], c, a, b, parallel) }
}
