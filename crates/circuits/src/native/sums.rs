//! Sums over amplitudes.

use num_complex::Complex;
use rayon::prelude::*;

use crate::observable::Factors;
use crate::real::{Real, wide};

/// Amplitudes that a thread takes at a time. Their sums are added in order, so results do not depend on the threads.
const PART: usize = 1 << 14;

pub(super) fn inner<T: Real>(a: &[Complex<T>], b: &[Complex<T>], flip: usize, signs: usize) -> Complex<f64> {
    let part = |(part, b): (usize, &[Complex<T>])| {
        let mut sum = Complex::new(0.0, 0.0);
        for (at, right) in (part * PART..).zip(b) {
            let product = wide(a[at ^ flip]).conj() * wide(*right);
            sum += if (at & signs).count_ones() & 1 == 1 { -product } else { product };
        }
        sum
    };
    let parts: Vec<Complex<f64>> = b.par_chunks(PART).enumerate().map(part).collect();
    parts.into_iter().sum()
}

pub(super) fn accumulate<T: Real>(
    states: &[&[Complex<T>]],
    after: &mut [Complex<T>],
    terms: &[(usize, Factors)],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    if terms.iter().any(|(state, _)| *state >= states.len()) {
        return Err(format!("{} states, of which a term has none", states.len()));
    }
    after.par_chunks_mut(PART).enumerate().for_each(|(part, after)| {
        if stop() {
            return;
        }
        after.fill(Complex::new(T::ZERO, T::ZERO));
        for (state, term) in terms {
            let before = states[*state];
            let factor = Complex::new(T::from_f64(term.factor.re), T::from_f64(term.factor.im));
            for (at, to) in (part * PART..).zip(after.iter_mut()) {
                let from = at ^ term.flip;
                let a = before[from];
                let product = Complex::new(a.re * factor.re - a.im * factor.im, a.re * factor.im + a.im * factor.re);
                let product = if (from & term.signs).count_ones() & 1 == 1 {
                    Complex::new(-product.re, -product.im)
                } else {
                    product
                };
                *to = Complex::new(to.re + product.re, to.im + product.im);
            }
        }
    });
    Ok(())
}
