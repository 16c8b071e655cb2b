//! Chains of complex numbers that need no lanes for each part. Where a chain does the same with both parts, as sums do, it is a chain of twice as many
//! real numbers, as they lie in memory. Products of two views are computed from memory to memory.

use super::inputs::start_of;
use super::{Bound, Lane, SHORT, TASK, chain, task_of};
use crate::backend::native::{ElementsShape, Step, Two};
use crate::floats::Floats;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Rows of fewer numbers are multiplied in lanes.
const LEAST: usize = SHORT / 4;

impl Bound<'_> {
    /// Computes the chain as this module says; `None` where its parts need lanes of their own.
    pub(super) fn complex<T: Lane>(&self) -> Option<Result<(), Stopped>> {
        computed::<T>(self.shape, (self.inputs, self.y), self.limits)
    }
}

fn computed<T: Lane>(
    shape: &ElementsShape,
    (inputs, y): (&[Floats], Floats),
    limits: &Limits<'_>,
) -> Option<Result<(), Stopped>> {
    let real = shape.pair.filter(|_| shape.bytes == size_of::<T>() && shape.more.is_empty())?;
    if let Some(factors) = factors(shape, inputs) {
        return Some(multiply::<T>(shape, factors, (inputs, y), limits));
    }
    let mut both = Both { shape, inputs, steps: Vec::new(), known: Vec::new() };
    both.step([real, u16::try_from(shape.steps.len() - 1).ok()?])?;
    let mut whole = ElementsShape::new(&shape.sides, shape.inputs.clone(), both.steps).widely(shape.wide);
    whole = whole.to_bytes(shape.bytes);
    *whole.sides.last_mut()? *= 2;
    for view in &mut whole.inputs {
        *view.sides.last_mut()? *= 2;
        *view.strides.last_mut()? = 1;
    }
    Some(chain::<T>(&whole, None, (inputs, &[], y), limits))
}

/// Returns whether an input has the real and another one the imaginary parts of the same numbers, side by side.
fn are_parts(shape: &ElementsShape, inputs: &[Floats], [re, im]: [u16; 2]) -> bool {
    let [re, im] = [re, im].map(usize::from);
    let (one, other) = (&shape.inputs[re], &shape.inputs[im]);
    let same = one.strides == other.strides && one.bytes == shape.bytes && other.bytes == shape.bytes;
    same && one.strides.last() == Some(&2)
        && one.offset + 1 == other.offset
        && std::ptr::eq(inputs[re].start(), inputs[im].start())
}

/// Two steps that do the same, one with the real and one with the imaginary parts, as one.
struct Both<'a> {
    shape: &'a ElementsShape,
    inputs: &'a [Floats],
    steps: Vec<Step>,
    /// The steps that each of these stands for.
    known: Vec<[u16; 2]>,
}

impl Both<'_> {
    fn step(&mut self, parts: [u16; 2]) -> Option<u16> {
        if let Some(known) = self.known.iter().position(|known| *known == parts) {
            return u16::try_from(known).ok();
        }
        let [re, im] = parts.map(|part| self.shape.steps[usize::from(part)]);
        let step = match (re, im) {
            (Step::Input(a), Step::Input(b)) if are_parts(self.shape, self.inputs, [a, b]) => Step::Input(a),
            (Step::Constant(a), Step::Constant(b)) if a == b => re,
            (Step::WideConstant(a), Step::WideConstant(b)) if a == b => re,
            (Step::One(op, a), Step::One(other, b)) if op == other => Step::One(op, self.step([a, b])?),
            (Step::Two(op, a, b), Step::Two(other, c, d)) if op == other => {
                Step::Two(op, self.step([a, c])?, self.step([b, d])?)
            }
            _ => return None,
        };
        self.steps.push(step);
        self.known.push(parts);
        u16::try_from(self.steps.len() - 1).ok()
    }
}

/// The inputs whose numbers a chain multiplies, if it does nothing else.
fn factors(shape: &ElementsShape, inputs: &[Floats]) -> Option<[u16; 2]> {
    let [Step::Input(a), Step::Input(b), Step::Input(c), Step::Input(d), ref product @ ..] = shape.steps[..] else {
        return None;
    };
    let two = |op: Two, x: u16, y: u16| Step::Two(op, x, y);
    let is_product = *product
        == [
            two(Two::Mul, 0, 2),
            two(Two::Mul, 1, 3),
            two(Two::Sub, 4, 5),
            two(Two::Mul, 0, 3),
            two(Two::Mul, 1, 2),
            two(Two::Add, 7, 8),
        ];
    let is_long = shape.sides.len() == 1 || shape.sides.last().is_some_and(|&length| length >= LEAST);
    let whole = is_product && shape.pair == Some(6) && is_long;
    (whole && are_parts(shape, inputs, [a, b]) && are_parts(shape, inputs, [c, d])).then_some([a, c])
}

/// Multiplies the numbers of two inputs; the sizes were checked.
fn multiply<T: Lane>(
    shape: &ElementsShape,
    factors: [u16; 2],
    (inputs, y): (&[Floats], Floats),
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let Some((&length, outer)) = shape.sides.split_last() else { return Ok(()) };
    let rows: usize = outer.iter().product();
    let task = task_of(rows * length, TASK / 2).next_multiple_of(SHORT);
    let pieces = length.div_ceil(task);
    let together = (task / length).max(1);
    threads::try_each((rows * pieces).div_ceil(together), |number| {
        limits.begin().check()?;
        for piece in number * together..(rows * pieces).min((number + 1) * together) {
            let (row, first) = (piece / pieces, piece % pieces * task);
            let count = task.min(length - first);
            // SAFETY: `sizes` found every element within the bindings, and pieces are distinct.
            unsafe {
                let x = factors.map(|input| {
                    let at = start_of(&shape.inputs[usize::from(input)], row) + 2 * first;
                    let from = inputs[usize::from(input)].start().cast::<T>().add(at);
                    std::slice::from_raw_parts(from.cast_const(), 2 * count)
                });
                let to = y.start().cast::<T>().add(2 * (row * length + first));
                T::complex_products(x, std::slice::from_raw_parts_mut(to, 2 * count));
            }
        }
        Ok(())
    })
}
