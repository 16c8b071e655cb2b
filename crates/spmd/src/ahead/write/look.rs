//! The needs of a whole entry point around its regions: lanes for what lives across them, counts of masks, divisors, and
//! declarations ahead of the blocks that end before a value's last use.

use rustc_hash::FxHashMap;

use crate::bytecode::{Int2, Op, Space};
use crate::{Class, Register};

use super::Writer;
use super::analysis::{self, is_special, sources, target};
use super::plan::Item;

impl Writer<'_> {
    /// Finds what needs lanes, counts, divisors and hoisting.
    pub(super) fn look(&mut self, items: &[Item]) {
        let flat = self.flat;
        let count = flat.instructions.len();
        let mut region_of = vec![usize::MAX; count];
        for (id, item) in items.iter().enumerate() {
            if let Item::Region(work, _) = item {
                for position in work {
                    region_of[*position] = id;
                    if let Some(d) = target(flat, &flat.instructions[*position]) {
                        self.blended[d as usize] |= self.is_blended(&[*position], d);
                    }
                }
            }
        }
        // The region that a register has been seen in alone, if any.
        let mut home: FxHashMap<Register, usize> = FxHashMap::default();
        for (position, i) in flat.instructions.iter().enumerate() {
            if self.dropped[position] {
                continue;
            }
            let region = region_of[position];
            sources(flat, i, |register| {
                self.used[register as usize] = true;
                if self.in_lanes(register) {
                    let known = home.get(&register).copied();
                    if region == usize::MAX || known != Some(region) {
                        self.arrays[register as usize] = true;
                    }
                }
            });
            let d = target(flat, i);
            if let Some(d) = d
                && self.in_lanes(d)
            {
                let merges = analysis::merges(flat, i);
                if merges && home.get(&d) != Some(&region) {
                    self.arrays[d as usize] = true;
                }
                if home.get(&d).is_some_and(|known| *known != region) {
                    self.arrays[d as usize] = true;
                }
                home.insert(d, region);
                if region == usize::MAX {
                    self.arrays[d as usize] = true;
                }
            }
            let mask = i.m;
            if mask != crate::bytecode::FULL {
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
        // Masks that are only counted live in their region.
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
