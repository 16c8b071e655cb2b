//! Loops over the lanes of a chunk: computations in one loop, then the stores, each in a loop of its own, so that what is
//! computed needs no look at whether memory overlaps.

use rustc_hash::FxHashSet;

use crate::spmd::program::{A_UNIFORM, Element, FULL, Input, Instr, LINEAR, Op, Space};
use crate::spmd::{Class, Register};

use super::affine::{Step, linear_index};
use super::analysis::{Ty, is_trig, merges, sources, target};
use super::op::{Operands, cast, expression};
use super::{Refusal, Writer, element};

/// One instruction inside of a loop over lanes.
pub(super) struct Lane<'w, 'a> {
    pub writer: &'w Writer<'a>,
    /// What has a variable of its own in the loop.
    pub local: &'w FxHashSet<Register>,
    /// Runs are known to lie within their memory, and sines are fast.
    pub fast: bool,
}

impl Operands for Lane<'_, '_> {
    fn value(&self, register: Register, ty: Ty) -> String {
        let writer = self.writer;
        let index = register as usize;
        if let Some(affine) = &writer.affine[index] {
            return cast(writer.at_lane(&writer.row_base(register), &affine.along[0]), Ty::U32, ty);
        }
        if !writer.in_lanes(register) || self.local.contains(&register) {
            return Operands::value(writer, register, ty);
        }
        let own = writer.types[index];
        let get = format!("{}_lanes.get(lane)", writer.names[index]);
        if own == Ty::Bool { cast(get, Ty::U32, ty) } else { cast(get, own, ty) }
    }

    fn ty(&self, register: Register) -> Ty {
        self.writer.types[register as usize]
    }

    fn divisor(&self, register: Register) -> Option<String> {
        Operands::divisor(self.writer, register)
    }

    fn fast_trig(&self) -> bool {
        self.fast
    }
}

impl Writer<'_> {
    /// Whether a chunk has more than one row.
    pub(super) fn has_rows(&self) -> bool {
        self.flat.row.is_none() && self.flat.workgroup_size[1] * self.flat.workgroup_size[2] > 1
    }

    /// Lanes of a row, as an expression.
    fn width(&self) -> String {
        match self.flat.row {
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
        let mut sorted: Vec<Register> = registers.iter().copied().collect();
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
    fn index_base(&self, position: usize) -> String {
        Operands::value(self, self.flat.instructions[position].a, Ty::U32)
    }

    /// First index of the row and the step from lane to lane, where an instruction's index is of that form. Uniform
    /// indices have the step 0.
    fn run(&self, position: usize) -> Option<(String, Step)> {
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

    /// The index of a memory operation in one lane.
    pub(super) fn index(&self, position: usize, operands: &dyn Operands) -> String {
        let i = &self.flat.instructions[position];
        if i.form & LINEAR != 0 {
            self.at_lane(&format!("index_{position}"), &Step::Constant(1))
        } else {
            operands.value(i.a, Ty::U32)
        }
    }

    fn is_private(&self, i: &Instr) -> bool {
        matches!(self.access(i).space, Space::Private { .. })
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

    /// A region: the loop that computes, and the loops that store.
    pub(super) fn region(&mut self, work: &[usize], stores: &[usize]) -> Result<(), Refusal> {
        if !work.is_empty() {
            self.computations(work)?;
        }
        for store in stores {
            self.store(*store)?;
        }
        Ok(())
    }

    fn computations(&mut self, work: &[usize]) -> Result<(), Refusal> {
        let flat = self.flat;
        let code = &flat.instructions;
        let mut guards = Vec::new();
        let mut once = Vec::new();
        for position in work {
            let i = &code[*position];
            if i.op != Op::Load || self.is_private(i) {
                continue;
            }
            match self.run(*position) {
                Some((_, Step::Constant(0))) => once.push(*position),
                Some((first, step)) => {
                    let place = &self.places[i.x as usize];
                    let guard = format!("{place}.holds({first}, {}, {})", step.text(), self.width());
                    if !guards.contains(&guard) {
                        guards.push(guard);
                    }
                }
                None => {}
            }
        }
        let trig = work.iter().any(|position| is_trig(&code[*position]));
        let counted: Vec<Register> = {
            let mut seen = FxHashSet::default();
            work.iter()
                .filter_map(|position| target(flat, &code[*position]))
                .filter(|d| self.counted[*d as usize] && seen.insert(*d))
                .collect()
        };
        self.open("{");
        for register in &counted {
            let name = self.names[*register as usize].clone();
            self.line(&format!("{name}_count = 0;"));
        }
        let (registers, linear) = self.bases(work);
        self.open_rows(&registers, &linear);
        for position in &once {
            let i = code[*position];
            let Some((index, _)) = self.run(*position) else { continue };
            let (marker, stored) = element(self.access(&i).element);
            let place = self.places[i.x as usize].clone();
            let value = cast(format!("{place}.load::<rt::{marker}>({index})"), stored, self.types[i.d as usize]);
            self.line(&format!("let loaded_{position} = {value};"));
        }
        for register in &counted {
            self.line(&format!("let mut active_{register} = 0_u32;"));
        }
        let twin = !guards.is_empty() || trig;
        if twin {
            if trig {
                self.line("let mut beyond = 0_u32;");
                let condition = if guards.is_empty() { "true".to_owned() } else { guards.join(" && ") };
                self.line(&format!("let near = {condition};"));
                self.open("if near {");
            } else {
                self.open(&format!("if {} {{", guards.join(" && ")));
            }
            self.lane_loop(work, &counted, true)?;
            if trig {
                self.close("}");
                self.open("if !near || rt::is_beyond(beyond) {");
                for register in &counted {
                    self.line(&format!("active_{register} = 0;"));
                }
            } else {
                self.close("} else {");
                self.depth += 1;
            }
            self.lane_loop(work, &counted, false)?;
            self.close("}");
        } else {
            self.lane_loop(work, &counted, true)?;
        }
        for register in &counted {
            let name = self.names[*register as usize].clone();
            self.line(&format!("{name}_count += active_{register} as usize;"));
        }
        self.close_rows();
        let lanes = if flat.row.is_some() { "n" } else { "LANES" };
        let mut blended: Vec<Register> = work.iter().filter_map(|position| target(flat, &code[*position])).collect();
        blended.sort_unstable();
        blended.dedup();
        for register in blended {
            if self.arrays[register as usize] && self.is_blended(work, register) {
                let name = self.names[register as usize].clone();
                self.line(&format!("{name}_lanes[..{lanes}].copy_from_slice(&{name}_next[..{lanes}]);"));
            }
        }
        self.close("}");
        Ok(())
    }

    /// Whether a region changes a variable in some lanes only. Its new values go to lanes of their own first: a selection of
    /// the old value, stored where that came from, would become a masked store, which some processors do slowly.
    pub(super) fn is_blended(&self, work: &[usize], register: Register) -> bool {
        work.iter().any(|position| {
            let i = &self.flat.instructions[*position];
            matches!(i.op, Op::Blend | Op::Blend64)
                && i.m != FULL
                && i.d == register
                && self.types[register as usize] != Ty::Bool
        })
    }

    fn lane_loop(&mut self, work: &[usize], counted: &[Register], fast: bool) -> Result<(), Refusal> {
        let flat = self.flat;
        let width = self.width();
        self.open(&format!("for x in 0..{width} {{"));
        self.line("let lane = first_lane + x;");
        let mut local: FxHashSet<Register> = FxHashSet::default();
        let mut changed: Vec<Register> = Vec::new();
        // What is read before it is written, or merged into, comes from the lanes.
        let mut written: FxHashSet<Register> = FxHashSet::default();
        for position in work {
            let i = &flat.instructions[*position];
            let mut reads = Vec::new();
            sources(flat, i, |register| reads.push(register));
            if let (true, Some(d)) = (merges(flat, i), target(flat, i)) {
                reads.push(d);
            }
            for register in reads {
                if self.in_lanes(register) && !written.contains(&register) && local.insert(register) {
                    let (name, ty) = (self.names[register as usize].clone(), self.types[register as usize]);
                    let get = format!("{name}_lanes.get(lane)");
                    let get = if ty == Ty::Bool { cast(get, Ty::U32, Ty::Bool) } else { get };
                    let mutable = if flat.registers[register as usize].variable { "mut " } else { "" };
                    self.line(&format!("let {mutable}{name} = {get};"));
                }
            }
            if let Some(d) = target(flat, i) {
                written.insert(d);
                if !changed.contains(&d) {
                    changed.push(d);
                }
            }
        }
        for position in work {
            let i = flat.instructions[*position];
            self.computation(*position, &i, &mut local, fast)?;
        }
        for register in changed {
            let (name, ty) = (self.names[register as usize].clone(), self.types[register as usize]);
            if self.arrays[register as usize] {
                let value = if ty == Ty::Bool { cast(name.clone(), Ty::Bool, Ty::U32) } else { name.clone() };
                let lanes = if self.is_blended(work, register) { "next" } else { "lanes" };
                self.line(&format!("{name}_{lanes}.set(lane, {value});"));
            }
            if counted.contains(&register) {
                self.line(&format!("active_{register} += u32::from({name});"));
            }
        }
        self.close("}");
        Ok(())
    }

    fn computation(
        &mut self,
        position: usize,
        i: &Instr,
        local: &mut FxHashSet<Register>,
        fast: bool,
    ) -> Result<(), Refusal> {
        let lane = Lane { writer: self, local, fast };
        if i.op == Op::Store {
            let text = self.private_store(i, &lane);
            self.line(&text);
            return Ok(());
        }
        let Some(d) = target(self.flat, i) else {
            return Err(Refusal(format!("the operation {:?} in lanes", i.op)));
        };
        let ty = self.types[d as usize];
        let mask = |register: Register| {
            if register == FULL { "true".to_owned() } else { lane.value(register, Ty::Bool) }
        };
        let own = self.names[d as usize].clone();
        let text = match i.op {
            Op::MaskAll => "true".to_owned(),
            Op::MaskNone => "false".to_owned(),
            Op::MaskCopy => mask(i.m),
            Op::MaskAnd if i.m == FULL => lane.value(i.a, Ty::Bool),
            Op::MaskAnd => format!("{} & {}", mask(i.m), lane.value(i.a, Ty::Bool)),
            Op::MaskAndNot if i.m == FULL => format!("!{}", lane.value(i.a, Ty::Bool)),
            Op::MaskAndNot => format!("{} & !{}", mask(i.m), lane.value(i.a, Ty::Bool)),
            Op::MaskRemove => format!("{own} & !{}", mask(i.m)),
            Op::Blend | Op::Blend64 if i.m != FULL => {
                format!("select({}, {}, {own})", mask(i.m), lane.value(i.a, ty))
            }
            Op::Load => self.lane_load(position, i, &lane, ty),
            Op::Input(input) => match input {
                Input::LocalId(0) => format!("(x % {}) as u32", self.flat.workgroup_size[0]),
                Input::GroupInBatch => format!("(x / {}) as u32", self.flat.workgroup_size[0]),
                Input::SubgroupId => "(lane / 32) as u32".to_owned(),
                Input::SubgroupInvocation => "(lane % 32) as u32".to_owned(),
                other => return Err(Refusal(format!("the input {other:?}"))),
            },
            _ => expression(&lane, i, ty).ok_or_else(|| Refusal(format!("the operation {:?} in lanes", i.op)))?,
        };
        let beyond = (fast && is_trig(i)).then(|| format!("beyond |= rt::beyond({});", lane.value(i.a, Ty::F32)));
        if let Some(beyond) = beyond {
            self.line(&beyond);
        }
        if local.contains(&d) {
            self.line(&format!("{own} = {text};"));
        } else {
            let mutable = if self.flat.registers[d as usize].variable { "mut " } else { "" };
            self.line(&format!("let {mutable}{own}: {} = {text};", ty.name()));
            local.insert(d);
        }
        Ok(())
    }

    fn lane_load(&self, position: usize, i: &Instr, lane: &Lane<'_, '_>, ty: Ty) -> String {
        if self.is_private(i) {
            return self.private_load(i, lane, ty);
        }
        let (marker, stored) = element(self.access(i).element);
        let place = &self.places[i.x as usize];
        let text = match self.run(position) {
            Some((_, Step::Constant(0))) => return format!("loaded_{position}"),
            Some((first, step)) if lane.fast => {
                format!("{place}.load_run::<rt::{marker}>({first}, {}, x)", step.text())
            }
            _ => format!("{place}.load::<rt::{marker}>({})", self.index(position, lane)),
        };
        cast(text, stored, ty)
    }

    /// The address of an element of private memory: slot `index` of this lane.
    fn private_slot(&self, i: &Instr, lane: &Lane<'_, '_>) -> (String, String, String) {
        let access = self.access(i);
        let (base, count) = match (access.space, access.count) {
            (Space::Private { base, .. }, crate::spmd::program::Count::Fixed(count)) => (base, count),
            _ => (0, 0),
        };
        let lanes = self.lanes();
        let start = (base as usize + access.offset as usize) * lanes * 4;
        let step = access.stride as usize * lanes * 4;
        let (ty, size) = if access.element == Element::Wide { ("u64", 8) } else { ("u32", 4) };
        let index = lane.value(i.a, Ty::U32);
        let address = format!("private.add({start} + slot as usize * {step} + lane * {size}).cast::<{ty}>()");
        (index, format!("slot < {count}_u32"), address)
    }

    fn private_load(&self, i: &Instr, lane: &Lane<'_, '_>, ty: Ty) -> String {
        let (index, within, address) = self.private_slot(i, lane);
        let stored = if self.access(i).element == Element::Wide { Ty::U64 } else { Ty::U32 };
        let text = format!("{{ let slot = {index}; if {within} {{ {address}.read() }} else {{ 0 }} }}");
        cast(text, stored, ty)
    }

    fn private_store(&self, i: &Instr, lane: &Lane<'_, '_>) -> String {
        let (index, within, address) = self.private_slot(i, lane);
        let stored = if self.access(i).element == Element::Wide { Ty::U64 } else { Ty::U32 };
        let mask = if i.m == FULL { String::new() } else { format!(" && {}", lane.value(i.m, Ty::Bool)) };
        let value = lane.value(i.b, stored);
        format!("{{ let slot = {index}; if {within}{mask} {{ {address}.write({value}); }} }}")
    }

    /// A store of all lanes.
    fn store(&mut self, position: usize) -> Result<(), Refusal> {
        let flat = self.flat;
        let i = flat.instructions[position];
        let access = *self.access(&i);
        let (marker, stored) = element(access.element);
        let place = self.places[i.x as usize].clone();
        let none = FxHashSet::default();
        let (registers, linear) = self.bases(&[position]);
        let width = self.width();
        let run = self.run(position);
        let mask_name = (i.m != FULL).then(|| self.names[i.m as usize].clone());
        let full = mask_name
            .as_ref()
            .map(|name| format!("{name}_count == {}", if flat.row.is_some() { "n" } else { "LANES" }));
        if let Some((_, Step::Constant(0))) = &run
            && i.form & A_UNIFORM != 0
        {
            return self.store_uniform(position, &place, marker, stored);
        }
        let lane = Lane { writer: self, local: &none, fast: false };
        let value = lane.value(i.b, stored);
        let index = self.index(position, &lane);
        let set = format!("{place}.store::<rt::{marker}>({index}, {value});");
        let guarded = mask_name.as_ref().map(|name| format!("if {name}_lanes.get(lane) != 0 {{ {set} }}"));
        let slow = guarded.unwrap_or(set);
        self.open("{");
        self.open_rows(&registers, &linear);
        match run {
            Some((first, step)) if !step.is_zero() => {
                let mut condition = format!("{place}.holds({first}, {}, {width})", step.text());
                let b = i.b as usize;
                let whole_row = access.element == Element::Word
                    && access.stride == 4
                    && step == Step::Constant(1)
                    && self.in_lanes(i.b)
                    && self.types[b] != Ty::Bool;
                let lane = Lane { writer: self, local: &none, fast: true };
                let value = lane.value(i.b, stored);
                let at_run = format!("{place}.store_run::<rt::{marker}>({first}, {}, x, {value});", step.text());
                let row = whole_row.then(|| {
                    let values = format!("&{}_lanes[first_lane..first_lane + {width}]", self.names[b]);
                    format!("{place}.store_row({first}, {values}, job.stream_from);")
                });
                self.streams |= whole_row;
                let in_run = mask_name.as_ref().map(|name| format!("if {name}_lanes.get(lane) != 0 {{ {at_run} }}"));
                let all = condition.clone();
                if let Some(full) = &full {
                    condition = format!("{condition} && {full}");
                }
                self.open(&format!("if {condition} {{"));
                match row {
                    Some(row) => self.line(&row),
                    None => self.lanes_do(&width, &at_run),
                }
                if let Some(in_run) = in_run {
                    self.close(&format!("}} else if {all} {{"));
                    self.depth += 1;
                    self.lanes_do(&width, &in_run);
                }
                self.close("} else {");
                self.depth += 1;
                self.lanes_do(&width, &slow);
                self.close("}");
            }
            _ => self.lanes_do(&width, &slow),
        }
        self.close_rows();
        self.close("}");
        Ok(())
    }

    pub(super) fn lanes_do(&mut self, width: &str, what: &str) {
        self.open(&format!("for x in 0..{width} {{"));
        self.line("let lane = first_lane + x;");
        self.line(what);
        self.close("}");
    }

    /// All lanes store to one place: the last active one's value stands.
    fn store_uniform(&mut self, position: usize, place: &str, marker: &str, stored: Ty) -> Result<(), Refusal> {
        let flat = self.flat;
        let i = flat.instructions[position];
        let lanes = if flat.row.is_some() { "n" } else { "LANES" };
        let index = Operands::value(self, i.a, Ty::U32);
        let mut places = String::new();
        let value = if let Some(affine) = &self.affine[i.b as usize] {
            let [width, height, _] = self.flat.workgroup_size;
            places = match flat.row {
                Some(_) => "let (x, y, z) = (lane, 0, 0);".to_owned(),
                None => {
                    format!("let (x, y, z) = (lane % {width}, lane / {width} % {height}, lane / {});", width * height)
                }
            };
            let mut text = self.names[i.b as usize].clone();
            for (axis, step) in ["x", "y", "z"].into_iter().zip(&affine.along) {
                if !step.is_zero() {
                    let more = format!("u32::wrapping_mul({}, {axis} as u32)", step.text());
                    text = format!("u32::wrapping_add({text}, {more})");
                }
            }
            cast(text, Ty::U32, stored)
        } else if flat.registers[i.b as usize].class == Class::Uniform {
            Operands::value(self, i.b, stored)
        } else {
            let none = FxHashSet::default();
            Lane { writer: self, local: &none, fast: false }.value(i.b, stored)
        };
        self.open("{");
        if i.m == FULL {
            self.line(&format!("let last = {lanes}.checked_sub(1);"));
        } else {
            let name = self.names[i.m as usize].clone();
            self.line(&format!("let last = (0..{lanes}).rev().find(|lane| {name}_lanes.get(*lane) != 0);"));
        }
        self.open("if let Some(lane) = last {");
        self.line(if places.is_empty() { "let _ = lane;" } else { &places });
        self.line(&format!("{place}.store::<rt::{marker}>({index}, {value});"));
        self.close("}");
        self.close("}");
        Ok(())
    }
}
