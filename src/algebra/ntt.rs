//! Number-theoretic transforms on the host.

use super::field::{PrimeField, powers};
use super::parallel;

/// `index` with its lowest `bits` in the other order.
#[must_use]
pub fn bit_reversed(index: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) }
}

/// Transforms rows of 2^`log` values in place: value k becomes the polynomial's value at shift · root^k; inversely, the coefficients come back.
/// `false` where the field has no such root, or the inverse of the shift does not exist.
pub fn transform<F: PrimeField>(rows: &mut [F], log: u32, inverse: bool, shift: F) -> bool {
    let length = 1_usize << log;
    let Some(root) = F::root_of_unity(log) else { return false };
    let (Some(root), Some(unshift)) = (if inverse { root.inverse() } else { Some(root) }, shift.inverse()) else {
        return false;
    };
    let scale = F::from_u64(length as u64).inverse().unwrap_or(F::ONE);
    let twiddles = powers(root, F::ONE, length / 2);
    let shifts =
        (shift != F::ONE).then(|| if inverse { powers(unshift, scale, length) } else { powers(shift, F::ONE, length) });
    let one = |row: &mut [F]| {
        if let (Some(shifts), false) = (&shifts, inverse) {
            row.iter_mut().zip(shifts).for_each(|(value, &shift)| *value *= shift);
        }
        in_place(row, log, &twiddles);
        match (&shifts, inverse) {
            (Some(shifts), true) => row.iter_mut().zip(shifts).for_each(|(value, &shift)| *value *= shift),
            (None, true) => row.iter_mut().for_each(|value| *value *= scale),
            _ => {}
        }
    };
    if rows.len() > length {
        parallel::for_chunks(rows, length, |_, row| one(row));
    } else {
        one(rows);
    }
    true
}

/// Values below which a transform stays within the first cache.
const BLOCK: u32 = 12;

/// By halves from the front (decimation in frequency), whose result is in the order of reversed bits, then put in order.
fn in_place<F: PrimeField>(row: &mut [F], log: u32, twiddles: &[F]) {
    let length = row.len();
    // Passes over all, until the pieces fit the cache.
    let mut half = length / 2;
    let mut step = 1;
    while half >= 1 << BLOCK {
        for piece in row.chunks_exact_mut(2 * half) {
            let (low, high) = piece.split_at_mut(half);
            let width = half.div_ceil(parallel::threads()).max(1 << 10);
            butterflies(low, high, twiddles, step, width);
        }
        half /= 2;
        step *= 2;
    }
    let piece = 2 * half.max(1);
    if half > 0 {
        parallel::for_chunks(row, piece.min(length), |_, piece| {
            let (mut half, mut step) = (half, step);
            while half > 0 {
                for pair in piece.chunks_exact_mut(2 * half) {
                    let (low, high) = pair.split_at_mut(half);
                    butterfly_row(low, high, twiddles, step, 0);
                }
                half /= 2;
                step *= 2;
            }
        });
    }
    for place in 0..length {
        let other = bit_reversed(place, log);
        if place < other {
            row.swap(place, other);
        }
    }
}

/// One pass over two halves, by threads.
fn butterflies<F: PrimeField>(low: &mut [F], high: &mut [F], twiddles: &[F], step: usize, width: usize) {
    let mut pairs: Vec<_> = low.chunks_mut(width).zip(high.chunks_mut(width)).collect();
    parallel::for_chunks(&mut pairs, 1, |place, pairs| {
        for (low, high) in pairs {
            butterfly_row(low, high, twiddles, step, place * width);
        }
    });
}

fn butterfly_row<F: PrimeField>(low: &mut [F], high: &mut [F], twiddles: &[F], step: usize, from: usize) {
    for ((low, high), twiddle) in low.iter_mut().zip(high).zip(twiddles[from * step..].iter().step_by(step)) {
        let (a, b) = (*low, *high);
        *low = a + b;
        *high = (a - b) * *twiddle;
    }
}
