//! Products of matrices of 64-bit numbers and complex ones.

use std::ops::{AddAssign, Mul};
use std::sync::Arc;

use super::{Values, recorded};
use crate::ops::expr::node::Typed;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A product, row by row: the innermost loop runs along rows of both results and the right side.
fn product<T: Copy + Default + AddAssign + Mul<Output = T>>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    let batches = a.len() / (m * k).max(1);
    let mut result = vec![T::default(); batches * m * n];
    if k == 0 || n == 0 || m == 0 {
        return result;
    }
    /// Rows of the right side that stay in the cache while all rows of the left pass.
    const BLOCK: usize = 64;
    for ((a, b), result) in a.chunks_exact(m * k).zip(b.chunks_exact(k * n)).zip(result.chunks_exact_mut(m * n)) {
        for from in (0..k).step_by(BLOCK) {
            let to = (from + BLOCK).min(k);
            for (a, result) in a.chunks_exact(k).zip(result.chunks_exact_mut(n)) {
                for (&x, b) in a[from..to].iter().zip(b[from * n..to * n].chunks_exact(n)) {
                    for (sum, &y) in result.iter_mut().zip(b) {
                        *sum += x * y;
                    }
                }
            }
        }
    }
    result
}

/// The product of matrices (…, m, k) and (…, k, n) of one dtype, the axes before being alike.
pub(in crate::ops) fn matmul(a: &Arc<Typed>, b: &Arc<Typed>, dtype: DType) -> Arc<Typed> {
    let rank = a.shape.len();
    let sides @ [_, k, n] = [a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]];
    let mut shape = a.shape.clone();
    shape[rank - 1] = n;
    if k == 0 {
        return Typed::filled(0.0, &shape, dtype);
    }
    recorded(("matmul", Vec::new()), vec![a.clone(), b.clone()], shape, dtype, move |inputs| match &inputs[..] {
        [Values::Reals(a), Values::Reals(b)] => Values::Reals(product(a, b, sides)),
        [Values::Complexes(a), Values::Complexes(b)] => Values::Complexes(product(a, b, sides)),
        [Values::Signed(a), Values::Signed(b)] => {
            let wrapping = |values: &[i64]| values.iter().map(|&value| std::num::Wrapping(value)).listed();
            Values::Signed(product(&wrapping(a), &wrapping(b), sides).into_iter().map(|value| value.0).listed())
        }
        [Values::Unsigned(a), Values::Unsigned(b)] => {
            let wrapping = |values: &[u64]| values.iter().map(|&value| std::num::Wrapping(value)).listed();
            Values::Unsigned(product(&wrapping(a), &wrapping(b), sides).into_iter().map(|value| value.0).listed())
        }
        _ => Values::Reals(Vec::new()),
    })
}
