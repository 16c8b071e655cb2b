//! Chains of operations on elements: each step runs over a block of lanes that lies in the first cache, by the functions with which the executor
//! computes, so that the results have its bits.

pub(super) mod functions;

use super::copies;
use super::floats::Floats;
use super::product::with_scratch;
use crate::backend::native::{ElementsShape, RowFunction, Step, Two};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a block.
pub(super) const BLOCK: usize = 1024;
/// Elements that a task computes at least.
const TASK: usize = 1 << 14;
/// Elements of a row that is kept while something is made of it.
const LONGEST_ROW: usize = 1 << 16;
/// Steps, which have a block each at most.
const MOST_STEPS: usize = 128;

/// Whether an operation is taken: steps read earlier ones and inputs that there are.
pub(super) fn serves(shape: &ElementsShape) -> bool {
    let sound = |steps: &[Step], rows: bool| {
        let known = |(place, step): (usize, &Step)| {
            let source = match step {
                Step::Input(input) => usize::from(*input) < shape.inputs.len(),
                Step::Row => rows,
                _ => true,
            };
            source && step.reads().all(|read| usize::from(read) < place)
        };
        (1..=MOST_STEPS).contains(&steps.len()) && steps.iter().enumerate().all(known)
    };
    let row = shape.row.as_ref().is_none_or(|(_, steps)| {
        sound(steps, false) && shape.sides.last().is_some_and(|&length| (1..=LONGEST_ROW).contains(&length))
    });
    let narrow = shape.bytes == 4 || shape.bytes == 1 && shape.row.is_none();
    narrow
        && shape.inputs.iter().all(|view| matches!(view.bytes, 1 | 4))
        && row
        && sound(&shape.steps, shape.row.is_some())
}

/// Words that are read of each input, and written.
pub(super) fn sizes(shape: &ElementsShape) -> Option<Vec<usize>> {
    let count = shape.sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
    let reach = |view: &crate::backend::native::CopyShape| {
        copies::word_sizes(view).filter(|_| view.sides == shape.sides).map(|[reach, _]| reach)
    };
    let words = count.checked_mul(shape.bytes)?.div_ceil(4);
    shape.inputs.iter().map(reach).chain([Some(words).filter(|&words| words > 0)]).collect()
}

/// Where what a step makes lies, for a block.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In the memory of an input, as it is.
    Direct(u16),
    /// In a block of its own, which holds the same value for as long as a row lasts.
    Row(u16, usize),
    /// In a block that an input's elements are copied to.
    Copied(u16, usize),
    /// In a block.
    Block(usize),
    /// Where the row's function left it.
    Made,
}

/// Steps with places for what they make.
pub(super) struct Plan<'a> {
    steps: &'a [Step],
    pub(super) places: Vec<Place>,
    pub(super) blocks: usize,
    /// Whether something stays the same along a row.
    by_rows: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn new(steps: &'a [Step], shape: &ElementsShape) -> Self {
        let mut last = vec![0; steps.len()];
        for (place, step) in steps.iter().enumerate() {
            step.reads().for_each(|read| last[usize::from(read)] = place);
        }
        let (mut places, mut free, mut blocks) = (Vec::new(), Vec::new(), 0);
        let mut taken = |free: &mut Vec<usize>| {
            free.pop().unwrap_or_else(|| {
                blocks += 1;
                blocks - 1
            })
        };
        for (number, step) in steps.iter().enumerate() {
            places.push(match *step {
                Step::Input(input) => match shape.inputs[usize::from(input)].strides.last() {
                    Some(0) | None => Place::Row(input, taken(&mut Vec::new())),
                    Some(1) if shape.inputs[usize::from(input)].bytes == 4 => Place::Direct(input),
                    Some(_) => Place::Copied(input, taken(&mut Vec::new())),
                },
                // It stays as it is.
                Step::Constant(_) => Place::Block(taken(&mut Vec::new())),
                Step::Row => Place::Made,
                // What is read is not overwritten by the same step: functions know the two apart.
                Step::One(..) | Step::Two(..) | Step::Choose(..) => Place::Block(taken(&mut free)),
            });
            for read in step.reads().map(usize::from) {
                if last[read] == number
                    && !matches!(steps[read], Step::Constant(_) | Step::Input(_) | Step::Row)
                    && let Place::Block(block) = places[read]
                    && !free.contains(&block)
                {
                    free.push(block);
                }
            }
        }
        let by_rows = places.iter().any(|place| matches!(place, Place::Row(..)));
        Self { steps, places, blocks, by_rows }
    }
}

/// A block of lanes, and where steps find theirs.
pub(super) struct Machine<'a> {
    plan: &'a Plan<'a>,
    shape: &'a ElementsShape,
    inputs: &'a [Floats],
    /// What the row's function made.
    made: *mut f32,
    at: Vec<*mut f32>,
}

impl<'a> Machine<'a> {
    /// # Safety
    /// There is room for the plan's blocks.
    pub(super) unsafe fn new(
        plan: &'a Plan<'a>,
        shape: &'a ElementsShape,
        inputs: &'a [Floats],
        blocks: *mut f32,
    ) -> Self {
        let longest = shape.sides.last().map_or(1, |&length| BLOCK.min(length));
        let mut machine = Self { plan, shape, inputs, made: blocks, at: vec![blocks; plan.steps.len()] };
        for (number, step) in plan.steps.iter().enumerate() {
            if let Place::Row(_, block) | Place::Copied(_, block) | Place::Block(block) = plan.places[number] {
                // SAFETY: the caller's promise.
                machine.at[number] = unsafe { blocks.add(block * BLOCK) };
                if let Step::Constant(bits) = step {
                    // SAFETY: a block.
                    unsafe { std::slice::from_raw_parts_mut(machine.at[number], longest) }.fill(f32::from_bits(*bits));
                }
            }
        }
        machine
    }

    /// The element of an input at the begin of a row.
    pub(super) fn start(&self, input: u16, mut row: usize) -> usize {
        let view = &self.shape.inputs[usize::from(input)];
        let outer = self.shape.sides.len().saturating_sub(1);
        let mut at = view.offset;
        if outer == 1 {
            return at + row * view.strides.first().copied().unwrap_or(0);
        }
        for (side, stride) in self.shape.sides[..outer].iter().zip(&view.strides).rev() {
            at += row % side * stride;
            row /= side;
        }
        at
    }

    fn is_byte(&self, input: u16) -> bool {
        self.shape.inputs[usize::from(input)].bytes == 1
    }

    /// An element of an input.
    ///
    /// # Safety
    /// The input has it.
    unsafe fn element(&self, input: u16, place: usize) -> f32 {
        let from = self.inputs[usize::from(input)];
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_byte(input) {
                f32::from(from.start().cast::<u8>().add(place).read())
            } else {
                from.at(place).read()
            }
        }
    }

    /// What stays the same along a row.
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
                // SAFETY: the caller's promise; a block.
                unsafe {
                    let value = self.element(input, self.start(input, row));
                    std::slice::from_raw_parts_mut(self.at[number], BLOCK).fill(value);
                }
            }
        }
    }

    /// Runs the steps for `count` elements of a row from `first` on, up to a block, into `to`.
    ///
    /// # Safety
    /// The inputs have the elements; what is written may be.
    pub(super) unsafe fn run(&mut self, row: usize, first: usize, count: usize, to: *mut f32) {
        for (number, place) in self.plan.places.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                match *place {
                    Place::Direct(input) => {
                        let from = self.inputs[usize::from(input)].at(self.start(input, row) + first);
                        self.at[number] = from;
                    }
                    Place::Copied(input, _) => {
                        let stride = self.shape.inputs[usize::from(input)].strides.last().copied().unwrap_or(0);
                        let start = self.start(input, row) + first * stride;
                        let to = std::slice::from_raw_parts_mut(self.at[number], count);
                        if self.is_byte(input) && stride == 1 {
                            let from = self.inputs[usize::from(input)].start().cast::<u8>().add(start);
                            functions::widened(std::slice::from_raw_parts(from, count), to);
                        } else {
                            let lanes = to.iter_mut().enumerate();
                            lanes.for_each(|(lane, to)| *to = self.element(input, start + lane * stride));
                        }
                    }
                    Place::Made => self.at[number] = self.made.add(first),
                    Place::Row(..) | Place::Block(_) => {}
                }
            }
        }
        let last = self.plan.steps.len() - 1;
        let (own, computed) =
            (self.at[last], matches!(self.plan.steps[last], Step::One(..) | Step::Two(..) | Step::Choose(..)));
        // SAFETY: as above. Blocks and the result do not overlap.
        unsafe {
            if computed {
                self.at[last] = to;
                functions::steps(self.plan.steps, &self.at, count);
                self.at[last] = own;
            } else {
                own.copy_to_nonoverlapping(to, count);
            }
        }
    }
}

/// Computes; the sizes were checked.
pub(super) fn compute(shape: &ElementsShape, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Stopped> {
    let [inputs @ .., y] = bindings else { return Ok(()) };
    let (length, rows) = shape.sides.split_last().map_or((1, 1), |(&length, outer)| (length, outer.iter().product()));
    let steps = Plan::new(&shape.steps, shape);
    if let Some((function, before)) = &shape.row {
        let before = Plan::new(before, shape);
        let norm = affine(*function, &steps);
        let together = (TASK / length).max(1);
        return threads::try_each(rows.div_ceil(together), |task| {
            limits.begin().check()?;
            with_scratch([BLOCK * (steps.blocks + before.blocks), 2 * length], |[blocks, lines]| {
                let (read, made) = lines.split_at_mut(length);
                // SAFETY: there is room for both plans' blocks; `sizes` found every element within the bindings, and rows are distinct.
                unsafe {
                    let first = blocks.as_mut_ptr();
                    let mut before = Machine::new(&before, shape, inputs, first);
                    let mut after = Machine::new(&steps, shape, inputs, first.add(BLOCK * before.plan.blocks));
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
    let pieces = length.div_ceil(TASK);
    let together = (TASK / length).max(1);
    threads::try_each((rows * pieces).div_ceil(together), |task| {
        limits.begin().check()?;
        with_scratch([BLOCK * steps.blocks, BLOCK], |[blocks, wide]| {
            // SAFETY: as above.
            unsafe {
                let mut machine = Machine::new(&steps, shape, inputs, blocks.as_mut_ptr());
                for piece in task * together..(rows * pieces).min((task + 1) * together) {
                    let (row, start) = (piece / pieces, piece % pieces * TASK);
                    machine.begin_row(row);
                    for first in (start..length.min(start + TASK)).step_by(BLOCK) {
                        let (count, place) = (BLOCK.min(length - first), row * length + first);
                        if shape.bytes == 4 {
                            machine.run(row, first, count, y.at(place));
                            continue;
                        }
                        machine.run(row, first, count, wide.as_mut_ptr());
                        let to = std::slice::from_raw_parts_mut(y.start().cast::<u8>().add(place), count);
                        functions::narrowed(&wide[..count], to);
                    }
                }
            }
        });
        Ok(())
    })
}

/// The inputs by which steps multiply a row, and which they then add, where that is all they do: a function computes them along.
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

/// Makes a row of a row. The norms multiply by a first row and add a second one, where they are given.
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
