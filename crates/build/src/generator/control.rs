//! Turns jumps into Rust's blocks and loops: `'block: { … break 'block … }` and `'loop: loop { … }`.

use cantus_base::listed::{Listed, Ordered};
use cantus_spmd::Flat;
use cantus_spmd::bytecode::{Instr, Op};

use super::Refusal;
use super::analysis::is_special;

/// A stretch of positions that is a loop, or a block that jumps leave to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub start: usize,
    pub end: usize,
    pub is_loop: bool,
}

/// Bodies of divergent branches of at most this weight run under their mask without a look at whether any lane is active.
const SHORT: u32 = 40;

/// Jumps that are no more than a way to skip a short body in which no lane is active.
pub(super) fn dropped_jumps(flat: &Flat) -> Vec<bool> {
    let code = &flat.instructions;
    let mut dropped = vec![false; code.len()];
    // Inner branches first.
    for position in (0..code.len()).rev() {
        let i = &code[position];
        let end = i.x as usize;
        if i.op != Op::JumpNone || end <= position {
            continue;
        }
        // Out of a loop that goes round while any lane of the same mask is active: it ends by itself.
        let rounds = |offset: usize, j: &Instr| j.op == Op::JumpAny && j.m == i.m && position + 2 + offset == end;
        let mut weight = 0;
        let plain = code[position + 1..end].iter().enumerate().all(|(offset, i)| {
            weight += match i.op {
                Op::Float(_) | Op::Float2(_) => 3,
                _ => 1,
            };
            let jumps = (matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpAny | Op::End)
                && !rounds(offset, i))
                || (i.op == Op::JumpNone && !dropped[position + 1 + offset]);
            !jumps && !is_special(i.op)
        });
        // Nothing from outside comes in between.
        let alone = !code.iter().enumerate().any(|(from, i)| {
            let jumps = matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpAny | Op::JumpNone);
            jumps && from != position && !dropped[from] && (i.x as usize) > position && (i.x as usize) < end
        });
        dropped[position] = plain && alone && weight <= SHORT;
    }
    dropped
}

/// The intervals of all jumps, outer ones first.
pub(super) fn intervals(flat: &Flat, dropped: &[bool]) -> Result<Vec<Interval>, Refusal> {
    let jumps: Vec<(usize, usize)> = flat
        .instructions
        .iter()
        .enumerate()
        .filter(|(position, i)| {
            !dropped[*position] && matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpAny | Op::JumpNone)
        })
        .map(|(position, i)| (position, i.x as usize))
        .listed();
    let mut all: Vec<Interval> = Vec::new();
    for (from, to) in jumps.iter().copied().filter(|(from, to)| to <= from) {
        match all.iter_mut().find(|known| known.start == to) {
            Some(known) => known.end = known.end.max(from + 1),
            None => all.push(Interval { start: to, end: from + 1, is_loop: true }),
        }
    }
    let loops = all.clone();
    let leaves = |from: usize, to: usize| loops.iter().any(|l| l.start <= from && from < l.end && l.end == to);
    for (from, to) in jumps.iter().copied().filter(|(from, to)| *to > from + 1) {
        if leaves(from, to) {
            continue;
        }
        match all.iter_mut().find(|known| !known.is_loop && known.end == to) {
            Some(known) => known.start = known.start.min(from),
            None => all.push(Interval { start: from, end: to, is_loop: false }),
        }
    }
    // Blocks begin early enough to hold whatever they would cross.
    loop {
        let mut changed = false;
        for index in 0..all.len() {
            let this = all[index];
            let crossed =
                all.iter().filter(|other| other.start < this.start && this.start < other.end && other.end < this.end);
            if let Some(start) = crossed.map(|other| other.start).min() {
                if this.is_loop {
                    return Err(Refusal::new("control flow that leaves a loop in its middle"));
                }
                all[index].start = start;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    all.order_by_key(|interval| (interval.start, std::cmp::Reverse(interval.end), interval.is_loop));
    Ok(all)
}
