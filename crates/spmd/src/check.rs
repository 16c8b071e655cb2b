//! Checks a program before it runs: afterwards the executor may trust every offset in it.
//!
//! What holds for a checked program:
//! - every instruction has one of its operation's forms (`Op::forms`);
//! - every register lies within the register file, with its width and the lanes it is used with;
//! - the target of an instruction overlaps none of its other operands;
//! - every jump lands on an instruction, and the last instruction ends the program;
//! - every access names a binding or memory that exists, and private memory lies within the register file;
//! - one thread takes 256 MiB of registers at most, and 4 MiB of workgroup memory.

use std::sync::atomic::{AtomicBool, Ordering};

use super::bytecode::{
    A_UNIFORM, Atomic, B_UNIFORM, Batching, Bytecode, C_UNIFORM, Code, Count, D_UNIFORM, Element, FULL, Instr,
    LANE_STEP, MAX_LANES, MAX_WORKGROUP_BYTES, Op, Rows, Space, Strided,
};
use super::shape::Width;

/// A program whose data make no sense: damaged in storage, or made by another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the compiled kernel is damaged ({what}): compile it again")]
pub struct Corrupt {
    what: String,
}

/// True if a program passed [`check`]. Not serialised: data that come from outside are checked again.
#[derive(Debug, Default)]
pub(crate) struct Checked(AtomicBool);

impl Clone for Checked {
    fn clone(&self) -> Self {
        Checked(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Register files beyond this are refused: 256 MiB.
pub(super) const MAX_WORDS: u32 = 1 << 26;

pub(crate) fn check(program: &Bytecode) -> Result<(), Corrupt> {
    if program.checked.0.load(Ordering::Acquire) {
        return Ok(());
    }
    let size = program.workgroup_size.iter().try_fold(1_u32, |product, side| product.checked_mul(*side));
    let Some(invocations) = size.filter(|size| (1..=MAX_LANES).contains(size)) else {
        return corrupt("workgroup size");
    };
    if program.workgroup_bytes > MAX_WORKGROUP_BYTES {
        return corrupt("workgroup memory");
    }
    if program.codes.is_empty() {
        return corrupt("no code");
    }
    if program.bindings.iter().any(|binding| !binding.align.is_power_of_two()) {
        return corrupt("binding alignment");
    }
    for code in &program.codes {
        let lanes = invocations..=MAX_LANES;
        if !lanes.contains(&code.lanes) || code.lanes % LANE_STEP != 0 || code.words > MAX_WORDS {
            return corrupt("lanes");
        }
        let memory = u64::from(code.lanes / invocations) * u64::from(program.workgroup_bytes);
        if code.batching == Batching::Groups && memory > u64::from(MAX_WORKGROUP_BYTES) {
            return corrupt("workgroup memory of a batch");
        }
        if code.constants.iter().any(|(word, _)| *word >= code.words) {
            return corrupt("constants");
        }
        for access in &code.accesses {
            check_access(program, code, access)?;
        }
        for rows in &code.rows {
            check_rows(program, code, rows)?;
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

fn check_access(program: &Bytecode, code: &Code, access: &Strided) -> Result<(), Corrupt> {
    match access.space {
        Space::Binding(binding) if binding as usize >= program.bindings.len() => return corrupt("binding"),
        Space::Workgroup | Space::Groups if (access.space == Space::Groups) != (code.batching == Batching::Groups) => {
            return corrupt("workgroup memory of another batching");
        }
        Space::Binding(_) | Space::Workgroup | Space::Groups | Space::Table => {}
        Space::Private { base, slots } => {
            let end = u64::from(base) + u64::from(slots) * u64::from(code.lanes);
            if end > u64::from(code.words) || base % LANE_STEP != 0 {
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
    let align = match access.space {
        Space::Binding(binding) => program.bindings.get(binding as usize).map_or(0, |binding| binding.align),
        Space::Workgroup | Space::Groups | Space::Table => 8,
        // Slots of lanes are aligned for any element.
        Space::Private { .. } => return Ok(()),
    };
    let size = access.element.bytes();
    if align < size || !access.offset.is_multiple_of(size) || !access.stride.is_multiple_of(size) {
        return corrupt("alignment");
    }
    match access.count {
        Count::Runtime { stride: 0, .. } => corrupt("stride"),
        _ => Ok(()),
    }
}

fn check_rows(program: &Bytecode, code: &Code, rows: &Rows) -> Result<(), Corrupt> {
    let is_known = |access: &Strided| {
        matches!(access.space, Space::Binding(_)) && access.element == Element::Word && access.stride == 4
    };
    let sizes = program.bindings.get(rows.sizes as usize);
    let is_aligned = [rows.width, rows.height, rows.base].iter().all(|offset| offset.is_multiple_of(4));
    let is_read = sizes.is_some_and(|sizes| !sizes.writable && sizes.align >= 4);
    if is_aligned && is_read && code.accesses.get(rows.access as usize).is_some_and(is_known) {
        return Ok(());
    }
    corrupt("rows")
}

fn check_instruction(program: &Bytecode, code: &Code, i: &Instr) -> Option<()> {
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
    if !i.op.forms(&code.accesses, i.x).contains(&i.form) {
        return None;
    }
    let uniform = [A_UNIFORM, B_UNIFORM, C_UNIFORM, D_UNIFORM].map(|bit| i.form & bit != 0);
    let memory = matches!(i.op, Op::Load | Op::Store | Op::Atomic(..) | Op::CompareExchange(_) | Op::Length);
    if memory {
        check_memory(program, code.accesses.get(i.x as usize)?, i.op)?;
    }
    if i.op == Op::Texel && i.x as usize >= code.rows.len() {
        return None;
    }
    if matches!(i.op, Op::Input(input) if !input.is_bytecode()) {
        return None;
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
        let m = if shape.m && i.m != FULL { range(i.m, Width::Mask, false)? } else { (0, 0) };
        for (from, to) in [d, sources[0], sources[1], m] {
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

/// Checks that the operation may touch that memory.
fn check_memory(program: &Bytecode, access: &Strided, op: Op) -> Option<()> {
    let writes = !matches!(op, Op::Load | Op::Length | Op::Atomic(Atomic::Load, _));
    let align = match access.space {
        Space::Binding(binding) => {
            let binding = program.bindings.get(binding as usize)?;
            if writes && !binding.writable {
                return None;
            }
            binding.align
        }
        Space::Table if writes => return None,
        Space::Workgroup | Space::Groups | Space::Table | Space::Private { .. } => 8,
    };
    if let Op::Atomic(_, number) | Op::CompareExchange(number) = op {
        let size = if number.is_wide() { 8 } else { 4 };
        let shared = matches!(access.space, Space::Binding(_) | Space::Workgroup | Space::Groups);
        let aligned = align >= size && access.offset.is_multiple_of(size) && access.stride.is_multiple_of(size);
        if !shared || !aligned || access.element.bytes() != size {
            return None;
        }
    }
    Some(())
}
