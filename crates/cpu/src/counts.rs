//! Counts of numbers by bins: each task counts its own part, then the counts are added. Serves `bincount` and histograms. Bins by edges are guessed as if
//! they were equally wide and then corrected, so edges of any widths are right. More bins than fit a task's table go to the kernel, and out-of-range
//! numbers share one bin that is not part of the result.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{COPIES_PAY, Call, Operation, Work, unlike};
use crate::backend::native::CountShape;
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Numbers whose bins are found together.
const LANES: usize = 256;
/// Numbers that are counted between two looks at the limits.
const BLOCK: usize = 1 << 16;
/// Numbers that are worth a task of their own.
const TASK: usize = 1 << 13;
/// Bins of the tables that a task counts in by turns, so that equal numbers one after the other do not wait for each other.
const SMALL: usize = 1 << 12;
const TABLES: usize = 4;
/// Bins beyond which a task's own table would cost more than it saves.
const MOST: usize = 1 << 20;

impl Operation for CountShape {
    fn serves(&self) -> bool {
        // The bins are few enough to be counted in tables of the tasks.
        (1..=MOST).contains(&self.bins) && u32::try_from(self.count).is_ok()
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let edges = self.last.map(|_| self.bins + 1);
        Some([self.count].into_iter().chain(edges).chain([self.bins]).listed())
    }

    fn work(&self) -> Work {
        Work { size: self.count, pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [numbers, edges @ .., y] = bindings else { return Err(unlike()) };
        Ok(count(self, *numbers, edges.first().copied(), *y, call.limits)?)
    }
}

/// Counts; the sizes were checked.
fn count(
    shape: &CountShape,
    numbers: Floats,
    edges: Option<Floats>,
    y: Floats,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let bins = shape.bins;
    // SAFETY: as many elements were checked to be there, and nothing writes to them.
    let edges = edges.map_or(&[][..], |edges| unsafe { edges.stretch(0, bins + 1) });
    let edges = Edges { edges, last: shape.last.map_or(f32::NAN, f32::from_bits) };
    let tasks = threads::count().min(shape.count.div_ceil(TASK.max(bins))).max(1);
    let part = shape.count.div_ceil(tasks);
    let counted = threads::map(tasks, |task| -> Result<Tables, Stopped> {
        // One more for what has no bin.
        let mut tables = Tables::new(bins + 1);
        let (from, to) = ((task * part).min(shape.count), ((task + 1) * part).min(shape.count));
        for block in (from..to).step_by(BLOCK) {
            limits.begin().check()?;
            let length = BLOCK.min(to - block);
            // SAFETY: within the binding, which nothing writes to.
            let numbers = unsafe { std::slice::from_raw_parts(numbers.at(block).cast_const(), length) };
            if shape.last.is_some() { by_edges(&mut tables, numbers, edges) } else { whole(&mut tables, numbers) }
        }
        Ok(tables)
    });
    // SAFETY: as many elements were checked to be there, and this alone writes to them.
    let counts = unsafe { std::slice::from_raw_parts_mut(y.at(0).cast::<u32>(), bins) };
    counts.fill(0);
    for tables in counted {
        for table in tables?.words.chunks_exact(bins + 1) {
            counts.iter_mut().zip(table).for_each(|(count, &more)| *count += more);
        }
    }
    Ok(())
}

/// Counts, in several tables where they are small.
struct Tables {
    words: Vec<u32>,
    length: usize,
}

impl Tables {
    fn new(length: usize) -> Self {
        Self { words: vec![0; length * if length <= SMALL { TABLES } else { 1 }], length }
    }

    /// Counts numbers by their bins, of which those beyond the last are one.
    fn add(&mut self, bins: &[u32]) {
        let last = self.length - 1;
        let mut tables = self.words.chunks_exact_mut(self.length);
        let [Some(a), Some(b), Some(c), Some(d)] = std::array::from_fn(|_| tables.next()) else {
            for &bin in bins {
                self.words[(bin as usize).min(last)] += 1;
            }
            return;
        };
        let (fours, rest) = bins.as_chunks::<4>();
        for four in fours {
            for (table, &bin) in [&mut *a, &mut *b, &mut *c, &mut *d].into_iter().zip(four) {
                table[(bin as usize).min(last)] += 1;
            }
        }
        for &bin in rest {
            a[(bin as usize).min(last)] += 1;
        }
    }
}

fn whole(tables: &mut Tables, numbers: &[f32]) {
    tables.add(bytemuck::cast_slice(numbers));
}

/// The edges of bins: values between one edge and the next belong to one bin.
#[derive(Clone, Copy)]
struct Edges<'a> {
    edges: &'a [f32],
    last: f32,
}

fn by_edges(tables: &mut Tables, numbers: &[f32], edges: Edges<'_>) {
    let mut bins = [0; LANES];
    for numbers in numbers.chunks(LANES) {
        let bins = &mut bins[..numbers.len()];
        guesses(numbers, edges, bins);
        for (bin, &number) in bins.iter_mut().zip(numbers) {
            *bin = edges.bin(number, *bin);
        }
        tables.add(bins);
    }
}

forms! {
    /// About where the numbers are, if bins are equally wide.
    fn guesses(numbers: &[f32], edges: Edges<'_>, bins: &mut [u32]) = guesses_by
}

#[inline(always)]
fn guesses_by<I>(numbers: &[f32], edges: Edges<'_>, bins: &mut [u32]) {
    let [first, .., last] = edges.edges else { return };
    let most = (edges.edges.len() - 2) as f32;
    let per_width = (most + 1.0) / (last - first);
    for (bin, &number) in bins.iter_mut().zip(numbers) {
        let place = (number - first) * per_width;
        // NaN is at 0.
        let place = if place > 0.0 { place } else { 0.0 };
        let place = if place < most { place } else { most };
        // SAFETY: between 0 and a number of bins that fits.
        *bin = unsafe { place.to_int_unchecked::<i32>() } as u32;
    }
}

impl Edges<'_> {
    /// Returns a number's bin, found from a guess: the number of edges that are not above it, less one.
    #[inline(always)]
    fn bin(self, number: f32, guess: u32) -> u32 {
        let bins = self.edges.len() - 1;
        let mut bin = guess as usize;
        if number == self.last {
            return bins as u32 - 1;
        }
        // Also where the number is NaN.
        if !(number >= self.edges[0] && number < self.edges[bins]) {
            return bins as u32;
        }
        while number < self.edges[bin] {
            bin -= 1;
        }
        while number >= self.edges[bin + 1] {
            bin += 1;
        }
        bin as u32
    }
}
