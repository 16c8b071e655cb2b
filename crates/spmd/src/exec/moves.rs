//! Lane loops that move values and make masks. `isa` has these loops once for each instruction set. A mask has a word for each lane, all ones or none, and
//! behind them the number of active lanes, which every loop that makes a mask must keep right: jumps look at that number alone.

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
            Op::Blend => blend::<u32>(machine, i),
            Op::Blend64 => blend::<u64>(machine, i),
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
        let d = machine.target::<T>(i.d, machine.count(i));
        if i.form & A_UNIFORM != 0 {
            d.fill(machine.scalar::<T>(i.a));
        } else {
            d.copy_from_slice(machine.source::<T>(i.a, d.len()));
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs, its operands of the width of `T`.
#[inline(always)]
unsafe fn blend<T: Copy>(machine: &Machine<'_>, i: &Instr) {
    // SAFETY: `i` is checked, its operands have the width of `T` (this function's contract), and the form says which are uniform.
    unsafe {
        match machine.active(i.m) {
            Active::None => {}
            Active::All => copy::<T>(machine, i),
            Active::Some(mask) => {
                let d = machine.target::<T>(i.d, mask.len());
                if i.form & A_UNIFORM != 0 {
                    let a = machine.scalar::<T>(i.a);
                    for (d, m) in d.iter_mut().zip(mask) {
                        *d = if *m != 0 { a } else { *d };
                    }
                } else {
                    let a = machine.source::<T>(i.a, mask.len());
                    for ((d, a), m) in d.iter_mut().zip(a).zip(mask) {
                        *d = if *m != 0 { *a } else { *d };
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
    let n = machine.count(i);
    // SAFETY: `i` is checked, its operands have the width of `T` (this function's contract), and the form says which are uniform.
    unsafe {
        let (d, c) = (machine.target::<T>(i.d, n), machine.source::<u32>(i.c, n));
        match i.form & (A_UNIFORM | B_UNIFORM) {
            0 => {
                let (a, b) = (machine.source::<T>(i.a, n), machine.source::<T>(i.b, n));
                for (((d, a), b), c) in d.iter_mut().zip(a).zip(b).zip(c) {
                    *d = if *c != 0 { *a } else { *b };
                }
            }
            A_UNIFORM => {
                let (a, b) = (machine.scalar::<T>(i.a), machine.source::<T>(i.b, n));
                for ((d, b), c) in d.iter_mut().zip(b).zip(c) {
                    *d = if *c != 0 { a } else { *b };
                }
            }
            B_UNIFORM => {
                let (a, b) = (machine.source::<T>(i.a, n), machine.scalar::<T>(i.b));
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
            Op::MaskRemove => {
                let m = machine.source::<u32>(i.m, n);
                let mut active = 0_u32;
                for (d, m) in d.iter_mut().zip(m) {
                    *d &= !*m;
                    active = active.wrapping_add(*d & 1);
                }
                active
            }
            _ => 0,
        };
        idle.fill(0);
        count[0] = active;
    }
}
