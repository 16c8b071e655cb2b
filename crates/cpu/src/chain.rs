//! Chains: functions of elements as data, computed block by block in the first cache, without a kernel.
//!
//! # What comes in
//! An `ElementsShape` of the evaluator (`ops/expr/chain.rs`): the sides of the result, views of the inputs, and up to `MOST_STEPS` `Step`s, each of which
//! names earlier ones by number. The last step is the result; `more` steps may be results too. A chain may have a function of rows in between (softmax,
//! norms), with steps before and after it.
//!
//! # Stages
//! 1. **Serve** (`Operation::serves`, `sizes`). Checks what came in as data from outside: steps read earlier steps and existing inputs, and every element
//!    of every view lies within its binding. What no lane has, such as a power of float64, is not served and runs as a kernel.
//! 2. **Choose lanes** (`compute`). float64 if the chain is `wide`; bytes if no other number shows (`bytes`); else float32, in whose bits i32 and u32 are
//!    computed too. A chain that does the same with both parts of complex numbers is one of twice as many real ones, and one of complex
//!    products, sums and differences runs over blocks of such numbers (`complex`).
//! 3. **Plan** (`Plan::of`). Gives each step a `Place`: an input's own memory where that lies as it is read, the result's memory for the last step, else a
//!    block. A block is free again after the last step that reads it.
//! 4. **Run** (`Machine::run`), block by block: a pass of one step over all lanes of the block, then the next step. Tasks of at least `TASK` elements are
//!    spread over the pool.
//!
//! # What carries it
//! - `Lane`: the type of lanes and its loops (`functions` for float32, `wide` for float64, `bytes`). `inputs` copies what does not lie as lanes do.
//! - `Plan` is made once for a run; a `Machine` has the addresses for the block under way.
//!
//! # What holds
//! - Steps call the executor's own functions, so a chain has the bits of the kernel that it replaces.
//! - The blocks of a plan fill at most `NEAR` bytes, so a step finds in the first cache what the step before wrote.
//! - No step writes to a block that it reads.
//!
//! # What is surprising
//! - Rows shorter than `SHORT` are computed as one long row, and inputs that lie otherwise are copied for it: starting a step costs more than its elements.
//! - The two parts of a complex number are two steps. They are separated as they are read and joined as they are written (`pairs`).
//! - A rolled input is read in place, as two runs where it wraps. No index is computed.
//! - A last step that makes fewer bytes than lanes have (a comparison to bools) writes them itself (`narrow`), without a block in between.
//!
//! # An example
//! `x * 2 + 1` with 3,000 float32 values. The steps are input, 2, multiply, 1, add. `Plan` reads `x` where it lies, puts the two constants and the product
//! into three blocks, and lets the sum write to the result. Three blocks in 16 KiB have 1,024 lanes each, so `run` is called for 1,024, 1,024 and 952
//! elements: one loop multiplies a block, the next adds to it. 3,000 elements are one task.

mod bytes;
mod complex;
pub(super) mod functions;
mod inputs;
mod narrow;
pub(super) mod pairs;
mod precise;
mod quotients;
mod walk;
mod wide;

use self::walk::{MOST_AXES, Walk};
use super::copies;
use super::fault::Fault;
use super::floats::Floats;
use super::native::{COPIES_PAY, Call, Operation, Work};
use super::product::with_scratch;
use crate::backend::native::{CopyShape, ElementsShape, One, Roll, RowFunction, Step, Two};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Floats of a block.
pub(super) const BLOCK: usize = 1024;
/// Bytes of all blocks of a chain, which lie in the first cache beside what is read and written.
const NEAR: usize = 1 << 14;
/// Floats that a task computes at least.
const TASK: usize = 1 << 14;
/// Tasks of a thread, where there are enough elements, and elements of a task, at most.
const TASKS: usize = 8;
const MOST_TASK: usize = 1 << 20;
/// Lanes of complex numbers that are narrowed together.
const HALVED: usize = 64;
/// The longest row that is kept in memory while a function of the row runs.
const LONGEST_ROW: usize = 1 << 16;
/// Steps, which have a block each at most.
const MOST_STEPS: usize = 128;
/// Rows of fewer elements are computed many together, because starting a step costs more than its elements.
const SHORT: usize = 64;
/// Rows of fewer elements than this are computed together as well, if that copies at most [`COPIES`] inputs.
const LESS_SHORT: usize = 256;
const COPIES: usize = 2;

/// Returns whether rows are short. All rows are then computed as one row, and inputs in another order are copied.
fn is_flat(shape: &ElementsShape, short: usize) -> bool {
    let Some((&length, outer)) = shape.sides.split_last() else { return false };
    length < short && outer.iter().any(|&side| side > 1) && shape.row.is_none() && shape.sides.len() <= MOST_AXES
}

/// Returns whether rows are so short that the whole is quicker as one row.
fn is_quick_flat<T: Lane>(shape: &ElementsShape) -> bool {
    // Inputs in another order are copied.
    let lies_so = |view: &&CopyShape| matches!(Walk::new(view).axes[..], [] | [(_, 0 | 1)]);
    let copies = || shape.inputs.len() - shape.inputs.iter().filter(lies_so).count();
    // Inputs that are rolled along rows are copied anyway.
    let last = shape.sides.len().saturating_sub(1);
    let is_rolled = shape.rolls.iter().any(|roll| roll.axis == last);
    is_flat(shape, SHORT)
        || is_rolled && is_flat(shape, T::BLOCK / 2)
        || is_flat(shape, LESS_SHORT) && shape.places.is_empty() && copies() <= COPIES
}

impl Operation for ElementsShape {
    fn serves(&self) -> bool {
        // Steps read only earlier steps and existing inputs.
        let sound = |steps: &[Step], rows: bool| {
            let known = |(place, step): (usize, &Step)| {
                let source = match step {
                    Step::Input(input) => usize::from(*input) < self.inputs.len(),
                    Step::Rolled(input, roll) => {
                        usize::from(*input) < self.inputs.len() && usize::from(*roll) < self.rolls.len()
                    }
                    Step::Place(view) => usize::from(*view) < self.places.len(),
                    Step::Row => rows,
                    _ => true,
                };
                source && step.reads().all(|read| usize::from(read) < place)
            };
            (1..=MOST_STEPS).contains(&steps.len()) && steps.iter().enumerate().all(known)
        };
        let row = self.row.as_ref().is_none_or(|(_, steps)| {
            sound(steps, false) && self.sides.last().is_some_and(|&length| (1..=LONGEST_ROW).contains(&length))
        });
        let known = |bytes: usize| matches!(bytes, 1 | 4) || self.wide && bytes == 8;
        let narrow = known(self.bytes) && (self.row.is_none() || self.bytes == 4 && !self.wide);
        let more = self.more.iter().enumerate().all(|(place, &(step, bytes))| {
            // Each step is written once, and the last one as the last result.
            known(bytes)
                && usize::from(step) + 1 < self.steps.len()
                && self.more[..place].iter().all(|&(other, _)| other != step)
        });
        let pair = self.pair.is_none_or(|step| {
            let whole = self.bytes == 4 || self.wide && self.bytes == 8;
            whole && self.more.is_empty() && self.row.is_none() && usize::from(step) + 1 < self.steps.len()
        });
        let rolled = |roll: &Roll| {
            let reach = self.sides.get(roll.axis).and_then(|&side| side.checked_sub(1)?.checked_mul(roll.step));
            roll.start < roll.length && roll.step > 0 && reach.is_some_and(|reach| reach < roll.length)
        };
        let counted = self.places.iter().all(|view| copies::sizes(view).is_some() && view.sides == self.sides);
        narrow
            && pair
            && counted
            && self.rolls.iter().all(rolled)
            && more
            && (self.more.is_empty() || self.row.is_none())
            && self.inputs.iter().all(|view| known(view.bytes))
            && self.steps.iter().all(if self.wide { <f64 as Lane>::has } else { <f32 as Lane>::has })
            && row
            && sound(&self.steps, self.row.is_some())
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let count = self.sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
        let steps = || self.steps.iter().chain(self.row.iter().flat_map(|(_, steps)| steps));
        let reach = |(input, view): (usize, &CopyShape)| {
            // What is rolled reaches to the end of its axis.
            let rolls = steps().filter_map(|step| match step {
                Step::Rolled(of, roll) if usize::from(*of) == input => self.rolls.get(usize::from(*roll)),
                _ => None,
            });
            let mut whole = view.clone();
            for roll in rolls {
                *whole.sides.get_mut(roll.axis)? = roll.length;
            }
            copies::word_sizes(&whole).filter(|_| view.sides == self.sides).map(|[reach, _]| reach)
        };
        let words = |bytes: usize| count.checked_mul(bytes).map(|bytes| bytes.div_ceil(4)).filter(|&words| words > 0);
        let last = words(if self.pair.is_some() { 2 * self.bytes } else { self.bytes });
        let results = self.more.iter().map(|&(_, bytes)| words(bytes)).chain([last]);
        self.inputs.iter().enumerate().map(reach).chain(results).collect()
    }

    fn work(&self) -> Work {
        Work { size: self.sizes().and_then(|sizes| sizes.last().copied()).unwrap_or(0), pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        Ok(compute(self, bindings, call.limits)?)
    }
}

/// Returns whether a function is one of wide words only.
fn is_wide(op: One) -> bool {
    let of_halves = matches!(op, One::LowWord | One::OfLowWord | One::OfSingle);
    of_halves || matches!(op, One::ToSingle | One::SignedToSingle | One::UnsignedToSingle)
}

/// The type of lanes: float32, bytes, which are numbers modulo 256, or float64.
pub(super) trait Lane: Copy + Send + Sync {
    /// Lanes of a block.
    const BLOCK: usize;

    /// Returns whether chains of these lanes have a step.
    fn has(step: &Step) -> bool {
        match *step {
            Step::One(op, _) => !is_wide(op),
            Step::WideConstant(_) => false,
            _ => true,
        }
    }

    fn constant(value: f32) -> Self;
    fn wide_constant(bits: u64) -> Self;
    fn of_byte(byte: u8) -> Self;
    fn of_bytes(bytes: &[u8], to: &mut [Self]);
    /// Lanes of words of 32 bits, each of which is the low half of one.
    fn of_words(words: &[u32], to: &mut [Self]);
    fn narrowed(lanes: &[Self], to: &mut [u8]);
    /// The words of lanes that have more than these.
    fn halved(lanes: &[Self], to: &mut [u32]);
    fn fill(self, to: &mut [Self]);
    /// Every second element from an address on.
    ///
    /// # Safety
    /// They lie there.
    unsafe fn every_second(from: *const Self, to: &mut [Self]);
    /// Elements of both by turns.
    fn interleaved(parts: [&[Self]; 2], to: &mut [Self]);

    /// Products of complex numbers, whose parts alternate: as many as each slice has pairs.
    fn complex_products(factors: [&[Self]; 2], to: &mut [Self]);

    /// Sums of as many numbers.
    fn sums(terms: [&[Self]; 2], to: &mut [Self]);

    /// Differences of as many numbers.
    fn differences(terms: [&[Self]; 2], to: &mut [Self]);

    /// Runs a plan's steps for `count` lanes: `at` says where each step's are.
    ///
    /// # Safety
    /// `count` lanes of each step lie there, and what is written overlaps nothing that the same step reads.
    unsafe fn steps(plan: &Plan<'_>, at: &[*mut Self], count: usize);

    /// Returns whether [`Lane::narrow_step`] has a step with results of this number of bytes.
    fn has_narrow(step: &Step, bytes: usize) -> bool;

    /// Runs a step that writes numbers of fewer bytes than lanes have.
    ///
    /// # Safety
    /// `count` lanes of what it reads lie where `at` says, and there is room for as many numbers.
    unsafe fn narrow_step(step: &Step, at: &[*mut Self], count: usize, to: *mut u8);
}

impl Lane for f32 {
    const BLOCK: usize = BLOCK;

    fn constant(value: f32) -> Self {
        value
    }

    fn wide_constant(bits: u64) -> Self {
        f64::from_bits(bits) as f32
    }

    fn of_byte(byte: u8) -> Self {
        byte.into()
    }

    fn of_bytes(bytes: &[u8], to: &mut [Self]) {
        functions::widened(bytes, to);
    }

    fn of_words(words: &[u32], to: &mut [Self]) {
        to.iter_mut().zip(words).for_each(|(to, &word)| *to = Self::from_bits(word));
    }

    fn narrowed(lanes: &[Self], to: &mut [u8]) {
        functions::narrowed(lanes, to);
    }

    fn halved(lanes: &[Self], to: &mut [u32]) {
        to.iter_mut().zip(lanes).for_each(|(to, lane)| *to = lane.to_bits());
    }

    fn fill(self, to: &mut [Self]) {
        // A loop that ends after a few is quicker than a call.
        if to.len() < SHORT { to.fill(self) } else { functions::filled(self, to) }
    }

    unsafe fn every_second(from: *const Self, to: &mut [Self]) {
        // SAFETY: they lie there (this function's contract).
        unsafe { pairs::every_second_word(from, to) }
    }

    fn interleaved(parts: [&[Self]; 2], to: &mut [Self]) {
        pairs::interleaved_words(parts, to);
    }

    fn complex_products(factors: [&[Self]; 2], to: &mut [Self]) {
        pairs::products_of_words(factors, to);
    }

    fn sums(terms: [&[Self]; 2], to: &mut [Self]) {
        pairs::sums_of_words(terms, to);
    }

    fn differences(terms: [&[Self]; 2], to: &mut [Self]) {
        pairs::differences_of_words(terms, to);
    }

    unsafe fn steps(plan: &Plan<'_>, at: &[*mut Self], count: usize) {
        // SAFETY: the steps' `count` lanes lie where `at` says, apart from what they read (this function's contract).
        unsafe { functions::steps(plan.steps, at, count) }
    }

    fn has_narrow(step: &Step, bytes: usize) -> bool {
        narrow::has(step, bytes)
    }

    unsafe fn narrow_step(step: &Step, at: &[*mut Self], count: usize, to: *mut u8) {
        // SAFETY: the lanes lie there, and there is room for the numbers (this function's contract).
        unsafe { narrow::of_words(step, at, count, to) }
    }
}

impl Lane for u8 {
    const BLOCK: usize = 4 * BLOCK;

    fn constant(value: f32) -> Self {
        value as i32 as u8
    }

    fn wide_constant(bits: u64) -> Self {
        bits as u8
    }

    fn of_byte(byte: u8) -> Self {
        byte
    }

    fn of_bytes(bytes: &[u8], to: &mut [Self]) {
        to.copy_from_slice(bytes);
    }

    fn of_words(words: &[u32], to: &mut [Self]) {
        to.iter_mut().zip(words).for_each(|(to, &word)| *to = word as u8);
    }

    fn narrowed(lanes: &[Self], to: &mut [u8]) {
        to.copy_from_slice(lanes);
    }

    fn halved(lanes: &[Self], to: &mut [u32]) {
        to.iter_mut().zip(lanes).for_each(|(to, &lane)| *to = lane.into());
    }

    fn fill(self, to: &mut [Self]) {
        to.fill(self);
    }

    unsafe fn every_second(from: *const Self, to: &mut [Self]) {
        // SAFETY: they lie there (this function's contract).
        unsafe { pairs::every_second(from, to) }
    }

    fn interleaved(parts: [&[Self]; 2], to: &mut [Self]) {
        pairs::interleaved(parts, to);
    }

    fn complex_products(_factors: [&[Self]; 2], _to: &mut [Self]) {}

    fn sums(_terms: [&[Self]; 2], _to: &mut [Self]) {}

    fn differences(_terms: [&[Self]; 2], _to: &mut [Self]) {}

    unsafe fn steps(plan: &Plan<'_>, at: &[*mut Self], count: usize) {
        // SAFETY: the steps' `count` lanes lie where `at` says, apart from what they read (this function's contract).
        unsafe { bytes::steps(plan.steps, &plan.signed, at, count) }
    }

    fn has_narrow(_step: &Step, _bytes: usize) -> bool {
        false
    }

    unsafe fn narrow_step(_step: &Step, _at: &[*mut Self], _count: usize, _to: *mut u8) {}
}

/// The place of a step's result, for a block.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In the memory of an input, as it is.
    Direct(u16),
    /// In a separate block, which holds the same value for a whole row.
    Row(u16, usize),
    /// In a block that an input's elements are copied to.
    Copied(u16, usize),
    /// In a block that an input's elements are copied to, for several short rows at once.
    Gathered(u16, usize),
    /// In the memory of a rolled input, or in a block that its elements are copied to.
    Rolled(u16, u16, usize),
    /// In a block that places in a view are counted into.
    Counted(u16, usize),
    /// In a block.
    Block(usize),
    /// In the memory that the machine is given: it is the last step.
    Result,
    /// Where the row's function left it.
    Made,
}

/// A chain with its inputs, its result and the limits of its run.
struct Bound<'a> {
    shape: &'a ElementsShape,
    inputs: &'a [Floats],
    y: Floats,
    limits: &'a Limits<'a>,
}

/// The steps, and the place of each step's result.
pub(super) struct Plan<'a> {
    steps: &'a [Step],
    pub(super) places: Vec<Place>,
    pub(super) blocks: usize,
    /// Lanes of a block, and of a run. Without blocks a run has no limit.
    lanes: usize,
    /// All rows are one.
    pub(super) flat: bool,
    /// Some value stays the same along a row.
    by_rows: bool,
    /// For each step of bytes, whether it reads signed ones.
    signed: Vec<bool>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(steps: &'a [Step], shape: &ElementsShape) -> Self {
        // What is read as it lies is read row by row.
        let flat = is_flat(shape, SHORT) || steps.len() > 1 && is_quick_flat::<f32>(shape);
        Self { lanes: BLOCK, ..Self::of::<f32>(steps, shape, flat) }
    }

    /// Lanes that are computed at once, at most.
    fn longest(&self, shape: &ElementsShape) -> usize {
        if self.flat { self.lanes } else { shape.sides.last().map_or(1, |&length| self.lanes.min(length)) }
    }

    /// Sets the lanes of a block: as many as lie in the first cache together with `more` other blocks.
    fn within_cache<T: Lane>(self, more: usize) -> Self {
        let most = match self.blocks + more {
            0 => return Self { lanes: usize::MAX, ..self },
            blocks => NEAR / (blocks * size_of::<T>()),
        };
        let lanes = (most + 1).next_power_of_two() / 2;
        Self { lanes: lanes.clamp(T::BLOCK / 4, 4 * T::BLOCK), ..self }
    }

    fn of<T: Lane>(steps: &'a [Step], shape: &ElementsShape, flat: bool) -> Self {
        let mut last = vec![0; steps.len()];
        for (place, step) in steps.iter().enumerate() {
            step.reads().for_each(|read| last[usize::from(read)] = place);
        }
        // A result's block must stay to the end of the chain.
        let results = shape.more.iter().map(|&(step, _)| step).chain(shape.pair);
        results.for_each(|step| last[usize::from(step)] = steps.len());
        let (mut places, mut free, mut blocks) = (Vec::new(), Vec::new(), 0);
        let mut taken = |free: &mut Vec<usize>| {
            free.pop().unwrap_or_else(|| {
                blocks += 1;
                blocks - 1
            })
        };
        for (number, step) in steps.iter().enumerate() {
            places.push(match *step {
                Step::Input(input) if flat => {
                    let view = &shape.inputs[usize::from(input)];
                    match &Walk::new(view).axes[..] {
                        [] | [(_, 0)] => Place::Row(input, taken(&mut Vec::new())),
                        [(_, 1)] if view.bytes == size_of::<T>() => Place::Direct(input),
                        _ => Place::Gathered(input, taken(&mut Vec::new())),
                    }
                }
                Step::Input(input) => match shape.inputs[usize::from(input)].strides.last() {
                    Some(0) | None => Place::Row(input, taken(&mut Vec::new())),
                    Some(1) if shape.inputs[usize::from(input)].bytes == size_of::<T>() => Place::Direct(input),
                    Some(_) => Place::Copied(input, taken(&mut Vec::new())),
                },
                Step::Rolled(input, roll) => Place::Rolled(input, roll, taken(&mut Vec::new())),
                Step::Place(view) => Place::Counted(view, taken(&mut Vec::new())),
                // It stays as it is.
                Step::Constant(_) | Step::WideConstant(_) => Place::Block(taken(&mut Vec::new())),
                Step::Row => Place::Made,
                _ if number + 1 == steps.len() => Place::Result,
                // What is read is not overwritten by the same step: functions know the two apart.
                Step::One(..) | Step::Two(..) | Step::Choose(..) => Place::Block(taken(&mut free)),
            });
            for read in step.reads().map(usize::from) {
                if last[read] == number
                    && steps[read].reads().next().is_some()
                    && let Place::Block(block) = places[read]
                    && !free.contains(&block)
                {
                    free.push(block);
                }
            }
        }
        let by_rows = places.iter().any(|place| matches!(place, Place::Row(..)));
        Self { steps, places, blocks, lanes: T::BLOCK, flat, by_rows, signed: Vec::new() }
    }
}

/// A block of lanes, and the places of steps' lanes. A step that is a further result is written to that result's memory, and read there.
pub(super) struct Machine<'a, T = f32> {
    plan: &'a Plan<'a>,
    shape: &'a ElementsShape,
    inputs: &'a [Floats],
    /// The result of the row's function.
    made: *mut T,
    /// Room for the plan's blocks.
    blocks: *mut T,
    at: Vec<*mut T>,
    /// Where further results begin.
    more: &'a [Floats],
    /// The blocks of steps that lie in results, while they do.
    elsewhere: Vec<(usize, *mut T)>,
    /// How inputs are walked, where all rows are one.
    walks: Vec<Walk>,
}

impl<'a, T: Lane> Machine<'a, T> {
    /// # Safety
    /// There is room for the plan's blocks.
    pub(super) unsafe fn new(
        plan: &'a Plan<'a>,
        shape: &'a ElementsShape,
        inputs: &'a [Floats],
        blocks: *mut T,
    ) -> Self {
        let longest = plan.longest(shape);
        let walks = if plan.flat { shape.inputs.iter().map(Walk::new).collect() } else { Vec::new() };
        let at = vec![blocks; plan.steps.len()];
        let (more, elsewhere) = (&[][..], Vec::new());
        let mut machine = Self { plan, shape, inputs, made: blocks, blocks, at, more, elsewhere, walks };
        for (number, step) in plan.steps.iter().enumerate() {
            if let Place::Row(_, block)
            | Place::Copied(_, block)
            | Place::Gathered(_, block)
            | Place::Rolled(_, _, block)
            | Place::Counted(_, block)
            | Place::Block(block) = plan.places[number]
            {
                // SAFETY: there is room for the plan's blocks (this function's contract), of which this is one.
                machine.at[number] = unsafe { blocks.add(block * plan.lanes) };
                let value = match *step {
                    Step::Constant(bits) => Some(T::constant(f32::from_bits(bits))),
                    Step::WideConstant(bits) => Some(T::wide_constant(bits)),
                    _ => None,
                };
                if let Some(value) = value {
                    // SAFETY: `longest` is at most a block.
                    unsafe { std::slice::from_raw_parts_mut(machine.at[number], longest) }.fill(value);
                }
            }
        }
        machine
    }

    /// Updates the values that stay the same along a row.
    ///
    /// # Safety
    /// The inputs have the row.
    #[inline]
    pub(super) unsafe fn begin_row(&mut self, row: usize) {
        if !self.plan.by_rows {
            return;
        }
        for (number, place) in self.plan.places.iter().enumerate() {
            if let Place::Row(input, _) = *place {
                // SAFETY: the input has the row (this function's contract); the step has a block, and `longest` is at most that.
                unsafe {
                    let value = self.element(input, self.start(input, row));
                    let longest = self.plan.longest(self.shape);
                    value.fill(std::slice::from_raw_parts_mut(self.at[number], longest));
                }
            }
        }
    }

    /// Finds the inputs' lanes for `count` elements of a row from `first` on.
    ///
    /// # Safety
    /// As [`Machine::run`].
    unsafe fn find(&mut self, row: usize, first: usize, count: usize) {
        for (number, place) in self.plan.places.iter().enumerate() {
            // SAFETY: the inputs have the elements (this function's contract); each step has a block, and `count` is at most that.
            unsafe {
                match *place {
                    Place::Direct(input) => {
                        let from = self.inputs[usize::from(input)].start().cast::<T>();
                        self.at[number] = from.add(self.start(input, row) + first);
                    }
                    Place::Copied(input, _) => {
                        let stride = self.shape.inputs[usize::from(input)].strides.last().copied().unwrap_or(0);
                        let start = self.start(input, row) + first * stride;
                        self.copy(input, start, stride, std::slice::from_raw_parts_mut(self.at[number], count));
                    }
                    Place::Rolled(input, roll, block) => {
                        self.at[number] = self.roll([input, roll], block, [row, first, count]);
                    }
                    Place::Counted(view, _) => {
                        self.count(view, row, first, std::slice::from_raw_parts_mut(self.at[number], count));
                    }
                    Place::Gathered(input, _) => {
                        let to = std::slice::from_raw_parts_mut(self.at[number], count);
                        self.gather(input, first, to);
                    }
                    Place::Made => self.at[number] = self.made.add(first),
                    Place::Row(..) | Place::Block(_) | Place::Result => {}
                }
            }
        }
    }

    /// Runs the steps as [`Machine::run`] does, the last one to numbers of fewer bytes than lanes have, which has such a form.
    ///
    /// # Safety
    /// As [`Machine::run`].
    unsafe fn run_narrow(&mut self, row: usize, first: usize, count: usize, to: *mut u8) {
        let Some((last, _)) = self.plan.steps.split_last() else { return };
        // SAFETY: the inputs have the elements, and there is room for the numbers (this function's contract).
        unsafe {
            self.find(row, first, count);
            T::steps(self.plan, &self.at[..self.plan.steps.len() - 1], count);
            T::narrow_step(last, &self.at, count, to);
        }
    }

    /// Runs the steps for `count` elements of a row from `first` on, up to a block, into `to`.
    ///
    /// # Safety
    /// The inputs have the elements; what is written may be.
    pub(super) unsafe fn run(&mut self, row: usize, first: usize, count: usize, to: *mut T) {
        let last = self.plan.steps.len() - 1;
        let own = self.at[last];
        if matches!(self.plan.places[last], Place::Copied(..) | Place::Gathered(..) | Place::Counted(..)) {
            self.at[last] = to;
        }
        // SAFETY: the inputs have the elements (this function's contract), and `to` has room for them.
        unsafe { self.find(row, first, count) };
        let computed = |step: usize| self.plan.steps[step].reads().next().is_some();
        let place = if self.plan.flat { first } else { row * self.shape.sides.last().copied().unwrap_or(1) + first };
        // SAFETY: the results have room for the elements (this function's contract). Blocks and the results do not overlap.
        unsafe {
            let mut elsewhere = std::mem::take(&mut self.elsewhere);
            for (&(step, bytes), result) in self.shape.more.iter().zip(self.more) {
                let step = usize::from(step);
                if bytes == size_of::<T>() && computed(step) {
                    elsewhere.push((step, self.at[step]));
                    self.at[step] = result.start().cast::<T>().add(place);
                }
            }
            if computed(last) {
                self.at[last] = to;
            }
            T::steps(self.plan, &self.at, count);
            if self.at[last] != to {
                self.at[last].copy_to_nonoverlapping(to, count);
            }
            self.at[last] = own;
            for (&(step, bytes), result) in self.shape.more.iter().zip(self.more) {
                let step = usize::from(step);
                let made = std::slice::from_raw_parts(self.at[step].cast_const(), count);
                if bytes != size_of::<T>() {
                    write_narrow(made, *result, bytes, place);
                } else if !computed(step) {
                    result.start().cast::<T>().add(place).copy_from_nonoverlapping(made.as_ptr(), count);
                }
            }
            elsewhere.drain(..).for_each(|(step, block)| self.at[step] = block);
            self.elsewhere = elsewhere;
        }
    }
}

/// Computes; the sizes were checked.
fn compute(shape: &ElementsShape, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Stopped> {
    let [all @ .., y] = bindings else { return Ok(()) };
    let Some((inputs, more)) = all.split_at_checked(shape.inputs.len()) else { return Ok(()) };
    let (length, rows) = shape.sides.split_last().map_or((1, 1), |(&length, outer)| (length, outer.iter().product()));
    if let Some((function, before)) = &shape.row {
        let steps = Plan::new(&shape.steps, shape);
        let before = Plan::new(before, shape);
        let norm = affine(*function, &steps);
        let together = threads::share(rows, (TASK / length).max(1));
        return threads::try_each(rows.div_ceil(together), |task| {
            limits.begin().check()?;
            with_scratch([BLOCK * (steps.blocks + before.blocks), 2 * length], |[blocks, lines]| {
                let (read, made) = lines.split_at_mut(length);
                // SAFETY: there is room for both plans' blocks; `sizes` found every element within the bindings, and rows are distinct.
                unsafe {
                    let first = blocks.as_mut_ptr();
                    let mut before = Machine::<f32>::new(&before, shape, inputs, first);
                    let mut after = Machine::<f32>::new(&steps, shape, inputs, first.add(BLOCK * before.plan.blocks));
                    after.made = made.as_mut_ptr();
                    for row in task * together..rows.min((task + 1) * together) {
                        let x = if let [Place::Direct(input)] = before.plan.places[..] {
                            let from = inputs[usize::from(input)].at(before.start(input, row));
                            std::slice::from_raw_parts(from.cast_const(), length)
                        } else {
                            before.begin_row(row);
                            for first in (0..length).step_by(BLOCK) {
                                before.run(row, first, BLOCK.min(length - first), read.as_mut_ptr().add(first));
                            }
                            &*read
                        };
                        let to = std::slice::from_raw_parts_mut(y.at(row * length), length);
                        if let Some(inputs_of_norm) = &norm {
                            let line = |input: u16| {
                                let from = inputs[usize::from(input)].at(after.start(input, row));
                                std::slice::from_raw_parts(from.cast_const(), length)
                            };
                            function_of_row(*function, x, to, inputs_of_norm.map(|input| input.map(line)));
                            continue;
                        }
                        function_of_row(*function, x, std::slice::from_raw_parts_mut(after.made, length), [None; 2]);
                        after.begin_row(row);
                        for first in (0..length).step_by(BLOCK) {
                            after.run(row, first, BLOCK.min(length - first), to.as_mut_ptr().add(first));
                        }
                    }
                }
            });
            Ok(())
        });
    }
    let bound = Bound { shape, inputs, y: *y, limits };
    if shape.wide {
        return bound.complex::<f64>().unwrap_or_else(|| chain::<f64>(shape, None, (inputs, more, *y), limits));
    }
    if let Some(signed) = bytes::signed(shape) {
        return chain::<u8>(shape, Some(signed), (inputs, more, *y), limits);
    }
    bound.complex::<f32>().unwrap_or_else(|| chain::<f32>(shape, None, (inputs, more, *y), limits))
}

/// Writes lanes to a result of fewer bytes each, from a place on.
///
/// # Safety
/// The result has room for them.
unsafe fn write_narrow<T: Lane>(lanes: &[T], result: Floats, bytes: usize, place: usize) {
    // SAFETY: the result has room for the lanes (this function's contract).
    unsafe {
        if bytes == 1 {
            let to = result.start().cast::<u8>().add(place);
            T::narrowed(lanes, std::slice::from_raw_parts_mut(to, lanes.len()));
        } else {
            let to = result.start().cast::<u32>().add(place);
            T::halved(lanes, std::slice::from_raw_parts_mut(to, lanes.len()));
        }
    }
}

/// Writes both parts of complex numbers to a result, from a place on.
///
/// # Safety
/// The result has room for them.
unsafe fn write_pairs<T: Lane>(parts: [&[T]; 2], result: Floats, bytes: usize, place: usize) {
    let count = parts[0].len();
    if bytes == size_of::<T>() {
        // SAFETY: the result has room for the pairs (this function's contract).
        let to = unsafe { std::slice::from_raw_parts_mut(result.start().cast::<T>().add(2 * place), 2 * count) };
        return T::interleaved(parts, to);
    }
    // SAFETY: the result has room for the pairs (this function's contract).
    let to = unsafe { std::slice::from_raw_parts_mut(result.start().cast::<u32>().add(2 * place), 2 * count) };
    let parts = parts[0].chunks(HALVED).zip(parts[1].chunks(HALVED));
    for ((re, im), to) in parts.zip(to.chunks_mut(2 * HALVED)) {
        let mut words = [[0; HALVED]; 2];
        let [a, b] = words.each_mut().map(|words| &mut words[..re.len()]);
        T::halved(re, a);
        T::halved(im, b);
        pairs::interleaved([&*a, &*b], to);
    }
}

/// Elements of a task: at least `least`, and more where a thread would have more than [`TASKS`]. Beginning a task takes as long as a hundred elements.
fn task_of(count: usize, least: usize) -> usize {
    threads::share(count, (count / (TASKS * threads::count().max(1))).clamp(least, MOST_TASK.max(least)))
}

/// Computes a chain without a function of rows. Steps of bytes say which of them read signed ones.
fn chain<T: Lane>(
    shape: &ElementsShape,
    signed: Option<Vec<bool>>,
    (inputs, more, y): (&[Floats], &[Floats], Floats),
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    // A last step that writes fewer bytes itself needs no block in between.
    let is_narrow = shape.pair.is_none() && shape.bytes != size_of::<T>();
    let narrows =
        is_narrow && more.is_empty() && shape.steps.last().is_some_and(|last| T::has_narrow(last, shape.bytes));
    let between = usize::from(shape.pair.is_some() || is_narrow && !narrows);
    let steps = Plan::of::<T>(&shape.steps, shape, is_quick_flat::<T>(shape)).within_cache::<T>(between);
    let steps = &Plan { signed: signed.unwrap_or_default(), ..steps };
    let (length, rows) = match shape.sides.split_last() {
        Some((&length, outer)) if steps.flat => (length * outer.iter().product::<usize>(), 1),
        Some((&length, outer)) => (length, outer.iter().product()),
        None => (1, 1),
    };
    let block = steps.lanes;
    let task = task_of(rows * length, TASK / BLOCK * T::BLOCK).next_multiple_of(T::BLOCK);
    let pieces = length.div_ceil(task);
    let together = (task / length).max(1);
    threads::try_each((rows * pieces).div_ceil(together), |number| {
        limits.begin().check()?;
        let room = |blocks: usize| if blocks == 0 { 0 } else { block * blocks * size_of::<T>() / size_of::<f32>() };
        with_scratch([room(steps.blocks), room(between)], |[blocks, wide]| {
            // SAFETY: there is room for the plan's blocks; `sizes` found every element within the bindings, and pieces are distinct.
            unsafe {
                let mut machine = Machine::<T>::new(steps, shape, inputs, blocks.as_mut_ptr().cast());
                machine.more = more;
                for piece in number * together..(rows * pieces).min((number + 1) * together) {
                    let (row, start) = (piece / pieces, piece % pieces * task);
                    machine.begin_row(row);
                    let end = length.min(start + task);
                    for first in (start..end).step_by(block) {
                        let (count, place) = (block.min(end - first), row * length + first);
                        if let Some(real) = shape.pair {
                            let block = wide.as_mut_ptr().cast::<T>();
                            machine.run(row, first, count, block);
                            let part = |at: *mut T| std::slice::from_raw_parts(at.cast_const(), count);
                            let parts = [part(machine.at[usize::from(real)]), part(block)];
                            write_pairs(parts, y, shape.bytes, place);
                            continue;
                        }
                        if shape.bytes == size_of::<T>() {
                            machine.run(row, first, count, y.start().cast::<T>().add(place));
                            continue;
                        }
                        if narrows {
                            let to = y.start().cast::<u8>().add(place * shape.bytes);
                            machine.run_narrow(row, first, count, to);
                            continue;
                        }
                        let block = wide.as_mut_ptr().cast::<T>();
                        machine.run(row, first, count, block);
                        write_narrow(std::slice::from_raw_parts(block.cast_const(), count), y, shape.bytes, place);
                    }
                }
            }
        });
        Ok(())
    })
}

/// The inputs by which steps scale a row, and which they then add, if the steps do nothing else. The row's function then does both.
fn affine(function: RowFunction, plan: &Plan<'_>) -> Option<[Option<u16>; 2]> {
    let line = |place: u16| match plan.places[usize::from(place)] {
        Place::Direct(input) => Some(input),
        _ => None,
    };
    // Operands in either order: one is `made`, the other an input.
    let beside = |step: &Step, wanted: Two, made: usize| match *step {
        Step::Two(op, a, b) if op == wanted && usize::from(a) == made => line(b),
        Step::Two(op, a, b) if op == wanted && usize::from(b) == made => line(a),
        _ => None,
    };
    if let [Step::Row] = plan.steps {
        return Some([None; 2]);
    }
    if matches!(function, RowFunction::Softmax | RowFunction::LogSoftmax) {
        return None;
    }
    let row = plan.steps.iter().position(|step| matches!(step, Step::Row))?;
    let computed: Vec<usize> =
        (0..plan.steps.len()).filter(|place| plan.steps[*place].reads().next().is_some()).collect();
    if computed.last().is_none_or(|last| last + 1 != plan.steps.len()) {
        return None;
    }
    match computed[..] {
        [factor] => Some([Some(beside(&plan.steps[factor], Two::Mul, row)?), None]),
        [factor, sum] => {
            Some([Some(beside(&plan.steps[factor], Two::Mul, row)?), Some(beside(&plan.steps[sum], Two::Add, factor)?)])
        }
        _ => None,
    }
}

/// Computes a row from a row. Norms multiply by a first row and add a second one if they are given.
fn function_of_row(function: RowFunction, x: &[f32], to: &mut [f32], [factors, terms]: [Option<&[f32]>; 2]) {
    let length = x.len() as f64;
    let scaled = |to: &mut [f32], shift, factor| match (factors, terms) {
        (Some(factors), Some(terms)) => functions::scaled_and_moved(x, to, shift, factor, factors, terms),
        (Some(factors), None) => functions::scaled_by_row(x, to, shift, factor, factors),
        _ => functions::scaled(x, to, shift, factor),
    };
    match function {
        RowFunction::Softmax => {
            let sum = functions::powers(x, to, functions::greatest(x));
            functions::multiply(to, 1.0 / sum);
        }
        RowFunction::LogSoftmax => {
            let greatest = functions::greatest(x);
            let sum = functions::sum_of_powers(x, greatest);
            functions::scaled(x, to, greatest + functions::logarithm(sum), 1.0);
        }
        RowFunction::LayerNorm(eps) => {
            let mean = (functions::sum(x) / length) as f32;
            let variance = (functions::squares(x, mean) / length) as f32;
            scaled(to, mean, 1.0 / (variance + f32::from_bits(eps)).sqrt());
        }
        RowFunction::RmsNorm(eps) => {
            let mean = (functions::squares(x, 0.0) / length) as f32;
            scaled(to, 0.0, 1.0 / (mean + f32::from_bits(eps)).sqrt());
        }
    }
}
