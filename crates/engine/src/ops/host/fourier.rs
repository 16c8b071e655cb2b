//! Fourier transforms in double precision.

use std::f64::consts::TAU;
use std::sync::Arc;

use super::{C, Values, recorded};
use crate::ops::expr::node::Typed;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// e^(-2πi k / n), with the place reduced first.
fn root(k: usize, n: usize) -> C {
    let angle = -TAU * (k % n) as f64 / n as f64;
    C::new(angle.cos(), angle.sin())
}

/// The transform of x[0], x[step], …, of n numbers; `roots` are those of unity of the whole length.
fn pass(x: &[C], step: usize, n: usize, roots: &[C], to: &mut [C]) {
    if n == 1 {
        to[0] = x[0];
        return;
    }
    let radix = (2..=n).find(|radix| n.is_multiple_of(*radix)).unwrap_or(n);
    let part = n / radix;
    for (r, to) in to.chunks_exact_mut(part).enumerate() {
        pass(&x[r * step..], step * radix, part, roots, to);
    }
    let mut column = vec![C::default(); radix];
    for k in 0..part {
        for (r, value) in column.iter_mut().enumerate() {
            *value = to[r * part + k] * roots[(r * k * step) % roots.len()];
        }
        for q in 0..radix {
            let turn = part * step * q;
            to[q * part + k] =
                column.iter().enumerate().map(|(r, value)| value * roots[(r * turn) % roots.len()]).sum();
        }
    }
}

/// Returns whether a length has a prime factor that makes passes slow.
fn is_rough(mut n: usize) -> bool {
    for factor in 2..=31 {
        while n.is_multiple_of(factor) {
            n /= factor;
        }
    }
    n > 1
}

fn forward(x: &[C]) -> Vec<C> {
    let n = x.len();
    let roots: Vec<C> = (0..n).map(|k| root(k, n)).listed();
    let mut result = vec![C::default(); n];
    if !is_rough(n) {
        pass(x, 1, n, &roots, &mut result);
        return result;
    }
    // Bluestein: a convolution with a chirp, of a length that is a power of two.
    let length = (2 * n - 1).next_power_of_two();
    let chirp: Vec<C> = (0..n).map(|k| root((k * k) % (2 * n), 2 * n)).listed();
    let (mut a, mut b) = (vec![C::default(); length], vec![C::default(); length]);
    for k in 0..n {
        a[k] = x[k] * chirp[k];
        b[k] = chirp[k].conj();
        b[(length - k) % length] = chirp[k].conj();
    }
    let product: Vec<C> = forward(&a).into_iter().zip(forward(&b)).map(|(x, y)| (x * y).conj()).listed();
    let back = forward(&product);
    (0..n).map(|k| back[k].conj() / length as f64 * chirp[k]).listed()
}

/// The transforms of the rows along the last axis; the inverse divides by their length.
pub(in crate::ops) fn transformed(typed: &Arc<Typed>, inverse: bool) -> Arc<Typed> {
    let n = typed.shape.last().copied().unwrap_or(1);
    let dtype = if typed.dtype == DType::Complex64 { typed.dtype } else { DType::Complex128 };
    recorded(("fourier", vec![inverse.into()]), vec![typed.clone()], typed.shape.clone(), dtype, move |inputs| {
        let values = inputs.into_iter().next().map(Values::complexes).unwrap_or_default();
        let row = |row: &[C]| {
            if !inverse {
                return forward(row);
            }
            let turned: Vec<C> = row.iter().map(C::conj).listed();
            forward(&turned).into_iter().map(|value| value.conj() / n as f64).listed()
        };
        Values::Complexes(values.chunks_exact(n.max(1)).flat_map(row).listed())
    })
}
