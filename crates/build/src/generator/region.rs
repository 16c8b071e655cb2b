//! Loops over the lanes of a chunk: computations in one loop, then the stores (`store`), each in a loop of its own, so that what
//! is computed needs no look at whether memory overlaps.

use rustc_hash::FxHashSet;

use cantus_base::listed::Listed;
use cantus_spmd::Register;
use cantus_spmd::bytecode::{Convert, FULL, Input, Instr, Op, Space};

use super::affine::Step;
use super::analysis::{Ty, is_trig, merges, sources, target};
use super::names::element;
use super::op::{Operands, cast, expression};
use super::{Refusal, Writer};

/// One instruction inside of a loop over lanes.
pub(super) struct Lane<'w, 'a> {
    pub writer: &'w Writer<'a>,
    /// The registers with a variable of their own in the loop.
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
    pub(super) fn is_private(&self, i: &Instr) -> bool {
        matches!(self.access(i).space, Space::Private { .. })
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

    pub(super) fn computations(&mut self, work: &[usize]) -> Result<(), Refusal> {
        let flat = self.flat;
        let code = &flat.instructions;
        let mut guards = Vec::new();
        for position in work {
            let i = &code[*position];
            if i.op == Op::Load
                && !self.is_private(i)
                && let Some(guard) = self.guard(*position)
                && !guards.contains(&guard)
            {
                guards.push(guard);
            }
        }
        let spans = self.spans(work, guards.is_empty());
        guards.extend(spans.guards);
        let trig = work.iter().any(|position| is_trig(&code[*position]));
        let counted: Vec<Register> = {
            let mut seen = FxHashSet::default();
            work.iter()
                .filter_map(|position| target(flat, &code[*position]))
                .filter(|d| self.counted[*d as usize] && seen.insert(*d))
                .listed()
        };
        self.open("{");
        for register in &counted {
            self.line(&format!("let mut active_{register} = 0_u32;"));
        }
        for line in &spans.lines {
            self.line(line);
        }
        self.agreed = spans.agreed;
        let near = if guards.is_empty() { "true".to_owned() } else { guards.join(" && ") };
        if trig {
            self.line("let mut beyond = 0_u32;");
            self.line(&format!("let near = {near};"));
            self.open("if near {");
            self.rows_of_lanes(work, &counted, true)?;
            self.close("}");
            self.open("if !near || rt::is_beyond(beyond) {");
            for register in &counted {
                self.line(&format!("active_{register} = 0;"));
            }
            self.rows_of_lanes(work, &counted, false)?;
            self.close("}");
        } else if guards.is_empty() || !self.guarded {
            self.rows_of_lanes(work, &counted, guards.is_empty())?;
        } else {
            self.open(&format!("if {near} {{"));
            self.rows_of_lanes(work, &counted, true)?;
            self.close("} else {");
            self.depth += 1;
            self.rows_of_lanes(work, &counted, false)?;
            self.close("}");
        }
        for register in &counted {
            let name = self.names[*register as usize].clone();
            self.line(&format!("{name}_count = active_{register} as usize;"));
        }
        let lanes = if flat.row.is_some() { "n" } else { "LANES" };
        let mut blended: Vec<Register> = work.iter().filter_map(|position| target(flat, &code[*position])).listed();
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

    /// Returns whether a mask is the condition that all lanes of the region being written meet.
    fn is_prefix(&self, mask: Register) -> bool {
        self.prefix.as_ref().is_some_and(|prefix| prefix.mask == mask)
    }

    /// Returns whether a region changes a variable in some lanes only. Its new values go to lanes of their own first: a selection of
    /// the old value, stored where that came from, would become a masked store, which some processors do slowly.
    pub(super) fn is_blended(&self, work: &[usize], register: Register) -> bool {
        self.prefix.is_none()
            && work.iter().any(|position| {
                let i = &self.flat.instructions[*position];
                matches!(i.op, Op::Blend | Op::Blend64)
                    && i.m != FULL
                    && i.d == register
                    && self.types[register as usize] != Ty::Bool
            })
    }

    /// The loops over rows and lanes of a region; what all lanes of a row load is loaded once for the row.
    pub(super) fn rows_of_lanes(&mut self, work: &[usize], counted: &[Register], fast: bool) -> Result<(), Refusal> {
        let (registers, linear) = self.bases(work);
        self.open_rows(&registers, &linear);
        for position in work {
            let i = self.flat.instructions[*position];
            if i.op != Op::Load || self.is_private(&i) {
                continue;
            }
            let Some((index, Step::Constant(0))) = self.run(*position) else { continue };
            let (marker, stored) = element(self.access(&i).element);
            let place = self.places[i.x as usize].clone();
            let value = cast(format!("{place}.load::<rt::{marker}>({index})"), stored, self.types[i.d as usize]);
            self.line(&format!("let loaded_{position} = {value};"));
        }
        self.lane_loop(work, counted, fast)?;
        self.close_rows();
        Ok(())
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
                let needed = self.in_lanes(register) && !self.is_prefix(register);
                if needed && !written.contains(&register) && local.insert(register) {
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
            Op::Blend | Op::Blend64 if i.m != FULL && !self.is_prefix(i.m) => {
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
            Op::IntCompare(_) if fast && self.agreed.contains(&position) => format!("agreed_{position}"),
            // Guarded: no number is 2^31 or more, and signed numbers convert faster.
            Op::Convert(Convert::U32ToF32) if fast && self.affine[i.a as usize].is_some() => {
                cast(format!("{} as i32 as f32", lane.value(i.a, Ty::U32)), Ty::F32, ty)
            }
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
}
