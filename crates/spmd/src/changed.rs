//! Changes of single fields of bytecode, which damage to its bytes would mostly hide behind other damage: for tests of what the check lets by.

use super::bytecode::{Bytecode, Code, Count, Element, Instr, Strided};
use super::check::Checked;

/// A source of choices.
pub trait Choices {
    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: usize) -> usize;
    /// A number, those at the borders of types more often than others.
    fn number(&mut self) -> u64;
}

/// Changes one field of the program, or one instruction or access by another of its own or of `other`.
pub fn change(program: &mut Bytecode, other: &Bytecode, choices: &mut impl Choices) {
    program.checked = Checked::default();
    let code = choices.below(program.codes.len().max(1));
    match choices.below(24) {
        0 => program.workgroup_bytes = choices.number() as u32,
        1 => program.workgroup_size[choices.below(3)] = choices.number() as u32,
        2 => {
            let Some(code) = program.codes.get_mut(code) else { return };
            let field = if choices.below(2) == 0 { &mut code.lanes } else { &mut code.words };
            *field = if choices.below(2) == 0 { *field / 2 } else { choices.number() as u32 };
        }
        3 => {
            let Some(binding) = pick(&mut program.bindings, choices) else { return };
            match choices.below(3) {
                0 => binding.min_bytes = choices.number(),
                1 => binding.align = choices.number() as u32,
                _ => binding.writable = choices.below(2) == 0,
            }
        }
        kind => {
            let Some(code) = program.codes.get_mut(code) else { return };
            code.tables = Default::default();
            match kind {
                4..=8 => access(code, choices),
                9..=11 => instructions(code, choices),
                12 => {
                    let end = choices.below(code.table.len() + 1);
                    code.table.truncate(end);
                }
                _ => instruction(code, other, choices),
            }
        }
    }
}

fn pick<'a, T>(list: &'a mut [T], choices: &mut impl Choices) -> Option<&'a mut T> {
    let place = choices.below(list.len().max(1));
    list.get_mut(place)
}

fn access(code: &mut Code, choices: &mut impl Choices) {
    let Some(other) = pick(&mut code.accesses, choices).map(|access| *access) else { return };
    let Some(Strided { space, element, offset, stride, count }) = pick(&mut code.accesses, choices) else { return };
    match choices.below(6) {
        0 => *offset = choices.number() as u32,
        1 => *stride = choices.number() as u32,
        2 => *count = other.count,
        3 => *space = other.space,
        4 => {
            let all = [Element::Word, Element::Wide, Element::Half, Element::Short, Element::UnsignedShort];
            *element = all[choices.below(all.len())];
        }
        _ => *count = Count::Fixed(choices.number() as u32),
    }
}

/// One instruction over another, or beside it.
fn instructions(code: &mut Code, choices: &mut impl Choices) {
    let Some(copy) = pick(&mut code.instructions, choices).map(|instruction| *instruction) else { return };
    let to = choices.below(code.instructions.len());
    if choices.below(2) == 0 {
        code.instructions[to] = copy;
    } else {
        code.instructions.insert(to, copy);
    }
}

fn instruction(code: &mut Code, other: &Bytecode, choices: &mut impl Choices) {
    let lanes = code.lanes;
    let foreign =
        other.codes.first().and_then(|code| code.instructions.get(choices.below(code.instructions.len().max(1))));
    let Some(own) = pick(&mut code.instructions, choices).map(|instruction| *instruction) else { return };
    let Some(instruction) = pick(&mut code.instructions, choices) else { return };
    let registers = |of: &Instr| [of.d, of.a, of.b, of.c];
    match choices.below(12) {
        0..=2 => instruction.form = choices.below(32) as u8,
        3..=4 => instruction.op = foreign.map_or(own.op, |foreign| foreign.op),
        5 => instruction.x = if choices.below(2) == 0 { own.x } else { choices.number() as u32 },
        _ => {
            let Instr { d, a, b, c, m, .. } = instruction;
            let field = [d, a, b, c, m].into_iter().nth(choices.below(5));
            let Some(field) = field else { return };
            *field = match choices.below(5) {
                0 => registers(&own)[choices.below(4)],
                1 => field.wrapping_add(32),
                2 => field.wrapping_sub(lanes),
                3 => field.wrapping_add(lanes),
                _ => choices.number() as u32,
            };
        }
    }
}
