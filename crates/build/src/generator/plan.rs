//! Cuts straight code into regions: what runs in one loop over the lanes. A region is one loop over the lanes: computations, then stores. It ends at
//! barriers and jumps, before a second heavy function (whose constants would not fit in registers), and where a load may see what a store of the region
//! writes.

use rustc_hash::FxHashSet;

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{D_UNIFORM, Float, Float2, Op, Space};
use cantus_spmd::{Class, Flat, Register};

use super::analysis::{is_heavy, is_scalar, is_special, is_trig, merges, sources, target};

/// One step of the generated code.
#[derive(Debug)]
pub(super) enum Item {
    /// Position at which blocks and loops begin and end.
    Label(usize),
    /// Once for the chunk.
    Scalar(usize),
    /// A loop over the lanes: computations, then stores.
    Region(Vec<usize>, Vec<usize>),
    /// An operation over the lanes of its own.
    Special(usize),
    Jump(usize),
}

struct Planner<'a> {
    flat: &'a Flat,
    items: Vec<Item>,
    work: Vec<usize>,
    stores: Vec<usize>,
    written: FxHashSet<Register>,
    read_first: FxHashSet<Register>,
    /// The registers that the stores still need unchanged.
    stored: FxHashSet<Register>,
    trig: bool,
    heavy: bool,
    /// A division or a root, which keep their unit busy while a heavy function could begin.
    slow: bool,
}

/// Regions of a flattened entry point. `scalar` says which vector operations are computed as bases and steps.
pub(super) fn plan(flat: &Flat, dropped: &[bool], labels: &[bool], scalar: &[bool]) -> Vec<Item> {
    let mut planner = Planner {
        flat,
        items: Vec::new(),
        work: Vec::new(),
        stores: Vec::new(),
        written: FxHashSet::default(),
        read_first: FxHashSet::default(),
        stored: FxHashSet::default(),
        trig: false,
        heavy: false,
        slow: false,
    };
    for position in 0..flat.instructions.len() {
        if labels[position] {
            planner.flush();
            planner.items.push(Item::Label(position));
        }
        if !dropped[position] {
            planner.step(position, scalar[position]);
        }
    }
    planner.flush();
    planner.items.push(Item::Label(flat.instructions.len()));
    planner.items
}

impl Planner<'_> {
    fn step(&mut self, position: usize, as_scalar: bool) {
        let flat = self.flat;
        let i = &flat.instructions[position];
        match i.op {
            Op::Jump | Op::JumpIf | Op::JumpUnless | Op::JumpAny | Op::JumpNone => {
                self.flush();
                self.items.push(Item::Jump(position));
                return;
            }
            op if is_special(op) => {
                self.flush();
                self.items.push(Item::Special(position));
                return;
            }
            _ => {}
        }
        if as_scalar || is_scalar(flat, i) {
            let reads_memory = matches!(i.op, Op::Load) && !self.stores.is_empty();
            let changes = target(flat, i).is_some_and(|d| {
                flat.registers[d as usize].variable && (self.read_first.contains(&d) || self.stored.contains(&d))
            });
            if reads_memory || changes {
                self.flush();
            }
            self.items.push(Item::Scalar(position));
            return;
        }
        if let Op::Store = i.op
            && !matches!(flat.accesses[i.x as usize].space, Space::Private { .. })
        {
            // Stores of one region go to memory in order, one after another.
            sources(flat, i, |register| {
                self.stored.insert(register);
            });
            self.stores.push(position);
            return;
        }
        if let Op::Load = i.op
            && self.may_follow_store(position)
        {
            self.flush();
        }
        let private_store = matches!(i.op, Op::Store);
        let mut reads: Vec<Register> = Vec::new();
        sources(flat, i, |register| reads.push(register));
        if let (true, Some(d)) = (merges(flat, i), target(flat, i)) {
            reads.push(d);
        }
        let d = target(flat, i);
        // A region with a sine may run twice over the same lanes: it must not change what it starts from.
        let trig = self.trig || is_trig(i);
        let first: Vec<Register> = reads.iter().copied().filter(|register| !self.written.contains(register)).listed();
        let again = d.is_some_and(|d| self.read_first.contains(&d) || first.contains(&d))
            || self.written.iter().any(|register| self.read_first.contains(register));
        let overwrites = d.is_some_and(|d| self.stored.contains(&d));
        let heavy = is_heavy(i.op);
        if overwrites || (trig && (again || private_store)) || (heavy && (self.heavy || self.slow)) {
            self.flush();
        }
        for register in reads {
            let lane = self.flat.registers[register as usize].class != Class::Uniform;
            if !lane || !self.written.contains(&register) {
                self.read_first.insert(register);
            }
        }
        if let Some(d) = d {
            self.written.insert(d);
        }
        self.trig |= is_trig(i);
        self.heavy |= heavy;
        self.slow |= matches!(i.op, Op::Float2(Float2::Div) | Op::Float(Float::Sqrt));
        self.work.push(position);
        debug_assert!(i.form & D_UNIFORM == 0 || d.is_none());
    }

    /// Returns whether a load may see what a store of this region writes.
    fn may_follow_store(&self, position: usize) -> bool {
        let flat = self.flat;
        let space = |position: usize| flat.accesses[flat.instructions[position].x as usize].space;
        let loaded = space(position);
        let harmless = match loaded {
            Space::Binding(binding) => !flat.bindings[binding as usize].writable,
            Space::Private { .. } | Space::Table => true,
            Space::Workgroup | Space::Groups => !self.stores.iter().any(|store| space(*store) == Space::Workgroup),
        };
        !self.stores.is_empty() && !harmless
    }

    fn flush(&mut self) {
        if !self.work.is_empty() || !self.stores.is_empty() {
            self.items.push(Item::Region(std::mem::take(&mut self.work), std::mem::take(&mut self.stores)));
        }
        self.written.clear();
        self.read_first.clear();
        self.stored.clear();
        self.trig = false;
        self.heavy = false;
        self.slow = false;
    }
}
