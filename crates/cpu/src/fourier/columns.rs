//! Transforms of a matrix's columns, sixteen side by side, one in each lane: of lengths that are powers of two, by radix 4 in the order of Stockham
//! (Cochran and others, 1967), which needs no reordering.

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

use crate::forms::forms;
use cantus_base::listed::Listed;

pub(super) type C = Complex<f32>;

/// Columns that are transformed side by side.
pub(super) const LANES: usize = 16;

/// A number of each column.
#[derive(Clone, Copy)]
pub(super) struct Row {
    re: [f32; LANES],
    im: [f32; LANES],
}

impl Row {
    const ZERO: Self = Self { re: [0.0; LANES], im: [0.0; LANES] };

    #[inline(always)]
    fn turn(&mut self, by: C) {
        for lane in 0..LANES {
            let (re, im) = (self.re[lane], self.im[lane]);
            self.re[lane] = re * by.re - im * by.im;
            self.im[lane] = re * by.im + im * by.re;
        }
    }
}

/// The source of the columns' numbers.
trait Source: Copy {
    fn row(&self, place: usize) -> Row;
}

impl Source for &[Row] {
    #[inline(always)]
    fn row(&self, place: usize) -> Row {
        self[place]
    }
}

/// Columns of a matrix: the first one's first number, and the step from row to row.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    start: *const Pair,
    step: usize,
}

impl Columns {
    /// # Safety
    /// There are [`LANES`] columns with as many rows as a transform reads, and nothing writes to them.
    pub(super) unsafe fn new(start: *const Pair, step: usize) -> Self {
        Self { start, step }
    }
}

impl Source for Columns {
    #[inline(always)]
    fn row(&self, place: usize) -> Row {
        // SAFETY: the promise of `new`.
        let pairs = unsafe { self.start.add(place * self.step).cast::<[Pair; LANES]>().read() };
        let mut row = Row::ZERO;
        for (lane, [re, im]) in pairs.iter().enumerate() {
            (row.re[lane], row.im[lane]) = (*re, *im);
        }
        row
    }
}

/// e^(∓2πi n / length) for n below the length.
pub(super) fn roots(length: usize, inverse: bool) -> Vec<C> {
    let turn = if inverse { TAU } else { -TAU } / length as f64;
    let root = |place: usize| {
        let (sin, cos) = (turn * place as f64).sin_cos();
        Complex::new(cos as f32, sin as f32)
    };
    (0..length).map(root).listed()
}

forms! {
    /// Transforms the columns; `spare` has as many rows as they have, twice. The result is in its first half.
    pub(super) fn transform(from: Columns, spare: &mut [Row], roots: &[C]) = transform_by
}

forms! {
    /// Turns each number by its place, and writes the columns as rows of `step` numbers.
    ///
    /// # Safety
    /// There are [`LANES`] rows of that many numbers, and nothing else uses them.
    pub(super) unsafe fn turn_and_cross(rows: &[Row], turns: &Turns, to: *mut Pair, step: usize) = turn_and_cross_by
}

forms! {
    /// Writes the numbers of the columns beside each other, `step` from row to row.
    ///
    /// # Safety
    /// There is room for them, which nothing else touches.
    pub(super) unsafe fn put(rows: &[Row], scale: f32, to: *mut Pair, step: usize) = put_by
}

#[inline(always)]
fn transform_by<I>(from: Columns, spare: &mut [Row], roots: &[C]) {
    let length = roots.len();
    let (a, b) = spare.split_at_mut(length);
    let passes = length.trailing_zeros().div_ceil(2);
    // The last pass writes to the first half.
    let (mut y, mut x) = if passes % 2 == 1 { (a, b) } else { (b, a) };
    let inverse = roots[length / 4].im > 0.0;
    let mut step = 1;
    while step < length {
        let left = length / step;
        if left == 2 {
            halves(x, y);
        } else if step == 1 {
            quarters(from, y, roots, step, inverse);
        } else {
            quarters(&*x, y, roots, step, inverse);
        }
        (x, y) = (y, x);
        step *= 4;
    }
}

/// The last pass of an odd power of two.
#[inline(always)]
fn halves(x: &[Row], y: &mut [Row]) {
    let half = x.len() / 2;
    let (first, second) = y.split_at_mut(half);
    for place in 0..half {
        let (a, b) = (&x[place], &x[place + half]);
        let (sum, difference) = (&mut first[place], &mut second[place]);
        for lane in 0..LANES {
            (sum.re[lane], sum.im[lane]) = (a.re[lane] + b.re[lane], a.im[lane] + b.im[lane]);
            (difference.re[lane], difference.im[lane]) = (a.re[lane] - b.re[lane], a.im[lane] - b.im[lane]);
        }
    }
}

/// One pass over groups of four numbers a quarter apart.
#[inline(always)]
fn quarters(x: impl Source, y: &mut [Row], roots: &[C], step: usize, inverse: bool) {
    let quarter = y.len() / 4;
    // The inverse transform differs only in that the second and the fourth number are exchanged.
    let [second, fourth] = if inverse { [3 * quarter, quarter] } else { [quarter, 3 * quarter] };
    for (group, y) in y.chunks_exact_mut(4 * step).enumerate() {
        let turns = [roots[group * step], roots[2 * group * step], roots[3 * group * step]];
        for place in 0..step {
            let at = group * step + place;
            let (a, b) = (x.row(at), x.row(at + second));
            let (c, d) = (x.row(at + 2 * quarter), x.row(at + fourth));
            let mut out = [Row::ZERO; 4];
            for lane in 0..LANES {
                let (sum_re, sum_im) = (a.re[lane] + c.re[lane], a.im[lane] + c.im[lane]);
                let (between_re, between_im) = (a.re[lane] - c.re[lane], a.im[lane] - c.im[lane]);
                let (other_re, other_im) = (b.re[lane] + d.re[lane], b.im[lane] + d.im[lane]);
                // Times -i.
                let (side_re, side_im) = (b.im[lane] - d.im[lane], d.re[lane] - b.re[lane]);
                (out[0].re[lane], out[0].im[lane]) = (sum_re + other_re, sum_im + other_im);
                (out[1].re[lane], out[1].im[lane]) = (between_re + side_re, between_im + side_im);
                (out[2].re[lane], out[2].im[lane]) = (sum_re - other_re, sum_im - other_im);
                (out[3].re[lane], out[3].im[lane]) = (between_re - side_re, between_im - side_im);
            }
            if group > 0 {
                for (turn, out) in turns.iter().zip(&mut out[1..]) {
                    out.turn(*turn);
                }
            }
            for (number, out) in out.iter().enumerate() {
                y[number * step + place] = *out;
            }
        }
    }
}

/// # Safety
/// As [`turn_and_cross`].
#[inline(always)]
unsafe fn turn_and_cross_by<I>(rows: &[Row], Turns { fine, coarse }: &Turns, to: *mut Pair, step: usize) {
    for (number, rows) in rows.chunks_exact(LANES).enumerate() {
        let first = number * LANES;
        let coarse = &coarse[first / fine.len()];
        let fine = &fine[first % fine.len()..][..LANES];
        let mut tile = [[[0.0_f32; 2]; LANES]; LANES];
        for ((row, fine), line) in rows.iter().zip(fine).zip(&mut tile) {
            for (lane, to) in line.iter_mut().enumerate() {
                let by_re = fine.re[lane] * coarse.re[lane] - fine.im[lane] * coarse.im[lane];
                let by_im = fine.re[lane] * coarse.im[lane] + fine.im[lane] * coarse.re[lane];
                *to = [row.re[lane] * by_re - row.im[lane] * by_im, row.re[lane] * by_im + row.im[lane] * by_re];
            }
        }
        // SAFETY: `to` has `LANES` rows of `step` numbers (this function's contract), and the tile has its numbers.
        unsafe { across([LANES; 2], (tile.as_ptr().cast(), LANES), (to.add(first), step)) };
    }
}

/// # Safety
/// As [`put`].
#[inline(always)]
unsafe fn put_by<I>(rows: &[Row], scale: f32, to: *mut Pair, step: usize) {
    for (place, row) in rows.iter().enumerate() {
        let mut line = [[0.0_f32; 2]; LANES];
        for (lane, to) in line.iter_mut().enumerate() {
            *to = [row.re[lane] * scale, row.im[lane] * scale];
        }
        // SAFETY: `to` has a row of `LANES` numbers for each, `step` apart (this function's contract).
        unsafe { to.add(place * step).cast::<[Pair; LANES]>().write(line) };
    }
}

/// The factors that the numbers of each column are turned by: the column's own root to the power of the number's place, in two steps, of which the first has
/// `fine` powers.
pub(super) struct Turns {
    fine: Vec<Row>,
    coarse: Vec<Row>,
}

impl Turns {
    /// Creates the turns of the first columns from the roots e^(∓2πi n / length).
    pub(super) fn new(rows: usize, fine: usize, root: impl Fn(usize) -> C) -> Self {
        let row = |place: usize| {
            let mut row = Row::ZERO;
            for lane in 0..LANES {
                Complex { re: row.re[lane], im: row.im[lane] } = root(lane * place);
            }
            row
        };
        Self {
            fine: (0..fine.min(rows)).map(row).listed(),
            coarse: (0..rows.div_ceil(fine)).map(|block| row(block * fine)).listed(),
        }
    }

    /// Returns the turns of columns from `first` on.
    pub(super) fn from(&self, first: usize, root: impl Fn(usize) -> C) -> Self {
        let turned = |(rows, step): (&[Row], usize)| {
            let mut rows = rows.to_vec();
            rows.iter_mut().enumerate().for_each(|(place, row)| row.turn(root(first * place * step)));
            rows
        };
        Self { fine: turned((&self.fine, 1)), coarse: turned((&self.coarse, self.fine.len())) }
    }
}

/// A complex number as it lies.
pub(super) type Pair = [f32; 2];
/// Numbers of a line of the cache.
const SIDE: usize = 8;

/// Writes rows as columns: `sides` are rows and columns of what is read; each side has the step from one row to the next.
///
/// # Safety
/// Both sides have the numbers, and do not overlap.
pub(super) unsafe fn across([rows, columns]: [usize; 2], (x, from): (*const Pair, usize), (y, to): (*mut Pair, usize)) {
    for row in (0..rows).step_by(SIDE) {
        for column in (0..columns).step_by(SIDE) {
            // SAFETY: both sides have the numbers of this block and do not overlap (this function's contract).
            unsafe {
                let (x, y) = (x.add(row * from + column), y.add(column * to + row));
                if row + SIDE <= rows && column + SIDE <= columns {
                    let block: [[Pair; SIDE]; SIDE] =
                        std::array::from_fn(|row| x.add(row * from).cast::<[Pair; SIDE]>().read());
                    (0..SIDE).for_each(|column| {
                        let line: [Pair; SIDE] = std::array::from_fn(|row| block[row][column]);
                        y.add(column * to).cast::<[Pair; SIDE]>().write(line);
                    });
                } else {
                    for row in 0..SIDE.min(rows - row) {
                        for column in 0..SIDE.min(columns - column) {
                            y.add(column * to + row).write(x.add(row * from + column).read());
                        }
                    }
                }
            }
        }
    }
}
