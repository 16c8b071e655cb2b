//! Lane loops that move values and make masks. `isa` has these loops once for each instruction set. A mask has a word for each lane, all ones or none, and
//! behind them the number of active lanes, which every loop that makes a mask must keep right: jumps look at that number alone.

use std::ops::{BitAnd, BitXor};

use super::isa::Lanes;
use super::machine::{Active, Machine};
use crate::bytecode::{A_UNIFORM, B_UNIFORM, FULL, Instr, Op};

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn moves<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    // SAFETY: `i` is checked (this function's contract): registers have the widths that the operation says.
    unsafe {
        match i.op {
            Op::Copy => copy::<u32>(machine, i),
            Op::Copy64 => copy::<u64>(machine, i),
            Op::Blend => blend::<u32>(machine, i, |mask| mask),
            Op::Blend64 => blend::<u64>(machine, i, |mask| u64::from(mask) << 32 | u64::from(mask)),
            Op::Select => select::<u32>(machine, i),
            Op::Select64 => select::<u64>(machine, i),
            Op::Iota => {
                let base = machine.scalar::<u32>(i.a);
                let mut lane = 0_u32;
                for d in machine.target::<u32>(i.d, machine.padded) {
                    *d = base.wrapping_add(lane);
                    lane = lane.wrapping_add(1);
                }
            }
            _ => masks(machine, i),
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs, its operands of the width of `T`.
#[inline(always)]
unsafe fn copy<T: Copy>(machine: &Machine<'_>, i: &Instr) {
    // SAFETY: `i` is checked, its operands have the width of `T` (this function's contract), and the form says which are uniform.
    unsafe {
        let [first, n] = machine.span(i);
        let d = &mut machine.target::<T>(i.d, n)[first..];
        if i.form & A_UNIFORM != 0 {
            d.fill(machine.scalar::<T>(i.a));
        } else {
            d.copy_from_slice(&machine.source::<T>(i.a, n)[first..]);
        }
    }
}

/// By bits: of `if` LLVM makes a choice between two addresses, one lane after the other.
///
/// # Safety
/// `i` is of the checked program that the machine runs, its operands of the width of `T`.
#[inline(always)]
unsafe fn blend<T>(machine: &Machine<'_>, i: &Instr, wide: impl Fn(u32) -> T)
where
    T: Copy + BitAnd<Output = T> + BitXor<Output = T>,
{
    let chosen = |old: T, new: T, mask: u32| old ^ ((old ^ new) & wide(mask));
    // SAFETY: `i` is checked, its operands have the width of `T` (this function's contract), and the form says which are uniform.
    unsafe {
        match machine.active(i.m) {
            Active::None => {}
            Active::All => copy::<T>(machine, i),
            Active::Some(mask) => {
                let [first, n] = machine.span(i);
                let n = n.min(mask.len());
                let (d, mask) = (&mut machine.target::<T>(i.d, n)[first..], &mask[first..n]);
                if i.form & A_UNIFORM != 0 {
                    let a = machine.scalar::<T>(i.a);
                    for (d, m) in d.iter_mut().zip(mask) {
                        *d = chosen(*d, a, *m);
                    }
                } else {
                    let a = &machine.source::<T>(i.a, n)[first..];
                    for ((d, a), m) in d.iter_mut().zip(a).zip(mask) {
                        *d = chosen(*d, *a, *m);
                    }
                }
            }
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs, its operands of the width of `T`.
#[inline(always)]
unsafe fn select<T: Copy>(machine: &Machine<'_>, i: &Instr) {
    let [first, n] = machine.span(i);
    // SAFETY: `i` is checked, its operands have the width of `T` (this function's contract), and the form says which are uniform.
    unsafe {
        let (d, c) = (&mut machine.target::<T>(i.d, n)[first..], &machine.source::<u32>(i.c, n)[first..]);
        match i.form & (A_UNIFORM | B_UNIFORM) {
            0 => {
                let (a, b) = (&machine.source::<T>(i.a, n)[first..], &machine.source::<T>(i.b, n)[first..]);
                for (((d, a), b), c) in d.iter_mut().zip(a).zip(b).zip(c) {
                    *d = if *c != 0 { *a } else { *b };
                }
            }
            A_UNIFORM => {
                let (a, b) = (machine.scalar::<T>(i.a), &machine.source::<T>(i.b, n)[first..]);
                for ((d, b), c) in d.iter_mut().zip(b).zip(c) {
                    *d = if *c != 0 { a } else { *b };
                }
            }
            B_UNIFORM => {
                let (a, b) = (&machine.source::<T>(i.a, n)[first..], machine.scalar::<T>(i.b));
                for ((d, a), c) in d.iter_mut().zip(a).zip(c) {
                    *d = if *c != 0 { *a } else { b };
                }
            }
            _ => {
                let (a, b) = (machine.scalar::<T>(i.a), machine.scalar::<T>(i.b));
                for (d, c) in d.iter_mut().zip(c) {
                    *d = if *c != 0 { a } else { b };
                }
            }
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
unsafe fn masks(machine: &Machine<'_>, i: &Instr) {
    let n = machine.n;
    // SAFETY: a mask holds a word for each lane, and the count of active lanes behind them.
    unsafe {
        let words = machine.target::<u32>(i.d, machine.lanes + 1);
        let (d, rest) = words.split_at_mut(n);
        let (idle, count) = rest.split_at_mut(machine.lanes - n);
        let active = match i.op {
            Op::MaskAll => {
                d.fill(u32::MAX);
                n as u32
            }
            Op::MaskNone => {
                d.fill(0);
                0
            }
            Op::MaskCopy if i.m == FULL => {
                d.fill(u32::MAX);
                n as u32
            }
            Op::MaskCopy => {
                d.copy_from_slice(machine.source::<u32>(i.m, n));
                machine.active_count(i.m)
            }
            Op::MaskAnd | Op::MaskAndNot => {
                let a = machine.source::<u32>(i.a, n);
                let flip = if i.op == Op::MaskAndNot { u32::MAX } else { 0 };
                let mut active = 0_u32;
                if i.m == FULL {
                    for (d, a) in d.iter_mut().zip(a) {
                        *d = *a ^ flip;
                        active = active.wrapping_add(*d & 1);
                    }
                } else {
                    let m = machine.source::<u32>(i.m, n);
                    for ((d, a), m) in d.iter_mut().zip(a).zip(m) {
                        *d = (*a ^ flip) & *m;
                        active = active.wrapping_add(*d & 1);
                    }
                }
                active
            }
            Op::MaskRemove | Op::MaskDrop | Op::MaskKeep => {
                let (from, flip) = match i.op {
                    Op::MaskRemove => (i.m, 0),
                    Op::MaskDrop => (i.a, 0),
                    _ => (i.a, u32::MAX),
                };
                let [first, behind] = machine.span(i);
                let behind = behind.min(n);
                let mut left = 0_u32;
                for (d, a) in d[first..behind].iter_mut().zip(&machine.source::<u32>(from, behind)[first..]) {
                    let leaves = *d & (*a ^ flip);
                    *d ^= leaves;
                    left = left.wrapping_add(leaves & 1);
                }
                count[0].wrapping_sub(left)
            }
            _ => 0,
        };
        idle.fill(0);
        count[0] = active;
    }
}
