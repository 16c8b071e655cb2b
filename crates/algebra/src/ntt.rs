//! Number-theoretic transforms on the host. `FieldTensor::ntt` runs it on the CPU in the kernels' place. `four_steps` has long rows, `lanes` fields of 31
//! bits. The output is in natural order; the inverse divides by the length.

use bytemuck::{cast, cast_slice, cast_slice_mut};

use super::field::{PrimeField, powers};
use super::four_steps;
use super::kind::FieldKind;
use super::parallel;
use super::small::{BabyBear, KoalaBear};
use cantus_base::instructions::InstructionSet;

/// `index` with its lowest `bits` in the other order.
#[must_use]
pub fn bit_reversed(index: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) }
}

/// The transform of each row of 2^`log` values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transform<F> {
    pub log: u32,
    /// A primitive root of unity of the length.
    pub root: F,
    /// Value i is multiplied by `scale` · `before`^i, result k by `after`^k.
    pub scale: F,
    pub before: F,
    pub after: F,
}

impl<F: PrimeField> Transform<F> {
    /// `None` where the field has no such root, or the inverse of the shift does not exist.
    pub fn new(log: u32, inverse: bool, shift: F) -> Option<Self> {
        let (root, unshift) = (F::root_of_unity(log)?, shift.inverse()?);
        Some(if inverse {
            let scale = F::from_u64(1 << log).inverse()?;
            Self { log, root: root.inverse()?, scale, before: F::ONE, after: unshift }
        } else {
            Self { log, root, scale: F::ONE, before: shift, after: F::ONE }
        })
    }

    /// The same for the field by its other name.
    fn as_of<G: PrimeField>(&self) -> Transform<G> {
        let Self { log, root, scale, before, after } = *self;
        Transform { log, root: cast(root), scale: cast(scale), before: cast(before), after: cast(after) }
    }
}

/// Transforms rows of 2^`log` values: value k becomes the polynomial's value at shift · root^k; inversely, the coefficients come back.
/// `false` where the field has no such root, or the inverse of the shift does not exist.
pub fn transform<F: PrimeField>(from: &[F], to: &mut [F], log: u32, inverse: bool, shift: F) -> bool {
    let Some(transform) = Transform::new(log, inverse, shift) else { return false };
    let by_lanes = log >= four_steps::LEAST;
    match F::KIND {
        FieldKind::BabyBear if by_lanes => {
            four_steps::run::<BabyBear>(
                InstructionSet::best(),
                cast_slice(from),
                cast_slice_mut(to),
                transform.as_of(),
            );
        }
        FieldKind::KoalaBear if by_lanes => {
            four_steps::run::<KoalaBear>(
                InstructionSet::best(),
                cast_slice(from),
                cast_slice_mut(to),
                transform.as_of(),
            );
        }
        _ => by_halves(from, to, transform),
    }
    true
}

/// Value by value, for every field.
pub(super) fn by_halves<F: PrimeField>(from: &[F], to: &mut [F], transform: Transform<F>) {
    let Transform { log, root, scale, before, after } = transform;
    let length = 1_usize << log;
    let twiddles = powers(root, F::ONE, length / 2);
    let factors = |base: F| (base != F::ONE).then(|| powers(base, F::ONE, length));
    let (before, after) = (factors(before), factors(after));
    let one = |row: &mut [F]| {
        if let Some(before) = &before {
            row.iter_mut().zip(before).for_each(|(value, &factor)| *value *= factor);
        }
        in_place(row, log, &twiddles);
        if scale != F::ONE {
            row.iter_mut().for_each(|value| *value *= scale);
        }
        if let Some(after) = &after {
            row.iter_mut().zip(after).for_each(|(value, &factor)| *value *= factor);
        }
    };
    to.copy_from_slice(from);
    if to.len() > length {
        parallel::for_chunks(to, length, |_, row| one(row));
    } else {
        one(to);
    }
}

/// Values below which a transform stays within the first cache.
const BLOCK: u32 = 12;

/// Transforms by halves from the front (decimation in frequency), which gives the order of reversed bits, then reorders.
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
