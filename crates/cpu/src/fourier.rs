//! Fourier transforms of rows, by `rustfft`: rows side by side; a long one as the rows and columns of a matrix (Bailey, 1990), whose transforms fit
//! a processor's own cache and are spread over its threads.

mod columns;

use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, PoisonError};

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use self::columns::{C, Pair, across};
use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{Call, Operation, Work, exactly};
use super::product::with_scratch;
use crate::backend::native::FftShape;
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Numbers from which a row is cut.
const LONG: usize = 1 << 15;
/// A row without factors to cut it by is taken up to this length: a plan needs as much memory as some rows.
const LONGEST: usize = 1 << 22;
/// Columns that are transformed together: four lines of the cache of each row.
const TOGETHER: usize = 32;
/// Space between columns in a cache, so that they do not drive each other out of it.
const APART: usize = 8;
/// Numbers of short rows for each task.
const TASK: usize = 1 << 13;
/// Numbers below which one thread is enough.
const TRANSFORMS_PAY: usize = 1 << 13;
/// Plans beyond this are made anew.
const MOST_PLANS: usize = 64;
/// Tables for long rows beyond this are made anew.
const MOST_CUTS: usize = 8;
/// Memory between the passes of a long row that is kept for the next.
const KEPT: usize = 1 << 22;

/// The rows and columns of the matrix that a row becomes.
fn split(length: usize) -> Option<[usize; 2]> {
    let rows = (1..=length.isqrt()).rev().find(|rows| length.is_multiple_of(*rows))?;
    (rows >= 64 && length / rows < LONG).then_some([rows, length / rows])
}

/// The maker of plans, and the number of them that it has made.
type Planner<T> = Mutex<Option<(FftPlanner<T>, usize)>>;

/// A part of a complex number.
trait Part: FftNum {
    fn planner() -> &'static Planner<Self>;
    fn of(value: f64) -> Self;
}

impl Part for f32 {
    fn planner() -> &'static Planner<Self> {
        static PLANNER: Planner<f32> = Mutex::new(None);
        &PLANNER
    }

    fn of(value: f64) -> Self {
        value as Self
    }
}

impl Part for f64 {
    fn planner() -> &'static Planner<Self> {
        static PLANNER: Planner<f64> = Mutex::new(None);
        &PLANNER
    }

    fn of(value: f64) -> Self {
        value
    }
}

/// Returns the transform for rows of this length, which is made once.
fn plan<T: Part>(length: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    let mut known = T::planner().lock().unwrap_or_else(PoisonError::into_inner);
    let (planner, count) = known.get_or_insert_with(|| (FftPlanner::new(), 0));
    *count += 1;
    if *count > MOST_PLANS {
        (*planner, *count) = (FftPlanner::new(), 1);
    }
    planner.plan_fft(length, direction)
}

impl Operation for FftShape {
    fn serves(&self) -> bool {
        self.length > 0 && (self.length < LONGEST || !self.wide && split(self.length).is_some())
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let all = self.rows.checked_mul(self.length)?.checked_mul(if self.wide { 4 } else { 2 })?;
        Some(vec![all, all])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.length), pays: TRANSFORMS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        if !self.wide {
            return Ok(transform(self, x, y, call.limits)?);
        }
        if [x, y].iter().any(|binding| !binding.start().cast::<f64>().is_aligned()) {
            return Err("numbers of 64 bits begin at no multiple of 8 bytes".into());
        }
        Ok(side_by_side::<f64>(self, x, y, call.limits)?)
    }
}

/// Transforms the rows; the sizes were checked.
fn transform(shape: &FftShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let FftShape { rows, length, inverse, .. } = *shape;
    if let Some(sides) = split(length).filter(|_| length >= LONG) {
        let cut = Cut::of(sides, inverse);
        let mut between = Spare::take(length)?;
        for row in 0..rows {
            cut.transform(row, x, y, &mut between.0, limits)?;
        }
        return Ok(());
    }
    side_by_side::<f32>(shape, x, y, limits)
}

/// Transforms rows, each by one thread.
fn side_by_side<T: Part>(shape: &FftShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let FftShape { rows, length, inverse, .. } = *shape;
    let scale = T::of(if inverse { 1.0 / length as f64 } else { 1.0 });
    let plan = plan::<T>(length, inverse);
    let together = (TASK / length).max(1);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let mut scratch = vec![Complex::new(T::of(0.0), T::of(0.0)); plan.get_immutable_scratch_len()];
        for row in task * together..rows.min((task + 1) * together) {
            // SAFETY: `run` checked the sizes; tasks write distinct rows, and nothing writes the input.
            let (from, to) = unsafe { (numbers(x, row * length, length), numbers_mut(y, row * length, length)) };
            plan.process_immutable_with_scratch(from, to, &mut scratch);
            if inverse {
                to.iter_mut().for_each(|value| *value = value.scale(scale));
            }
        }
        Ok(())
    })
}

/// # Safety
/// There are `count` complex numbers from `from` on, and nothing writes to them while the slice lives.
unsafe fn numbers<'a, T>(all: Floats, from: usize, count: usize) -> &'a [Complex<T>] {
    // SAFETY: `count` numbers are there, and nothing writes to them (this function's contract); a complex number is two of its parts.
    unsafe { std::slice::from_raw_parts(all.start().cast::<Complex<T>>().add(from), count) }
}

/// # Safety
/// As [`numbers`], and nothing else touches them.
unsafe fn numbers_mut<'a, T>(all: Floats, from: usize, count: usize) -> &'a mut [Complex<T>] {
    // SAFETY: `count` numbers are there, and nothing else touches them (this function's contract).
    unsafe { std::slice::from_raw_parts_mut(all.start().cast::<Complex<T>>().add(from), count) }
}

/// Memory for a long row between its passes: the last one's, where that is enough.
struct Spare(Vec<C>);

static SPARE: Mutex<Vec<C>> = Mutex::new(Vec::new());

impl Spare {
    fn take(length: usize) -> Result<Self, Stopped> {
        let mut kept = std::mem::take(&mut *SPARE.lock().unwrap_or_else(PoisonError::into_inner));
        let missing = length.saturating_sub(kept.len());
        let bytes = (length * size_of::<C>()) as u64;
        kept.try_reserve_exact(missing).map_err(|_| Stopped::TooMuchMemory { bytes })?;
        kept.resize(length, C::default());
        Ok(Self(kept))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if self.0.len() <= KEPT {
            *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut self.0);
        }
    }
}

/// How a long row is transformed. As a matrix of `rows` x `columns`: its columns, each number then turned by its place, and what comes of them by
/// rows, which gives the transform's columns.
struct Cut {
    rows: usize,
    columns: usize,
    of_columns: Arc<dyn Fft<f32>>,
    of_rows: Arc<dyn Fft<f32>>,
    /// Where both lengths are powers of two: their roots, and the turns of the first columns.
    lanes: Option<([Vec<C>; 2], columns::Turns)>,
    /// e^(∓2πi n / length) for n below 1,024, and for multiples of 1,024.
    fine: Vec<C>,
    coarse: Vec<C>,
    scale: f32,
}

/// Turns of a number by its place are looked up in two steps.
const FINE: usize = 1024;
/// Turns along a column are products of one of the first `STEPS` and one of every `STEPS`-th.
const STEPS: usize = 32;

impl Cut {
    fn new([rows, columns]: [usize; 2], inverse: bool, scale: f32) -> Self {
        let length = rows * columns;
        let turn = if inverse { TAU } else { -TAU } / length as f64;
        let root = |place: usize| {
            let angle = turn * place as f64;
            C::new(angle.cos() as f32, angle.sin() as f32)
        };
        Self {
            rows,
            columns,
            of_columns: plan(rows, inverse),
            of_rows: plan(columns, inverse),
            lanes: length.is_power_of_two().then(|| {
                ([rows, columns].map(|side| columns::roots(side, inverse)), columns::Turns::new(rows, STEPS, root))
            }),
            fine: (0..FINE).map(root).listed(),
            coarse: (0..length.div_ceil(FINE)).map(|place| root(place * FINE)).listed(),
            scale,
        }
    }

    /// Returns the cut for rows of these sides: a recent one, or a new one.
    fn of(sides: [usize; 2], inverse: bool) -> Arc<Self> {
        type Known = ([usize; 2], bool, Arc<Cut>);
        static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
        let find = |known: &[Known]| {
            known.iter().find(|known| (known.0, known.1) == (sides, inverse)).map(|known| known.2.clone())
        };
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = find(&lock());
        known.unwrap_or_else(|| {
            let length = sides[0] * sides[1];
            let made = Arc::new(Self::new(sides, inverse, if inverse { (1.0 / length as f64) as f32 } else { 1.0 }));
            let mut known = lock();
            if known.len() >= MOST_CUTS {
                known.remove(0);
            }
            known.push((sides, inverse, made.clone()));
            made
        })
    }

    /// e^(∓2πi place / length)
    fn root(&self, place: usize) -> C {
        self.fine[place % FINE] * self.coarse[place / FINE]
    }

    fn transform(
        &self,
        row: usize,
        x: Floats,
        y: Floats,
        between: &mut [C],
        limits: &Limits<'_>,
    ) -> Result<(), Stopped> {
        let (rows, columns) = (self.rows, self.columns);
        let length = rows * columns;
        let between = Floats(between.as_mut_ptr().cast::<f32>(), 2 * between.len());
        // SAFETY: nothing writes the input while the operation runs.
        let from = unsafe { numbers(x, row * length, length) };
        if let Some(known) = &self.lanes {
            // SAFETY: the row lies there, and nothing else touches it.
            return unsafe {
                let to = Floats(y.at(2 * row * length), 2 * length);
                self.in_lanes(known, from, between, to, limits)
            };
        }
        threads::try_each(columns.div_ceil(TOGETHER), |task| {
            limits.begin().check()?;
            let first = task * TOGETHER;
            let count = TOGETHER.min(columns - first);
            with_columns(from, [columns, first, count], &*self.of_columns, |lines, apart| {
                for (column, values) in lines.chunks(apart).enumerate() {
                    // SAFETY: tasks write distinct rows of what is between.
                    let to = unsafe { numbers_mut(between, (first + column) * rows, rows) };
                    let few: [C; STEPS] = std::array::from_fn(|step| self.root((first + column) * step % length));
                    for (block, (to, values)) in to.chunks_mut(STEPS).zip(values[..rows].chunks(STEPS)).enumerate() {
                        turn(to, values, &few, self.root((first + column) * block * STEPS % length));
                    }
                }
            });
            Ok::<(), Stopped>(())
        })?;
        // SAFETY: nothing writes it from here on.
        let between = unsafe { numbers(between, 0, length) };
        threads::try_each(rows.div_ceil(TOGETHER), |task| {
            limits.begin().check()?;
            let first = task * TOGETHER;
            let count = TOGETHER.min(rows - first);
            with_columns(between, [rows, first, count], &*self.of_rows, |lines, apart| {
                for line in lines.chunks_mut(apart) {
                    line[..columns].iter_mut().for_each(|value| *value *= self.scale);
                }
                // SAFETY: tasks write distinct columns of the row's transform, and all of them exist.
                unsafe {
                    let to = y.at(2 * (row * length + first)).cast::<Pair>();
                    across([count, columns], (lines.as_ptr().cast::<Pair>(), apart), (to, rows));
                }
            });
            Ok(())
        })
    }

    /// The same where both sides are powers of two.
    ///
    /// # Safety
    /// What is written may be.
    unsafe fn in_lanes(
        &self,
        ([of_columns, of_rows], turns): &([Vec<C>; 2], columns::Turns),
        from: &[C],
        between: Floats,
        to: Floats,
        limits: &Limits<'_>,
    ) -> Result<(), Stopped> {
        use columns::{Columns, LANES};
        let (rows, columns) = (self.rows, self.columns);
        let length = rows * columns;
        threads::try_each(columns / LANES, |task| {
            limits.begin().check()?;
            let first = task * LANES;
            with_rows(2 * rows, |spare| {
                let turns = turns.from(first, |place| self.root(place % length));
                // SAFETY: the matrix has the columns; tasks write distinct rows of what is between.
                unsafe {
                    columns::transform(Columns::new(from.as_ptr().add(first).cast(), columns), spare, of_columns);
                    let to = between.at(2 * first * rows).cast::<Pair>();
                    columns::turn_and_cross(&spare[..rows], &turns, to, rows);
                }
            });
            Ok::<(), Stopped>(())
        })?;
        threads::try_each(rows / LANES, |task| {
            limits.begin().check()?;
            let first = task * LANES;
            with_rows(2 * columns, |spare| {
                // SAFETY: what is between has the columns, and is not written any more; tasks write distinct columns of the row's transform.
                unsafe {
                    columns::transform(Columns::new(between.at(2 * first).cast_const().cast(), rows), spare, of_rows);
                    columns::put(&spare[..columns], self.scale, to.at(2 * first).cast(), rows);
                }
            });
            Ok(())
        })
    }
}

/// Rows of lanes for a while.
fn with_rows(count: usize, then: impl FnOnce(&mut [columns::Row])) {
    with_scratch([count * 2 * columns::LANES, 0], |[floats, _]| {
        let rows = floats.as_mut_ptr().cast::<columns::Row>();
        // SAFETY: a row has that many floats.
        then(unsafe { std::slice::from_raw_parts_mut(rows, count) });
    });
}

forms! {
    /// Products with one turn and each of a few others.
    fn turn(to: &mut [C], values: &[C], few: &[C; STEPS], by: C) = turn_by
}

#[inline(always)]
fn turn_by<I>(to: &mut [C], values: &[C], few: &[C; STEPS], by: C) {
    for ((to, value), few) in to.iter_mut().zip(values).zip(few) {
        *to = value * (few * by);
    }
}

/// Transforms `count` columns of a matrix from `first` on, and passes them to `then` as lines, with the distance between lines.
fn with_columns(
    matrix: &[C],
    [columns, first, count]: [usize; 3],
    plan: &dyn Fft<f32>,
    then: impl FnOnce(&mut [C], usize),
) {
    let length = matrix.len() / columns;
    let apart = length + APART;
    let spare = plan.get_inplace_scratch_len();
    with_scratch([2 * (count * apart + spare), 0], |[floats, _]| {
        // SAFETY: a complex number is two floats.
        let all = unsafe { std::slice::from_raw_parts_mut(floats.as_mut_ptr().cast::<C>(), floats.len() / 2) };
        let (lines, scratch) = all.split_at_mut(count * apart);
        // SAFETY: the matrix has the columns, and there is a line for each.
        unsafe {
            let from = matrix.as_ptr().add(first).cast::<Pair>();
            across([length, count], (from, columns), (lines.as_mut_ptr().cast::<Pair>(), apart));
        }
        for line in lines.chunks_exact_mut(apart) {
            plan.process_with_scratch(&mut line[..length], scratch);
        }
        then(lines, apart);
    });
}
