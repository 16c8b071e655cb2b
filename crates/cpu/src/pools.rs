//! The greatest value or the mean of windows of images: for each row of the result the rows of its windows are combined, then the columns. Serves
//! `max_pool2d` and `avg_pool2d`. Each line of the result is combined from whole lines of the image, so windows that overlap cost no more reads of memory.
//! Padding counts for neither the greatest nor the mean, as in the kernel.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, GATHERS_PAY, Operation, Work, exactly};
use super::product::with_scratch;
use crate::backend::native::PoolShape;
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Elements that a task reads and writes at least.
const TASK: usize = 1 << 14;

impl Operation for PoolShape {
    fn serves(&self) -> bool {
        let within = [self.kernel, self.stride, self.dilation].as_flattened().iter().all(|&size| size > 0);
        // The last window ends within the padding behind the image.
        within
            && (0..2).all(|axis| {
                let last = (self.output[axis].checked_sub(1)).and_then(|last| last.checked_mul(self.stride[axis]));
                let reach = (self.kernel[axis] - 1).checked_mul(self.dilation[axis]);
                let end = last.zip(reach).and_then(|(last, reach)| last.checked_add(reach));
                let padded = self.padding[axis].checked_mul(2).and_then(|both| both.checked_add(self.input[axis]));
                end.zip(padded).is_some_and(|(end, padded)| end < padded)
            })
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let product = |[height, width]: [usize; 2]| height.checked_mul(width)?.checked_mul(self.planes);
        Some(vec![product(self.input)?, product(self.output)?])
    }

    fn work(&self) -> Work {
        let [rows, columns] = self.kernel;
        let size = self.sizes().map_or(0, |sizes| sizes[1].saturating_mul(rows).saturating_mul(columns));
        Work { size, pays: GATHERS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(pool(self, x, y, call.limits)?)
    }
}

/// The elements of an axis that are in the window of an element of the result.
fn of_window(shape: &PoolShape, axis: usize, element: usize) -> impl Iterator<Item = usize> {
    let (padding, length, dilation) = (shape.padding[axis], shape.input[axis], shape.dilation[axis]);
    let first = element * shape.stride[axis];
    (0..shape.kernel[axis])
        .filter_map(move |tap| (first + tap * dilation).checked_sub(padding).filter(|&at| at < length))
}

/// Pools; the sizes were checked.
fn pool(shape: &PoolShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let ([height, width], [rows, columns]) = (shape.input, shape.output);
    let mean = shape.mean.is_some();
    let counts: Vec<u32> = (0..columns).map(|column| of_window(shape, 1, column).count() as u32).listed();
    let all = shape.planes * rows;
    let together = (TASK / (shape.kernel[0] * width + shape.kernel[1] * columns).max(1)).max(1);
    threads::try_each(all.div_ceil(together), |task| {
        limits.begin().check()?;
        for row in task * together..all.min((task + 1) * together) {
            let (plane, row) = (row / rows, row % rows);
            // SAFETY: `sizes` counted it; nothing writes the input while the operation runs.
            let line = |at: usize| unsafe { x.stretch(plane * height + at, width) };
            // SAFETY: `sizes` counted it, and rows of the result are distinct.
            let to = unsafe { std::slice::from_raw_parts_mut(y.at((plane * rows + row) * columns), columns) };
            with_scratch([width, 0], |[whole, _]| {
                whole.fill(if mean { 0.0 } else { f32::NEG_INFINITY });
                let mut lines = 0;
                for at in of_window(shape, 0, row) {
                    combine(mean, whole, line(at));
                    lines += 1;
                }
                to.fill(if mean { 0.0 } else { f32::NEG_INFINITY });
                for tap in 0..shape.kernel[1] {
                    along(shape, tap, to, whole);
                }
                finish(shape, lines, &counts, to);
            });
        }
        Ok(())
    })
}

/// Adds the window's `tap`th column to each element that has it.
fn along(shape: &PoolShape, tap: usize, to: &mut [f32], line: &[f32]) {
    let (stride, padding, from) = (shape.stride[1], shape.padding[1], tap * shape.dilation[1]);
    // Element e reads e * stride + from - padding, which lies in the line.
    let first = padding.saturating_sub(from).div_ceil(stride);
    let end = (line.len() + padding).saturating_sub(from).div_ceil(stride).min(to.len());
    if first >= end {
        return;
    }
    let (to, line) = (&mut to[first..end], &line[first * stride + from - padding..]);
    match stride {
        1 => combine(shape.mean.is_some(), to, line),
        2 => combine_pairs(shape.mean.is_some(), to, line),
        _ => combine_far(shape.mean.is_some(), to, line, stride),
    }
}

/// Divides sums by what they count; a window without values has 0 as its greatest.
fn finish(shape: &PoolShape, lines: u32, counts: &[u32], to: &mut [f32]) {
    let whole = (shape.kernel[0] * shape.kernel[1]) as f32;
    match shape.mean {
        Some(true) => to.iter_mut().for_each(|to| *to /= whole),
        Some(false) => to.iter_mut().zip(counts).for_each(|(to, &count)| *to /= (lines * count) as f32),
        None => to.iter_mut().zip(counts).for_each(|(to, &count)| *to = if lines * count == 0 { 0.0 } else { *to }),
    }
}

forms! {
    /// Adds a line to sums, or takes the greater elements.
    fn combine(mean: bool, to: &mut [f32], line: &[f32]) = combine_by
}
forms! {
    /// [`combine`] with each second element of the line.
    fn combine_pairs(mean: bool, to: &mut [f32], line: &[f32]) = combine_pairs_by
}

/// [`combine`] with elements of the line that are `stride` apart.
fn combine_far(mean: bool, to: &mut [f32], line: &[f32], stride: usize) {
    let values = line.iter().step_by(stride);
    match mean {
        true => to.iter_mut().zip(values).for_each(|(to, value)| *to += value),
        false => to.iter_mut().zip(values).for_each(|(to, &value)| *to = greater(*to, value)),
    }
}

/// The greater of two numbers, NaN if one is.
#[inline(always)]
fn greater(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

#[inline(always)]
fn combine_by<I: Isa>(mean: bool, to: &mut [f32], line: &[f32]) {
    match mean {
        true => to.iter_mut().zip(line).for_each(|(to, value)| *to += value),
        false => to.iter_mut().zip(line).for_each(|(to, &value)| *to = greater(*to, value)),
    }
}

#[inline(always)]
fn combine_pairs_by<I: Isa>(mean: bool, to: &mut [f32], line: &[f32]) {
    let (pairs, last) = line.as_chunks::<2>();
    let values = || pairs.iter().map(|pair| pair[0]);
    match mean {
        true => to.iter_mut().zip(values()).for_each(|(to, value)| *to += value),
        false => to.iter_mut().zip(values()).for_each(|(to, value)| *to = greater(*to, value)),
    }
    // A line of an odd length ends with half a pair.
    if let (Some(to), Some(&value)) = (to.get_mut(pairs.len()), last.first()) {
        *to = if mean { *to + value } else { greater(*to, value) };
    }
}
