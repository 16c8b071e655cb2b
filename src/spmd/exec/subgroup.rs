//! Subgroup operations: `SUBGROUP_SIZE` consecutive lanes of one workgroup. Inactive lanes take no part, and keep
//! whatever their target held.

use super::machine::{Active, Machine};
use crate::spmd::SUBGROUP_SIZE;
use crate::spmd::bytecode::{Fold, Gather, Instr, Number, Op, Scan};
use crate::spmd::math;

/// # Safety
/// `i` is of a checked program.
pub(crate) unsafe fn subgroup(machine: &Machine<'_>, i: &Instr) {
    let n = machine.n;
    let size = SUBGROUP_SIZE as usize;
    // SAFETY: the caller's promise; vectors of the widths that the operation says.
    unsafe {
        let active = machine.active(i.m);
        let runs = |lane: usize| match active {
            Active::All => true,
            Active::Some(mask) => mask[lane] != 0,
            Active::None => false,
        };
        for start in (0..n).step_by(size) {
            let end = n.min(start + size);
            let lanes = start..end;
            match i.op {
                Op::Ballot => {
                    let a = machine.source::<u32>(i.a, n);
                    let bits = lanes.clone().filter(|lane| runs(*lane) && a[*lane] != 0);
                    let ballot = bits.fold(0, |ballot, lane| ballot | 1 << (lane - start));
                    machine.target::<u32>(i.d, n)[lanes].fill(ballot);
                }
                Op::Gather(mode) => {
                    let (a, b) = (machine.source::<u32>(i.a, n), machine.source::<u32>(i.b, n));
                    let d = machine.target::<u32>(i.d, n);
                    let first = lanes.clone().find(|lane| runs(*lane)).unwrap_or(start);
                    for lane in lanes.filter(|lane| runs(*lane)) {
                        let place = (lane - start) as u32;
                        let from = match mode {
                            Gather::First => (first - start) as u32,
                            Gather::Broadcast | Gather::Shuffle => b[lane],
                            Gather::Down => place.wrapping_add(b[lane]),
                            Gather::Up => place.wrapping_sub(b[lane]),
                            Gather::Xor => place ^ b[lane],
                            Gather::QuadBroadcast => place & !3 | b[lane] & 3,
                            Gather::QuadX => place ^ 1,
                            Gather::QuadY => place ^ 2,
                            Gather::QuadDiagonal => place ^ 3,
                        };
                        // WGSL leaves both open: of a lane that does not exist ours is the lane's own value, of one that takes no part zero
                        // (its register holds whatever was there before).
                        let from = if from < (end - start) as u32 { start + from as usize } else { lane };
                        d[lane] = if runs(from) { a[from] } else { 0 };
                    }
                }
                Op::Subgroup(collective, number) => {
                    let scan = collective.scan;
                    let fold = collective.fold;
                    match number {
                        Number::I32 => {
                            collect(machine, i, lanes, runs, scan, |a: i32, b| integer(fold, a, b), one(fold))
                        }
                        Number::U32 => {
                            collect(machine, i, lanes, runs, scan, |a: u32, b| integer(fold, a, b), one(fold))
                        }
                        Number::I64 => {
                            collect(machine, i, lanes, runs, scan, |a: i64, b| integer(fold, a, b), one(fold))
                        }
                        Number::U64 => {
                            collect(machine, i, lanes, runs, scan, |a: u64, b| integer(fold, a, b), one(fold))
                        }
                        Number::F32 => collect(machine, i, lanes, runs, scan, |a: f32, b| real(fold, a, b), unit(fold)),
                        Number::F16 => {
                            let f = |a: f32, b| math::round_f16(real(fold, a, b));
                            collect(machine, i, lanes, runs, scan, f, unit(fold));
                        }
                        Number::F64 => collect(machine, i, lanes, runs, scan, |a: f64, b| real(fold, a, b), unit(fold)),
                    }
                }
                _ => {}
            }
        }
    }
}

/// # Safety
/// `i` is of a checked program; its operands have the width of `T`.
unsafe fn collect<T: Copy>(
    machine: &Machine<'_>,
    i: &Instr,
    lanes: std::ops::Range<usize>,
    runs: impl Fn(usize) -> bool,
    scan: Scan,
    f: impl Fn(T, T) -> T,
    identity: T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (d, a) = (machine.target::<T>(i.d, machine.n), machine.source::<T>(i.a, machine.n));
        let mut sum = identity;
        for lane in lanes.clone().filter(|lane| runs(*lane)) {
            let next = f(sum, a[lane]);
            match scan {
                Scan::Inclusive => d[lane] = next,
                Scan::Exclusive => d[lane] = sum,
                Scan::Reduce => {}
            }
            sum = next;
        }
        if scan == Scan::Reduce {
            d[lanes].fill(sum);
        }
    }
}

/// What the integer folds need of a type.
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

/// What the float folds need of a type.
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
