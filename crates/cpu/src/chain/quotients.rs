//! Quotients and remainders of whole numbers, as `int_floor_divide` and its kin of `shaders/elementwise/functions.wgsl` have them: by 0 as by 1, and the least
//! number by -1 wraps. Words of 32 bits divide as float64, which has all their bits. Those of 64 bits multiply by an inverse where a block has one divisor
//! for all its numbers, in a fifth of the time of divisions.

/// A result of a division of signed numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signed {
    /// The quotient, rounded down.
    Quotient,
    /// The remainder, with the sign of the divisor.
    Remainder,
    /// The remainder, with the sign of the dividend.
    Rest,
}

/// A result of a division of unsigned numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsigned {
    Quotient,
    Remainder,
}

/// An unsigned divisor as a multiplier and shifts (T. Granlund and P. Montgomery, Division by Invariant Integers using Multiplication, 1994, figure 4.1).
#[derive(Clone, Copy)]
struct Inverse {
    multiplier: u64,
    first: u32,
    second: u32,
}

impl Inverse {
    fn of(divisor: u64) -> Self {
        let divisor = divisor.max(1);
        let bits = u64::BITS - (divisor - 1).leading_zeros();
        let above = (1_u128 << bits) - u128::from(divisor);
        let multiplier = (above << 64) / u128::from(divisor) + 1;
        Self { multiplier: multiplier as u64, first: bits.min(1), second: bits.saturating_sub(1) }
    }

    #[inline(always)]
    fn quotient(self, x: u64) -> u64 {
        let high = ((u128::from(self.multiplier) * u128::from(x)) >> 64) as u64;
        (high + ((x - high) >> self.first)) >> self.second
    }
}

/// The divisor of all, if it is one.
#[inline(always)]
fn common(divisors: &[f64]) -> Option<f64> {
    let (&first, rest) = divisors.split_first()?;
    rest.iter().fold(true, |same, other| same & (other.to_bits() == first.to_bits())).then_some(first)
}

/// Signed words of 64 bits, in lanes of float64.
#[inline(always)]
pub(super) fn long(what: Signed, [a, b]: [&[f64]; 2], to: &mut [f64]) {
    match what {
        Signed::Quotient => {
            long_by([a, b], to, |x, q, y| q - i64::from(is_turned(x.wrapping_sub(q.wrapping_mul(y)), y)))
        }
        Signed::Remainder => long_by([a, b], to, |x, q, y| {
            let rest = x.wrapping_sub(q.wrapping_mul(y));
            rest + if is_turned(rest, y) { y } else { 0 }
        }),
        Signed::Rest => long_by([a, b], to, |x, q, y| x.wrapping_sub(q.wrapping_mul(y))),
    }
}

#[inline(always)]
fn is_turned(rest: i64, divisor: i64) -> bool {
    rest != 0 && (rest < 0) != (divisor < 0)
}

/// `of` takes the dividend, the quotient that is rounded to 0, and the divisor.
#[inline(always)]
fn long_by([a, b]: [&[f64]; 2], to: &mut [f64], of: impl Fn(i64, i64, i64) -> i64) {
    let signed = |word: f64| word.to_bits().cast_signed();
    let word = |value: i64| f64::from_bits(value.cast_unsigned());
    if let Some(divisor) = common(b) {
        let divisor = if signed(divisor) == 0 { 1 } else { signed(divisor) };
        let inverse = Inverse::of(divisor.unsigned_abs());
        for (to, &x) in to.iter_mut().zip(a) {
            let x = signed(x);
            let size = inverse.quotient(x.unsigned_abs()).cast_signed();
            // Of one sign the quotient is positive: the mask negates it where they differ.
            let mask = (x ^ divisor) >> 63;
            *to = word(of(x, (size ^ mask).wrapping_sub(mask), divisor));
        }
        return;
    }
    for ((to, &x), &y) in to.iter_mut().zip(a).zip(b) {
        let (x, y) = (signed(x), if signed(y) == 0 { 1 } else { signed(y) });
        *to = word(of(x, x.wrapping_div(y), y));
    }
}

/// Unsigned words of 64 bits, in lanes of float64.
#[inline(always)]
pub(super) fn unsigned_long(what: Unsigned, [a, b]: [&[f64]; 2], to: &mut [f64]) {
    match what {
        Unsigned::Quotient => unsigned_long_by([a, b], to, |_, q, _| q),
        Unsigned::Remainder => unsigned_long_by([a, b], to, |x, q, y| x - q * y),
    }
}

#[inline(always)]
fn unsigned_long_by([a, b]: [&[f64]; 2], to: &mut [f64], of: impl Fn(u64, u64, u64) -> u64) {
    if let Some(divisor) = common(b) {
        let divisor = divisor.to_bits().max(1);
        let inverse = Inverse::of(divisor);
        for (to, x) in to.iter_mut().zip(a.iter().map(|x| x.to_bits())) {
            *to = f64::from_bits(of(x, inverse.quotient(x), divisor));
        }
        return;
    }
    for ((to, &x), &y) in to.iter_mut().zip(a).zip(b) {
        let (x, y) = (x.to_bits(), y.to_bits().max(1));
        *to = f64::from_bits(of(x, x / y, y));
    }
}

/// Signed words of 32 bits.
#[inline(always)]
pub(super) fn signed(what: Signed, x: i32, y: i32) -> i32 {
    // The quotient of the least number by -1 has no float64 that an i32 holds: what -1 divides is negated.
    let divisor = if (y == 0) | (y == -1) { 1 } else { y };
    // SAFETY: the divisor's size is 1 or more, so the quotient is no larger than the dividend, which is an i32.
    let quotient = unsafe { (f64::from(x) / f64::from(divisor)).to_int_unchecked::<i32>() };
    let quotient = if y == -1 { quotient.wrapping_neg() } else { quotient };
    let divisor = if y == -1 { -1 } else { divisor };
    let rest = x.wrapping_sub(quotient.wrapping_mul(divisor));
    let is_turned = (rest != 0) & ((rest < 0) != (divisor < 0));
    match what {
        Signed::Quotient => quotient - i32::from(is_turned),
        Signed::Remainder => rest + if is_turned { divisor } else { 0 },
        Signed::Rest => rest,
    }
}

/// Unsigned words of 32 bits.
#[inline(always)]
pub(super) fn unsigned(what: Unsigned, x: u32, y: u32) -> u32 {
    let divisor = y.max(1);
    let quotient = (f64::from(x) / f64::from(divisor)) as u32;
    match what {
        Unsigned::Quotient => quotient,
        Unsigned::Remainder => x - quotient * divisor,
    }
}

#[cfg(test)]
mod tests {
    use super::{Signed, Unsigned, long, signed, unsigned, unsigned_long};

    /// Numbers at the ends of their range, around powers of two, and random ones.
    fn numbers(bits: u32) -> Vec<i128> {
        let mut all: Vec<i128> = (0..=bits).flat_map(|bit| (-2..=2).map(move |by| (1_i128 << bit) + by)).collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            all.push(i128::from(state >> (state % 60)));
        }
        let negative: Vec<i128> = all.iter().map(|x| -x).collect();
        all.extend(negative);
        all
    }

    fn expected(what: Signed, x: i128, y: i128) -> i128 {
        let y = if y == 0 { 1 } else { y };
        let floor = x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
        match what {
            Signed::Quotient => floor,
            Signed::Remainder => x - floor * y,
            Signed::Rest => x % y,
        }
    }

    #[test]
    fn quotients_and_remainders_are_those_of_wider_numbers() {
        for what in [Signed::Quotient, Signed::Remainder, Signed::Rest] {
            let wide: Vec<i64> = numbers(64).iter().map(|&x| x as i64).collect();
            let lanes: Vec<f64> = wide.iter().map(|x| f64::from_bits(x.cast_unsigned())).collect();
            let mut to = vec![0.0; lanes.len()];
            for (at, &y) in wide.iter().enumerate() {
                // One divisor for all, and then another one for each.
                let turned: Vec<f64> = lanes.iter().cycle().skip(at).take(lanes.len()).copied().collect();
                for divisors in [vec![lanes[at]; lanes.len()], turned] {
                    long(what, [&lanes, &divisors], &mut to);
                    for ((&x, &z), &found) in wide.iter().zip(&divisors).zip(&to) {
                        let z = z.to_bits().cast_signed();
                        let want = expected(what, x.into(), z.into()) as i64;
                        assert_eq!(found.to_bits().cast_signed(), want, "{x} and {z}, of {y}");
                    }
                }
            }
            let narrow: Vec<i32> = numbers(32).iter().map(|&x| x as i32).collect();
            for (&x, &y) in narrow.iter().flat_map(|x| narrow.iter().map(move |y| (x, y))) {
                assert_eq!(signed(what, x, y), expected(what, x.into(), y.into()) as i32, "{x} and {y}");
            }
        }
    }

    #[test]
    fn so_are_unsigned_ones() {
        for what in [Unsigned::Quotient, Unsigned::Remainder] {
            let of = |x: u128, y: u128| if what == Unsigned::Quotient { x / y.max(1) } else { x % y.max(1) };
            let wide: Vec<u64> = numbers(64).iter().map(|&x| x as u64).collect();
            let lanes: Vec<f64> = wide.iter().map(|&x| f64::from_bits(x)).collect();
            let mut to = vec![0.0; lanes.len()];
            for at in 0..wide.len() {
                let turned: Vec<f64> = lanes.iter().cycle().skip(at).take(lanes.len()).copied().collect();
                for divisors in [vec![lanes[at]; lanes.len()], turned] {
                    unsigned_long(what, [&lanes, &divisors], &mut to);
                    for ((&x, z), found) in wide.iter().zip(&divisors).zip(&to) {
                        assert_eq!(
                            u128::from(found.to_bits()),
                            of(x.into(), z.to_bits().into()),
                            "{x} and {}",
                            z.to_bits()
                        );
                    }
                }
            }
            let narrow: Vec<u32> = numbers(32).iter().map(|&x| x as u32).collect();
            for (&x, &y) in narrow.iter().flat_map(|x| narrow.iter().map(move |y| (x, y))) {
                assert_eq!(u128::from(unsigned(what, x, y)), of(x.into(), y.into()), "{x} and {y}");
            }
        }
    }
}
