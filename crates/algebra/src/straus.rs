//! Sums of multiples of few points: all of them share their doublings, and each adds odd multiples of its point where its scalar's digits are not 0
//! (Straus, 1964, with digits in non-adjacent form).

use super::curve::{Affine, Curve, Projective};
use super::field::Field;
use super::parallel;
use cantus_base::listed::Listed;

/// Terms up to which this is quicker than buckets.
pub(super) const MOST: usize = 144;
/// Points from which another thread pays.
const PART: usize = 8;
/// Bits of a digit: odd, between -2^(`WINDOW` - 1) and 2^(`WINDOW` - 1), and `WINDOW` - 1 zeros follow at least.
const WINDOW: usize = 5;
/// Odd multiples of a point.
const MULTIPLES: usize = 1 << (WINDOW - 2);

/// The sum of the points' multiples by the scalars at their places.
pub(super) fn sum<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Projective<C> {
    let parts = points.len().div_ceil(PART).clamp(1, parallel::threads());
    let each = points.len().div_ceil(parts).max(1);
    let chunks: Vec<_> = points.chunks(each).zip(scalars.chunks(each)).listed();
    let sums = parallel::map(chunks.len(), |part| part_sum(chunks[part].0, chunks[part].1));
    sums.into_iter().fold(Projective::INFINITY, Projective::add)
}

/// A row of odd multiples, and digits by bits.
struct Term<C: Curve> {
    multiples: [Affine<C>; MULTIPLES],
    digits: Vec<i8>,
}

fn part_sum<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Projective<C> {
    let pairs = points.iter().zip(scalars).filter(|(point, scalar)| !point.is_infinity() && !scalar.is_zero());
    let (points, scalars): (Vec<Affine<C>>, Vec<C::Scalar>) = pairs.unzip();
    let mut multiples = Vec::with_capacity(MULTIPLES * points.len());
    for &point in &points {
        let double = Projective::from(point).double();
        let mut multiple = Projective::from(point);
        for _ in 0..MULTIPLES {
            multiples.push(multiple);
            multiple = multiple.add(double);
        }
    }
    let multiples = Projective::to_affines(&multiples);
    let mut terms = Vec::with_capacity(2 * points.len());
    for (multiples, scalar) in multiples.as_chunks::<MULTIPLES>().0.iter().zip(scalars) {
        let Some(beta) = C::endomorphism() else {
            let words = words(scalar);
            terms.push(Term { multiples: *multiples, digits: digits(&words, C::Scalar::KIND.bits(), false) });
            continue;
        };
        let [(first, first_negative), (second, second_negative)] = C::split(scalar);
        let words = |magnitude: u128| [magnitude as u64, (magnitude >> 64) as u64];
        let turned = multiples.map(|point| Affine { x: point.x * beta, y: point.y });
        terms.push(Term { multiples: *multiples, digits: digits(&words(first), C::SPLIT_BITS, first_negative) });
        terms.push(Term { multiples: turned, digits: digits(&words(second), C::SPLIT_BITS, second_negative) });
    }
    let bits = terms.iter().map(|term| term.digits.len()).max().unwrap_or(0);
    let mut sum = Projective::INFINITY;
    for bit in (0..bits).rev() {
        sum = sum.double();
        for term in &terms {
            let digit = term.digits.get(bit).copied().unwrap_or(0);
            let multiple = term.multiples[usize::from(digit.unsigned_abs() / 2)];
            match digit {
                0 => {}
                1.. => sum = sum.add_affine(multiple),
                _ => sum = sum.add_affine(-multiple),
            }
        }
    }
    sum
}

fn words<F: Field>(scalar: F) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, pair) in words.iter_mut().zip(scalar.to_limbs().chunks_exact(2)) {
        *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
    words
}

/// The digits of a number of that many bits, the least significant first; of its opposite where it is `negative`.
fn digits(words: &[u64], bits: u32, negative: bool) -> Vec<i8> {
    let bits = bits as usize;
    let at = |bit: usize| {
        let (word, shift) = (bit / 64, bit % 64);
        let low = words.get(word).copied().unwrap_or(0) >> shift;
        let high = if shift == 0 { 0 } else { words.get(word + 1).copied().unwrap_or(0) << (64 - shift) };
        (low | high) as usize & ((1 << WINDOW) - 1)
    };
    let mut digits = vec![0; bits + 1];
    let (mut bit, mut carry) = (0, 0);
    while bit <= bits {
        let value = at(bit) + carry;
        if value & 1 == 0 {
            bit += 1;
            continue;
        }
        // An even value with its carry goes on as it is: the carry moves up.
        let value = value as i8;
        let above = value >= 1 << (WINDOW - 1);
        let digit = if above { value - (1 << WINDOW) } else { value };
        digits[bit] = if negative { -digit } else { digit };
        carry = usize::from(above);
        bit += WINDOW;
    }
    digits
}
