//! The planner: which operations and values are computed before an expression, and in which order.
//!
//! # What comes in
//! The root of an evaluation, the facts of its operations (`survey::Facts`: who else holds them, and whether they were fused before), the machine, whose
//! `Prices` decide, and whether values may be grouped (on the CPU, outside captures and memory scopes). `plan` returns groups of `Deferred` in the order of
//! computing, most of one member, and the `Schedule`: how everything else is computed. It writes nothing into nodes except their history, for later plans.
//!
//! # Stages
//! `Walk` holds the state of one plan: `Part`s (nodes), `Pending`s (operations without a result) and `order`, in which inputs come before readers.
//! 1. `meet_all` walks from the root down, on a stack of `Step`s instead of by recursion. It counts for each part the kernels that read it (`kernels`),
//!    the places that hold it (`holders`), and how often a reader repeats each of its elements (`repeated`). Kernel 0 is the evaluation's own, and kernel
//!    n + 1 is operation n. Two reads of the same memory are one part (`by_read`). A value known from before is a leaf.
//! 2. `decide` goes through `order` and adds up what an element costs where it is read: arithmetic, reads, and nodes of the kernel (`Cost`). A part that
//!    is read several times is kept if computing it once, writing and reading it costs less than computing it for each read (`pays`). A part that is not
//!    kept is left to its readers, and so is its value (`Left::ToReaders`).
//! 3. `place` goes back through `order` and finds the kernel in which each operation's readers are computed (`Place`).
//! 4. `scheduled` lists the kept parts and the operations. It leaves out an operation whose readers are all in one expression's kernel: the operation's
//!    kernel may end with that expression (`Left::ToEnd`). Kept parts of one shape that read each other as they are form a group.
//!
//! `Schedule::lowered` follows the plan. It replaces known values by reads, and the read of a value that is left to its readers by the value's expression
//! with the view pushed into it (`view::pushed`).
//!
//! # What holds
//! - No kernel binds more than `MOST_TENSORS` tensors. `bind` keeps the child that reads the most until the rest fits.
//! - A value is kept, whatever it costs, if a reader gathers from it or is an operation that does not take lowered inputs (`Operation::lowers`).
//! - An expression of more than `Prices::largest` nodes is not repeated in several kernels. Pushing values into readers would otherwise build a kernel
//!   without end.
//! - A group has at most `MOST_TOGETHER` values, and no operation is computed between them.
//!
//! # What is surprising
//! - An expensive operation that others hold keeps its own result. A count of references says so, taken before the plan holds any.
//! - Rolls are read in place, so a plan does not look at their computed indices: a processor knows them, and a kernel computes them where it reads.
//!
//! # An example
//! `y = x.exp(); (y - y.mean(..)) * y` reads `y` in the kernel of the mean and twice in the last one. The two reads in one kernel share one computation;
//! `kernels` is 2. An exponential costs 6 units and a read of `x` 2. The launch counts little where there are many elements. Without keeping, two
//! readers pay 8 each, 16. With it they pay 16 too: 8 once, 4 to write the value, 2 for each read of it. `pays` asks for more than that, so `y` is computed twice. After another function the
//! arithmetic is 12: 28 against 22, and `y` is kept.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::deferred::Deferred;
use super::emit::MOST_TENSORS;
use super::node::{Node, Source, Typed, View};
use super::schedule::{Left, Schedule, known_value};
use super::shape::contiguous;
use super::survey::{Fact, Facts};
use crate::ops::tune::Machine;
use cantus_base::listed::Listed;

/// The costs of a kernel's parts on a machine, for each element, in the time of two bytes from its memory: some 0.2 ns on a processor, 5 ps on a
/// discrete GPU.
struct Prices {
    /// An element that is read from memory, one that the elements beside it read as well, and one that is written.
    read: f64,
    shared: f64,
    written: f64,
    /// An element whose neighbours in memory are rows apart: the input is transposed first, or each element takes a cache line.
    across: f64,
    /// A read at a computed place.
    gathered: f64,
    /// The instruction that reads, beside what memory takes.
    load: f64,
    /// An operation of one instruction, one of many, random numbers.
    simple: f64,
    function: f64,
    random: f64,
    /// One kernel more, whole.
    launch: f64,
    /// An input that several elements read comes from caches after the first of them.
    keeps_shared: bool,
    /// Nodes that are repeated in a kernel at most.
    largest: f64,
}

/// A processor writes a line of memory after it has read it, and calls a kernel in 2 µs.
const PROCESSOR: Prices = Prices {
    read: 2.0,
    shared: 0.25,
    written: 4.0,
    across: 8.0,
    gathered: 4.0,
    load: 0.0,
    simple: 0.25,
    function: 6.0,
    random: 8.0,
    launch: 10_000.0,
    keeps_shared: false,
    largest: 48.0,
};

/// A processor behind a driver for GPUs takes 20 µs to launch.
const IMITATED: Prices = Prices { launch: 100_000.0, ..PROCESSOR };

/// A discrete GPU computes twenty or more instructions while four bytes arrive, and a launch takes some 5 µs.
const DISCRETE: Prices = Prices {
    written: 2.0,
    load: 0.2,
    simple: 0.05,
    function: 1.0,
    random: 2.0,
    launch: 1_000_000.0,
    keeps_shared: true,
    largest: 192.0,
    ..PROCESSOR
};

/// A GPU that shares a processor's memory has a tenth of that bandwidth, and launches as fast.
const SHARING: Prices = Prices { launch: 150_000.0, ..DISCRETE };

impl Prices {
    fn of(machine: Machine) -> &'static Self {
        match machine {
            Machine::Cpu => &PROCESSOR,
            Machine::Compiler | Machine::Lanes => &IMITATED,
            Machine::Discrete | Machine::Matrices => &DISCRETE,
            Machine::Gpu => &SHARING,
        }
    }

    /// Returns the cost of an input for an element of its reader, which has `times` as many elements.
    fn repeated(&self, cost: Cost, times: f64) -> Cost {
        match self.keeps_shared && times > 1.0 {
            true => Cost { reads: cost.reads / times, ..cost },
            false => cost,
        }
    }

    /// Returns the price of a value that is read from memory.
    fn kept(&self) -> Cost {
        Cost { arithmetic: self.load, reads: self.read, nodes: 1.0 }
    }

    /// Returns whether keeping a value of `count` elements costs less than computing it for each reader.
    fn pays(&self, cost: Cost, count: usize, uses: &[Use]) -> bool {
        let launch = self.launch / count.max(1) as f64;
        let (mut again, mut once) = (0.0, cost.arithmetic + cost.reads + self.written + launch);
        for &Use { part, from_memory } in uses {
            again += part * cost.arithmetic + part.min(1.0) * cost.reads;
            if from_memory {
                again += part * (self.written + self.read) + launch;
            }
            once += part.min(1.0) * self.read + (part - 1.0).max(0.0) * self.shared;
        }
        uses.len() > 1 && cost.nodes > self.largest || again > once
    }
}

/// Beyond this, costs count no further.
const MOST: f64 = 1e9;

/// The cost of computing an element where it is read.
#[derive(Clone, Copy, Default)]
struct Cost {
    arithmetic: f64,
    reads: f64,
    nodes: f64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        let sum = |a: f64, b: f64| (a + b).min(MOST);
        Self {
            arithmetic: sum(self.arithmetic, other.arithmetic),
            reads: sum(self.reads, other.reads),
            nodes: sum(self.nodes, other.nodes),
        }
    }
}

/// A reader of a value.
#[derive(Clone, Copy)]
struct Use {
    /// The elements that it takes, as a multiple of all.
    part: f64,
    /// It takes them from memory: they are written for it alone if they are not kept.
    from_memory: bool,
}

/// An expression that takes part.
struct Part {
    typed: Arc<Typed>,
    /// The kernel that it was last met in: 0 is the evaluation's own, n + 1 is operation n.
    kernel: usize,
    /// Kernels that read it as a part of themselves.
    kernels: usize,
    /// Places that hold it.
    holders: usize,
    /// Operations that take it from memory.
    from_memory: usize,
    /// The most elements of a reader for each of its own elements.
    repeated: f64,
    cost: Cost,
    /// Its value was computed before, so its inputs take no part.
    is_known: bool,
    /// It was a part of a kernel of another evaluation, and is asked for again.
    was_part: bool,
    /// The parts whose tensors a kernel that computes it binds.
    inputs: Vec<usize>,
    /// It is computed on its own.
    is_kept: bool,
    /// The kernel that computes it in the end.
    place: Place,
}

/// An operation without a result.
struct Pending {
    deferred: Arc<Deferred>,
    fact: Fact,
    /// The nodes that read it, by number, and their kernels.
    readers: Vec<(usize, usize)>,
    /// The part that it computes, if it is the value of an expression.
    value_of: Option<usize>,
    /// Its readers compute it as a part of themselves.
    inlined: bool,
    place: Place,
}

/// The kernel that computes something, as far as known.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Unknown,
    /// In the kernel of an expression: the kernel of a part, of a value, or of the evaluation itself.
    Expression(Kernel),
    /// In the kernel of an operation.
    Operation(usize),
    Several,
}

impl Place {
    fn add(&mut self, other: Self) {
        *self = if *self == Self::Unknown || *self == other { other } else { Self::Several };
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kernel {
    Root,
    Part(usize),
    Value(usize),
}

#[derive(Clone, Copy)]
enum Item {
    Part(usize),
    Pending(usize),
}

enum Step {
    Meet { typed: Arc<Typed>, kernel: usize, around: usize, from_memory: bool },
    Leave(Item),
}

/// A tensor's address, an offset, strides, and the shape.
type Read = (usize, usize, Vec<usize>, Vec<usize>);

/// Returns what a leaf reads, if it reads a tensor.
fn read_of(typed: &Typed) -> Option<Read> {
    let Node::Read(view) = &typed.node else { return None };
    let tensor = match &view.source {
        Source::Tensor(tensor) => tensor.clone(),
        Source::Recorded(recorded) => recorded.tensor(),
        Source::Deferred(_) | Source::Indices => return None,
    };
    Some((Arc::as_ptr(&tensor.inner) as usize, view.offset, view.strides.clone(), typed.shape.clone()))
}

struct Walk<'a> {
    facts: &'a Facts,
    parts: Vec<Part>,
    by_part: FxHashMap<*const Typed, usize>,
    /// Reads of tensors: those that read the same are one part.
    by_read: FxHashMap<Read, usize>,
    pending: Vec<Pending>,
    by_pending: FxHashMap<*const Deferred, usize>,
    /// All of them, what is read before what reads it.
    order: Vec<Item>,
    steps: Vec<Step>,
    /// For the processor's own operations.
    for_processor: bool,
    prices: &'static Prices,
}

/// The operations and values that are computed before an expression, in this order. Those of a group are values of one shape, of which no
/// operation is computed between, and which read each other as they are: one kernel may compute several.
pub(super) type Groups = Vec<Vec<Arc<Deferred>>>;

/// Plans an evaluation for a machine: what is computed before it, and how the rest is computed.
pub(super) fn plan(root: &Arc<Typed>, facts: &Facts, machine: Machine, grouped: bool) -> (Groups, Schedule) {
    if root.depth == 0 && !matches!(&root.node, Node::Read(View { source: Source::Deferred(_), .. })) {
        return Default::default();
    }
    let mut walk = Walk {
        facts,
        parts: Vec::new(),
        by_part: FxHashMap::default(),
        by_read: FxHashMap::default(),
        pending: Vec::new(),
        by_pending: FxHashMap::default(),
        order: Vec::new(),
        steps: Vec::new(),
        for_processor: grouped,
        prices: Prices::of(machine),
    };
    walk.meet_all(root);
    walk.decide();
    walk.place();
    walk.scheduled(grouped)
}

fn view_of(typed: &Typed) -> Option<&View> {
    match &typed.node {
        Node::Read(view) | Node::Gather { view, .. } => Some(view),
        _ => None,
    }
}

impl Walk<'_> {
    fn meet_all(&mut self, root: &Arc<Typed>) {
        self.steps.push(Step::Meet { typed: root.clone(), kernel: 0, around: root.count(), from_memory: false });
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Meet { typed, kernel, around, from_memory } => {
                    let part = self.meet(typed, kernel, around);
                    self.parts[part].from_memory += usize::from(from_memory);
                }
                Step::Leave(item) => self.order.push(item),
            }
        }
    }

    fn meet(&mut self, typed: Arc<Typed>, kernel: usize, around: usize) -> usize {
        let repeated = around as f64 / typed.count().max(1) as f64;
        let read = read_of(&typed);
        let same = read.as_ref().and_then(|read| self.by_read.get(read)).copied();
        if let Some(known) = self.by_part.get(&Arc::as_ptr(&typed)).copied().or(same) {
            self.by_part.insert(Arc::as_ptr(&typed), known);
            let part = &mut self.parts[known];
            part.holders += 1;
            part.repeated = part.repeated.max(repeated);
            if part.kernel != kernel {
                part.kernel = kernel;
                part.kernels += 1;
                if let Some(&pending) = self.pending_of(&typed) {
                    self.pending[pending].readers.push((known, kernel));
                }
            }
            return known;
        }
        let number = self.parts.len();
        self.by_part.insert(Arc::as_ptr(&typed), number);
        self.by_read.extend(read.map(|read| (read, number)));
        self.steps.push(Step::Leave(Item::Part(number)));
        let is_known = known_value(&typed).is_some();
        if !is_known {
            if let Some(View { source: Source::Deferred(deferred), .. }) = view_of(&typed)
                && deferred.live_result().is_none()
            {
                self.read(deferred, number, kernel);
            }
            let count = typed.count();
            // Rolls are read in place: the CPU knows their indices, and kernels compute them where they read.
            if typed.rolled().is_none() {
                for child in typed.children() {
                    self.steps.push(Step::Meet { typed: child.clone(), kernel, around: count, from_memory: false });
                }
            }
        }
        self.parts.push(Part {
            is_known,
            was_part: typed.history.was_part(),
            typed,
            kernel,
            kernels: 1,
            holders: 1,
            from_memory: 0,
            repeated,
            cost: Cost::default(),
            inputs: Vec::new(),
            is_kept: false,
            place: Place::Unknown,
        });
        number
    }

    fn pending_of(&self, typed: &Typed) -> Option<&usize> {
        match view_of(typed) {
            Some(View { source: Source::Deferred(deferred), .. }) => self.by_pending.get(&Arc::as_ptr(deferred)),
            _ => None,
        }
    }

    fn read(&mut self, deferred: &Arc<Deferred>, reader: usize, kernel: usize) {
        if let Some(&known) = self.by_pending.get(&Arc::as_ptr(deferred)) {
            self.pending[known].readers.push((reader, kernel));
            return;
        }
        let number = self.pending.len();
        self.by_pending.insert(Arc::as_ptr(deferred), number);
        self.steps.push(Step::Leave(Item::Pending(number)));
        let from_memory = self.for_processor && deferred.takes_memory();
        for input in deferred.inputs() {
            let around = input.count();
            self.steps.push(Step::Meet { typed: input, kernel: number + 1, around, from_memory });
        }
        self.pending.push(Pending {
            deferred: deferred.clone(),
            fact: self.facts.of(deferred),
            readers: vec![(reader, kernel)],
            value_of: None,
            inlined: false,
            place: Place::Unknown,
        });
    }

    /// Returns the number of a part. It exists, because children are met before their readers are left.
    fn part(&self, typed: &Arc<Typed>) -> Option<usize> {
        self.by_part.get(&Arc::as_ptr(typed)).copied()
    }

    /// Notes what a kernel binds for a node. If that is too much, only the child that reads the most is computed before it.
    fn bind(&mut self, number: usize, typed: &Arc<Typed>) {
        loop {
            let mut inputs = match &typed.node {
                Node::Gather { .. } => vec![number],
                _ => Vec::new(),
            };
            for child in typed.children().into_iter().filter_map(|child| self.part(child)) {
                for &input in self.bound(child, &[child]) {
                    if !inputs.contains(&input) {
                        inputs.push(input);
                    }
                }
            }
            let open = typed.children().into_iter().filter_map(|child| self.part(child));
            let open = open.filter(|&child| {
                let child = &self.parts[child];
                !child.is_kept && !child.is_known && child.typed.depth > 0
            });
            let widest = open.max_by_key(|&child| self.parts[child].inputs.len());
            match widest.filter(|_| inputs.len() > MOST_TENSORS) {
                Some(widest) => self.parts[widest].is_kept = true,
                None => {
                    self.parts[number].inputs = inputs;
                    return;
                }
            }
        }
    }

    /// Returns the bindings of a reader of a part: `itself`, or the part's own inputs.
    fn bound<'a>(&'a self, part: usize, itself: &'a [usize]) -> &'a [usize] {
        let part = &self.parts[part];
        if part.is_kept || part.is_known {
            return itself;
        }
        match &part.typed.node {
            Node::Constant(_) | Node::Read(View { source: Source::Indices, .. }) => &[],
            Node::Read(_) => match self.pending_of(&part.typed).map(|&pending| &self.pending[pending]) {
                Some(Pending { inlined: true, value_of: Some(of), .. }) => &self.parts[*of].inputs,
                _ => itself,
            },
            _ => &part.inputs,
        }
    }

    /// Returns the cost of a node and of its inputs.
    fn cost_of(&self, typed: &Arc<Typed>) -> Cost {
        let children = typed.children().into_iter().filter_map(|child| self.part(child));
        children.fold(self.own_cost(typed), |cost, child| {
            let repeated = typed.count() as f64 / self.parts[child].typed.count().max(1) as f64;
            cost.plus(self.prices.repeated(self.read_cost(child), repeated))
        })
    }

    /// Decides which parts are computed on their own.
    fn decide(&mut self) {
        for place in 0..self.order.len() {
            if let Item::Part(number) = self.order[place] {
                self.decide_part(number);
            }
        }
    }

    fn decide_part(&mut self, number: usize) {
        if self.parts[number].is_known {
            return;
        }
        let typed = self.parts[number].typed.clone();
        self.bind(number, &typed);
        if number == 0 {
            return;
        }
        let cost = self.cost_of(&typed);
        self.parts[number].cost = cost;
        if typed.depth == 0 {
            return;
        }
        let part = &self.parts[number];
        let direct = |place: usize| Use { part: part.repeated.max(1.0), from_memory: place < part.from_memory };
        let mut uses = (0..part.kernels).map(direct).listed();
        if part.was_part {
            uses.push(Use { part: 1.0, from_memory: false });
        }
        let own = typed.own_value().and_then(|own| self.by_pending.get(&Arc::as_ptr(&own)).copied());
        if let Some(own) = own {
            // The kernel that computes its value does not count as a reader.
            uses.pop();
            self.pending[own].value_of = Some(number);
            for &(reader, _) in &self.pending[own].readers {
                let reader = &self.parts[reader];
                let part = reader.typed.count() as f64 / typed.count().max(1) as f64 * reader.repeated.max(1.0);
                uses.push(Use { part, from_memory: reader.from_memory > 0 });
            }
        }
        // Pushed into one reader after another, it would become a kernel without end.
        let is_large = own.is_some() && cost.nodes > self.prices.largest;
        let must = own.is_some_and(|own| {
            self.pending[own].readers.iter().any(|&(reader, kernel)| {
                !matches!(self.parts[reader].typed.node, Node::Read(_))
                    || kernel.checked_sub(1).is_some_and(|kernel| !self.pending[kernel].deferred.lowers())
            })
        });
        let is_repeated = uses.len() > 1 || uses.iter().any(|of| of.part > 1.0);
        if must || is_large || is_repeated && self.prices.pays(cost, typed.count(), &uses) {
            self.parts[number].is_kept = true;
        } else if let Some(own) = own {
            self.pending[own].inlined = true;
        }
    }

    /// Returns the cost of a node without its inputs.
    fn own_cost(&self, typed: &Arc<Typed>) -> Cost {
        let prices = self.prices;
        let (arithmetic, reads) = match &typed.node {
            Node::Constant(_) => (0.0, 0.0),
            Node::Cast(_) | Node::Select(..) => (prices.simple, 0.0),
            Node::Unary(op, _) => (op.function().cost([prices.simple, prices.function]), 0.0),
            Node::Binary(op, ..) => (op.function().cost([prices.simple, prices.function]), 0.0),
            Node::Random { .. } => (prices.random, 0.0),
            Node::Gather { .. } if self.for_processor && typed.rolled().is_some() => (prices.load, prices.read),
            Node::Gather { .. } => (prices.load, prices.gathered),
            Node::Read(View { source: Source::Indices, .. }) => (prices.simple, 0.0),
            Node::Read(view) => {
                let inlined = self.pending_of(typed).map(|&pending| &self.pending[pending]);
                if let Some(Pending { inlined: true, value_of: Some(of), .. }) = inlined {
                    return self.parts[*of].cost;
                }
                let repeats = view.strides.iter().zip(&typed.shape).any(|(&stride, &side)| stride == 0 && side > 1);
                let reads = match repeats {
                    true => prices.shared,
                    false if view.lies_across(&typed.shape) => prices.across,
                    false => prices.read,
                };
                (prices.load, reads)
            }
        };
        Cost { arithmetic, reads, nodes: 1.0 }
    }

    /// Returns the cost that a node adds to its reader's. All its holders in a kernel share its own cost, because the kernel computes it once.
    fn read_cost(&self, part: usize) -> Cost {
        let part = &self.parts[part];
        let in_kernel = (part.holders as f64 / part.kernels.max(1) as f64).max(1.0);
        let share = |cost: f64| cost / in_kernel;
        if part.is_kept || part.is_known {
            return self.prices.kept();
        }
        Cost { arithmetic: share(part.cost.arithmetic), reads: share(part.cost.reads), nodes: share(part.cost.nodes) }
    }

    /// Finds where everything is computed, from the end.
    fn place(&mut self) {
        for place in (0..self.order.len()).rev() {
            match self.order[place] {
                Item::Part(number) => self.place_part(number),
                Item::Pending(number) => self.place_pending(number),
            }
        }
    }

    fn place_part(&mut self, number: usize) {
        let part = &self.parts[number];
        let inside = match part.place {
            _ if part.is_kept => Place::Expression(Kernel::Part(number)),
            // Nothing reads it: it is what is evaluated.
            Place::Unknown => Place::Expression(Kernel::Root),
            place => place,
        };
        if part.is_known {
            return;
        }
        let typed = part.typed.clone();
        for child in typed.children() {
            if let Some(child) = self.part(child) {
                self.parts[child].place.add(inside);
            }
        }
        if let Some(&pending) = self.pending_of(&typed) {
            self.pending[pending].place.add(inside);
        }
    }

    fn place_pending(&mut self, number: usize) {
        let pending = &self.pending[number];
        let inside = match pending.value_of {
            Some(_) if pending.inlined => pending.place,
            Some(of) => Place::Expression(Kernel::Part(of)),
            None if pending.deferred.is_value() => Place::Expression(Kernel::Value(number)),
            None => Place::Operation(number),
        };
        for input in pending.deferred.inputs() {
            if let Some(part) = self.part(&input) {
                self.parts[part].place.add(inside);
            }
        }
    }

    /// Lists what is computed on its own, and says how the rest is.
    fn scheduled(&self, grouped: bool) -> (Groups, Schedule) {
        let mut groups: Vec<Vec<Scheduled>> = Vec::new();
        let mut left = Vec::new();
        for item in &self.order {
            match *item {
                Item::Part(number) => {
                    let part = &self.parts[number];
                    if !part.is_known {
                        part.typed.history.note_part();
                    }
                    if !part.is_kept {
                        continue;
                    }
                    let one = Scheduled { deferred: part.typed.value(), part: Some(number) };
                    match groups.last_mut().filter(|group| grouped && self.joins(number, group)) {
                        Some(group) => group.push(one),
                        None => groups.push(vec![one]),
                    }
                }
                Item::Pending(number) => {
                    let pending = &self.pending[number];
                    if pending.inlined {
                        left.push((&pending.deferred, Left::ToReaders));
                    }
                    if pending.inlined || pending.value_of.is_some() {
                        continue;
                    }
                    let dear = pending.deferred.fusable() >= DEAR;
                    let ends = pending.deferred.fusable() > 0
                        && !pending.fact.was_fused
                        && matches!(pending.place, Place::Expression(_))
                        && !(dear && pending.fact.is_held);
                    if ends {
                        left.push((&pending.deferred, Left::ToEnd));
                    } else {
                        groups.push(vec![Scheduled { deferred: pending.deferred.clone(), part: None }]);
                    }
                }
            }
        }
        let deferred = |group: Vec<Scheduled>| group.into_iter().map(|one| one.deferred).listed();
        (groups.into_iter().map(deferred).listed(), Schedule::of(left.into_iter()))
    }

    /// The kept part that a kernel reads where it binds a part, and whether it reads that as it is.
    fn value_read(&self, bound: usize) -> (usize, bool) {
        let typed = &self.parts[bound].typed;
        let of = self.pending_of(typed).and_then(|&pending| self.pending[pending].value_of);
        match (of, view_of(typed)) {
            (Some(of), Some(view)) => {
                let value = &self.parts[of].typed;
                let plain = matches!(typed.node, Node::Read(_))
                    && view.offset == 0
                    && typed.shape == value.shape
                    && view.strides == contiguous(&value.shape);
                (of, plain)
            }
            _ => (bound, true),
        }
    }

    /// Returns whether a value can be computed with those of a group.
    fn joins(&self, number: usize, group: &[Scheduled]) -> bool {
        let part = &self.parts[number];
        let Some(first) = group.first().and_then(|first| first.part) else { return false };
        let is_member = |part: usize| group.iter().any(|member| member.part == Some(part));
        group.len() < MOST_TOGETHER
            && self.parts[first].typed.shape == part.typed.shape
            && part.inputs.iter().all(|&input| {
                let (of, plain) = self.value_read(input);
                plain || !is_member(of)
            })
    }
}

/// A step of the evaluation: an operation, or the value of a part.
struct Scheduled {
    deferred: Arc<Deferred>,
    part: Option<usize>,
}

/// Values of a group, at most.
const MOST_TOGETHER: usize = 24;

/// Operations too expensive to compute twice only to save a pass over their result.
const DEAR: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::ops::Expr;
    use crate::tensor::DType;

    /// Returns the kernels of an evaluation on a machine: one for each step, and its own.
    fn kernels(expr: &Expr, machine: Machine) -> usize {
        let typed = expr.state.as_ref().unwrap();
        plan(typed, &Facts::of_evaluation(typed), machine, false).0.iter().map(Vec::len).sum::<usize>() + 1
    }

    fn zeros(engine: &Engine, dtype: DType, shape: &[usize]) -> Expr {
        engine.zeros_of(dtype, shape).unwrap().expr()
    }

    /// The shortest ways between places, by way of each of 200.
    fn ways(engine: &Engine, places: usize) -> Expr {
        (0..200).fold(zeros(engine, DType::F32, &[places, places]), |ways, k| {
            let (to, onward) = (ways.slice(&[0..places, k..k + 1]), ways.slice(&[k..k + 1, 0..places]));
            ways.minimum(to + onward)
        })
    }

    /// The Mandelbrot set, 50 rounds.
    fn mandelbrot(engine: &Engine) -> Expr {
        let zero = |dtype| zeros(engine, dtype, &[480, 600]);
        let (x, y) = (zero(DType::F32), zero(DType::F32));
        let (mut a, mut b, mut count) = (zero(DType::F32), zero(DType::F32), zero(DType::I32));
        for _ in 0..50 {
            let inside = (&a * &a + &b * &b).less_equal(4.0);
            let next = [&a * &a - &b * &b + &x, &a * &b * 2.0 + &y];
            count = count + inside.cast(DType::I32);
            [a, b] = [inside.select(&next[0], &a), inside.select(&next[1], &b)];
        }
        count
    }

    /// Conway's game, 50 generations.
    fn life(engine: &Engine) -> Expr {
        (0..50).fold(zeros(engine, DType::U8, &[512, 512]), |world, _| {
            let around = |of: &Expr, axis| of + of.roll(&[1], &[axis]) + of.roll(&[-1], &[axis]);
            let around = around(&around(&world, 0), 1) - &world;
            around.equal(3).logical_or(world.equal(1).logical_and(around.equal(2))).cast(DType::U8)
        })
    }

    #[test]
    fn machines_with_dear_launches_run_fewer_kernels() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let machines = [Machine::Cpu, Machine::Lanes, Machine::Gpu, Machine::Discrete];
        // A plan leaves a history in the nodes, so each machine gets its own.
        let counts = |expr: &dyn Fn() -> Expr| machines.map(|machine| kernels(&expr(), machine));
        assert_eq!(counts(&|| ways(&engine, 200)), [200, 200, 69, 50]);
        assert_eq!(counts(&|| mandelbrot(&engine)), [55, 55, 39, 29]);
        assert_eq!(counts(&|| life(&engine)), [107; 4]);
        // Sixteen million elements take longer than any launch: two steps share a pass over memory, and no more.
        assert_eq!(kernels(&ways(&engine, 4096), Machine::Discrete), 100);
    }
}
