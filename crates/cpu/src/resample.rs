//! Images in another size: for each row of the result the rows that it is made of are added up, each by its weight, then the elements of that row. Serves
//! `interpolate` and resizing of images. The weights of both axes are tables, made in float32 step by step as the WGSL kernel makes them: better weights
//! would be other results. Lines of the image are added whole, then elements of a line are picked.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, GATHERS_PAY, Operation, Work, exactly};
use super::product::with_scratch;
use crate::backend::native::{ResampleKernel, ResampleShape};
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Elements that are computed together.
const LANES: usize = 16;
/// Elements that a task reads and writes at least.
const TASK: usize = 1 << 14;

/// Taps of both axes together: tables of more would take more memory than images do.
const MOST_TAPS: usize = 1 << 22;

impl Operation for ResampleShape {
    fn serves(&self) -> bool {
        // The tables stay small: an axis of millions that becomes one element is left to the kernel.
        let reach = 2 * usize::from(self.kernel.reach) + 1;
        let of_axis = |axis: usize| {
            let (length, width) = (self.input[axis], self.output[axis].max(1));
            let scale = if self.kernel.wide { length.div_ceil(width).max(1) } else { 1 };
            reach.checked_mul(scale)?.checked_mul(width.checked_next_multiple_of(LANES)?)
        };
        let taps = of_axis(0).zip(of_axis(1)).and_then(|(down, along)| down.checked_add(along));
        taps.is_some_and(|taps| taps <= MOST_TAPS)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let product = |[height, width]: [usize; 2]| height.checked_mul(width)?.checked_mul(self.planes);
        let all = [self.input, self.output].concat();
        let counted = all.iter().all(|&side| side > 0 && i32::try_from(side).is_ok());
        counted.then(|| Some(vec![product(self.input)?, product(self.output)?]))?
    }

    fn work(&self) -> Work {
        Work { size: self.sizes().and_then(|sizes| sizes.into_iter().max()).unwrap_or(0), pays: GATHERS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(resample(self, x, y, call.limits)?)
    }
}

/// Elements of an axis that make each element of the result, and how much they count: tap after tap.
struct Taps {
    count: usize,
    /// Elements of the result, rounded up to whole lines.
    pitch: usize,
    places: Vec<u32>,
    weights: Vec<f32>,
}

impl Taps {
    /// As the WGSL kernel has it: in float32, place by place.
    fn new(length: usize, width: usize, kernel: ResampleKernel) -> Self {
        let step = (length as f64 / width as f64) as f32;
        let first = if kernel.reach == 0 { 0.0 } else { (0.5 * (length as f64 / width as f64) - 0.5) as f32 };
        let last = (length - 1) as i32;
        let curve = f32::from_bits(kernel.curve);
        let weight = |distance: f32| {
            let x = distance.abs();
            if kernel.reach == 1 {
                return (1.0 - x).max(0.0);
            }
            if x <= 1.0 {
                ((curve + 2.0) * x - (curve + 3.0)) * x * x + 1.0
            } else if x < 2.0 {
                ((curve * x - 5.0 * curve) * x + 8.0 * curve) * x - 4.0 * curve
            } else {
                0.0
            }
        };
        let of = |place: usize| -> Vec<(u32, f32)> {
            let place = place as f32 * step + first;
            let within = |at: i32| at.clamp(0, last) as u32;
            if kernel.reach == 0 {
                return vec![(within(place.floor() as i32), 1.0)];
            }
            let reach = i32::from(kernel.reach);
            if kernel.wide {
                let scale = step.max(1.0);
                let wide = reach as f32 * scale;
                let (from, to) = ((place - wide + 1.0).floor() as i32, (place + wide).floor() as i32);
                let taps: Vec<(u32, f32)> =
                    (from.max(0)..=to.min(last)).map(|at| (at as u32, weight((at as f32 - place) / scale))).listed();
                let all: f32 = taps.iter().map(|(_, weight)| weight).sum();
                return taps.into_iter().map(|(at, weight)| (at, weight / all)).listed();
            }
            let inner = if kernel.reach == 1 { place.clamp(0.0, last as f32) } else { place };
            let base = inner.floor();
            (1 - reach..=reach).map(|tap| (within(base as i32 + tap), weight(base + tap as f32 - inner))).listed()
        };
        let all: Vec<Vec<(u32, f32)>> = (0..width).map(of).listed();
        let count = all.iter().map(Vec::len).max().unwrap_or(0);
        let pitch = width.next_multiple_of(LANES);
        let (mut places, mut weights) = (vec![0; count * pitch], vec![0.0; count * pitch]);
        for (element, taps) in all.iter().enumerate() {
            for (tap, &(place, weight)) in taps.iter().enumerate() {
                places[tap * pitch + element] = place;
                weights[tap * pitch + element] = weight;
            }
            // Taps that do not count are read where others are.
            for tap in taps.len()..count {
                places[tap * pitch + element] = taps.last().map_or(0, |&(place, _)| place);
            }
        }
        Self { count, pitch, places, weights }
    }

    /// The taps of one element that count.
    fn of(&self, element: usize) -> impl Iterator<Item = (usize, f32)> {
        let at = move |tap: usize| {
            (self.places[tap * self.pitch + element] as usize, self.weights[tap * self.pitch + element])
        };
        (0..self.count).map(at).filter(|&(_, weight)| weight != 0.0)
    }
}

/// Resamples; the sizes were checked.
fn resample(shape: &ResampleShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let ([height, width], [rows, columns]) = (shape.input, shape.output);
    let down = (rows != height).then(|| Taps::new(height, rows, shape.kernel));
    let along = (columns != width).then(|| Taps::new(width, columns, shape.kernel));
    let taps = down.as_ref().map_or(1, |taps| taps.count);
    let together = (TASK / (taps * width + columns)).max(1);
    let all = shape.planes * rows;
    threads::try_each(all.div_ceil(together), |task| {
        limits.begin().check()?;
        for row in task * together..all.min((task + 1) * together) {
            let (plane, row) = (row / rows, row % rows);
            // SAFETY: `sizes` counted them; nothing writes the input while the operation runs, and rows of the result are distinct.
            let line = |at: usize| unsafe { x.stretch(plane * height + at, width) };
            // SAFETY: `sizes` counted it, and rows of the result are distinct.
            let to = unsafe { std::slice::from_raw_parts_mut(y.at((plane * rows + row) * columns), columns) };
            let sum = |to: &mut [f32]| match &down {
                Some(taps) => {
                    let mut taps = taps.of(row);
                    match taps.next() {
                        Some((at, weight)) => first(to, line(at), weight),
                        None => to.fill(f32::NAN),
                    }
                    taps.for_each(|(at, weight)| add(to, line(at), weight));
                }
                None => to.copy_from_slice(line(row)),
            };
            match &along {
                Some(taps) => with_scratch([width, 0], |[scratch, _]| {
                    sum(scratch);
                    combine(to, scratch, &taps.places, &taps.weights);
                }),
                None => sum(to),
            }
        }
        Ok(())
    })
}

forms! {
    fn first(to: &mut [f32], line: &[f32], weight: f32) = first_by
}
forms! {
    fn add(to: &mut [f32], line: &[f32], weight: f32) = add_by
}
forms! {
    /// Each element is the sum of elements of a line.
    fn combine(to: &mut [f32], line: &[f32], places: &[u32], weights: &[f32]) = combine_by
}

#[inline(always)]
fn first_by<I: Isa>(to: &mut [f32], line: &[f32], weight: f32) {
    to.iter_mut().zip(line).for_each(|(to, value)| *to = value * weight);
}

#[inline(always)]
fn add_by<I: Isa>(to: &mut [f32], line: &[f32], weight: f32) {
    to.iter_mut().zip(line).for_each(|(to, value)| *to = I::mul_add(*value, weight, *to));
}

#[inline(always)]
fn combine_by<I: Isa>(to: &mut [f32], line: &[f32], places: &[u32], weights: &[f32]) {
    let pitch = to.len().next_multiple_of(LANES);
    // Places lie within the line, which is not empty. Clamping them proves it to the loop, which then needs no check.
    let last = line.len() - 1;
    for (block, to) in to.chunks_mut(LANES).enumerate() {
        let mut sums = [0.0_f32; LANES];
        for (places, weights) in places.chunks_exact(pitch).zip(weights.chunks_exact(pitch)) {
            let from = block * LANES;
            let (places, weights) = (&places[from..from + LANES], &weights[from..from + LANES]);
            for lane in 0..LANES {
                // SAFETY: the place is held within the line.
                let value = unsafe { *line.get_unchecked((places[lane] as usize).min(last)) };
                let sum = I::mul_add(value, weights[lane], sums[lane]);
                // What does not count may be infinite.
                sums[lane] = if weights[lane] == 0.0 { sums[lane] } else { sum };
            }
        }
        to.copy_from_slice(&sums[..to.len()]);
    }
}
