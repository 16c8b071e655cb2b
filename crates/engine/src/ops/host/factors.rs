//! Factorisations by `faer`. `host/mod.rs` calls it with the feature `linalg`; without the feature `matrix.rs` has shorter methods of its own. Matrices are
//! scaled by a power of four first, so squares neither overflow nor vanish. A singular matrix gives NaN, as on devices.

use std::ops::{Div, Mul};

use faer::linalg::solvers::{PartialPivLu, Solve};
use faer::traits::ComplexField;
use faer::{Mat, MatRef, Side};

use super::matrix::Factorisation;
use super::{C, Values};
use crate::backend::native::Stop;
use crate::threads;

/// Real and complex numbers.
pub(super) trait Number:
    ComplexField<Real = f64> + Copy + Default + PartialEq + From<f64> + Mul<Output = Self> + Div<f64, Output = Self>
{
    fn size(self) -> f64;
    fn is_finite(self) -> bool;
}

impl Number for f64 {
    fn size(self) -> f64 {
        self.abs()
    }
    fn is_finite(self) -> bool {
        Self::is_finite(self)
    }
}

impl Number for C {
    fn size(self) -> f64 {
        self.norm()
    }
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

/// Computes `which` for each of `count` matrices (m, n), of all elements, with a right side of as many columns as given: `size` numbers
/// for each.
pub(super) fn all(
    which: Factorisation,
    inputs: Vec<Values>,
    sides: [usize; 2],
    (columns, size): (usize, usize),
    stop: &Stop<'_>,
) -> Values {
    let mut inputs = inputs.into_iter();
    match (inputs.next(), inputs.next()) {
        (Some(Values::Reals(a)), None) => Values::Reals(batches(which, &a, None, sides, (columns, size), stop)),
        (Some(Values::Reals(a)), Some(Values::Reals(b))) => {
            Values::Reals(batches(which, &a, Some(&b), sides, (columns, size), stop))
        }
        (a, b) => {
            let (a, b) = (a.map(Values::complexes).unwrap_or_default(), b.map(Values::complexes));
            Values::Complexes(batches(which, &a, b.as_deref(), sides, (columns, size), stop))
        }
    }
}

fn batches<T: Number>(
    which: Factorisation,
    a: &[T],
    b: Option<&[T]>,
    [m, n]: [usize; 2],
    (columns, size): (usize, usize),
    stop: &Stop<'_>,
) -> Vec<T> {
    let mut results = vec![T::default(); a.len() / (m * n) * size];
    threads::each_chunk(&mut results, size, |batch, result| {
        if stop() {
            return;
        }
        let a = MatRef::from_row_major_slice(&a[batch * m * n..(batch + 1) * m * n], m, n);
        let b = b.map(|b| MatRef::from_row_major_slice(&b[batch * n * columns..(batch + 1) * n * columns], n, columns));
        // What could not be computed is no number.
        let found = one(which, a, b).unwrap_or_else(|| vec![T::from(f64::NAN); size]);
        result.copy_from_slice(&found);
    });
    results
}

/// The elements, row by row.
fn elements<T: Number>(matrix: MatRef<'_, T>) -> impl Iterator<Item = T> {
    (0..matrix.nrows()).flat_map(move |row| (0..matrix.ncols()).map(move |column| matrix[(row, column)]))
}

/// The pivots; of a singular matrix zeros: behind its first pivot of 0 elimination left no numbers.
fn pivots<T: Number>(factors: &PartialPivLu<T>) -> Vec<T> {
    let pivots: Vec<T> = (0..factors.U().nrows()).map(|k| factors.U()[(k, k)]).collect();
    if pivots.contains(&T::default()) { vec![T::default(); pivots.len()] } else { pivots }
}

/// A power of four near the greatest magnitude: divided by it, a matrix has squares and sums in range, and loses no digit that counts.
fn magnitude<T: Number>(a: MatRef<'_, T>) -> f64 {
    let greatest = elements(a).map(Number::size).fold(0.0, f64::max);
    if greatest > 0.0 { (2.0 * (greatest.log2() / 2.0).floor()).clamp(-1022.0, 1022.0).exp2() } else { 1.0 }
}

/// 1 or -1, as the rows were exchanged an even or an odd number of times.
fn sign<T: Number>(factors: &PartialPivLu<T>) -> f64 {
    let mut order = factors.P().arrays().0.to_vec();
    let mut sign = 1.0;
    for place in 0..order.len() {
        while order[place] != place {
            let to = order[place];
            order.swap(place, to);
            sign = -sign;
        }
    }
    sign
}

fn one<T: Number>(which: Factorisation, a: MatRef<'_, T>, b: Option<MatRef<'_, T>>) -> Option<Vec<T>> {
    if !elements(a).all(Number::is_finite) {
        return None;
    }
    let scale = magnitude(a);
    let grown = |value: T| value * T::from(scale);
    let scaled = Mat::from_fn(a.nrows(), a.ncols(), |row, column| a[(row, column)] / scale);
    let a = scaled.as_ref();
    Some(match which {
        Factorisation::Solve => {
            let factors = a.partial_piv_lu();
            if pivots(&factors).contains(&T::default()) {
                return None;
            }
            let x = match b {
                Some(b) => factors.solve(b),
                None => factors.solve(Mat::<T>::identity(a.nrows(), a.nrows())),
            };
            elements(x.as_ref()).map(|x| x / scale).collect()
        }
        Factorisation::Det => {
            let factors = a.partial_piv_lu();
            vec![pivots(&factors).into_iter().fold(T::from(sign(&factors)), |product, pivot| product * grown(pivot))]
        }
        Factorisation::SlogDet => {
            let factors = a.partial_piv_lu();
            let mut signs = T::from(sign(&factors));
            let mut logarithm = 0.0;
            for pivot in pivots(&factors) {
                let size = pivot.size();
                logarithm += size.ln() + scale.ln();
                signs = if size == 0.0 { T::default() } else { signs * (pivot / size) };
            }
            vec![signs, T::from(logarithm)]
        }
        Factorisation::Cholesky => {
            let factors = a.llt(Side::Lower).ok()?;
            elements(factors.L()).map(|x| x * T::from(scale.sqrt())).collect()
        }
        Factorisation::Qr(complete) => {
            let factors = a.qr();
            if complete {
                let mut r = Mat::<T>::zeros(a.nrows(), a.ncols());
                for (place, value) in elements(factors.R()).enumerate() {
                    r[(place / a.ncols(), place % a.ncols())] = value;
                }
                elements(factors.compute_Q().as_ref()).chain(elements(r.as_ref()).map(grown)).collect()
            } else {
                elements(factors.compute_thin_Q().as_ref()).chain(elements(factors.thin_R()).map(grown)).collect()
            }
        }
        Factorisation::Eigh => {
            let factors = a.self_adjoint_eigen(Side::Lower).ok()?;
            let values = factors.S().column_vector();
            (0..values.nrows()).map(|k| grown(values[k])).chain(elements(factors.U())).collect()
        }
        Factorisation::Svd(full) => {
            let factors = if full { a.svd() } else { a.thin_svd() }.ok()?;
            let values = factors.S().column_vector();
            let adjoint = factors.V().adjoint().to_owned();
            elements(factors.U())
                .chain((0..values.nrows()).map(|k| grown(values[k])))
                .chain(elements(adjoint.as_ref()))
                .collect()
        }
    })
}
