//! Regions under a condition that the first lanes of a workgroup meet and the others do not: `lane < stride` in a tree of sums, `place < length`
//! at the end of a row. They run over those lanes alone, without a mask.

use rustc_hash::FxHashSet;

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{FULL, IntCompare, Op};
use cantus_spmd::{Class, Register};

use super::affine::Step;
use super::analysis::{Ty, is_trig, sources, target};
use super::op::Operands;
use super::{Refusal, Writer};

/// Such a region.
pub(super) struct Prefix {
    /// The mask of the condition.
    pub mask: Register,
    /// The places of the comparison and of the mask: neither is needed.
    made: [usize; 2],
    /// The register of base + lane, and the one that it is less than.
    base: Register,
    bound: Register,
}

impl Writer<'_> {
    /// The condition that a region runs under, if it is of that form and nothing that the region computes is needed beyond it: except for
    /// variables, which change in the lanes that meet it and stay what they are in the others.
    pub(super) fn prefix(&self, work: &[usize], stores: &[usize]) -> Option<Prefix> {
        let flat = self.flat;
        let code = &flat.instructions;
        if flat.row.is_some() || self.has_rows() {
            return None;
        }
        let makes = |position: &&usize| code[**position].op == Op::MaskAnd;
        let made = *work.iter().find(makes)?;
        let (mask, condition) = (code[made].d, code[made].a);
        let compared = *work.iter().find(|position| target(flat, &code[**position]) == Some(condition))?;
        let compare = &code[compared];
        let (base, bound) = (compare.a, compare.b);
        let steps = &self.affine[base as usize].as_ref()?.along;
        let fits = compare.op == Op::IntCompare(IntCompare::LessUnsigned)
            && code[made].m == FULL
            && steps[0] == Step::Constant(1)
            && flat.registers[bound as usize].class == Class::Uniform;
        let masked = |position: &usize| code[*position].m == mask;
        let stored =
            |position: &usize| masked(position) && !matches!(self.run(*position), Some((_, Step::Constant(0))));
        if !fits || !stores.iter().all(stored) {
            return None;
        }
        let mut inner: FxHashSet<Register> = FxHashSet::from_iter([mask, condition]);
        let mut changes = !stores.is_empty();
        for position in work {
            let i = &code[*position];
            if *position == made || *position == compared {
                continue;
            }
            match (i.op, target(flat, i)) {
                (Op::Blend | Op::Blend64, Some(_)) if i.m == mask => changes = true,
                (Op::Blend | Op::Blend64 | Op::MaskCopy | Op::MaskAnd | Op::MaskAndNot | Op::MaskRemove, _) => {
                    return None;
                }
                (_, Some(d)) if !is_trig(i) && !flat.registers[d as usize].variable => {
                    inner.insert(d);
                }
                _ => return None,
            }
        }
        let here: FxHashSet<usize> = work.iter().chain(stores).copied().collect();
        let mut apart = true;
        for (position, i) in code.iter().enumerate() {
            if !here.contains(&position) && !self.dropped[position] {
                sources(flat, i, |register| apart &= !inner.contains(&register));
                // Written elsewhere too, it may hold what another region reads.
                apart &= target(flat, i).is_none_or(|d| !inner.contains(&d) || self.affine[d as usize].is_some());
            }
        }
        (changes && apart).then_some(Prefix { mask, made: [compared, made], base, bound })
    }

    /// A region over the first lanes alone; where its memory does not hold the runs of those, over all lanes under the mask.
    pub(super) fn prefix_region(&mut self, prefix: Prefix, work: &[usize], stores: &[usize]) -> Result<(), Refusal> {
        let inner: Vec<usize> = work.iter().copied().filter(|position| !prefix.made.contains(position)).listed();
        let base = self.names[prefix.base as usize].clone();
        let bound = Operands::value(self, prefix.bound, Ty::U32);
        self.open("{");
        self.line(&format!("let (first, plain) = rt::first_lanes::<LANES>({base}, {bound});"));
        self.prefix = Some(prefix);
        let mut guards = vec!["plain".to_owned()];
        for position in inner.iter().chain(stores) {
            let i = &self.flat.instructions[*position];
            if matches!(i.op, Op::Load | Op::Store)
                && !self.is_private(i)
                && let Some(guard) = self.guard(*position)
                && !guards.contains(&guard)
            {
                guards.push(guard);
            }
        }
        let spans = self.spans(&inner, false);
        guards.extend(spans.guards);
        for line in &spans.lines {
            self.line(line);
        }
        self.open(&format!("if {} {{", guards.join(" && ")));
        if !inner.is_empty() {
            self.rows_of_lanes(&inner, &[], true)?;
        }
        for store in stores {
            self.store_first(*store);
        }
        self.prefix = None;
        self.close("} else {");
        self.depth += 1;
        self.guarded = false;
        self.computations(work)?;
        for store in stores {
            self.store(*store)?;
        }
        self.guarded = true;
        self.close("}");
        self.close("}");
        Ok(())
    }
}
