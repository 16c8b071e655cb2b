//! The needs of a whole entry point around its regions: lanes for what lives across them, counts of masks, divisors, and
//! declarations ahead of the blocks that end before a value's last use.

use rustc_hash::FxHashMap;

use cantus_spmd::bytecode::{FULL, Instr, Int2, Op, Space};
use cantus_spmd::{Class, Register};

use super::Writer;
use super::analysis::{self, is_special, sources, target};
use super::plan::Item;

/// The region that a register was last written in, `None` outside of all.
type Homes = FxHashMap<Register, Option<usize>>;

impl Writer<'_> {
    /// Finds what needs lanes, counts, divisors and hoisting.
    pub(super) fn look(&mut self, items: &[Item]) {
        let flat = self.flat;
        let regions = self.regions(items);
        let mut homes = Homes::default();
        for (position, i) in flat.instructions.iter().enumerate() {
            if !self.dropped[position] {
                self.look_for_lanes(i, regions[position], &mut homes);
                self.look_at(position, i);
            }
        }
        self.hoist();
    }

    /// The region of each instruction, if it is in one. Notes what is blended there.
    fn regions(&mut self, items: &[Item]) -> Vec<Option<usize>> {
        let flat = self.flat;
        let mut regions = vec![None; flat.instructions.len()];
        for (id, item) in items.iter().enumerate() {
            if let Item::Region(work, _) = item {
                for position in work {
                    regions[*position] = Some(id);
                    if let Some(d) = target(flat, &flat.instructions[*position]) {
                        self.blended[d as usize] |= self.is_blended(&[*position], d);
                    }
                }
            }
        }
        regions
    }

    /// Finds registers of lanes that live across regions.
    fn look_for_lanes(&mut self, i: &Instr, region: Option<usize>, homes: &mut Homes) {
        let flat = self.flat;
        sources(flat, i, |register| {
            self.used[register as usize] = true;
            if self.in_lanes(register) && (region.is_none() || homes.get(&register) != Some(&region)) {
                self.arrays[register as usize] = true;
            }
        });
        if let Some(d) = target(flat, i).filter(|d| self.in_lanes(*d)) {
            let before = homes.insert(d, region);
            let crosses = before != Some(region) && (before.is_some() || analysis::merges(flat, i));
            self.arrays[d as usize] |= region.is_none() || crosses;
        }
    }

    /// Finds masks that are counted, divisors, and what is loaded early.
    fn look_at(&mut self, position: usize, i: &Instr) {
        let flat = self.flat;
        let mask = i.m;
        if mask != FULL {
            let looks = matches!(i.op, Op::JumpNone | Op::JumpAny)
                || (i.op == Op::Store && !matches!(self.access(i).space, Space::Private { .. }))
                || is_special(i.op);
            self.counted[mask as usize] |= looks;
        }
        if matches!(i.op, Op::Int2(Int2::DivUnsigned | Int2::RemUnsigned))
            && !analysis::is_scalar(flat, i)
            && flat.registers[i.b as usize].class == Class::Uniform
            && !flat.registers[i.b as usize].variable
            && !flat.constants.contains_key(&i.b)
        {
            self.divisors.insert(i.b);
        }
        if let Op::Load = i.op
            && analysis::is_scalar(flat, i)
            && !flat.registers[i.d as usize].variable
            && flat.constants.contains_key(&i.a)
            && let Space::Binding(binding) = self.access(i).space
        {
            self.early[position] = !flat.bindings[binding as usize].writable;
        }
    }

    /// Finds what is declared ahead of the blocks. Masks that are only counted live in their region.
    fn hoist(&mut self) {
        let flat = self.flat;
        for register in 0..flat.registers.len() {
            let info = flat.registers[register];
            let scalar = info.class == Class::Uniform || self.affine[register].is_some();
            self.hoisted[register] = scalar && info.variable;
        }
        let mut scopes: FxHashMap<Register, (usize, usize)> = FxHashMap::default();
        for (position, i) in flat.instructions.iter().enumerate() {
            if let Some(d) = target(flat, i) {
                let innermost = self
                    .intervals
                    .iter()
                    .filter(|interval| interval.start <= position && position < interval.end)
                    .min_by_key(|interval| interval.end - interval.start);
                scopes.insert(d, innermost.map_or((0, usize::MAX), |interval| (interval.start, interval.end)));
            }
        }
        for (position, i) in flat.instructions.iter().enumerate() {
            sources(flat, i, |register| {
                if let Some((start, end)) = scopes.get(&register) {
                    let within = *start <= position && position < *end;
                    let info = flat.registers[register as usize];
                    if !within && (info.class == Class::Uniform || self.affine[register as usize].is_some()) {
                        self.hoisted[register as usize] = true;
                    }
                }
            });
        }
        for (position, i) in flat.instructions.iter().enumerate() {
            if self.early[position] {
                self.hoisted[i.d as usize] = false;
            }
        }
    }
}
