//! Chains of complex numbers that need no lanes for each part. Where a chain does the same with both parts, as sums do, it is a chain of twice as many
//! real numbers, as they lie in memory. Chains of products, sums and differences are computed in blocks of such numbers.

use super::inputs::start_of;
use super::{Bound, Lane, SHORT, TASK, chain, task_of};
use crate::backend::native::{ElementsShape, Step, Two};
use crate::floats::Floats;
use crate::product::with_scratch;
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
    if let Some(numbers) = Numbers::<T>::of(shape, inputs, real) {
        return Some(numbers.compute(y, limits));
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

/// Returns whether an input has the real and another one the imaginary parts of the same numbers: side by side, or one for a whole row.
fn are_parts(shape: &ElementsShape, inputs: &[Floats], [re, im]: [u16; 2], step: usize) -> bool {
    let [re, im] = [re, im].map(usize::from);
    let (one, other) = (&shape.inputs[re], &shape.inputs[im]);
    let same = one.strides == other.strides && one.bytes == shape.bytes && other.bytes == shape.bytes;
    same && one.strides.last() == Some(&step)
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
            (Step::Input(a), Step::Input(b)) if are_parts(self.shape, self.inputs, [a, b], 2) => Step::Input(a),
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

/// A number of a chain, from those before it.
#[derive(Clone, Copy)]
enum Number<T> {
    /// Of an input whose real parts are that one.
    Input(usize),
    /// One of such an input for a whole row.
    Spread(usize),
    Constant([T; 2]),
    Product(usize, usize),
    Sum(usize, usize),
    Difference(usize, usize),
}

/// A chain of products, sums and differences that has a product.
struct Numbers<'a, T> {
    shape: &'a ElementsShape,
    inputs: &'a [Floats],
    all: Vec<Number<T>>,
    /// The steps that each of them stands for.
    known: Vec<[u16; 2]>,
}

impl<'a, T: Lane> Numbers<'a, T> {
    /// Reads the steps as numbers; `None` where they do something else, and for short rows.
    fn of(shape: &'a ElementsShape, inputs: &'a [Floats], real: u16) -> Option<Self> {
        let mut numbers = Self { shape, inputs, all: Vec::new(), known: Vec::new() };
        numbers.number([real, u16::try_from(shape.steps.len() - 1).ok()?])?;
        let is_long = shape.sides.len() == 1 || shape.sides.last().is_some_and(|&length| length >= LEAST);
        (is_long && numbers.all.iter().any(|number| matches!(number, Number::Product(..)))).then_some(numbers)
    }

    fn number(&mut self, parts: [u16; 2]) -> Option<usize> {
        if let Some(known) = self.known.iter().position(|known| *known == parts) {
            return Some(known);
        }
        let step = |part: u16| self.shape.steps[usize::from(part)];
        let constant = |step: Step| match step {
            Step::Constant(bits) => Some(T::constant(f32::from_bits(bits))),
            Step::WideConstant(bits) => Some(T::wide_constant(bits)),
            _ => None,
        };
        let factors = |part: u16| match step(part) {
            Step::Two(Two::Mul, a, b) => Some([a, b]),
            _ => None,
        };
        let number = match parts.map(step) {
            [Step::Input(a), Step::Input(b)] if are_parts(self.shape, self.inputs, [a, b], 2) => {
                Number::Input(a.into())
            }
            [Step::Input(a), Step::Input(b)] if are_parts(self.shape, self.inputs, [a, b], 0) => {
                Number::Spread(a.into())
            }
            [Step::Two(Two::Sub, p, q), Step::Two(Two::Add, r, s)] => {
                let ([a, c], [b, d]) = (factors(p)?, factors(q)?);
                if factors(r)? != [a, d] || factors(s)? != [b, c] {
                    return None;
                }
                Number::Product(self.number([a, b])?, self.number([c, d])?)
            }
            [Step::Two(Two::Add, a, b), Step::Two(Two::Add, c, d)] => {
                Number::Sum(self.number([a, c])?, self.number([b, d])?)
            }
            [Step::Two(Two::Sub, a, b), Step::Two(Two::Sub, c, d)] => {
                Number::Difference(self.number([a, c])?, self.number([b, d])?)
            }
            [re, im] => Number::Constant([constant(re)?, constant(im)?]),
        };
        self.all.push(number);
        self.known.push(parts);
        Some(self.all.len() - 1)
    }

    /// Computes the chain; the sizes were checked.
    fn compute(&self, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
        let Self { shape, inputs, all, .. } = self;
        let (Some((&length, outer)), Some(last)) = (shape.sides.split_last(), all.len().checked_sub(1)) else {
            return Ok(());
        };
        let rows: usize = outer.iter().product();
        let task = task_of(rows * length, TASK / 2).next_multiple_of(SHORT);
        let pieces = length.div_ceil(task);
        let together = (task / length).max(1);
        // A product alone goes from memory to memory.
        let is_simple = all[..last].iter().all(|number| matches!(number, Number::Input(_)));
        let block = if is_simple { task } else { T::BLOCK / 2 };
        let room = if is_simple { 0 } else { all.len() * 2 * block * size_of::<T>() / size_of::<f32>() };
        threads::try_each((rows * pieces).div_ceil(together), |number| {
            limits.begin().check()?;
            with_scratch([room, 0], |[scratch, _]| {
                let scratch = scratch.as_mut_ptr().cast::<T>();
                let own = |number: usize| scratch.wrapping_add(2 * block * number);
                let mut at: Vec<*const T> = (0..all.len()).map(|number| own(number).cast_const()).collect();
                let fill = |number: usize, parts: [T; 2]| {
                    // SAFETY: there is room for a block of each number.
                    let to = unsafe { std::slice::from_raw_parts_mut(own(number), 2 * block) };
                    to.as_chunks_mut::<2>().0.fill(parts);
                };
                for (number, of) in all.iter().enumerate() {
                    if let Number::Constant(parts) = *of {
                        fill(number, parts);
                    }
                }
                for piece in number * together..(rows * pieces).min((number + 1) * together) {
                    let (row, start) = (piece / pieces, piece % pieces * task);
                    let end = length.min(start + task);
                    for (number, of) in all.iter().enumerate() {
                        if let Number::Spread(input) = *of {
                            // SAFETY: `sizes` found the number within the binding.
                            let parts = unsafe {
                                let from = inputs[input].start().cast::<T>().add(start_of(&shape.inputs[input], row));
                                from.cast::<[T; 2]>().read()
                            };
                            fill(number, parts);
                        }
                    }
                    for first in (start..end).step_by(block) {
                        let count = 2 * block.min(end - first);
                        for (number, of) in all.iter().enumerate() {
                            // SAFETY: `sizes` found every element within the bindings, pieces are distinct, and there is room for a block of each number,
                            // which those before it were written to.
                            unsafe {
                                let read = |number: usize| std::slice::from_raw_parts(at[number], count);
                                let to = if number == last {
                                    y.start().cast::<T>().add(2 * (row * length + first))
                                } else {
                                    own(number)
                                };
                                let to = |()| std::slice::from_raw_parts_mut(to, count);
                                match *of {
                                    Number::Input(input) => {
                                        let start = start_of(&shape.inputs[input], row) + 2 * first;
                                        at[number] = inputs[input].start().cast::<T>().add(start).cast_const();
                                    }
                                    Number::Spread(_) | Number::Constant(_) => {}
                                    Number::Product(a, b) => T::complex_products([read(a), read(b)], to(())),
                                    Number::Sum(a, b) => T::sums([read(a), read(b)], to(())),
                                    Number::Difference(a, b) => T::differences([read(a), read(b)], to(())),
                                }
                            }
                        }
                    }
                }
            });
            Ok(())
        })
    }
}
