//! Atomic operations, one active lane after the other, and the length of runtime arrays.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::machine::{Active, Machine, Resolved};
use crate::spmd::bytecode::{A_UNIFORM, Atomic, B_UNIFORM, C_UNIFORM, Instr, LINEAR, Number, Op};

/// # Safety
/// `i` is of a checked program.
pub(crate) unsafe fn length(machine: &Machine<'_>, i: &Instr) {
    let count = machine.accesses[i.x as usize].count;
    // SAFETY: the caller's promise: one word.
    unsafe { machine.target::<u32>(i.d, 1)[0] = u32::try_from(count).unwrap_or(u32::MAX) };
}

/// # Safety
/// `i` is of a checked program.
pub(crate) unsafe fn atomic(machine: &Machine<'_>, i: &Instr) {
    let access = &machine.accesses[i.x as usize];
    let (Op::Atomic(_, number) | Op::CompareExchange(number)) = i.op else { return };
    // SAFETY: the caller's promise; elements are aligned, see `check` and `launch`.
    unsafe {
        if number.is_wide() {
            each::<u64>(machine, i, access, |pointer, value, other| {
                wide(AtomicU64::from_ptr(pointer), i.op, value, other)
            });
        } else {
            each::<u32>(machine, i, access, |pointer, value, other| {
                word(AtomicU32::from_ptr(pointer), i.op, value, other)
            });
        }
    }
}

/// # Safety
/// As [`atomic`]; `T` has the width of the operation's numbers.
unsafe fn each<T: Copy + Default>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    mut f: impl FnMut(*mut T, T, T) -> T,
) {
    let op = i.op;
    let has_value = !matches!(op, Op::Atomic(Atomic::Load, _));
    let has_result = !matches!(op, Op::Atomic(Atomic::Store, _));
    let has_other = matches!(op, Op::CompareExchange(_));
    // SAFETY: the caller's promise.
    unsafe {
        let active = machine.active(i.m);
        let operand = |register: u32, uniform: bool, lane: usize| -> T {
            machine.file.add(register as usize).cast::<T>().add(if uniform { 0 } else { lane }).read()
        };
        for lane in 0..machine.n {
            let runs = match active {
                Active::All => true,
                Active::Some(mask) => mask[lane] != 0,
                Active::None => return,
            };
            if !runs {
                continue;
            }
            let index = if i.form & LINEAR != 0 {
                machine.scalar::<u32>(i.a).wrapping_add(lane as u32)
            } else if i.form & A_UNIFORM != 0 {
                machine.scalar::<u32>(i.a)
            } else {
                machine.scalar::<u32>(i.a + lane as u32)
            };
            let value = if has_value { operand(i.b, i.form & B_UNIFORM != 0, lane) } else { T::default() };
            let other = if has_other { operand(i.c, i.form & C_UNIFORM != 0, lane) } else { T::default() };
            let old = if u64::from(index) < access.count {
                f(access.pointer.add(index as usize * access.stride).cast::<T>(), value, other)
            } else {
                T::default()
            };
            if has_result {
                machine.file.add(i.d as usize).cast::<T>().add(lane).write(old);
            }
        }
    }
}

macro_rules! integer_operation {
    ($name:ident, $atomic:ty, $word:ty, $signed:ty, $number:pat, $float:expr) => {
        fn $name(cell: &$atomic, op: Op, value: $word, other: $word) -> $word {
            let order = Ordering::Relaxed;
            match op {
                Op::CompareExchange(_) => match cell.compare_exchange(other, value, order, order) {
                    Ok(old) | Err(old) => old,
                },
                Op::Atomic(Atomic::Load, _) => cell.load(order),
                Op::Atomic(Atomic::Store, _) => {
                    cell.store(value, order);
                    0
                }
                Op::Atomic(Atomic::Exchange, _) => cell.swap(value, order),
                Op::Atomic(Atomic::And, _) => cell.fetch_and(value, order),
                Op::Atomic(Atomic::Or, _) => cell.fetch_or(value, order),
                Op::Atomic(Atomic::Xor, _) => cell.fetch_xor(value, order),
                Op::Atomic(atomic, Number::F32 | Number::F64 | Number::F16) => {
                    update(order, cell, |old| $float(atomic, old, value))
                }
                Op::Atomic(Atomic::Add, _) => cell.fetch_add(value, order),
                Op::Atomic(Atomic::Sub, _) => cell.fetch_sub(value, order),
                Op::Atomic(Atomic::Min, $number) => {
                    update(order, cell, |old| (old as $signed).min(value as $signed) as $word)
                }
                Op::Atomic(Atomic::Max, $number) => {
                    update(order, cell, |old| (old as $signed).max(value as $signed) as $word)
                }
                Op::Atomic(Atomic::Min, _) => cell.fetch_min(value, order),
                Op::Atomic(Atomic::Max, _) => cell.fetch_max(value, order),
                _ => 0,
            }
        }
    };
}

/// `fetch_update` for both widths.
trait Cell<T> {
    fn replace_with(&self, order: Ordering, f: impl FnMut(T) -> T) -> T;
}

impl Cell<u32> for AtomicU32 {
    fn replace_with(&self, order: Ordering, mut f: impl FnMut(u32) -> u32) -> u32 {
        match self.fetch_update(order, order, |old| Some(f(old))) {
            Ok(old) | Err(old) => old,
        }
    }
}

impl Cell<u64> for AtomicU64 {
    fn replace_with(&self, order: Ordering, mut f: impl FnMut(u64) -> u64) -> u64 {
        match self.fetch_update(order, order, |old| Some(f(old))) {
            Ok(old) | Err(old) => old,
        }
    }
}

fn update<T>(order: Ordering, cell: &impl Cell<T>, f: impl FnMut(T) -> T) -> T {
    cell.replace_with(order, f)
}

integer_operation!(word, AtomicU32, u32, i32, Number::I32, |op, old, value| {
    float(op, f32::from_bits(old), f32::from_bits(value)).to_bits()
});
integer_operation!(wide, AtomicU64, u64, i64, Number::I64, |op, old, value| {
    double(op, f64::from_bits(old), f64::from_bits(value)).to_bits()
});

fn float(op: Atomic, old: f32, value: f32) -> f32 {
    match op {
        Atomic::Add => old + value,
        Atomic::Sub => old - value,
        Atomic::Min => old.min(value),
        Atomic::Max => old.max(value),
        _ => old,
    }
}

fn double(op: Atomic, old: f64, value: f64) -> f64 {
    match op {
        Atomic::Add => old + value,
        Atomic::Sub => old - value,
        Atomic::Min => old.min(value),
        Atomic::Max => old.max(value),
        _ => old,
    }
}
