//! Turns virtual registers into code: drops copies and dead instructions, then assigns registers by last use. `lower` calls `code` once nothing changes any
//! more. Until here every value has a register of its own; now copies and dead instructions go and registers are shared by last use, where a value that is
//! alive in a loop lives to its end. `improve` is the same without places, for kernels compiled ahead.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::bytecode::{Batching, BindingInfo, Code, FULL, Instr, LANE_STEP, NONE, OnceTables, Op, Space};
use super::super::shape::Width;
use super::builder::{Builder, Class, Register};
use super::fuse::fuse;
use cantus_base::listed::{Listed, Ordered};

/// Turns the collected instructions into code for `lanes` lanes.
pub(crate) fn code(mut builder: Builder, bindings: &[BindingInfo], batching: Batching, lanes: u32) -> Code {
    let dead = fuse(&mut builder, bindings);
    let mut pass = Pass::new(builder);
    pass.dead = dead;
    pass.drop_copies();
    pass.drop_overwritten();
    pass.write_through(true);
    pass.drop_dead();
    pass.place(batching, lanes)
}

/// The builder with its instructions improved, but in virtual registers still; dead ones are left out, and the `x` of a
/// jump is the position it goes to.
pub(crate) fn improve(builder: Builder) -> Builder {
    let mut pass = Pass::new(builder);
    pass.drop_copies();
    pass.write_through(false);
    pass.drop_dead();
    let moved = pass.moved();
    let Pass { mut builder, dead, .. } = pass;
    let mut kept = Vec::new();
    for (i, dead) in builder.instructions.iter().zip(dead) {
        if dead {
            continue;
        }
        let mut i = *i;
        if i.op.shape(&builder.accesses, i.x).jumps {
            i.x = moved[builder.labels[i.x as usize] as usize];
        }
        kept.push(i);
    }
    invert_jumps(&mut kept);
    builder.instructions = kept;
    builder
}

/// A jump over a jump becomes one jump with the condition turned round.
fn invert_jumps(code: &mut [Instr]) {
    let jumps = |i: &Instr| matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpNone | Op::JumpAny);
    // How many jumps lead to a position. Two that change exchange their targets, so it stays.
    let mut reached = vec![0_u32; code.len() + 2];
    for i in code.iter().filter(|i| jumps(i)) {
        if let Some(count) = reached.get_mut(i.x as usize) {
            *count += 1;
        }
    }
    for position in 0..code.len().saturating_sub(1) {
        let (this, next) = (code[position], code[position + 1]);
        let over = matches!(this.op, Op::JumpIf | Op::JumpUnless) && this.x as usize == position + 2;
        if over && next.op == Op::Jump && reached[position + 1] == 0 {
            let op = if this.op == Op::JumpIf { Op::JumpUnless } else { Op::JumpIf };
            code[position] = Instr { op, x: next.x, ..this };
            // Goes on with what follows anyway.
            code[position + 1].x = position as u32 + 2;
        }
    }
}

struct Pass {
    builder: Builder,
    dead: Vec<bool>,
    /// First and last position of each loop.
    loops: Vec<(u32, u32)>,
    /// Positions at which something may be jumped to.
    targets: Vec<bool>,
}

/// The positions at which registers are read and written.
struct Positions {
    uses: Vec<Vec<u32>>,
    definitions: Vec<Vec<u32>>,
}

impl Pass {
    fn new(builder: Builder) -> Self {
        let count = builder.instructions.len();
        let mut targets = vec![false; count + 1];
        for position in &builder.labels {
            if let Some(target) = targets.get_mut(*position as usize) {
                *target = true;
            }
        }
        let mut pass = Pass { dead: vec![false; count], loops: Vec::new(), targets, builder };
        for (position, i) in pass.builder.instructions.iter().enumerate() {
            if i.op.shape(&pass.builder.accesses, i.x).jumps {
                let target = pass.builder.labels[i.x as usize];
                if target <= position as u32 {
                    pass.loops.push((target, position as u32));
                }
            }
        }
        // Inner loops first, so that one pass over them reaches the outermost.
        pass.loops.order_by_key(|(first, last)| last - first);
        pass
    }

    /// Calls `f` with each source register of the instruction.
    fn sources(&self, i: &Instr, mut f: impl FnMut(Register)) {
        let shape = i.op.shape(&self.builder.accesses, i.x);
        for (width, register) in [(shape.a, i.a), (shape.b, i.b), (shape.c, i.c)] {
            if width != Width::None {
                f(register);
            }
        }
        if shape.m && i.m != FULL {
            f(i.m);
        }
    }

    fn target(&self, i: &Instr) -> Option<Register> {
        (i.op.shape(&self.builder.accesses, i.x).d != Width::None).then_some(i.d)
    }

    fn positions(&self) -> Positions {
        let count = self.builder.registers.len();
        let mut positions = Positions { uses: vec![Vec::new(); count], definitions: vec![Vec::new(); count] };
        for (position, i) in self.builder.instructions.iter().enumerate() {
            if self.dead[position] {
                continue;
            }
            self.sources(i, |register| positions.uses[register as usize].push(position as u32));
            if let Some(register) = self.target(i) {
                positions.definitions[register as usize].push(position as u32);
            }
        }
        positions
    }

    /// The end of a value's life that begins at `from` and was last seen at `to`: if that is in a loop that begins
    /// later, the loop may come round again.
    fn end_of_life(&self, from: u32, to: u32) -> u32 {
        let mut end = to;
        for (first, last) in &self.loops {
            if *first > from && *first <= end && end <= *last {
                end = *last;
            }
        }
        end
    }

    /// Reads straight from the source of a copy wherever the source keeps its value for as long as the copy is read.
    fn drop_copies(&mut self) {
        let mut positions = self.positions();
        for position in 0..self.builder.instructions.len() {
            let i = self.builder.instructions[position];
            let plain = matches!(i.op, Op::Copy | Op::Copy64);
            if !plain || self.builder.registers[i.d as usize].variable {
                continue;
            }
            let (copy, source) = (i.d as usize, i.a as usize);
            if self.builder.registers[copy].class != self.builder.registers[source].class {
                continue;
            }
            let from = position as u32;
            let last = positions.uses[copy].iter().copied().max().unwrap_or(from);
            let end = self.end_of_life(from, last);
            if positions.definitions[source].iter().any(|p| *p > from && *p <= end) {
                continue;
            }
            let moved = std::mem::take(&mut positions.uses[copy]);
            for place in &moved {
                let i = &mut self.builder.instructions[*place as usize];
                let shape = i.op.shape(&self.builder.accesses, i.x);
                for (width, field) in [(shape.a, &mut i.a), (shape.b, &mut i.b), (shape.c, &mut i.c)] {
                    if width != Width::None && *field == copy as u32 {
                        *field = source as u32;
                    }
                }
            }
            positions.uses[source].extend(moved);
            self.dead[position] = true;
        }
    }

    /// Drops what sets a variable that is set again before anything reads it: in unrolled loops the rounds hand their values on in other registers.
    fn drop_overwritten(&mut self) {
        // Variables that are set behind a position, in its block, before they are read.
        let mut set: FxHashSet<Register> = FxHashSet::default();
        for position in (0..self.builder.instructions.len()).rev() {
            // What is jumped to, or away from, may read any; and other lanes may take part.
            let i = self.builder.instructions[position];
            if self.targets[position + 1] || i.op == Op::Narrow || i.op.shape(&self.builder.accesses, i.x).jumps {
                set.clear();
            }
            if self.dead[position] {
                continue;
            }
            if matches!(i.op, Op::Copy | Op::Copy64)
                && self.builder.registers[i.d as usize].variable
                && !set.insert(i.d)
            {
                self.dead[position] = true;
                continue;
            }
            self.sources(&i, |register| _ = set.remove(&register));
            if i.op.shape(&self.builder.accesses, i.x).merges {
                set.remove(&i.d);
            }
        }
    }

    /// Computes a value directly in a variable if it would only be moved there; with `reads` also one that is read elsewhere, while the variable keeps it.
    fn write_through(&mut self, reads: bool) {
        let positions = self.positions();
        for position in 0..self.builder.instructions.len() {
            let i = self.builder.instructions[position];
            if self.dead[position] || !matches!(i.op, Op::Copy | Op::Copy64) {
                continue;
            }
            let (variable, value) = (i.d, i.a);
            let info = |register: Register| self.builder.registers[register as usize];
            let same = info(variable).class == info(value).class && !info(value).variable;
            let uses = &positions.uses[value as usize];
            let (1, [origin]) = (if reads { 1 } else { uses.len() }, positions.definitions[value as usize].as_slice())
            else {
                continue;
            };
            let origin = *origin as usize;
            let last = uses.iter().copied().max().unwrap_or(0) as usize;
            let is_kept = (position + 1..=last).all(|behind| {
                let writes = !self.dead[behind] && self.target(&self.builder.instructions[behind]) == Some(variable);
                !self.targets[behind] && !writes
            });
            if !same || !is_kept || origin >= position || !info(variable).variable {
                continue;
            }
            // Nothing in between may read or write the variable, or be jumped to or away from.
            let undisturbed = (origin..position).all(|between| {
                if between > origin && self.targets[between] {
                    return false;
                }
                let i = &self.builder.instructions[between];
                let mut touches = between > origin && self.target(i) == Some(variable);
                self.sources(i, |register| touches |= register == variable);
                let jumps = i.op.shape(&self.builder.accesses, i.x).jumps;
                self.dead[between] || !(touches || jumps)
            });
            if undisturbed && !self.targets[position] {
                self.builder.instructions[origin].d = variable;
                self.dead[position] = true;
                for place in uses.iter().map(|place| *place as usize).filter(|place| *place != position) {
                    let i = &mut self.builder.instructions[place];
                    let shape = i.op.shape(&self.builder.accesses, i.x);
                    for (width, field) in [(shape.a, &mut i.a), (shape.b, &mut i.b), (shape.c, &mut i.c)] {
                        if width != Width::None && *field == value {
                            *field = variable;
                        }
                    }
                }
            }
        }
    }

    /// Drops what computes values that nobody reads.
    fn drop_dead(&mut self) {
        let count = self.builder.registers.len();
        let mut uses = vec![0_u32; count];
        for (position, i) in self.builder.instructions.iter().enumerate() {
            if !self.dead[position] {
                self.sources(i, |register| uses[register as usize] += 1);
            }
        }
        loop {
            let mut changed = false;
            for position in (0..self.builder.instructions.len()).rev() {
                let i = self.builder.instructions[position];
                let effect = i.op.shape(&self.builder.accesses, i.x).effect;
                let Some(target) = self.target(&i) else { continue };
                if self.dead[position] || effect || uses[target as usize] > 0 {
                    continue;
                }
                self.dead[position] = true;
                changed = true;
                self.sources(&i, |register| uses[register as usize] -= 1);
            }
            if !changed {
                return;
            }
        }
    }

    /// New position of each instruction, dead ones falling through to the next.
    fn moved(&self) -> Vec<u32> {
        let mut moved = Vec::with_capacity(self.dead.len() + 1);
        let mut next = 0_u32;
        for dead in &self.dead {
            moved.push(next);
            next += u32::from(!dead);
        }
        moved.push(next);
        moved
    }

    /// Gives every register its place, and writes the code.
    fn place(self, batching: Batching, lanes: u32) -> Code {
        let positions = self.positions();
        let count = self.builder.registers.len();
        let mut begins: Vec<Vec<Register>> = vec![Vec::new(); self.builder.instructions.len() + 1];
        let mut ends: Vec<Vec<Register>> = vec![Vec::new(); self.builder.instructions.len() + 1];
        let mut constants: Vec<((u64, bool), Register)> =
            self.builder.constants.iter().map(|(key, register)| (*key, *register)).listed();
        constants.sort_unstable();
        let mut pinned = vec![false; count];
        for (_, register) in &constants {
            pinned[*register as usize] = true;
        }
        for (register, pinned) in pinned.iter().enumerate() {
            let all = positions.definitions[register].iter().chain(&positions.uses[register]).copied();
            let (Some(first), Some(last)) = (all.clone().min(), all.clone().max()) else { continue };
            if *pinned {
                continue;
            }
            let mut end = last;
            for (from, to) in &self.loops {
                // Alive before the loop and touched within: alive to the loop's end.
                if first < *from && all.clone().any(|p| p >= *from && p <= *to) {
                    end = end.max(*to);
                }
            }
            begins[first as usize].push(register as Register);
            ends[end as usize].push(register as Register);
        }
        let mut slots = Slots::default();
        let mut place = vec![0_u32; count];
        let kind = |register: Register| Place::of(&self.builder, register);
        for (_, register) in &constants {
            if !positions.uses[*register as usize].is_empty() {
                place[*register as usize] = slots.take(kind(*register));
            }
        }
        for position in 0..self.builder.instructions.len() {
            for register in &begins[position] {
                place[*register as usize] = slots.take(kind(*register));
            }
            for register in &ends[position] {
                slots.give(kind(*register), place[*register as usize]);
            }
        }
        let layout = RegisterFile::new(&slots, lanes, self.builder.private_slots);
        self.write(&positions, &constants, &place, &layout, batching, lanes)
    }

    fn write(
        &self,
        positions: &Positions,
        constants: &[((u64, bool), Register)],
        place: &[u32],
        layout: &RegisterFile,
        batching: Batching,
        lanes: u32,
    ) -> Code {
        let offset = |register: Register| {
            if register == NONE {
                NONE
            } else {
                layout.offset(Place::of(&self.builder, register), place[register as usize])
            }
        };
        let moved = self.moved();
        let mut instructions = Vec::with_capacity(moved.len());
        for (position, i) in self.builder.instructions.iter().enumerate() {
            if self.dead[position] {
                continue;
            }
            let shape = i.op.shape(&self.builder.accesses, i.x);
            let mut i = *i;
            i.d = offset(i.d);
            i.a = offset(i.a);
            i.b = offset(i.b);
            i.c = offset(i.c);
            i.m = offset(i.m);
            if shape.jumps {
                i.x = moved[self.builder.labels[i.x as usize] as usize];
            }
            instructions.push(i);
        }
        invert_jumps(&mut instructions);
        let mut words = Vec::new();
        for ((bits, wide), register) in constants {
            if positions.uses[*register as usize].is_empty() {
                continue;
            }
            let word = offset(*register);
            words.push((word, *bits as u32));
            if *wide {
                words.push((word.wrapping_add(1), (*bits >> 32) as u32));
            }
        }
        let mut accesses = self.builder.accesses.clone();
        for access in &mut accesses {
            if let Space::Private { base, .. } = &mut access.space {
                *base = layout.private.wrapping_add(base.wrapping_mul(lanes));
            }
        }
        let table = self.builder.table.clone();
        Code {
            batching,
            lanes,
            words: layout.words,
            constants: words,
            table,
            accesses,
            rows: self.builder.rows.clone(),
            instructions,
            tables: OnceTables::default(),
        }
    }
}

/// The kind of place that a register needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Vector,
    WideVector,
    Mask,
    WideUniform,
    Uniform,
}

impl Place {
    fn of(builder: &Builder, register: Register) -> Self {
        let info = builder.registers[register as usize];
        match (info.class, info.wide) {
            (Class::Vector, false) => Place::Vector,
            (Class::Vector, true) => Place::WideVector,
            (Class::Mask, _) => Place::Mask,
            (Class::Uniform, true) => Place::WideUniform,
            (Class::Uniform, false) => Place::Uniform,
        }
    }
}

/// Free places, last freed first: it is still in the cache.
#[derive(Default)]
struct Slots {
    free: FxHashMap<Place, Vec<u32>>,
    used: FxHashMap<Place, u32>,
}

impl Slots {
    fn take(&mut self, kind: Place) -> u32 {
        if let Some(slot) = self.free.entry(kind).or_default().pop() {
            return slot;
        }
        let used = self.used.entry(kind).or_default();
        *used += 1;
        *used - 1
    }

    fn give(&mut self, kind: Place, slot: u32) {
        self.free.entry(kind).or_default().push(slot);
    }
}

/// The register file: vectors, wide vectors, masks, private memory, wide uniforms, uniforms.
struct RegisterFile {
    starts: [u32; 5],
    sizes: [u32; 5],
    private: u32,
    words: u32,
}

impl RegisterFile {
    fn new(slots: &Slots, lanes: u32, private_slots: u32) -> Self {
        let sizes = [lanes, lanes * 2, lanes + LANE_STEP, 2, 1];
        let kinds = [Place::Vector, Place::WideVector, Place::Mask, Place::WideUniform, Place::Uniform];
        let mut starts = [0; 5];
        let mut private = 0;
        let mut end = 0_u32;
        for (index, kind) in kinds.into_iter().enumerate() {
            if kind == Place::WideUniform {
                private = end;
                end = end.saturating_add(private_slots.saturating_mul(lanes));
            }
            starts[index] = end;
            let used = slots.used.get(&kind).copied().unwrap_or(0);
            end = end.saturating_add(used.saturating_mul(sizes[index]));
        }
        RegisterFile { starts, sizes, private, words: end }
    }

    fn offset(&self, kind: Place, slot: u32) -> u32 {
        let index = match kind {
            Place::Vector => 0,
            Place::WideVector => 1,
            Place::Mask => 2,
            Place::WideUniform => 3,
            Place::Uniform => 4,
        };
        // A file of more words than there can be is refused as a whole.
        self.starts[index].wrapping_add(slot.wrapping_mul(self.sizes[index]))
    }
}
