//! The rows of a chunk, and where the lanes of a row lie: what is base and step is computed once for the row, and whether all of
//! it lies where it should is asked once for the chunk.

use rustc_hash::{FxHashMap, FxHashSet};

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{A_UNIFORM, Convert, IntCompare, LINEAR, Op};
use cantus_spmd::{Class, Register};

use super::Writer;
use super::affine::{Step, linear_index};
use super::analysis::{Ty, sources};
use super::op::{Operands, int_compare};

/// Spans of values that are base and step, and what is known where the guards hold.
#[derive(Default)]
pub(super) struct Spans {
    /// Ahead of the guards.
    pub lines: Vec<String>,
    pub guards: Vec<String>,
    /// Positions of comparisons that are the same in all lanes then: `agreed_POSITION`.
    pub agreed: FxHashSet<usize>,
}

impl Writer<'_> {
    /// Returns whether a chunk has more than one row.
    pub(super) fn has_rows(&self) -> bool {
        self.flat.row.is_none() && self.flat.workgroup_size[1] * self.flat.workgroup_size[2] > 1
    }

    /// Lanes of a row, as an expression.
    pub(super) fn width(&self) -> String {
        match self.flat.row {
            _ if self.prefix.is_some() => "first".to_owned(),
            Some(_) => "n".to_owned(),
            None if self.has_rows() => self.flat.workgroup_size[0].to_string(),
            None => "LANES".to_owned(),
        }
    }

    /// The name of a base + steps at the first lane of the row.
    pub(super) fn row_base(&self, register: Register) -> String {
        let name = &self.names[register as usize];
        match &self.affine[register as usize] {
            Some(affine) if self.has_rows() && !(affine.along[1].is_zero() && affine.along[2].is_zero()) => {
                format!("{name}_row")
            }
            _ => name.clone(),
        }
    }

    pub(super) fn at_lane(&self, base: &str, step: &Step) -> String {
        match step {
            Step::Constant(0) => base.to_owned(),
            Step::Constant(1) => format!("u32::wrapping_add({base}, x as u32)"),
            step => format!("u32::wrapping_add({base}, u32::wrapping_mul({}, x as u32))", step.text()),
        }
    }

    /// Opens the loops over rows, and writes what the given registers and indices are there.
    pub(super) fn open_rows(&mut self, registers: &FxHashSet<Register>, linear: &[usize]) {
        if !self.has_rows() {
            self.line("let first_lane = 0_usize;");
            for position in linear {
                let base = self.index_base(*position);
                self.line(&format!("let index_{position} = {base};"));
            }
            return;
        }
        let [width, height, depth] = self.flat.workgroup_size;
        self.open(&format!("for z in 0..{depth}_usize {{"));
        self.open(&format!("for y in 0..{height}_usize {{"));
        self.line("let y = rt::apart(y);");
        self.line(&format!("let first_lane = (z * {height} + y) * {width};"));
        let row = |base: &str, along: &[Step; 3]| {
            let mut text = base.to_owned();
            for (axis, step) in ["y", "z"].into_iter().zip(&along[1..]) {
                text = match step {
                    Step::Constant(0) => text,
                    Step::Constant(1) => format!("u32::wrapping_add({text}, {axis} as u32)"),
                    step => format!("u32::wrapping_add({text}, u32::wrapping_mul({}, {axis} as u32))", step.text()),
                };
            }
            text
        };
        let mut sorted: Vec<Register> = registers.iter().copied().listed();
        sorted.sort_unstable();
        for register in sorted {
            let Some(affine) = self.affine[register as usize].clone() else { continue };
            let at_row = self.row_base(register);
            if at_row != self.names[register as usize] {
                let text = row(&self.names[register as usize], &affine.along);
                self.line(&format!("let {at_row} = {text};"));
            }
        }
        for position in linear {
            let i = &self.flat.instructions[*position];
            let along = linear_index(self.flat, i).unwrap_or([0, 0, 0].map(Step::Constant));
            let text = row(&self.index_base(*position), &along);
            self.line(&format!("let index_{position} = {text};"));
        }
    }

    pub(super) fn close_rows(&mut self) {
        if self.has_rows() {
            self.close("}");
            self.close("}");
        }
    }

    /// The base of an index whose instruction says that it is base + lane.
    pub(super) fn index_base(&self, position: usize) -> String {
        Operands::value(self, self.flat.instructions[position].a, Ty::U32)
    }

    /// First index of the row and the step from lane to lane, where an instruction's index is of that form. Uniform
    /// indices have the step 0.
    pub(super) fn run(&self, position: usize) -> Option<(String, Step)> {
        let i = &self.flat.instructions[position];
        if i.form & LINEAR != 0 {
            return Some((format!("index_{position}"), Step::Constant(1)));
        }
        if i.form & A_UNIFORM != 0 {
            return Some((Operands::value(self, i.a, Ty::U32), Step::Constant(0)));
        }
        let affine = self.affine[i.a as usize].as_ref()?;
        Some((self.row_base(i.a), affine.along[0].clone()))
    }

    /// Returns the condition that all elements which the lanes of the chunk index lie within their memory, as an expression:
    /// asked once for all rows. `None` where the index is the same in all lanes of a row, or is no base and step.
    pub(super) fn guard(&self, position: usize) -> Option<String> {
        let i = &self.flat.instructions[position];
        let (base, along) = match linear_index(self.flat, i) {
            Some(along) => (self.index_base(position), along),
            None if i.form & A_UNIFORM != 0 => return None,
            None => (self.names[i.a as usize].clone(), self.affine[i.a as usize].as_ref()?.along.clone()),
        };
        if along[0].is_zero() {
            return None;
        }
        let place = &self.places[i.x as usize];
        if !self.has_rows() {
            return Some(format!("{place}.holds({base}, {}, {})", along[0].text(), self.width()));
        }
        let [x, y, z] = along.map(|step| step.text());
        Some(format!("{place}.holds_box({base}, [{x}, {y}, {z}], {:?})", self.flat.workgroup_size))
    }

    /// Returns the other conditions of a region's fast form: numbers that convert to float as if they were signed, and, where
    /// `compares`, comparisons that come out the same in all lanes (of ids with sizes, mostly: only chunks at the edge differ).
    pub(super) fn spans(&self, work: &[usize], compares: bool) -> Spans {
        let flat = self.flat;
        let mut spans = Spans::default();
        let sizes = match flat.row {
            Some(_) => "[n as u32, 1, 1]".to_owned(),
            None => format!("{:?}", flat.workgroup_size),
        };
        let mut named: FxHashMap<Register, String> = FxHashMap::default();
        for position in work {
            let i = &flat.instructions[*position];
            let uniform = |register: Register| flat.registers[register as usize].class == Class::Uniform;
            let affine = |register: Register| self.affine[register as usize].as_ref();
            let (register, compare) = match i.op {
                Op::Convert(Convert::U32ToF32) if affine(i.a).is_some() => (i.a, None),
                Op::IntCompare(op) if compares && !matches!(op, IntCompare::Equal | IntCompare::NotEqual) => {
                    match (affine(i.a), affine(i.b)) {
                        (Some(_), None) if uniform(i.b) => (i.a, Some(op)),
                        (None, Some(_)) if uniform(i.a) => (i.b, Some(op)),
                        _ => continue,
                    }
                }
                _ => continue,
            };
            let Some(along) = affine(register).map(|affine| affine.along.clone()) else { continue };
            let name = named.entry(register).or_insert_with(|| {
                let name = format!("span_{position}");
                let (base, steps) = (&self.names[register as usize], along.map(|step| step.text()).join(", "));
                spans.lines.push(format!("let {name} = rt::span({base}, [{steps}], {sizes});"));
                spans.guards.push(format!("{name}.is_plain"));
                name
            });
            if let Some(op) = compare {
                let at = |end: &str| {
                    let value = |operand: Register| match operand == register {
                        true => format!("{name}.{end}"),
                        false => Operands::value(self, operand, Ty::U32),
                    };
                    int_compare(op, &value(i.a), &value(i.b), "i32")
                };
                spans.lines.push(format!("let agreed_{position}: bool = {};", at("low")));
                spans.guards.push(format!("agreed_{position} == ({})", at("high")));
                spans.agreed.insert(*position);
            }
        }
        spans
    }

    /// The index of a memory operation in one lane.
    pub(super) fn index(&self, position: usize, operands: &dyn Operands) -> String {
        let i = &self.flat.instructions[position];
        if i.form & LINEAR != 0 {
            self.at_lane(&format!("index_{position}"), &Step::Constant(1))
        } else {
            operands.value(i.a, Ty::U32)
        }
    }

    /// All that a set of instructions takes as base and steps, and which of them have a linear index.
    pub(super) fn bases(&self, positions: &[usize]) -> (FxHashSet<Register>, Vec<usize>) {
        let mut registers = FxHashSet::default();
        let mut linear = Vec::new();
        for position in positions {
            let i = &self.flat.instructions[*position];
            sources(self.flat, i, |register| {
                if self.affine[register as usize].is_some() {
                    registers.insert(register);
                }
            });
            if i.form & LINEAR != 0 {
                linear.push(*position);
            }
        }
        (registers, linear)
    }
}
