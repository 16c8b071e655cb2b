//! Linear algebra: matrices are the last two axes, those before them count them. Factorisations cut matrices in halves down to blocks of 32
//! columns, which have kernels in `shaders/tensor`; what lies between is matrix products.

mod cholesky;
mod contract;
mod eigh;
mod einsum;
mod expm;
mod jacobi;
mod kernel;
mod lu;
mod products;
mod qr;
mod sparse;
mod svd;
mod triangular;

pub use sparse::Csr;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::Expr;
use crate::ops::host::{self, Factorisation, factorised};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Columns of a block, which one kernel factors.
const BLOCK: usize = 32;

/// The shape of float32 matrices.
fn matrices(expr: &Expr, what: &str) -> Result<Vec<usize>> {
    if expr.dtype()? != DType::F32 {
        return Err(Error::dtype(format!("{what} of {}", expr.dtype()?), "it is for f32 (cast first)"));
    }
    shape_of_matrices(expr, what)
}

/// The shape of matrices of any dtype.
fn shape_of_matrices(expr: &Expr, what: &str) -> Result<Vec<usize>> {
    let shape = expr.shape()?;
    if shape.len() < 2 {
        return Err(Error::shape(format!("{what} of the shape {shape:?}"), "it needs matrices: at least two axes"));
    }
    Ok(shape.to_vec())
}

/// Returns whether the host factors matrices of a dtype: those that no kernel takes, and with the feature `linalg` all of the processor's own.
fn is_for_host(a: &Expr, dtype: DType) -> bool {
    host::is_double(dtype)
        || cfg!(all(feature = "linalg", not(target_arch = "wasm32"))) && dtype == DType::F32 && a.engine.is_processors()
}

/// Factors matrices on the host if no kernel takes their dtype: returns the parts of the result, or `None` for other dtypes.
fn by_host(a: &Expr, which: Factorisation, what: &str) -> Result<Option<Vec<Expr>>> {
    let dtype = a.dtype()?;
    let whole = matches!(which, Factorisation::Qr(true) | Factorisation::Svd(true)) && dtype == DType::F32;
    if !is_for_host(a, dtype) && !whole {
        return Ok(None);
    }
    shape_of_matrices(a, what)?;
    if !matches!(which, Factorisation::Qr(_) | Factorisation::Svd(_)) {
        square(a, what)?;
    }
    let parts = factorised(which, &a.state.clone()?, None);
    Ok(Some(parts.into_iter().map(|part| a.derived(|_| Ok(part))).listed()))
}

/// The only part, or both, of what the host computed.
fn parts<const N: usize>(found: Vec<Expr>) -> Result<[Expr; N]> {
    found.try_into().map_err(|found: Vec<Expr>| {
        Error::fault(format!("{} parts of a factorisation", found.len()), format!("there are {N}"))
    })
}

/// The shape of square matrices of any dtype.
fn square(expr: &Expr, what: &str) -> Result<Vec<usize>> {
    let shape = expr.shape()?;
    match *shape {
        [.., rows, columns] if rows == columns => Ok(shape.to_vec()),
        _ => Err(Error::shape(
            format!("{what} of the shape {shape:?}"),
            "it needs square matrices: the last two axes must have equal lengths",
        )),
    }
}

/// The shape of square float32 matrices.
fn square_floats(expr: &Expr, what: &str) -> Result<Vec<usize>> {
    matrices(expr, what)?;
    square(expr, what)
}

/// Rows and columns of matrices that were checked.
fn sides(shape: &[usize]) -> [usize; 2] {
    match *shape {
        [.., rows, columns] => [rows, columns],
        _ => [0, 0],
    }
}

/// A part of each matrix.
fn part(expr: &Expr, rows: Range<usize>, columns: Range<usize>) -> Expr {
    let result = expr.shape().map(|shape| {
        let mut ranges: Vec<Range<usize>> = shape.iter().map(|&side| 0..side).listed();
        let rank = ranges.len();
        if rank >= 2 {
            ranges[rank - 2] = rows;
            ranges[rank - 1] = columns;
        }
        expr.slice(&ranges)
    });
    expr.of(result)
}

/// Returns where a factorisation halves matrices: after a whole number of blocks.
fn middle(length: usize) -> usize {
    length.div_ceil(2).next_multiple_of(BLOCK)
}

/// The values where `sound` (u32) is not 0, and NaN elsewhere. `sound` gets `axes` further axes behind its own.
fn where_sound(expr: &Expr, sound: &Expr, axes: usize) -> Expr {
    let mut sound = sound.clone();
    for _ in 0..axes {
        sound = sound.expand(-1);
    }
    sound.select(expr, expr.constant(f64::NAN))
}

/// Returns for each matrix a power of two near its greatest magnitude, and the inverse of it, with two axes of one element; 1 if the
/// magnitude is 0 or not finite. Multiplied by the inverse, the squares of elements stay in range, and no digit is lost.
fn magnitude(expr: &Expr) -> (Expr, Expr) {
    let greatest = expr.abs().max(&[-2, -1], true);
    let usual = greatest.greater(0.0).binary(Binary::BitwiseAnd, greatest.less(3.0e38));
    let exponent = usual.select(greatest.log2().floor().clamp(-100.0, 100.0), greatest.constant(0.0)).settled();
    (exponent.exp2(), (-exponent).exp2())
}
