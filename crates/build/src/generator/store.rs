//! Stores: each in loops of its own behind the computations of its region, and private memory, which is part of those. Stores follow the computations of
//! their region, so LLVM needs no proof that memory does not overlap. A whole row goes past the caches where the output is large. Of lanes that store to
//! one place the last active one counts, as in the executor.

use rustc_hash::FxHashSet;

use cantus_spmd::bytecode::{A_UNIFORM, Count, Element, FULL, Instr, Space};
use cantus_spmd::{Class, Register};

use super::affine::Step;
use super::analysis::Ty;
use super::names::element;
use super::op::{Operands, cast};
use super::region::Lane;
use super::{Refusal, Writer};

impl Writer<'_> {
    /// The address of an element of private memory: slot `index` of this lane.
    fn private_slot(&self, i: &Instr, lane: &Lane<'_, '_>) -> (String, String, String) {
        let access = self.access(i);
        let (base, count) = match (access.space, access.count) {
            (Space::Private { base, .. }, Count::Fixed(count)) => (base, count),
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

    pub(super) fn private_load(&self, i: &Instr, lane: &Lane<'_, '_>, ty: Ty) -> String {
        let (index, within, address) = self.private_slot(i, lane);
        let stored = if self.access(i).element == Element::Wide { Ty::U64 } else { Ty::U32 };
        let text = format!("{{ let slot = {index}; if {within} {{ {address}.read() }} else {{ 0 }} }}");
        cast(text, stored, ty)
    }

    pub(super) fn private_store(&self, i: &Instr, lane: &Lane<'_, '_>) -> String {
        let (index, within, address) = self.private_slot(i, lane);
        let stored = if self.access(i).element == Element::Wide { Ty::U64 } else { Ty::U32 };
        let mask = if i.m == FULL { String::new() } else { format!(" && {}", lane.value(i.m, Ty::Bool)) };
        let value = lane.value(i.b, stored);
        format!("{{ let slot = {index}; if {within}{mask} {{ {address}.write({value}); }} }}")
    }

    /// A store of all lanes.
    pub(super) fn store(&mut self, position: usize) -> Result<(), Refusal> {
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
        let guard = self.guard(position);
        match (run, guard) {
            (Some((first, step)), Some(guard)) if self.guarded => {
                let whole_row = self.is_whole_row(&i, &step);
                let lane = Lane { writer: self, local: &none, fast: true };
                let value = lane.value(i.b, stored);
                let at_run = format!("{place}.store_run::<rt::{marker}>({first}, {}, x, {value});", step.text());
                let row = whole_row.then(|| {
                    let values = format!("&{}_lanes[first_lane..first_lane + {width}]", self.names[i.b as usize]);
                    format!("{place}.store_row({first}, {values}, job.stream_from);")
                });
                self.streams |= whole_row;
                let in_run = mask_name.as_ref().map(|name| format!("if {name}_lanes.get(lane) != 0 {{ {at_run} }}"));
                self.line(&format!("let near = {guard};"));
                match &full {
                    Some(full) => self.open(&format!("if near && {full} {{")),
                    None => self.open("if near {"),
                }
                self.open_rows(&registers, &linear);
                match row {
                    Some(row) => self.line(&row),
                    None => self.lanes_do(&width, &at_run),
                }
                self.close_rows();
                if let Some(in_run) = in_run {
                    self.close("} else if near {");
                    self.depth += 1;
                    self.rows_do((&registers, &linear), &width, &in_run);
                }
                self.close("} else {");
                self.depth += 1;
                self.rows_do((&registers, &linear), &width, &slow);
                self.close("}");
            }
            _ => self.rows_do((&registers, &linear), &width, &slow),
        }
        self.close("}");
        Ok(())
    }

    /// Returns whether the values of a store's lanes go to neighbouring places as they are.
    fn is_whole_row(&self, i: &Instr, step: &Step) -> bool {
        let access = self.access(i);
        access.element == Element::Word
            && access.stride == 4
            && *step == Step::Constant(1)
            && self.in_lanes(i.b)
            && self.types[i.b as usize] != Ty::Bool
    }

    /// A store of the first lanes, whose run is known to lie within its memory.
    pub(super) fn store_first(&mut self, position: usize) {
        let flat = self.flat;
        let i = flat.instructions[position];
        let (marker, stored) = element(self.access(&i).element);
        let place = self.places[i.x as usize].clone();
        let none = FxHashSet::default();
        let (registers, linear) = self.bases(&[position]);
        let lane = Lane { writer: self, local: &none, fast: true };
        let value = lane.value(i.b, stored);
        let set = match self.run(position) {
            Some((first, step)) if self.is_whole_row(&i, &step) => {
                let values = format!("&{}_lanes[..first]", self.names[i.b as usize]);
                self.streams = true;
                self.open("{");
                self.open_rows(&registers, &linear);
                self.line(&format!("{place}.store_row({first}, {values}, job.stream_from);"));
                self.close_rows();
                self.close("}");
                return;
            }
            Some((first, step)) => format!("{place}.store_run::<rt::{marker}>({first}, {}, x, {value});", step.text()),
            None => format!("{place}.store::<rt::{marker}>({}, {value});", self.index(position, &lane)),
        };
        self.open("{");
        self.rows_do((&registers, &linear), "first", &set);
        self.close("}");
    }

    fn rows_do(&mut self, (registers, linear): (&FxHashSet<Register>, &[usize]), width: &str, what: &str) {
        self.open_rows(registers, linear);
        self.lanes_do(width, what);
        self.close_rows();
    }

    pub(super) fn lanes_do(&mut self, width: &str, what: &str) {
        self.open(&format!("for x in 0..{width} {{"));
        self.line("let lane = first_lane + x;");
        self.line(what);
        self.close("}");
    }

    /// All lanes store to one place: the last active one's value is kept.
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
