//! Products of matrices in memory, by the tiles of `product`. It decides how: vectors by `gemv`, words of several terms by `packed_dot`, other dtypes by
//! their own tiles, batches of small products many at a time. `product` has the loop over panels. A packed right operand is kept from its second use on, as
//! weights are used again and again.

use std::sync::Arc;

use super::fault::Fault;
use super::floats::Floats;
use super::gemv::{self, Rows};
use super::memory::Keeper;
use super::native::{Call, Operation, Work, exactly};
#[cfg(target_arch = "x86_64")]
use super::packed_dot::{self, Lines, Part};
use super::product::{self, How};
use super::slabs::{THREADS_PAY, by_slabs};
use super::tiles::Matrix;
use super::{complexes, doubles, wholes};
use crate::backend::native::MatmulShape;
use crate::spmd::{Limits, Stopped};
use crate::tensor::DType;
use crate::threads;

/// Multiplications of small products of a batch that are one task.
const TOGETHER: usize = 1 << 17;

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
    // SAFETY: every element is valid, and nothing else touches `c` (this function's contract).
    unsafe { product::product([m, n, k], c, a, b, How { parallel, keeper: None }) }
}

/// Returns whether one of the operands is a vector.
fn is_vector(shape: &MatmulShape) -> bool {
    shape.m == 1 || shape.n == 1
}

/// One of the products, of elements of which several are a word.
///
/// # Safety
/// [`Part::serves`], every element that the strides reach lies within the bindings, and nothing else touches `c`.
#[cfg(target_arch = "x86_64")]
unsafe fn product_of_words<T: Part>(
    shape: &MatmulShape,
    batch: usize,
    (a, b, c): (Floats, Floats, Matrix<*mut f32>),
    how: How<'_>,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    // SAFETY: `T::serves`, every element lies within the bindings, and nothing else touches `c` (this function's contract).
    unsafe {
        let lines = |of: Floats, first, count, line, term| {
            let start = of.start().cast::<T>().add(first).cast_const();
            Lines { start, count, terms: shape.k, line, term }
        };
        let left = lines(a, shape.a.offsets[batch], shape.m, shape.a.row, shape.a.column);
        let right = lines(b, shape.b.offsets[batch], shape.n, shape.b.column, shape.b.row);
        packed_dot::with_words(left, how.parallel, |a| {
            by_slabs([shape.m, shape.n, shape.k], limits, |rows, columns| {
                let c = Matrix { start: c.at(rows.start, columns.start), ..c };
                let a = Matrix { start: a.at(rows.start, 0), ..a };
                packed_dot::product::<T>(rows.len(), c, a, right.part(columns), how)
            })
        })
    }
}

impl Operation for MatmulShape {
    fn serves(&self) -> bool {
        let takes = match self.dtype {
            DType::F32 | DType::F64 | DType::I64 | DType::U64 | DType::Complex64 => true,
            // Vectors are multiplied as they lie, which is for floats alone.
            _ if self.m == 1 || self.n == 1 => false,
            DType::I32 | DType::U32 => true,
            #[cfg(target_arch = "x86_64")]
            DType::BF16 => u16::serves(),
            #[cfg(target_arch = "x86_64")]
            DType::I8 => u8::serves(),
            _ => false,
        };
        takes && self.a.offsets.len() == self.b.offsets.len() && self.m > 0 && self.n > 0 && self.k > 0
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let (a, b) = (self.a.reach(self.m, self.k)?, self.b.reach(self.k, self.n)?);
        let c = self.m.checked_mul(self.n)?.checked_mul(self.a.offsets.len())?;
        if matches!(self.dtype, DType::F64 | DType::I64 | DType::U64 | DType::Complex64) {
            return [a, b, c].into_iter().map(|elements| elements.checked_mul(2)).collect();
        }
        let each = 4 / self.dtype.bytes();
        Some(vec![a.div_ceil(each), b.div_ceil(each), c])
    }

    fn work(&self) -> Work {
        // Four real multiplications are one of complex numbers.
        let each = if self.dtype == DType::Complex64 { 4 } else { 1 };
        Work { size: (self.flops() as usize / 2).saturating_mul(each), pays: THREADS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let bindings: [Floats; 3] = exactly(bindings)?;
        let is_wide = matches!(self.dtype, DType::F64 | DType::I64 | DType::U64);
        if is_wide && !bindings.iter().all(|binding| binding.start().cast::<f64>().is_aligned()) {
            return Err(Fault::from("numbers of 64 bits begin at no multiple of 8 bytes"));
        }
        if is_wide && self.dtype != DType::F64 {
            // SAFETY: `Native::run` checked that every element that the strides reach lies within the bindings, and the result is a tensor of its own.
            return Ok(unsafe { wholes::products(self, bindings, call.limits) }?);
        }
        if self.dtype == DType::F64 {
            // SAFETY: `Native::run` checked that every element that the strides reach lies within the bindings, and the result is a tensor of its own.
            return Ok(unsafe { doubles::products(self, bindings, call.limits) }?);
        }
        if self.dtype == DType::Complex64 {
            // SAFETY: `Native::run` checked that every element that the strides reach lies within the bindings, and the result is a tensor of its own.
            return Ok(unsafe { complexes::products(self, bindings, call.limits) }?);
        }
        Ok(matmul(self, bindings, &|| (call.keeper)(1), call.limits)?)
    }
}

/// Multiplies the bindings, whose sizes were checked. `keeper` is called where keeping the right operand's panels pays.
pub(super) fn matmul<'a>(
    shape: &MatmulShape,
    [a, b, c]: [Floats; 3],
    keeper: &dyn Fn() -> Option<&'a Arc<Keeper>>,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let (m, n, k) = (shape.m, shape.n, shape.k);
    if is_vector(shape) {
        for (batch, (&left, &right)) in shape.a.offsets.iter().zip(&shape.b.offsets).enumerate() {
            let (to, of_a, of_b) = (batch * m * n, (shape.a.row, shape.a.column), (shape.b.column, shape.b.row));
            // SAFETY: `run` checked that every element that the strides reach lies within the bindings.
            unsafe {
                if n == 1 {
                    let rows = Rows { first: left, rows: m, terms: k, row: of_a.0, term: of_a.1 };
                    gemv::product(a, rows, b, (right, of_b.1), (c, to), limits)?;
                } else {
                    let rows = Rows { first: right, rows: n, terms: k, row: of_b.0, term: of_b.1 };
                    gemv::product(b, rows, a, (left, of_a.1), (c, to), limits)?;
                }
            }
        }
        return Ok(());
    }
    // SAFETY: `run` checked that every element that the strides reach lies within the bindings.
    let one = |batch: usize, how: How<'_>| unsafe {
        let c = Matrix { start: c.start().add(batch * m * n), row: n, column: 1 };
        #[cfg(target_arch = "x86_64")]
        match shape.dtype {
            DType::BF16 => return product_of_words::<u16>(shape, batch, (a, b, c), how, limits),
            DType::I8 => return product_of_words::<u8>(shape, batch, (a, b, c), how, limits),
            _ => {}
        }
        let (left, right) = (shape.a.offsets[batch], shape.b.offsets[batch]);
        let a = Matrix { start: a.start().add(left).cast_const(), row: shape.a.row, column: shape.a.column };
        let b = Matrix { start: b.start().add(right).cast_const(), row: shape.b.row, column: shape.b.column };
        by_slabs([m, n, k], limits, |rows, columns| {
            let size = [rows.len(), columns.len(), k];
            let (a, b) = (Matrix { start: a.at(rows.start, 0), ..a }, Matrix { start: b.at(0, columns.start), ..b });
            let c = Matrix { start: c.at(rows.start, columns.start), ..c };
            match shape.dtype {
                DType::F32 => product::product(size, c, a, b, how),
                _ => product::product_of_integers(size, c, a, b, how),
            }
        })
    };
    let batches = shape.a.offsets.len();
    let large = m.saturating_mul(n).saturating_mul(k) >= THREADS_PAY;
    if batches >= threads::count() && batches > 1 {
        // Small ones many at a time: taking a task costs as much as a product of 16 x 16.
        let each = (TOGETHER / (m * n).saturating_mul(k)).clamp(1, batches.div_ceil(4 * threads::count()));
        threads::try_each(batches.div_ceil(each), |task| {
            (task * each..batches.min((task + 1) * each)).try_for_each(|batch| one(batch, How::default()))
        })
    } else {
        let how = How {
            parallel: large && threads::count() > 1,
            keeper: if large && batches == 1 { keeper() } else { None },
        };
        (0..batches).try_for_each(|batch| one(batch, how))
    }
}
