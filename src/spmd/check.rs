//! Checks a program before it runs: afterwards the executor may trust every offset in it.
//!
//! What holds for a checked program:
//! - every register lies within the register file, with its width and the lanes it is used with;
//! - the target of an instruction overlaps none of its other operands;
//! - every jump lands on an instruction, and the last instruction ends the program;
//! - every access names a binding or memory that exists, and private memory lies within the register file.

use std::sync::atomic::{AtomicBool, Ordering};

use super::program::{
    A_UNIFORM, Access, Atomic, B_UNIFORM, C_UNIFORM, Code, Count, D_UNIFORM, FULL, Instr, LANE_STEP, LINEAR, Op,
    Program, Space,
};
use super::shape::Width;

/// A program whose data make no sense: damaged in storage, or made by another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the compiled kernel is damaged ({what}): compile it again")]
pub struct Corrupt {
    what: String,
}

/// Whether a program passed [`check`]. Not serialised: data that come from outside are checked again.
#[derive(Debug, Default)]
pub(crate) struct Checked(AtomicBool);

impl Clone for Checked {
    fn clone(&self) -> Self {
        Checked(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Register files beyond this are refused: 1 GiB.
const MAX_WORDS: u32 = 1 << 28;

pub(crate) fn check(program: &Program) -> Result<(), Corrupt> {
    if program.checked.0.load(Ordering::Acquire) {
        return Ok(());
    }
    let size = program.workgroup_size.iter().try_fold(1_u32, |product, side| product.checked_mul(*side));
    let Some(invocations) = size.filter(|size| *size > 0) else { return corrupt("workgroup size") };
    if program.codes.is_empty() {
        return corrupt("no code");
    }
    if program.bindings.iter().any(|binding| !binding.align.is_power_of_two()) {
        return corrupt("binding alignment");
    }
    for code in &program.codes {
        if code.lanes < invocations || code.lanes % LANE_STEP != 0 || code.words > MAX_WORDS {
            return corrupt("lanes");
        }
        if code.constants.iter().any(|(word, _)| *word >= code.words) {
            return corrupt("constants");
        }
        for access in &code.accesses {
            check_access(program, code, access)?;
        }
        for (position, instruction) in code.instructions.iter().enumerate() {
            if check_instruction(program, code, instruction).is_none() {
                return corrupt(&format!("instruction {position}: {instruction:?}"));
            }
        }
        if !matches!(code.instructions.last().map(|last| last.op), Some(Op::End)) {
            return corrupt("no end");
        }
    }
    program.checked.0.store(true, Ordering::Release);
    Ok(())
}

fn corrupt<T>(what: &str) -> Result<T, Corrupt> {
    Err(Corrupt { what: what.to_owned() })
}

fn check_access(program: &Program, code: &Code, access: &Access) -> Result<(), Corrupt> {
    match access.space {
        Space::Binding(binding) if binding as usize >= program.bindings.len() => return corrupt("binding"),
        Space::Binding(_) | Space::Workgroup | Space::Table => {}
        Space::Private { base, slots } => {
            let end = u64::from(base) + u64::from(slots) * u64::from(code.lanes);
            if end > u64::from(code.words) || base % LANE_STEP != 0 || code.words > MAX_WORDS {
                return corrupt("private memory");
            }
            let Count::Fixed(count) = access.count else { return corrupt("private count") };
            let width = u64::from(access.element.bytes()).div_ceil(4);
            let last = u64::from(access.offset) + u64::from(count.saturating_sub(1)) * u64::from(access.stride);
            if count > 0 && last + width > u64::from(slots) {
                return corrupt("private range");
            }
        }
    }
    match access.count {
        Count::Runtime { stride: 0, .. } => corrupt("stride"),
        _ => Ok(()),
    }
}

fn check_instruction(program: &Program, code: &Code, i: &Instr) -> Option<()> {
    let shape = i.op.shape(&code.accesses, i.x);
    let words = |width: Width, uniform: bool| -> Option<u32> {
        match (width, uniform) {
            (Width::None, _) => Some(0),
            (Width::Word, true) => Some(1),
            (Width::Wide, true) => Some(2),
            (Width::Word, false) => Some(code.lanes),
            (Width::Wide, false) => code.lanes.checked_mul(2),
            (Width::Mask, _) => code.lanes.checked_add(LANE_STEP),
        }
    };
    let range = |register: u32, width: Width, uniform: bool| -> Option<(u32, u32)> {
        let size = words(width, uniform)?;
        if size == 0 {
            return Some((0, 0));
        }
        // 8-byte values and vectors keep their natural alignment.
        let align = match (width, uniform) {
            (Width::Word, true) => 1,
            (Width::Wide, true) => 2,
            _ => LANE_STEP,
        };
        let end = register.checked_add(size)?;
        (end <= code.words && register.is_multiple_of(align)).then_some((register, end))
    };
    let mut uniform = [A_UNIFORM, B_UNIFORM, C_UNIFORM, D_UNIFORM].map(|bit| i.form & bit != 0);
    let memory = matches!(i.op, Op::Load | Op::Store | Op::Atomic(..) | Op::CompareExchange(_) | Op::Length);
    if memory {
        let access = code.accesses.get(i.x as usize)?;
        if i.form & LINEAR != 0 && !uniform[0] {
            return None;
        }
        let writes = !matches!(i.op, Op::Load | Op::Length | Op::Atomic(Atomic::Load, _));
        if let Space::Binding(binding) = access.space
            && writes
            && !program.bindings.get(binding as usize)?.writable
        {
            return None;
        }
        if writes && access.space == Space::Table {
            return None;
        }
        if let Op::Atomic(_, number) | Op::CompareExchange(number) = i.op {
            let size = if number.is_wide() { 8 } else { 4 };
            let private = matches!(access.space, Space::Private { .. } | Space::Table);
            let aligned = match access.space {
                Space::Binding(binding) => program.bindings.get(binding as usize)?.align >= size,
                _ => true,
            };
            if private || !aligned || access.element.bytes() != size || access.offset % size != 0 {
                return None;
            }
            if access.stride % size != 0 {
                return None;
            }
        }
    }
    // Operands which the executor reads as vectors whatever the form says.
    match i.op {
        Op::MaskAnd | Op::MaskAndNot if uniform[0] => return None,
        Op::JumpIf | Op::JumpUnless if !uniform[0] => return None,
        Op::Iota if !uniform[0] || uniform[3] => return None,
        Op::Length if !uniform[3] => return None,
        Op::Input(input) if input.is_uniform() != uniform[3] || !input.is_bytecode() => return None,
        Op::Select | Op::Select64 if uniform[2] != uniform[3] => return None,
        Op::Fma | Op::Fma64 | Op::ExtractSigned | Op::ExtractUnsigned
            if uniform[0] != uniform[3] || uniform[1] != uniform[3] || uniform[2] != uniform[3] =>
        {
            return None;
        }
        Op::Subgroup(..) | Op::Gather(_) | Op::Ballot if uniform.iter().any(|u| *u) => return None,
        // Unary operations write as many lanes as they read.
        Op::Float(_) | Op::Int(_) | Op::Wide(_) | Op::Double(_) | Op::Convert(_) if uniform[0] != uniform[3] => {
            return None;
        }
        Op::Atomic(..) | Op::CompareExchange(_) if uniform[3] && shape.d != Width::None => return None,
        Op::Load if uniform[3] && (!uniform[0] || i.form & LINEAR != 0) => return None,
        Op::Blend | Op::Blend64 if uniform[3] => return None,
        _ => {}
    }
    if uniform[3] && !memory {
        // A uniform result has uniform operands only.
        for (index, width) in [shape.a, shape.b, shape.c].into_iter().enumerate() {
            if width != Width::None && !uniform[index] {
                return None;
            }
        }
    } else if shape.b != Width::None && uniform[0] && uniform[1] && !memory && shape.c == Width::None {
        return None;
    }
    if shape.d == Width::None {
        uniform[3] = false;
    }
    let d = range(i.d, shape.d, uniform[3])?;
    let sources =
        [range(i.a, shape.a, uniform[0])?, range(i.b, shape.b, uniform[1])?, range(i.c, shape.c, uniform[2])?];
    for source in sources {
        let apart = source.1 <= d.0 || d.1 <= source.0;
        if source.0 != source.1 && d.0 != d.1 && !apart {
            return None;
        }
    }
    if shape.m && i.m != FULL {
        let m = range(i.m, Width::Mask, false)?;
        if d.0 != d.1 && m.0 < d.1 && d.0 < m.1 {
            return None;
        }
    }
    if i.m == FULL && matches!(i.op, Op::MaskRemove | Op::JumpNone | Op::JumpAny) {
        return None;
    }
    if memory && let Space::Private { base, slots } = code.accesses.get(i.x as usize)?.space {
        let end = base.checked_add(slots.checked_mul(code.lanes)?)?;
        for (from, to) in [d, sources[0], sources[1]] {
            if from != to && from < end && base < to {
                return None;
            }
        }
    }
    if shape.jumps && i.x as usize >= code.instructions.len() {
        return None;
    }
    Some(())
}
