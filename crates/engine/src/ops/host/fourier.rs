//! Fourier transforms in double precision.

use std::f64::consts::TAU;
use std::sync::Arc;

use super::{C, Values, recorded};
use crate::ops::expr::node::Typed;
use crate::tensor::DType;
use cantus_base::listed::Listed;
use cantus_base::threads;

/// Numbers that a thread transforms at least.
const TASK: usize = 1 << 12;

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

/// The tables for transforms of one length, which all rows share.
struct Plan {
    roots: Vec<C>,
    /// Of a length with a large prime factor: the chirp, the transform of what it is convolved with, and the plan of that length.
    chirp: Option<(Vec<C>, Vec<C>, Box<Plan>)>,
}

impl Plan {
    fn new(n: usize) -> Self {
        let roots: Vec<C> = (0..n).map(|k| root(k, n)).listed();
        if !is_rough(n) {
            return Self { roots, chirp: None };
        }
        // Bluestein: a convolution with a chirp, of a length that is a power of two.
        let length = (2 * n - 1).next_power_of_two();
        let chirp: Vec<C> = (0..n).map(|k| root((k * k) % (2 * n), 2 * n)).listed();
        let mut turned = vec![C::default(); length];
        for k in 0..n {
            turned[k] = chirp[k].conj();
            turned[(length - k) % length] = chirp[k].conj();
        }
        let plan = Self::new(length);
        let turned = plan.forward(&turned);
        Self { roots, chirp: Some((chirp, turned, Box::new(plan))) }
    }

    fn forward(&self, x: &[C]) -> Vec<C> {
        let n = x.len();
        let Some((chirp, turned, plan)) = &self.chirp else {
            let mut result = vec![C::default(); n];
            pass(x, 1, n, &self.roots, &mut result);
            return result;
        };
        let length = turned.len();
        let mut a = vec![C::default(); length];
        a.iter_mut().zip(x).zip(chirp).for_each(|((a, x), chirp)| *a = x * chirp);
        let product: Vec<C> = plan.forward(&a).into_iter().zip(turned).map(|(x, y)| (x * y).conj()).listed();
        let back = plan.forward(&product);
        (0..n).map(|k| back[k].conj() / length as f64 * chirp[k]).listed()
    }
}

/// Elements between two looks at whether to stop.
const LOOK: usize = 1 << 16;

/// The transforms of the rows along the last axis; the inverse divides by their length.
pub(in crate::ops) fn transformed(typed: &Arc<Typed>, inverse: bool) -> Arc<Typed> {
    let n = typed.shape.last().copied().unwrap_or(1);
    let dtype = if typed.dtype == DType::Complex64 { typed.dtype } else { DType::Complex128 };
    recorded(("fourier", vec![inverse.into()]), vec![typed.clone()], typed.shape.clone(), dtype, move |inputs, stop| {
        let values = inputs.into_iter().next().map(Values::complexes).unwrap_or_default();
        let plan = Plan::new(n);
        let row = |row: &[C]| {
            if !inverse {
                return plan.forward(row);
            }
            let turned: Vec<C> = row.iter().map(C::conj).listed();
            plan.forward(&turned).into_iter().map(|value| value.conj() / n as f64).listed()
        };
        // Each thread takes some rows.
        let each = threads::share(values.len() / n.max(1), (TASK / n.max(1)).max(1)).max(1) * n.max(1);
        let mut result = vec![C::default(); values.len()];
        threads::each_chunk(&mut result, each, |number, to| {
            let from = &values[number * each..number * each + to.len()];
            let rows = to.chunks_exact_mut(n.max(1)).zip(from.chunks_exact(n.max(1)));
            for (place, (to, from)) in rows.enumerate() {
                if place.is_multiple_of(LOOK.div_ceil(n.max(1))) && stop() {
                    return;
                }
                to.copy_from_slice(&row(from));
            }
        });
        Values::Complexes(result)
    })
}
