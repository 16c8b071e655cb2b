//! Values that are `base + lane.x * step`: indices, mostly. They are kept as base and steps, computed once for the chunk.

use crate::bytecode::{Input, Instr, Int2, LINEAR, Op};
use crate::{Class, Flat, Register};

use super::analysis::{Ty, target};
use super::names::literal;
use super::op::cast;

/// The growth of a value from one lane to the next along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Constant(u32),
    Named(String),
}

impl Step {
    pub fn text(&self) -> String {
        match self {
            Step::Constant(step) => literal(u64::from(*step), Ty::U32),
            Step::Named(name) => name.clone(),
        }
    }

    pub fn is_zero(&self) -> bool {
        *self == Step::Constant(0)
    }
}

/// A value of this form. Its base has the register's name.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    /// The variable of the base, where the register is defined.
    pub base: String,
    /// Along x, y and z within the chunk.
    pub along: [Step; 3],
    /// Steps that are computed there too: name and value.
    pub steps: Vec<(String, String)>,
}

/// The steps of a lane's place in the chunk.
fn lane_steps(flat: &Flat) -> [Step; 3] {
    let [x, y, _] = flat.workgroup_size;
    match flat.row {
        Some(_) => [1, 0, 0].map(Step::Constant),
        None => [1, x, x.wrapping_mul(y)].map(Step::Constant),
    }
}

/// The index of a memory operation whose form says base + lane.
pub(super) fn linear_index(flat: &Flat, i: &Instr) -> Option<[Step; 3]> {
    (i.form & LINEAR != 0).then(|| lane_steps(flat))
}

/// Finds the registers of this form.
pub(super) fn find(flat: &Flat, names: &[String], types: &[Ty]) -> Vec<Option<Affine>> {
    let mut found: Vec<Option<Affine>> = vec![None; flat.registers.len()];
    let mut named: u32 = 0;
    for i in &flat.instructions {
        let Some(d) = target(flat, i) else { continue };
        let info = flat.registers[d as usize];
        if info.class != Class::Vector || info.variable || info.wide {
            continue;
        }
        let affine = of(flat, i, &found, (names, types), d, &mut named);
        found[d as usize] = affine;
    }
    found
}

fn of(
    flat: &Flat,
    i: &Instr,
    found: &[Option<Affine>],
    (names, types): (&[String], &[Ty]),
    d: Register,
    named: &mut u32,
) -> Option<Affine> {
    let uniform = |register: Register| flat.registers[register as usize].class == Class::Uniform;
    let base = |register: Register| match flat.constants.get(&register) {
        Some((bits, _)) => literal(*bits, Ty::U32),
        None => cast(names[register as usize].clone(), types[register as usize], Ty::U32),
    };
    let zero = || [0, 0, 0].map(Step::Constant);
    // The steps of an operand: none for uniform ones.
    let steps = |register: Register| match &found[register as usize] {
        Some(affine) => Some(affine.along.clone()),
        None => uniform(register).then(zero),
    };
    let mut lets: Vec<(String, String)> = Vec::new();
    let mut make = |text: String| {
        *named += 1;
        let name = format!("{}_step{named}", names[d as usize]);
        lets.push((name.clone(), text));
        Step::Named(name)
    };
    let (base, along) = match i.op {
        Op::Iota => (base(i.a), lane_steps(flat)),
        Op::Input(Input::LocalId(axis)) if flat.row.is_none() => {
            let mut along = zero();
            along[axis as usize % 3] = Step::Constant(1);
            ("0_u32".to_owned(), along)
        }
        Op::Input(Input::LocalIndex) if flat.row.is_none() => ("0_u32".to_owned(), lane_steps(flat)),
        Op::Copy if found[i.a as usize].is_some() => (base(i.a), steps(i.a)?),
        Op::Int2(op @ (Int2::Add | Int2::Sub)) => {
            let (a, b) = (steps(i.a)?, steps(i.b)?);
            let function = if op == Int2::Add { "add" } else { "sub" };
            let mut along = zero();
            for (sum, (a, b)) in along.iter_mut().zip(a.into_iter().zip(b)) {
                *sum = match (a, b) {
                    (Step::Constant(a), Step::Constant(b)) if op == Int2::Add => Step::Constant(a.wrapping_add(b)),
                    (Step::Constant(a), Step::Constant(b)) => Step::Constant(a.wrapping_sub(b)),
                    (a, Step::Constant(0)) => a,
                    (Step::Constant(0), b) if op == Int2::Add => b,
                    (a, b) => make(format!("u32::wrapping_{function}({}, {})", a.text(), b.text())),
                };
            }
            (format!("u32::wrapping_{function}({}, {})", base(i.a), base(i.b)), along)
        }
        Op::Int2(Int2::Mul) => {
            let (value, factor) = if uniform(i.b) { (i.a, i.b) } else { (i.b, i.a) };
            if !uniform(factor) {
                return None;
            }
            let constant = flat.constants.get(&factor).map(|(bits, _)| *bits as u32);
            let mut along = steps(value)?;
            for step in &mut along {
                *step = match (&*step, constant) {
                    (Step::Constant(0), _) => Step::Constant(0),
                    (Step::Constant(step), Some(factor)) => Step::Constant(step.wrapping_mul(factor)),
                    (Step::Constant(1), None) => Step::Named(base(factor)),
                    (step, _) => make(format!("u32::wrapping_mul({}, {})", step.text(), base(factor))),
                };
            }
            // A variable that changes later must be taken as it is now.
            if flat.registers[factor as usize].variable {
                for step in &mut along {
                    if matches!(step, Step::Named(name) if *name == base(factor)) {
                        *step = make(base(factor));
                    }
                }
            }
            (format!("u32::wrapping_mul({}, {})", base(value), base(factor)), along)
        }
        Op::Int2(Int2::ShiftLeft) => {
            let (amount, _) = flat.constants.get(&i.b)?;
            let factor = 1_u32 << (*amount as u32 & 31);
            let mut along = steps(i.a)?;
            for step in &mut along {
                *step = match &*step {
                    Step::Constant(step) => Step::Constant(step.wrapping_mul(factor)),
                    step => make(format!("u32::wrapping_mul({}, {factor}_u32)", step.text())),
                };
            }
            (format!("u32::wrapping_mul({}, {factor}_u32)", base(i.a)), along)
        }
        _ => return None,
    };
    Some(Affine { base, along, steps: lets })
}
