//! Intervals: what a value may be.

use crate::check::{ulp16, ulp32};

use super::program::Width;

/// The numbers that a value may be. Not finite: any number at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    pub(super) fn exact(value: f64) -> Self {
        Self { low: value, high: value }
    }

    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let start = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values.into_iter().fold(start, |all, value| Self { low: all.low.min(value), high: all.high.max(value) })
    }

    pub(super) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    pub(super) fn radius(self) -> f64 {
        (self.high - self.low) / 2.0 * (1.0 + 1e-12)
    }

    pub(super) fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { low: rising(self.low), high: rising(self.high) }
    }

    /// Off by this many ULP; what is subnormal may be flushed.
    pub(super) fn rounded(self, width: Width, count: f64) -> Self {
        let (ulp, least): (fn(f64) -> f64, f64) = match width {
            Width::Single => (ulp32, f64::from(f32::MIN_POSITIVE)),
            Width::Half => (ulp16, 6.103_515_625e-5),
        };
        let flushed = |value: f64| if value.abs() < least { least } else { 0.0 };
        Self {
            low: self.low - count * ulp(self.low) - flushed(self.low),
            high: self.high + count * ulp(self.high) + flushed(self.high),
        }
    }

    pub(super) fn widened(self, by: f64) -> Self {
        Self { low: self.low - by, high: self.high + by }
    }
}

impl std::ops::Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }
}

impl std::ops::Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }
}

impl std::ops::Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::of([self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high])
    }
}
