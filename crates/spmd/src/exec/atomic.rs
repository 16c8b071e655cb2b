//! Atomic operations, one active lane after the other, and the length of runtime arrays.

use super::machine::{Active, Machine, Resolved};
use super::memory::note_beyond;
use crate::bytecode::{A_UNIFORM, Atomic, B_UNIFORM, C_UNIFORM, Instr, LINEAR, Number, Op};
use crate::math::{self, AtomicOperation};

/// # Safety
/// `i` is of the checked program that the machine runs.
pub(crate) unsafe fn length(machine: &Machine<'_>, i: &Instr) {
    let count = machine.accesses[i.x as usize].count;
    // SAFETY: `i` is checked (this function's contract): its target is one word.
    unsafe { machine.target::<u32>(i.d, 1)[0] = u32::try_from(count).unwrap_or(u32::MAX) };
}

/// # Safety
/// `i` is of the checked program that the machine runs.
pub(crate) unsafe fn atomic(machine: &Machine<'_>, i: &Instr) {
    let access = &machine.accesses[i.x as usize];
    let (Op::Atomic(_, number) | Op::CompareExchange(number)) = i.op else { return };
    let Some(op) = atomic_operation(i.op) else { return };
    // SAFETY: `i` is checked (this function's contract): the numbers have this width; elements are aligned, see `check` and `launch`.
    unsafe {
        if let Some(beyond) = machine.beyond
            && !matches!(i.op, Op::Atomic(Atomic::Load, _))
        {
            note_beyond(machine, i, access, beyond);
        }
        match (number.is_wide(), access.shared) {
            (true, true) => each(machine, i, access, |at, value, other| math::atomic_u64(op, at, value, other)),
            (true, false) => each(machine, i, access, |at, value, other| math::plain_u64(op, at, value, other)),
            (false, true) => each(machine, i, access, |at, value, other| math::atomic_u32(op, at, value, other)),
            (false, false) => each(machine, i, access, |at, value, other| math::plain_u32(op, at, value, other)),
        }
    }
}

/// # Safety
/// As [`atomic`]; `T` has the width of the operation's numbers.
unsafe fn each<T: Copy + Default>(
    machine: &Machine<'_>,
    i: &Instr,
    access: &Resolved,
    f: impl Fn(Option<*mut u8>, T, T) -> T,
) {
    let op = i.op;
    let has_value = !matches!(op, Op::Atomic(Atomic::Load, _));
    let has_result = !matches!(op, Op::Atomic(Atomic::Store, _));
    let has_other = matches!(op, Op::CompareExchange(_));
    // SAFETY: `i` is checked, `T` has its numbers' width (this function's contract), and indices are below the count where one is used.
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
            let inside = u64::from(index) < access.count;
            let memory = if access.apart == 0 { 0 } else { lane / machine.group * access.apart };
            let old = f(inside.then(|| access.pointer.add(memory + index as usize * access.stride)), value, other);
            if has_result {
                machine.file.add(i.d as usize).cast::<T>().add(lane).write(old);
            }
        }
    }
}

/// Returns an operation's effect on a word.
pub fn atomic_operation(op: Op) -> Option<AtomicOperation> {
    use AtomicOperation as To;
    let (atomic, number) = match op {
        Op::Atomic(atomic, number) => (atomic, number),
        Op::CompareExchange(_) => return Some(To::CompareExchange),
        _ => return None,
    };
    let float = matches!(number, Number::F16 | Number::F32 | Number::F64);
    let signed = matches!(number, Number::I32 | Number::I64);
    Some(match atomic {
        Atomic::Load => To::Load,
        Atomic::Store => To::Store,
        Atomic::Exchange => To::Exchange,
        Atomic::Add if float => To::FloatAdd,
        Atomic::Sub if float => To::FloatSub,
        Atomic::Min if float => To::FloatMin,
        Atomic::Max if float => To::FloatMax,
        Atomic::Min if signed => To::MinSigned,
        Atomic::Max if signed => To::MaxSigned,
        Atomic::Add => To::Add,
        Atomic::Sub => To::Sub,
        Atomic::Min => To::Min,
        Atomic::Max => To::Max,
        Atomic::And => To::And,
        Atomic::Or => To::Or,
        Atomic::Xor => To::Xor,
    })
}
