//! Blocks, loops and jumps as Rust has them.

use cantus_spmd::Register;
use cantus_spmd::bytecode::{Instr, Op};

use super::analysis::Ty;
use super::control::Interval;
use super::op::Operands;
use super::{Refusal, Writer};

/// A block or loop whose end is still to come.
pub(super) struct Open {
    interval: Interval,
    name: String,
    /// Written as `if`.
    plain: bool,
}

impl Writer<'_> {
    fn is_plain_if(&self, interval: Interval) -> bool {
        let code = &self.flat.instructions;
        let jumps = |i: &Instr| matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpNone | Op::JumpAny);
        let to = |position: usize| {
            jumps(&code[position]) && !self.dropped[position] && code[position].x as usize == interval.end
        };
        let first = interval.start;
        let sources = (0..code.len()).filter(|position| to(*position) && *position < interval.end).count();
        let inner_loop =
            self.intervals.iter().any(|other| other.is_loop && other.start == first && other.end < interval.end);
        !interval.is_loop && sources == 1 && to(first) && code[first].op != Op::Jump && !inner_loop
    }

    pub(super) fn label(&mut self, position: usize, open: &mut Vec<Open>) {
        while let Some(last) = open.last() {
            if last.interval.end != position {
                break;
            }
            if last.interval.is_loop && self.flat.instructions[position - 1].op != Op::Jump {
                let name = last.name.clone();
                self.line(&format!("break {name};"));
            }
            self.close("}");
            open.pop();
        }
        for interval in self.intervals.clone() {
            if interval.start != position {
                continue;
            }
            let plain = self.is_plain_if(interval);
            let name = format!("'{}{}", if interval.is_loop { "repeat" } else { "block" }, position);
            let name = if interval.is_loop { name } else { format!("{name}_{}", interval.end) };
            if interval.is_loop {
                self.open(&format!("{name}: loop {{"));
            } else if !plain {
                self.open(&format!("{name}: {{"));
            }
            open.push(Open { interval, name, plain });
        }
    }

    pub(super) fn jump(&mut self, position: usize, open: &mut [Open]) -> Result<(), Refusal> {
        let i = self.flat.instructions[position];
        let to = i.x as usize;
        let count = |register: Register| format!("{}_count", self.names[register as usize]);
        let (condition, negated) = match i.op {
            Op::JumpIf => (self.value(i.a, Ty::Bool), format!("!{}", self.value(i.a, Ty::Bool))),
            Op::JumpUnless => (format!("!{}", self.value(i.a, Ty::Bool)), self.value(i.a, Ty::Bool)),
            Op::JumpNone => (format!("{} == 0", count(i.m)), format!("{} != 0", count(i.m))),
            Op::JumpAny => (format!("{} != 0", count(i.m)), format!("{} == 0", count(i.m))),
            _ => (String::new(), String::new()),
        };
        if to == position + 1 {
            return Ok(());
        }
        if let Some(innermost) = open.last()
            && innermost.plain
            && innermost.interval.start == position
        {
            self.open(&format!("if {negated} {{"));
            if i.op == Op::JumpNone && self.flat.row.is_some() && self.arrays[i.m as usize] {
                // What the block does in a lane that is not active is seen by nobody.
                let mask = self.names[i.m as usize].clone();
                self.line(&format!("let n = rt::active(&{mask}_lanes, {mask}_count, n);"));
            }
            return Ok(());
        }
        let (statement, back) = if to <= position {
            let around = open.iter().rev().find(|open| open.interval.is_loop && open.interval.start == to);
            (around.map(|open| format!("continue {};", open.name)), true)
        } else {
            let around = open.iter().rev().find(|open| open.interval.end == to);
            (around.map(|open| format!("break {};", open.name)), false)
        };
        let statement = statement.ok_or_else(|| Refusal::new("control flow that is not nested"))?;
        let conditional = !condition.is_empty();
        if conditional {
            self.open(&format!("if {condition} {{"));
        }
        if back {
            self.line("if job.stops(&mut ticks) {");
            self.line("    return rt::STOPPED;");
            self.line("}");
        }
        self.line(&statement);
        if conditional {
            self.close("}");
        }
        Ok(())
    }
}
