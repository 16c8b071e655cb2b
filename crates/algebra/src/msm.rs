//! Sums of multiples of points by Pippenger's method: signed digits, and buckets that are summed pair by pair in affine coordinates, so that
//! one inversion serves many additions. Equal points, opposite ones and infinity cost no more, and neither do buckets of very different sizes.

use super::curve::{Affine, Curve, Projective};
use super::field::Field;
use super::{parallel, straus};
use cantus_base::listed::Listed;

/// The division of a sum into windows of `window` bits, whose digits lie within -2^(window - 1) and 2^(window - 1) - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MsmPlan {
    /// Bits of a digit, up to 16.
    pub window: u32,
    /// Digits of a scalar.
    pub windows: u32,
}

impl MsmPlan {
    /// The plan for scalars of that many bits.
    #[must_use]
    pub fn new(window: u32, bits: u32) -> Self {
        // A bit more than the scalar's: the offset that makes digits signed adds to it.
        Self { window, windows: (bits + 1) / window + 1 }
    }

    /// 2^(window - 1) in each digit, in 64-bit words: added to a scalar, it makes digits that count from -2^(window - 1).
    #[must_use]
    pub fn offset<const N: usize>(self) -> [u64; N] {
        let mut offset = [0; N];
        for window in 0..self.windows {
            let bit = window * self.window + self.window - 1;
            if let Some(word) = offset.get_mut(bit as usize / 64) {
                *word |= 1 << (bit % 64);
            }
        }
        offset
    }

    /// Buckets of a window: magnitudes from 1 to this.
    #[must_use]
    pub fn buckets(self) -> usize {
        1 << (self.window - 1)
    }
}

/// The window for that many terms and bits, where a bucket costs as much as `bucket` additions of terms.
#[must_use]
pub fn window_bits(terms: usize, bits: u32, bucket: f64) -> u32 {
    let cost = |window: u32| {
        let plan = MsmPlan::new(window, bits);
        f64::from(plan.windows) * (terms as f64 + bucket * plan.buckets() as f64)
    };
    (2..=16).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(8)
}

/// The sum of windows, the least significant first: what Horner's rule makes of them.
#[must_use]
pub fn combine_windows<C: Curve>(windows: &[Projective<C>], window: u32) -> Projective<C> {
    windows.iter().rev().fold(Projective::INFINITY, |sum, &own| {
        let shifted = (0..window).fold(sum, |sum, _| sum.double());
        shifted.add(own)
    })
}

/// Terms whose digits are made together.
const CHUNK: usize = 1 << 13;
/// Terms that are summed at a time: more would not be quicker, and memory stays bounded.
const MOST_TERMS: usize = 1 << 21;
/// Additions that share an inversion.
const BATCH: usize = 1024;
/// Additions from which vectors pay.
const WORTH: usize = 64;
/// Terms of windows that share their inversions, from which sharing is worth nothing.
const SHARED: usize = 1 << 13;
/// The cost of a bucket, in additions of terms.
const BUCKET_COST: f64 = 5.0;

/// The sum of the points' multiples by the scalars; the shorter of the two says how many. Points are on the curve.
#[must_use]
pub fn msm<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Projective<C> {
    let count = points.len().min(scalars.len());
    let most = if C::endomorphism().is_some() { MOST_TERMS / 2 } else { MOST_TERMS };
    let parts = points[..count].chunks(most).zip(scalars[..count].chunks(most));
    parts.fold(Projective::INFINITY, |sum, (points, scalars)| sum.add(part(points, scalars)))
}

fn part<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Projective<C> {
    if points.len() <= straus::MOST { straus::sum(points, scalars) } else { by_buckets(points, scalars) }
}

fn by_buckets<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Projective<C> {
    let beta = C::endomorphism();
    let (terms, bits) =
        if beta.is_some() { (2 * points.len(), C::SPLIT_BITS) } else { (points.len(), C::Scalar::KIND.bits()) };
    let plan = MsmPlan::new(window_bits(terms, bits, BUCKET_COST), bits);
    let digits =
        if beta.is_some() { split_digits::<C>(points, scalars, plan) } else { digits::<C>(points, scalars, plan) };
    let turned: Vec<C::Base> = beta.map_or_else(Vec::new, |beta| {
        parallel::map(points.len().div_ceil(CHUNK), |chunk| {
            let from = chunk * CHUNK;
            points[from..points.len().min(from + CHUNK)].iter().map(|point| point.x * beta).listed()
        })
        .concat()
    });
    let list = Terms { points, turned: &turned, digits: &digits };
    let windows = plan.windows as usize;
    let (together, parts) = tasks(plan, terms, parallel::threads());
    let width = plan.buckets() / parts;
    let sums = parallel::map(windows.div_ceil(together) * parts, |task| {
        // The last windows of split scalars may be short of digits: the first ones go first.
        let (first, part) = (task / parts * together, task % parts);
        bucket_ranges(list, first..windows.min(first + together), part * width + 1..(part + 1) * width + 1)
    });
    let windows: Vec<Projective<C>> = sums
        .chunks(parts)
        .flat_map(|parts| {
            let count = parts.first().map_or(0, Vec::len);
            (0..count).map(|window| parts.iter().fold(Projective::INFINITY, |sum, part| sum.add(part[window])))
        })
        .listed();
    combine_windows(&windows, plan.window)
}

/// Windows that a task takes, and tasks that share their buckets. Few terms have few additions in a window: several windows share inversions.
/// Where there are more threads than windows, several threads share a window's buckets. Two tasks or more for a thread let threads end together.
fn tasks(plan: MsmPlan, terms: usize, threads: usize) -> (usize, usize) {
    let windows = plan.windows as usize;
    let together = (SHARED / terms.max(1)).clamp(1, windows.div_ceil(2 * threads));
    let parts = if together > 1 { 1 } else { (4 * threads).div_ceil(windows).next_power_of_two() };
    (together, parts.min(plan.buckets()))
}

/// Points with digits, by chunks of terms, each window by window. With an endomorphism the second half of a chunk's terms are its images.
#[derive(Clone, Copy)]
struct Terms<'a, C: Curve> {
    points: &'a [Affine<C>],
    turned: &'a [C::Base],
    digits: &'a [Vec<i16>],
}

/// Digit `window` of a number that the offset was added to.
#[inline(always)]
fn digit(words: &[u64], window: u32, bits: u32) -> i16 {
    let bit = (window * bits) as usize;
    let (at, shift) = (bit / 64, bit % 64);
    let low = words.get(at).copied().unwrap_or(0) >> shift;
    let high = if shift == 0 { 0 } else { words.get(at + 1).copied().unwrap_or(0) << (64 - shift) };
    ((((low | high) & ((1 << bits) - 1)) as i32) - (1 << (bits - 1))) as i16
}

#[inline(always)]
fn plus<const N: usize>(a: &[u64], b: &[u64; N]) -> [u64; N] {
    let mut sum = *b;
    let mut carry = false;
    for (i, word) in sum.iter_mut().enumerate() {
        let (first, over) = word.overflowing_add(a.get(i).copied().unwrap_or(0));
        let (second, again) = first.overflowing_add(u64::from(carry));
        (*word, carry) = (second, over | again);
    }
    sum
}

fn digits<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar], plan: MsmPlan) -> Vec<Vec<i16>> {
    let offset: [u64; 5] = plan.offset();
    parallel::map(points.len().div_ceil(CHUNK), |chunk| {
        let from = chunk * CHUNK;
        let count = CHUNK.min(points.len() - from);
        let mut digits = vec![0; count * plan.windows as usize];
        for (i, (point, scalar)) in points[from..from + count].iter().zip(&scalars[from..]).enumerate() {
            if point.is_infinity() || scalar.is_zero() {
                continue;
            }
            let mut words = [0; 4];
            for (word, pair) in words.iter_mut().zip(scalar.to_limbs().chunks_exact(2)) {
                *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            }
            let sum = plus(&words, &offset);
            for window in 0..plan.windows {
                digits[window as usize * count + i] = digit(&sum, window, plan.window);
            }
        }
        digits
    })
}

fn split_digits<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar], plan: MsmPlan) -> Vec<Vec<i16>> {
    let offset: [u64; 3] = plan.offset();
    parallel::map(points.len().div_ceil(CHUNK), |chunk| {
        let from = chunk * CHUNK;
        let count = CHUNK.min(points.len() - from);
        let mut digits = vec![0; 2 * count * plan.windows as usize];
        for (i, (point, &scalar)) in points[from..from + count].iter().zip(&scalars[from..]).enumerate() {
            if point.is_infinity() || scalar.is_zero() {
                continue;
            }
            for (half, (magnitude, negative)) in C::split(scalar).into_iter().enumerate() {
                let sum = plus(&[magnitude as u64, (magnitude >> 64) as u64], &offset);
                for window in 0..plan.windows {
                    // A digit of 2^15 may become -2^15, but not the other way round: magnitudes are what counts.
                    let own = digit(&sum, window, plan.window);
                    digits[(window as usize * 2 + half) * count + i] = if negative { own.wrapping_neg() } else { own };
                }
            }
        }
        digits
    })
}

/// A term in a bucket: its place, and in the lowest bit whether its opposite counts.
type Entry = u32;

impl<C: Curve> Terms<'_, C> {
    /// Calls `visit` with each term of the window: place, magnitude, whether it is negative.
    #[inline(always)]
    fn visit(self, window: usize, mut visit: impl FnMut(u32, usize, bool)) {
        let halves = if self.turned.is_empty() { 1 } else { 2 };
        let mut from = 0;
        for digits in self.digits {
            let count = CHUNK.min(self.points.len() - from);
            for half in 0..halves {
                let row = &digits[(window * halves + half) * count..][..count];
                let first = half * self.points.len() + from;
                for (place, &digit) in (first as u32..).zip(row) {
                    visit(place, usize::from(digit.unsigned_abs()), digit < 0);
                }
            }
            from += count;
        }
    }

    #[inline(always)]
    fn point(self, entry: Entry) -> Affine<C> {
        let place = (entry >> 1) as usize;
        let point = match place.checked_sub(self.points.len()) {
            None => self.points[place],
            Some(place) => Affine { x: self.turned[place], y: self.points[place].y },
        };
        if entry & 1 == 1 { -point } else { point }
    }
}

/// The sums of k times bucket k over a range of buckets of some windows.
fn bucket_ranges<C: Curve>(
    terms: Terms<'_, C>,
    windows: std::ops::Range<usize>,
    range: std::ops::Range<usize>,
) -> Vec<Projective<C>> {
    let first = |window: usize| (window - windows.start) * range.len();
    let mut starts = vec![0_u32; windows.len() * range.len() + 1];
    for window in windows.clone() {
        let counts = &mut starts[first(window) + 1..];
        terms.visit(window, |_, magnitude, _| {
            if range.contains(&magnitude) {
                counts[magnitude - range.start] += 1;
            }
        });
    }
    let mut total = 0;
    for start in &mut starts {
        total += *start;
        *start = total;
    }
    let mut next = starts.clone();
    let mut entries = vec![0; total as usize];
    for window in windows.clone() {
        let next = &mut next[first(window)..];
        terms.visit(window, |place, magnitude, negative| {
            if range.contains(&magnitude) {
                let at = &mut next[magnitude - range.start];
                entries[*at as usize] = place << 1 | u32::from(negative);
                *at += 1;
            }
        });
    }
    let sums = bucket_sums(&starts, |at| terms.point(entries[at]));
    // Sum of (k - start + 1) B_k from above, then the rest of the factor.
    let weighted = |sums: &[Affine<C>]| {
        let (mut running, mut weighted) = (Projective::INFINITY, Projective::INFINITY);
        for &sum in sums.iter().rev() {
            running = running.add_affine(sum);
            weighted = weighted.add(running);
        }
        weighted.add(running.times(&[range.start as u64 - 1]))
    };
    sums.chunks(range.len()).map(weighted).listed()
}

/// The sum of each bucket, whose terms lie between its start and the next: in rounds, each of which halves what is left.
fn bucket_sums<C: Curve>(starts: &[u32], term: impl Fn(usize) -> Affine<C>) -> Vec<Affine<C>> {
    let mut lengths: Vec<u32> = starts.windows(2).map(|pair| pair[1] - pair[0]).listed();
    let mut current = round(&mut lengths, term);
    while lengths.iter().any(|&length| length > 1) {
        let before = current;
        current = round(&mut lengths, |at| before[at]);
    }
    let mut sums = current.into_iter();
    lengths.iter().map(|&length| if length == 0 { Affine::INFINITY } else { sums.next().unwrap_or_default() }).listed()
}

/// Adds neighbours of each bucket; who has none stays.
fn round<C: Curve>(lengths: &mut [u32], term: impl Fn(usize) -> Affine<C>) -> Vec<Affine<C>> {
    let mut sums = vec![Affine::INFINITY; lengths.iter().map(|length| length.div_ceil(2) as usize).sum()];
    let mut batch = Pairs::new(lengths.iter().map(|length| *length as usize / 2).sum());
    let (mut from, mut to) = (0, 0);
    for length in lengths {
        for pair in 0..*length as usize / 2 {
            batch.push(term(from + 2 * pair), term(from + 2 * pair + 1), to + pair, &mut sums);
        }
        if *length % 2 == 1 {
            sums[to + *length as usize / 2] = term(from + *length as usize - 1);
        }
        from += *length as usize;
        *length = length.div_ceil(2);
        to += *length as usize;
    }
    batch.flush(&mut sums);
    sums
}

/// Additions that wait for their inversion.
struct Pairs<C: Curve> {
    pairs: Vec<(Affine<C>, Affine<C>)>,
    /// The destination of each sum, and the factor to remove from its inverse.
    to: Vec<usize>,
    slopes: Vec<(C::Base, C::Base)>,
    products: Vec<C::Base>,
    /// The pairs that are added by vectors, up to one vector's length: both sides, and where the sums go.
    regular: (Vec<Affine<C>>, Vec<Affine<C>>, Vec<usize>),
    together: usize,
    made: Vec<Affine<C>>,
}

impl<C: Curve> Pairs<C> {
    /// Room for that many additions.
    fn new(count: usize) -> Self {
        // A few are not worth an inversion of eight.
        let together = if count < WORTH { 0 } else { C::batch().min(count & !7) };
        Self {
            pairs: Vec::new(),
            to: Vec::new(),
            slopes: Vec::new(),
            products: Vec::new(),
            regular: Default::default(),
            together,
            made: vec![Affine::INFINITY; together],
        }
    }

    /// Adds what goes by vectors.
    fn flush_regular(&mut self, sums: &mut [Affine<C>]) {
        let (a, b, to) = &mut self.regular;
        // A rest that is no multiple of 8 goes the other way.
        let whole = to.len() & !7;
        C::add_batch(&a[..whole], &b[..whole], &mut self.made[..whole]);
        for (&to, &sum) in to.iter().zip(&self.made[..whole]) {
            sums[to] = sum;
        }
        for place in whole..to.len() {
            self.pairs.push((a[place], b[place]));
            self.to.push(to[place]);
        }
        a.clear();
        b.clear();
        to.clear();
    }

    #[inline(always)]
    fn push(&mut self, a: Affine<C>, b: Affine<C>, to: usize, sums: &mut [Affine<C>]) {
        if self.together > 0 && a.x != b.x && !a.is_infinity() && !b.is_infinity() {
            self.regular.0.push(a);
            self.regular.1.push(b);
            self.regular.2.push(to);
            if self.regular.2.len() == self.together {
                self.flush_regular(sums);
            }
            return;
        }
        self.pairs.push((a, b));
        self.to.push(to);
        if self.to.len() >= BATCH {
            self.flush_pairs(sums);
        }
    }

    /// Adds all that waits.
    fn flush(&mut self, sums: &mut [Affine<C>]) {
        if self.together > 0 {
            self.flush_regular(sums);
        }
        self.flush_pairs(sums);
    }

    fn flush_pairs(&mut self, sums: &mut [Affine<C>]) {
        // The slope's numerator and denominator; a denominator of 1 where no slope is needed.
        let mut product = C::Base::ONE;
        for &(a, b) in &self.pairs {
            let (mut rise, mut run) = (b.y - a.y, b.x - a.x);
            if run.is_zero() || a.is_infinity() || b.is_infinity() {
                let square = a.x.square();
                (rise, run) = (square.double() + square, a.y.double());
                if a != b || run.is_zero() {
                    run = C::Base::ONE;
                }
            }
            self.products.push(product);
            product *= run;
            self.slopes.push((rise, run));
        }
        let mut inverse = product.inverse().unwrap_or(C::Base::ZERO);
        for (place, &(a, b)) in self.pairs.iter().enumerate().rev() {
            let (rise, run) = self.slopes[place];
            let slope = rise * (inverse * self.products[place]);
            inverse *= run;
            sums[self.to[place]] = if a.is_infinity() {
                b
            } else if b.is_infinity() {
                a
            } else if a.x == b.x && a.y != b.y {
                Affine::INFINITY
            } else {
                let x = slope.square() - a.x - b.x;
                Affine { x, y: slope * (a.x - x) - a.y }
            };
        }
        self.pairs.clear();
        self.to.clear();
        self.slopes.clear();
        self.products.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::curves::{Bls12381G1, Bls12381G2, Bn254G1, Bn254G2};
    use super::super::field::PrimeField;
    use super::*;

    /// Both methods beside term by term, over points and scalars at which they may go wrong.
    fn all<C: Curve>(counts: &[usize]) {
        let mut state = 7_u64;
        let mut scalar = || {
            let limbs: Vec<u32> = (0..C::Scalar::WORDS)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 32) as u32
                })
                .collect();
            C::Scalar::reduced_from_limbs(&limbs)
        };
        let one = C::Scalar::ONE;
        let mut scalars = vec![C::Scalar::ZERO, one, -one, one.double(), -one.double(), scalar()];
        // Powers of two and their neighbours, where digits carry.
        for bit in (0..32 * C::Scalar::WORDS).step_by(21) {
            let power = (0..bit).fold(one, |power, _| power.double());
            scalars.extend([power, power - one, -power]);
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        scalars.resize_with(most.max(scalars.len()), &mut scalar);
        let mut points: Vec<Affine<C>> = Projective::to_affines(
            &(0..most as u64).map(|i| Projective::from(C::generator()).times(&[i * i + 1])).collect::<Vec<_>>(),
        );
        // Infinity, the same point twice, and opposite ones, whose scalars are the same.
        if most > 12 {
            (points[2], points[4], points[6]) = (Affine::INFINITY, points[3], -points[5]);
            scalars[6] = scalars[5];
            (points[9], scalars[9]) = (points[8], -scalars[8]);
        }
        let terms: Vec<_> = points.iter().zip(&scalars).map(|(point, &scalar)| point.times(scalar)).collect();
        for &count in counts {
            let expected = terms[..count].iter().fold(Projective::INFINITY, |sum, &term| sum.add(term));
            for (name, sum) in [("few", straus::sum::<C> as fn(&[_], &[_]) -> _), ("buckets", by_buckets::<C>)] {
                assert_eq!(sum(&points[..count], &scalars[..count]), expected, "{name}, {count} of {}", C::KIND.name());
            }
        }
        // One point and one scalar all over, whose buckets are one; and what cancels.
        let (point, scalar) = (vec![points[1]; most], vec![scalars[most - 1]; most]);
        let expected = Projective::from(points[1]).times(&[most as u64]).to_affine().times(scalar[0]);
        let opposite: Vec<_> = (0..most).map(|i| if i % 2 == 0 { points[1] } else { -points[1] }).collect();
        for sum in [straus::sum::<C> as fn(&[_], &[_]) -> _, by_buckets::<C>] {
            assert_eq!(sum(&point, &scalar), expected, "of {}", C::KIND.name());
            let even = most & !1;
            assert!(sum(&opposite[..even], &scalar[..even]).is_infinity(), "of {}", C::KIND.name());
        }
    }

    #[test]
    fn both_methods_are_sums_of_multiples() {
        all::<Bn254G1>(&[0, 1, 2, 3, 7, 8, 9, 17, 40, 145, 300]);
        all::<Bls12381G1>(&[0, 1, 2, 16, 150]);
        all::<Bn254G2>(&[0, 1, 5, 60]);
        all::<Bls12381G2>(&[1, 2, 40]);
    }
}
