//! Values that are `base + lane.x * step`: indices, mostly. They are kept as base and steps, computed once for the chunk. `generator` asks before it cuts
//! regions: a value of this form costs nothing in the loop over lanes, and a memory access with such an index is checked once for the chunk. A variable
//! that changes later is copied where its base is taken.

use cantus_spmd::bytecode::{Input, Instr, Int2, LINEAR, Op};
use cantus_spmd::{Class, Flat, Register};

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
    let mut known = Known { flat, names, types, found: vec![None; flat.registers.len()] };
    let mut named = 0;
    for i in &flat.instructions {
        let Some(d) = target(flat, i) else { continue };
        let info = flat.registers[d as usize];
        if info.class != Class::Vector || info.variable || info.wide {
            continue;
        }
        let mut lets = Lets { register: &names[d as usize], named: &mut named, all: Vec::new() };
        let form = known.form(i, &mut lets);
        known.found[d as usize] = form.map(|(base, along)| Affine { base, along, steps: lets.all });
    }
    known.found
}

/// Variables of steps that are computed where a register is defined.
struct Lets<'a> {
    register: &'a str,
    /// Those of all registers so far.
    named: &'a mut u32,
    all: Vec<(String, String)>,
}

impl Lets<'_> {
    fn make(&mut self, text: String) -> Step {
        *self.named += 1;
        let name = format!("{}_step{}", self.register, self.named);
        self.all.push((name.clone(), text));
        Step::Named(name)
    }
}

/// The registers before an instruction.
struct Known<'a> {
    flat: &'a Flat,
    names: &'a [String],
    types: &'a [Ty],
    found: Vec<Option<Affine>>,
}

impl Known<'_> {
    fn is_uniform(&self, register: Register) -> bool {
        self.flat.registers[register as usize].class == Class::Uniform
    }

    fn base(&self, register: Register) -> String {
        match self.flat.constants.get(&register) {
            Some((bits, _)) => literal(*bits, Ty::U32),
            None => cast(self.names[register as usize].clone(), self.types[register as usize], Ty::U32),
        }
    }

    /// The steps of an operand: none for uniform ones.
    fn steps(&self, register: Register) -> Option<[Step; 3]> {
        match &self.found[register as usize] {
            Some(affine) => Some(affine.along.clone()),
            None => self.is_uniform(register).then(zero),
        }
    }

    /// The base and the steps of an instruction's result, if it has this form.
    fn form(&self, i: &Instr, lets: &mut Lets<'_>) -> Option<(String, [Step; 3])> {
        let in_workgroup = self.flat.row.is_none();
        match i.op {
            Op::Iota => Some((self.base(i.a), lane_steps(self.flat))),
            Op::Input(Input::LocalId(axis)) if in_workgroup => {
                let mut along = zero();
                along[axis as usize % 3] = Step::Constant(1);
                Some(("0_u32".to_owned(), along))
            }
            Op::Input(Input::LocalIndex) if in_workgroup => Some(("0_u32".to_owned(), lane_steps(self.flat))),
            Op::Copy if self.found[i.a as usize].is_some() => Some((self.base(i.a), self.steps(i.a)?)),
            Op::Int2(op @ (Int2::Add | Int2::Sub)) => self.sum(op == Int2::Add, [i.a, i.b], lets),
            Op::Int2(Int2::Mul) => {
                let (value, factor) = if self.is_uniform(i.b) { (i.a, i.b) } else { (i.b, i.a) };
                self.product(value, factor, lets)
            }
            Op::Int2(Int2::ShiftLeft) => {
                let (amount, _) = self.flat.constants.get(&i.b)?;
                let factor = 1_u32 << (*amount as u32 & 31);
                let mut along = self.steps(i.a)?;
                for step in &mut along {
                    *step = match &*step {
                        Step::Constant(step) => Step::Constant(step.wrapping_mul(factor)),
                        step => lets.make(format!("u32::wrapping_mul({}, {factor}_u32)", step.text())),
                    };
                }
                Some((format!("u32::wrapping_mul({}, {factor}_u32)", self.base(i.a)), along))
            }
            _ => None,
        }
    }

    /// The sum of two registers, or their difference.
    fn sum(&self, adds: bool, [a, b]: [Register; 2], lets: &mut Lets<'_>) -> Option<(String, [Step; 3])> {
        let steps = (self.steps(a)?, self.steps(b)?);
        let function = if adds { "add" } else { "sub" };
        let mut along = zero();
        for (sum, (a, b)) in along.iter_mut().zip(steps.0.into_iter().zip(steps.1)) {
            *sum = match (a, b) {
                (Step::Constant(a), Step::Constant(b)) if adds => Step::Constant(a.wrapping_add(b)),
                (Step::Constant(a), Step::Constant(b)) => Step::Constant(a.wrapping_sub(b)),
                (a, Step::Constant(0)) => a,
                (Step::Constant(0), b) if adds => b,
                (a, b) => lets.make(format!("u32::wrapping_{function}({}, {})", a.text(), b.text())),
            };
        }
        Some((format!("u32::wrapping_{function}({}, {})", self.base(a), self.base(b)), along))
    }

    /// The product with a factor that is the same for all lanes.
    fn product(&self, value: Register, factor: Register, lets: &mut Lets<'_>) -> Option<(String, [Step; 3])> {
        if !self.is_uniform(factor) {
            return None;
        }
        let constant = self.flat.constants.get(&factor).map(|(bits, _)| *bits as u32);
        let mut along = self.steps(value)?;
        for step in &mut along {
            *step = match (&*step, constant) {
                (Step::Constant(0), _) => Step::Constant(0),
                (Step::Constant(step), Some(factor)) => Step::Constant(step.wrapping_mul(factor)),
                (Step::Constant(1), None) => Step::Named(self.base(factor)),
                (step, _) => lets.make(format!("u32::wrapping_mul({}, {})", step.text(), self.base(factor))),
            };
        }
        // A variable that changes later must be taken as it is now.
        if self.flat.registers[factor as usize].variable {
            for step in &mut along {
                if matches!(step, Step::Named(name) if *name == self.base(factor)) {
                    *step = lets.make(self.base(factor));
                }
            }
        }
        Some((format!("u32::wrapping_mul({}, {})", self.base(value), self.base(factor)), along))
    }
}

fn zero() -> [Step; 3] {
    [0, 0, 0].map(Step::Constant)
}
