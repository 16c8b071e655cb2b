//! Subgroup operations: `SUBGROUP_SIZE` consecutive lanes of one workgroup. Inactive lanes take no part, and keep
//! whatever their target held.

use super::machine::Machine;
use crate::bytecode::{Collective, FULL, Fold, Gather, Instr, Number, Op, Scan};
use crate::math;

/// # Safety
/// `i` is of the checked program that the machine runs.
pub(crate) unsafe fn subgroup(machine: &Machine<'_>, i: &Instr) {
    let n = machine.n;
    // SAFETY: `i` is checked (this function's contract): vectors of the widths that the operation says.
    unsafe {
        match i.op {
            Op::Ballot => math::ballot(machine.target(i.d, n), machine.source(i.a, n), mask(machine, i)),
            Op::Gather(mode) => {
                let (d, a, b) = (machine.target(i.d, n), machine.source(i.a, n), machine.source(i.b, n));
                math::gather(d, a, Some(b), mask(machine, i), |place, b, first| match mode {
                    Gather::First => first,
                    Gather::Broadcast | Gather::Shuffle => b,
                    Gather::Down => place.wrapping_add(b),
                    Gather::Up => place.wrapping_sub(b),
                    Gather::Xor => place ^ b,
                    Gather::QuadBroadcast => place & !3 | b & 3,
                    Gather::QuadX => place ^ 1,
                    Gather::QuadY => place ^ 2,
                    Gather::QuadDiagonal => place ^ 3,
                });
            }
            Op::Subgroup(Collective { scan, fold }, number) => match number {
                Number::I32 => collect(machine, i, scan, |a: i32, b| integer(fold, a, b), one(fold)),
                Number::U32 => collect(machine, i, scan, |a: u32, b| integer(fold, a, b), one(fold)),
                Number::I64 => collect(machine, i, scan, |a: i64, b| integer(fold, a, b), one(fold)),
                Number::U64 => collect(machine, i, scan, |a: u64, b| integer(fold, a, b), one(fold)),
                Number::F32 => collect(machine, i, scan, |a: f32, b| real(fold, a, b), unit(fold)),
                Number::F16 => collect(machine, i, scan, |a, b| math::round_f16(real(fold, a, b)), unit(fold)),
                Number::F64 => collect(machine, i, scan, |a: f64, b| real(fold, a, b), unit(fold)),
            },
            _ => {}
        }
    }
}

/// A word for each lane; `None` where all take part.
///
/// # Safety
/// `i` is of the checked program that the machine runs.
unsafe fn mask<'m>(machine: &'m Machine<'_>, i: &Instr) -> Option<&'m [u32]> {
    // SAFETY: a mask has a word for each lane, and `i` is checked (this function's contract).
    (i.m != FULL).then(|| unsafe { machine.source(i.m, machine.n) })
}

/// # Safety
/// `i` is of the checked program that the machine runs; its operands have the width of `T`.
unsafe fn collect<T: Copy>(machine: &Machine<'_>, i: &Instr, scan: Scan, f: impl Fn(T, T) -> T, identity: T) {
    // SAFETY: `i` is checked: both operands are vectors of the width of `T` (this function's contract).
    unsafe {
        let (d, a) = (machine.target::<T>(i.d, machine.n), machine.source::<T>(i.a, machine.n));
        match scan {
            Scan::Reduce => math::collect::<{ math::SCAN_REDUCE }, T>(d, a, mask(machine, i), identity, f),
            Scan::Inclusive => math::collect::<{ math::SCAN_INCLUSIVE }, T>(d, a, mask(machine, i), identity, f),
            Scan::Exclusive => math::collect::<{ math::SCAN_EXCLUSIVE }, T>(d, a, mask(machine, i), identity, f),
        }
    }
}

/// The operations that integer folds need from a type.
trait Whole: Copy + Ord {
    const ZERO: Self;
    const ONE: Self;
    const ALL: Self;
    const LEAST: Self;
    const MOST: Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

macro_rules! whole {
    ($($t:ty),*) => {$(
        impl Whole for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const ALL: Self = !0;
            const LEAST: Self = <$t>::MIN;
            const MOST: Self = <$t>::MAX;
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
        }
    )*};
}
whole!(i32, u32, i64, u64);

fn integer<T: Whole>(fold: Fold, a: T, b: T) -> T {
    match fold {
        Fold::Add => a.add(b),
        Fold::Mul => a.mul(b),
        Fold::Min => a.min(b),
        Fold::Max => a.max(b),
        Fold::And => a.and(b),
        Fold::Or => a.or(b),
        Fold::Xor => a.xor(b),
    }
}

fn one<T: Whole>(fold: Fold) -> T {
    match fold {
        Fold::Mul => T::ONE,
        Fold::Min => T::MOST,
        Fold::Max => T::LEAST,
        Fold::And => T::ALL,
        Fold::Add | Fold::Or | Fold::Xor => T::ZERO,
    }
}

/// The operations that float folds need from a type.
trait Real: Copy + PartialOrd + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + From<f32> {}
impl Real for f32 {}
impl Real for f64 {}

fn real<T: Real>(fold: Fold, a: T, b: T) -> T {
    match fold {
        Fold::Mul => a * b,
        Fold::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        Fold::Max => {
            if b > a {
                b
            } else {
                a
            }
        }
        _ => a + b,
    }
}

fn unit<T: Real>(fold: Fold) -> T {
    T::from(match fold {
        Fold::Mul => 1.0,
        Fold::Min => f32::INFINITY,
        Fold::Max => f32::NEG_INFINITY,
        _ => 0.0,
    })
}
