//! Reductions of chains: along rows, or down columns of rows that are read in place. Sums go to float64 after a few hundred
//! elements; how work is cut depends on sizes alone, so the number of threads changes no bit.

use super::chain::{BLOCK, Machine, Place, Plan, functions};
use super::fault::Fault;
use super::floats::Floats;
use super::native::{Call, Operation, SCANS_PAY, Work};
use super::product::with_scratch;
use crate::backend::native::{Combination, Number, ReduceShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a task, at least.
const TASK: usize = 1 << 15;
/// Columns that a task keeps totals of: they lie in the first cache.
const COLUMNS: usize = 4096;
/// Rows that are added up before they go to the totals.
pub(super) const LINES: usize = 8;
/// Tasks that few results are cut into, at most.
const PARTS: usize = 64;

/// Results of up to this many elements each are combined by one call for all results of a block.
const FEW: usize = 64;
/// Results of up to this many elements each share a block of lanes.
const SEVERAL: usize = BLOCK / 2;

/// Returns the rows and the elements of a row for each result along the first axes. `None` if the sizes do not fit together.
fn lengths(shape: &ReduceShape) -> Option<[usize; 2]> {
    let (&length, rows) = shape.elements.sides.split_last()?;
    let rows = rows.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
    (length > 0 && rows > 0 && shape.outer > 0 && rows.is_multiple_of(shape.outer))
        .then(|| [rows / shape.outer, length])
}

impl Operation for ReduceShape {
    fn serves(&self) -> bool {
        lengths(self).is_some()
            && matches!(self.number, Number::F32 | Number::I32 | Number::U32)
            && self.elements.row.is_none()
            && !self.elements.wide
            && self.by != Combination::Product
            && self.elements.serves()
            && (self.number == Number::F32 || !self.down_columns || self.work().size / self.outer < MOST_WORDS)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let [_, length] = lengths(self)?;
        let mut sizes = self.elements.sizes()?;
        *sizes.last_mut()? = if self.down_columns { self.outer.checked_mul(length)? } else { self.outer };
        Some(sizes)
    }

    fn work(&self) -> Work {
        Work {
            size: self.elements.sides.iter().fold(1, |product, &side| product.saturating_mul(side)),
            pays: SCANS_PAY,
        }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        Ok(reduce(self, bindings, call.limits)?)
    }
}

/// Integer totals are kept as float64 and reduced modulo this, so that they wrap as 32-bit sums do.
const WORDS: f64 = 4_294_967_296.0;
/// Words added up before a total is reduced: float64 represents every sum of this many exactly.
const MOST_WORDS: usize = 1 << 20;

fn neutral(by: Combination) -> f64 {
    match by {
        Combination::Greatest => f64::NEG_INFINITY,
        Combination::Least => f64::INFINITY,
        Combination::Sum | Combination::Product => 0.0,
    }
}

fn combine((by, number): By, a: f64, b: f64) -> f64 {
    match by {
        Combination::Sum | Combination::Product if number == Number::F32 => a + b,
        Combination::Sum | Combination::Product => (a + b) % WORDS,
        Combination::Greatest => {
            if a.is_nan() || a > b {
                a
            } else {
                b
            }
        }
        Combination::Least => {
            if a.is_nan() || a < b {
                a
            } else {
                b
            }
        }
    }
}

/// The combination of elements, and their type.
type By = (Combination, Number);

/// A total as a result.
fn result(number: Number, total: f64) -> f32 {
    match number {
        Number::F32 => total as f32,
        _ => f32::from_bits(total as i64 as u32),
    }
}

fn fold((by, number): By, row: &[f32]) -> f64 {
    if number != Number::F32 {
        let parts = row.chunks(MOST_WORDS).map(|part| functions::fold_words(by, number, part));
        return parts.fold(neutral(by), |total, part| combine((by, number), total, part));
    }
    match by {
        Combination::Sum | Combination::Product => functions::sum(row),
        Combination::Greatest => functions::greatest(row).into(),
        Combination::Least => functions::least(row).into(),
    }
}

/// Reduces; the sizes were checked.
fn reduce(shape: &ReduceShape, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Stopped> {
    let ([inputs @ .., y], Some([rows, length])) = (bindings, lengths(shape)) else { return Ok(()) };
    let plan = Plan::new(&shape.elements.steps, &shape.elements);
    let all = Reduction { shape, plan: &plan, inputs, rows, length };
    if shape.down_columns { all.down_columns(*y, limits) } else { all.along_rows(*y, limits) }
}

struct Reduction<'a> {
    shape: &'a ReduceShape,
    plan: &'a Plan<'a>,
    inputs: &'a [Floats],
    rows: usize,
    length: usize,
}

impl Reduction<'_> {
    /// The elements of a row from `first` on, up to a block where they are not an input's own.
    ///
    /// # Safety
    /// The inputs have them, and there is room for a block.
    unsafe fn elements(&self, machine: &mut Machine<'_>, [row, first, count]: [usize; 3], block: *mut f32) -> &[f32] {
        // SAFETY: the input has `count` elements from there on, or the block has room for as many (this function's contract).
        unsafe {
            if let [Place::Direct(input)] = self.plan.places[..] {
                let from = self.inputs[usize::from(input)].at(machine.start(input, row) + first);
                return std::slice::from_raw_parts(from.cast_const(), count);
            }
            machine.run(row, first, count, block);
            std::slice::from_raw_parts(block.cast_const(), count)
        }
    }

    /// Elements that are taken at once.
    fn stretch(&self) -> usize {
        if matches!(self.plan.places[..], [Place::Direct(_)]) { usize::MAX } else { BLOCK }
    }

    /// The elements of a result, as one stretch of rows, from `first` to `end`.
    ///
    /// # Safety
    /// The inputs have them, and there is room for a block.
    unsafe fn total(&self, machine: &mut Machine<'_>, result: usize, [first, end]: [usize; 2], block: *mut f32) -> f64 {
        let by = (self.shape.by, self.shape.number);
        let (mut total, mut at) = (neutral(by.0), first);
        if self.plan.flat {
            let before = result * self.rows * self.length;
            // SAFETY: flat inputs are one row, and have it (this function's contract).
            unsafe { machine.begin_row(0) };
            while at < end {
                let count = (end - at).min(self.stretch());
                // SAFETY: the elements lie before `end`, and are no more than a block where they are not an input's own (this function's contract).
                let elements = unsafe { self.elements(machine, [0, before + at, count], block) };
                total = combine(by, total, fold(by, elements));
                at += count;
            }
            return total;
        }
        while at < end {
            let (row, column) = (result * self.rows + at / self.length, at % self.length);
            let stop = (self.length - column).min(end - at);
            // SAFETY: the inputs have the row (this function's contract).
            unsafe { machine.begin_row(row) };
            let mut taken = 0;
            while taken < stop {
                let count = (stop - taken).min(self.stretch());
                // SAFETY: the elements lie before `end` in this row, and are no more than a block where they are not an input's own
                // (this function's contract).
                let elements = unsafe { self.elements(machine, [row, column + taken, count], block) };
                total = combine(by, total, fold(by, elements));
                taken += count;
            }
            at += stop;
        }
        total
    }

    /// Results of few elements each, of short rows: as many at once as a block has.
    fn of_few(&self, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
        let (results, count) = (self.shape.outer, self.rows * self.length);
        let (by, number) = (self.shape.by, self.shape.number);
        let each = BLOCK / count;
        let together = threads::share(results.div_ceil(each), (TASK / (each * count)).max(1)) * each;
        threads::try_each(results.div_ceil(together), |task| {
            limits.begin().check()?;
            with_scratch([BLOCK * self.plan.blocks, BLOCK], |[blocks, block]| {
                // SAFETY: there is room for the plan's blocks; `sizes` found every element within the bindings, and each result is written by one task.
                unsafe {
                    let mut machine =
                        Machine::<f32>::new(self.plan, &self.shape.elements, self.inputs, blocks.as_mut_ptr());
                    machine.begin_row(0);
                    let end = results.min((task + 1) * together);
                    for first in (task * together..end).step_by(each) {
                        let taken = each.min(end - first);
                        let place = [0, first * count, taken * count];
                        let elements = self.elements(&mut machine, place, block.as_mut_ptr());
                        let to = std::slice::from_raw_parts_mut(y.at(first), taken);
                        if count > FEW {
                            let rows = elements.chunks_exact(count).zip(to);
                            rows.for_each(|(row, to)| *to = result(number, fold((by, number), row)));
                            continue;
                        }
                        functions::fold_few(by, number, elements, count, to);
                    }
                }
            });
            Ok(())
        })
    }

    fn along_rows(&self, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
        let most = if self.stretch() > BLOCK { FEW } else { SEVERAL };
        if self.plan.flat && self.rows * self.length <= most {
            return self.of_few(y, limits);
        }
        let (results, by, number) = (self.shape.outer, self.shape.by, self.shape.number);
        let count = self.rows * self.length;
        let parts = (PARTS / results).min(count / TASK).max(1);
        // Whole blocks, so that a part has the same block bounds as the whole.
        let part = count.div_ceil(parts).next_multiple_of(BLOCK);
        let parts = count.div_ceil(part);
        let together = if parts == 1 { threads::share(results, (TASK / count).max(1)) } else { 1 };
        let mut partials = vec![0.0; if parts == 1 { 0 } else { results * parts }];
        let to = Totals(partials.as_mut_ptr());
        threads::try_each((results * parts).div_ceil(together), |task| {
            limits.begin().check()?;
            with_scratch([BLOCK * self.plan.blocks, BLOCK], |[blocks, block]| {
                // SAFETY: there is room for the plan's blocks; `sizes` found every element within the bindings, and each place is written by one task.
                unsafe {
                    let mut machine =
                        Machine::<f32>::new(self.plan, &self.shape.elements, self.inputs, blocks.as_mut_ptr());
                    for place in task * together..(results * parts).min((task + 1) * together) {
                        let (result, first) = (place / parts, place % parts * part);
                        let end = count.min(first + part);
                        let total = self.total(&mut machine, result, [first, end], block.as_mut_ptr());
                        if parts == 1 {
                            y.at(result).write(self::result(number, total));
                        } else {
                            to.at(place).write(total);
                        }
                    }
                }
            });
            Ok::<_, Stopped>(())
        })?;
        for (place, partials) in partials.chunks_exact(parts).enumerate() {
            let total = partials.iter().fold(neutral(by), |total, &partial| combine((by, number), total, partial));
            // SAFETY: `y` has a result for each of the shape's, as `sizes` found, and all tasks have ended.
            unsafe { y.at(place).write(result(number, total)) };
        }
        Ok(())
    }

    fn down_columns(&self, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
        let (results, by, number) = (self.shape.outer, self.shape.by, self.shape.number);
        let blocks = self.length.div_ceil(COLUMNS);
        let wide = self.length.div_ceil(blocks).next_multiple_of(16).min(self.length);
        let blocks = self.length.div_ceil(wide);
        let parts = (PARTS / 4 / (results * blocks)).min(self.rows * wide / TASK).max(1);
        let part = self.rows.div_ceil(parts).next_multiple_of(LINES);
        let parts = self.rows.div_ceil(part);
        let mut partials = vec![0.0; if parts == 1 { 0 } else { results * parts * self.length }];
        let to = Totals(partials.as_mut_ptr());
        let tasks = results * blocks * parts;
        let together = if parts == 1 { threads::share(tasks, (TASK / (wide * self.rows)).max(1)) } else { 1 };
        threads::try_each(tasks.div_ceil(together), |task| {
            limits.begin().check()?;
            // Totals are of float64.
            let room = [BLOCK * (self.plan.blocks + LINES), 2 * wide];
            with_scratch(room, |[scratch, totals]| {
                let (scratch, totals) = (scratch.as_mut_ptr(), totals.as_mut_ptr().cast::<f64>());
                // SAFETY: scratch begins at a line of 64 bytes, and its parts at 16 floats of it. `sizes` found every element within
                // the bindings, and each place is written by one task.
                unsafe {
                    let mut machine = Machine::<f32>::new(self.plan, &self.shape.elements, self.inputs, scratch);
                    let lines = scratch.add(BLOCK * self.plan.blocks);
                    for place in task * together..tasks.min((task + 1) * together) {
                        let (result, rest) = (place / (blocks * parts), place % (blocks * parts));
                        let (from, first) = (rest / parts * wide, rest % parts * part);
                        let totals = std::slice::from_raw_parts_mut(totals, wide.min(self.length - from));
                        totals.fill(neutral(by));
                        let rows = [result * self.rows + first, result * self.rows + self.rows.min(first + part)];
                        self.columns(&mut machine, rows, from, totals, lines);
                        if parts == 1 {
                            let y = y.at(result * self.length + from);
                            for (column, &total) in totals.iter().enumerate() {
                                y.add(column).write(self::result(number, total));
                            }
                        } else {
                            let line = to.at((result * parts + rest % parts) * self.length + from);
                            totals.as_ptr().copy_to_nonoverlapping(line, totals.len());
                        }
                    }
                }
            });
            Ok::<_, Stopped>(())
        })?;
        for (place, partials) in partials.chunks_exact_mut(self.length * parts).enumerate() {
            let (totals, lines) = partials.split_at_mut(self.length);
            for line in lines.chunks_exact(self.length) {
                totals
                    .iter_mut()
                    .zip(line)
                    .for_each(|(total, &partial)| *total = combine((by, number), *total, partial));
            }
            for (column, &total) in totals.iter().enumerate() {
                // SAFETY: `y` has `length` columns for each result, as `sizes` found, and all tasks have ended.
                unsafe { y.at(place * self.length + column).write(result(number, total)) };
            }
        }
        Ok(())
    }

    /// Combines rows into totals of the columns from `from` on.
    ///
    /// # Safety
    /// The inputs have them, and there is room for [`LINES`] blocks.
    unsafe fn columns(
        &self,
        machine: &mut Machine<'_>,
        [first, end]: [usize; 2],
        from: usize,
        totals: &mut [f64],
        lines: *mut f32,
    ) {
        if self.plan.flat {
            // SAFETY: flat inputs are one row, and have it (this function's contract).
            unsafe { machine.begin_row(0) };
            let each = BLOCK / self.length;
            for row in (first..end).step_by(each) {
                let count = each.min(end - row) * self.length;
                // SAFETY: the rows lie before `end`, and `each` of them are no more than a block (this function's contract).
                let elements = unsafe { self.elements(machine, [0, row * self.length, count], lines) };
                functions::fold_lines(self.shape.by, self.shape.number, elements, totals);
            }
            return;
        }
        for row in (first..end).step_by(LINES) {
            let rows = LINES.min(end - row);
            let mut at = 0;
            while at < totals.len() {
                let count = (totals.len() - at).min(self.stretch());
                let mut taken: [&[f32]; LINES] = [&[]; LINES];
                for (line, taken) in taken[..rows].iter_mut().enumerate() {
                    // SAFETY: the row lies before `end`; `line < LINES`, and `lines` has a block for each (this function's contract).
                    unsafe {
                        machine.begin_row(row + line);
                        *taken = self.elements(machine, [row + line, from + at, count], lines.add(line * BLOCK));
                    }
                }
                let totals = &mut totals[at..at + count];
                match self.shape.by {
                    _ if self.shape.number != Number::F32 => {
                        let lines = taken[..rows].iter();
                        lines.for_each(|line| functions::fold_lines(self.shape.by, self.shape.number, line, totals));
                    }
                    Combination::Sum | Combination::Product => functions::add_lines(&taken[..rows], totals),
                    Combination::Greatest => functions::greatest_of_lines(&taken[..rows], totals),
                    Combination::Least => functions::least_of_lines(&taken[..rows], totals),
                }
                at += count;
            }
        }
    }
}

/// Totals that tasks write, each its own.
struct Totals(*mut f64);

// SAFETY: each place is written by one task.
unsafe impl Sync for Totals {}

impl Totals {
    /// # Safety
    /// There is such a place.
    unsafe fn at(&self, place: usize) -> *mut f64 {
        // SAFETY: there is such a place (this function's contract).
        unsafe { self.0.add(place) }
    }
}
