//! Products of float32 matrices: both operands are packed into panels, and tiles of the result are kept in registers while a panel of each runs
//! past them; operands that are small are read where they lie.

use std::cell::RefCell;
use std::ops::Range;

use super::lanes::Lanes;
use super::taps::{self, Run, Taps};
use crate::threads;

/// Terms that the left operand is asked for before they are needed.
const AHEAD: usize = 16;
/// Terms that are summed at a time: so long a panel of the right operand stays in the first cache.
const TERMS: usize = 192;
/// Rows of the left operand that stay in the second cache.
const ROWS: usize = 96;
/// Floats of the right operand that are packed at a time: the left one is packed again for each lot.
const PACKED: usize = 8 << 20;
/// Operands of so many elements lie in the second cache, and are read where they are.
const NEAR: usize = 1 << 18;
/// Panels of a right operand that do not repay packing the left one: each row is read along as many times.
const FEW: usize = 2;

/// Lines that a thread keeps for its next product: 32 MiB.
const KEPT: usize = 1 << 19;

/// Sixteen floats, a cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line([f32; 16]);

const EMPTY: Line = Line([0.0; 16]);

thread_local! {
    /// Memory for panels. It stays, because new memory would cost more than filling it.
    static LEFT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static RIGHT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static COLUMNS: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with this thread's memory for panels of a right operand.
pub(super) fn with_right<R>(floats: usize, work: impl FnOnce(&mut [Line]) -> R) -> R {
    with_panels(&RIGHT, floats, work)
}

/// Runs `work` with this thread's memory for strips of a left operand.
pub(super) fn with_left<R>(floats: usize, work: impl FnOnce(&mut [Line]) -> R) -> R {
    with_panels(&LEFT, floats, work)
}

/// Runs `work` with a thread's memory for `floats` floats.
fn with_panels<R>(
    own: &'static std::thread::LocalKey<RefCell<Vec<Line>>>,
    floats: usize,
    work: impl FnOnce(&mut [Line]) -> R,
) -> R {
    // While it waits for others a thread may take up another product: that one finds nothing, and makes its own.
    let mut lines = own.with(RefCell::take);
    let wanted = floats.div_ceil(16);
    if lines.len() < wanted {
        lines.resize(wanted, EMPTY);
    }
    let result = work(&mut lines[..wanted]);
    if lines.len() <= KEPT {
        own.with(|own| own.replace(lines));
    }
    result
}

/// Runs `work` with memory for two arrays of floats, whose values are what was there before.
pub(super) fn with_scratch<R>([first, second]: [usize; 2], work: impl FnOnce([&mut [f32]; 2]) -> R) -> R {
    let own = first.next_multiple_of(16);
    with_panels(&COLUMNS, own + second, |lines| {
        // SAFETY: a line is sixteen floats.
        let floats = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<f32>(), lines.len() * 16) };
        let (one, other) = floats.split_at_mut(own);
        work([&mut one[..first], &mut other[..second]])
    })
}

/// A matrix in memory, by its strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Matrix<T> {
    pub start: T,
    pub row: usize,
    pub column: usize,
}

// SAFETY: whoever makes one promises that its elements may be read (`product`), or are written by one task each.
unsafe impl<T> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Matrix<T> {}

impl Matrix<*mut f32> {
    /// # Safety
    /// The matrix has such an element.
    unsafe fn at(&self, row: usize, column: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.start.add(row * self.row + column * self.column) }
    }
}

impl Matrix<*const f32> {
    /// # Safety
    /// The matrix has such an element.
    unsafe fn at(&self, row: usize, column: usize) -> *const f32 {
        // SAFETY: the caller's promise.
        unsafe { self.start.add(row * self.row + column * self.column) }
    }

    fn strides(&self) -> [usize; 2] {
        [self.row, self.column]
    }
}

/// Packs `length` values across (rows of a left operand, columns of a right one), at most `N`, for all terms: `N` values for each term, zeros in
/// place of what is not there. `across` and `along` are the strides.
///
/// # Safety
/// The elements may be read; `to` has room for `N` floats per term.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined would take registers to memory")]
unsafe fn pack<const N: usize>(
    start: *const f32,
    [across, along]: [usize; 2],
    length: usize,
    terms: usize,
    to: *mut f32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if length == N && across == 1 {
            for term in 0..terms {
                start.add(term * along).copy_to_nonoverlapping(to.add(term * N), N);
            }
        } else {
            // A line of each at a time: where they lie a power of two apart, the first cache holds no more than a few of them.
            let mut first = 0;
            while along == 1 && length == N && first + 16 <= terms {
                let mut lines = [[0.0_f32; 16]; N];
                for (i, line) in lines.iter_mut().enumerate() {
                    *line = *start.add(i * across + first).cast();
                }
                for term in 0..16 {
                    for i in 0..N {
                        *to.add((first + term) * N + i) = lines[i][term];
                    }
                }
                first += 16;
            }
            for term in first..terms {
                for i in 0..N {
                    *to.add(term * N + i) = if i < length { *start.add(i * across + term * along) } else { 0.0 };
                }
            }
        }
    }
}

/// Floats of the largest tile.
const LARGEST: usize = 12 * 32;

/// Tiles of a product in an instruction set's registers.
///
/// # Safety
/// The processor has the set.
pub(super) trait Tiles: Lanes {
    /// Rows and columns of a tile.
    const TILE: [usize; 2];

    /// c = a b or c += a b, for `size` of a tile.
    ///
    /// # Safety
    /// For each of `terms` terms there are as many floats of `a` as rows, by its strides, and a tile's columns of `b`, or half of
    /// them where the size is no more. `c` has the size.
    unsafe fn tile(
        terms: usize,
        a: Matrix<*const f32>,
        b: (*const f32, usize),
        c: (*mut f32, usize),
        size: [usize; 2],
        add: bool,
    );

    /// Packs rows of a left operand: see [`pack`].
    ///
    /// # Safety
    /// As [`pack`].
    unsafe fn pack_rows(start: *const f32, strides: [usize; 2], rows: usize, terms: usize, to: *mut f32);

    /// Packs columns of a right operand: see [`pack`].
    ///
    /// # Safety
    /// As [`pack`].
    unsafe fn pack_columns(start: *const f32, strides: [usize; 2], columns: usize, terms: usize, to: *mut f32);

    /// Packs what weights meet at a tile's columns: see [`taps::lay_out`].
    ///
    /// # Safety
    /// As there.
    unsafe fn lay_out(image: *const f32, taps: &Taps, weights: Range<usize>, runs: &[Run], to: *mut f32);

    /// Adds up planes as they lie: see [`taps::planes`].
    ///
    /// # Safety
    /// As there.
    unsafe fn planes(image: *const f32, taps: &Taps, weights: *const f32, to: *mut f32, outputs: usize);
}

/// Rows and vectors that are summed at a time leave registers for a tile's columns of a term and for one element of the left operand. Fewer rows and
/// half of the vectors are for the edges.
macro_rules! tiles {
    ($($(#[$gate:meta])? $isa:ident $([$features:literal])?: $rows:literal x $columns:literal, [$large:literal, $middle:literal, $small:literal] by $vectors:literal or $half:literal;)*) => {$(
        $(#[$gate])?
        impl Tiles for crate::spmd::math::$isa {
            const TILE: [usize; 2] = [$rows, $columns];

            unsafe fn tile(
                terms: usize,
                a: Matrix<*const f32>,
                b: (*const f32, usize),
                c: (*mut f32, usize),
                size: [usize; 2],
                add: bool,
            ) {
                $(#[target_feature(enable = $features)])?
                unsafe fn tile(
                    terms: usize,
                    a: Matrix<*const f32>,
                    b: (*const f32, usize),
                    c: (*mut f32, usize),
                    size: [usize; 2],
                    add: bool,
                ) {
                    use crate::spmd::math::$isa;
                    // Both are packed: steps that are known are part of the instructions.
                    // SAFETY: the caller's promise, here and below.
                    unsafe {
                        match (b.1, size[1] * 2 > $columns) {
                            ($columns, true) if a.row == 1 => {
                                let (a, b) = (Matrix { row: 1, column: $rows, ..a }, (b.0, $columns));
                                parts::<$isa, $large, $middle, $small, $vectors>(terms, a, b, c, size, add);
                            }
                            (_, true) => parts::<$isa, $large, $middle, $small, $vectors>(terms, a, b, c, size, add),
                            (_, false) => parts::<$isa, $large, $middle, $small, $half>(terms, a, b, c, size, add),
                        }
                    }
                }
                // SAFETY: as above.
                unsafe { tile(terms, a, b, c, size, add) }
            }

            unsafe fn pack_rows(start: *const f32, strides: [usize; 2], rows: usize, terms: usize, to: *mut f32) {
                // SAFETY: as above.
                unsafe { pack::<$rows>(start, strides, rows, terms, to) }
            }

            unsafe fn pack_columns(start: *const f32, strides: [usize; 2], columns: usize, terms: usize, to: *mut f32) {
                // SAFETY: as above.
                unsafe { pack::<$columns>(start, strides, columns, terms, to) }
            }

            unsafe fn lay_out(image: *const f32, taps: &Taps, weights: Range<usize>, runs: &[Run], to: *mut f32) {
                $(#[target_feature(enable = $features)])?
                unsafe fn lay_out(image: *const f32, taps: &Taps, weights: Range<usize>, runs: &[Run], to: *mut f32) {
                    // SAFETY: as above.
                    unsafe { taps::lay_out::<crate::spmd::math::$isa, $columns>(image, taps, weights, runs, to) }
                }
                // SAFETY: as above.
                unsafe { lay_out(image, taps, weights, runs, to) }
            }

            unsafe fn planes(image: *const f32, taps: &Taps, weights: *const f32, to: *mut f32, outputs: usize) {
                $(#[target_feature(enable = $features)])?
                unsafe fn planes(image: *const f32, taps: &Taps, weights: *const f32, to: *mut f32, outputs: usize) {
                    use crate::spmd::math::$isa;
                    // SAFETY: as above.
                    unsafe {
                        match outputs {
                            1 => taps::planes::<$isa, 1>(image, taps, weights, to),
                            2 => taps::planes::<$isa, 2>(image, taps, weights, to),
                            3 => taps::planes::<$isa, 3>(image, taps, weights, to),
                            _ => taps::planes::<$isa, { taps::TOGETHER }>(image, taps, weights, to),
                        }
                    }
                }
                // SAFETY: as above.
                unsafe { planes(image, taps, weights, to, outputs) }
            }
        }
    )*};
}
tiles! {
    #[cfg(target_arch = "x86_64")]
    Fma512["avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"]: 12 x 32, [12, 8, 4] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Fma["avx2,fma"]: 6 x 16, [6, 4, 2] by 2 or 1;
    // NEON has thirty-two registers, the others have sixteen.
    #[cfg(target_arch = "aarch64")]
    Baseline: 6 x 16, [6, 4, 2] by 4 or 2;
    #[cfg(not(target_arch = "aarch64"))]
    Baseline: 6 x 16, [2, 2, 2] by 4 or 2;
}

/// A tile by so many rows at a time.
///
/// # Safety
/// As [`Tiles::tile`].
#[inline(always)]
unsafe fn parts<I: Lanes, const LARGE: usize, const MIDDLE: usize, const SMALL: usize, const VECTORS: usize>(
    terms: usize,
    a: Matrix<*const f32>,
    b: (*const f32, usize),
    (c, c_row): (*mut f32, usize),
    [rows, columns]: [usize; 2],
    add: bool,
) {
    let mut row = 0;
    while row < rows {
        let size = [rows - row, columns];
        // SAFETY: the caller's promise.
        unsafe {
            let (a, c) = (Matrix { start: a.at(row, 0), ..a }, (c.add(row * c_row), c_row));
            if size[0] > MIDDLE {
                part::<I, LARGE, VECTORS>(terms, a, b, c, size, add);
                row += LARGE;
            } else if size[0] > SMALL {
                part::<I, MIDDLE, VECTORS>(terms, a, b, c, size, add);
                row += MIDDLE;
            } else {
                part::<I, SMALL, VECTORS>(terms, a, b, c, size, add);
                row += SMALL;
            }
        }
    }
}

/// `R` rows, and so many vectors of columns, in registers. Where the size is less than that, rows of the left operand come again in place of those that are
/// not there, and are not stored.
///
/// # Safety
/// As [`Tiles::tile`].
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined would take registers to memory")]
unsafe fn part<I: Lanes, const R: usize, const V: usize>(
    terms: usize,
    a: Matrix<*const f32>,
    (mut b, b_row): (*const f32, usize),
    (c, c_row): (*mut f32, usize),
    [rows, columns]: [usize; 2],
    add: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut lines = [a.start; R];
        for (row, line) in lines.iter_mut().enumerate() {
            *line = a.at(row.min(rows - 1), 0);
            I::prefetch(c.add(row.min(rows - 1) * c_row));
        }
        let mut sums = [[I::zero(); V]; R];
        let mut at = 0;
        for _ in 0..terms {
            I::prefetch(a.start.wrapping_add(at + AHEAD * a.column));
            let mut right = [I::zero(); V];
            for place in 0..V {
                right[place] = I::load(b.add(place * I::LANES));
            }
            // By index: where iterators are not inlined, as in a build without optimisation across units, all registers go to memory.
            for row in 0..R {
                let left = I::splat(lines[row].add(at));
                for place in 0..V {
                    sums[row][place] = I::multiply_add(left, right[place], sums[row][place]);
                }
            }
            at += a.column;
            b = b.wrapping_add(b_row);
        }
        if rows >= R && columns >= V * I::LANES {
            for (row, sums) in sums.iter().enumerate() {
                for (place, sum) in sums.iter().enumerate() {
                    let to = c.add(row * c_row + place * I::LANES);
                    I::store(to, if add { I::add(*sum, I::load(to)) } else { *sum });
                }
            }
            return;
        }
        let mut whole = [0.0_f32; LARGEST];
        for (row, sums) in sums.iter().enumerate() {
            for (place, sum) in sums.iter().enumerate() {
                I::store(whole.as_mut_ptr().add((row * V + place) * I::LANES), *sum);
            }
        }
        for (row, values) in whole.chunks_exact(V * I::LANES).enumerate().take(rows.min(R)) {
            for (column, value) in values.iter().enumerate().take(columns) {
                let to = c.add(row * c_row + column);
                *to = if add { *to + value } else { *value };
            }
        }
    }
}

/// An expression with the tiles of the processor's widest instruction set as a type.
macro_rules! with_tiles {
    ($tiles:ident => $work:expr) => {{
        #[cfg(target_arch = "x86_64")]
        match crate::spmd::instruction_set() {
            "avx512" => {
                type $tiles = crate::spmd::math::Fma512;
                $work
            }
            "avx2" => {
                type $tiles = crate::spmd::math::Fma;
                $work
            }
            _ => {
                type $tiles = crate::spmd::math::Baseline;
                $work
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            type $tiles = crate::spmd::math::Baseline;
            $work
        }
    }};
}
pub(super) use with_tiles;

/// Equal parts of `whole` of at most `most`, each a multiple of `step`.
fn part_of(whole: usize, most: usize, step: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).max(1)).next_multiple_of(step)
}

/// c = a b, on all threads or on this one.
///
/// # Safety
/// Every element that the sizes and strides reach is valid: for reads of `a` and `b`, for writes of `c`, whose columns lie side by side and which
/// nothing else touches.
pub(super) unsafe fn product(
    size: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    parallel: bool,
) {
    // SAFETY: the caller's promise, and the processor has the set.
    unsafe { with_tiles!(T => product_by::<T>(size, c, a, b, parallel)) }
}

/// Floats of a packed strip.
pub(super) fn strip_floats<T: Tiles>(terms: usize) -> usize {
    (T::TILE[0] * terms).next_multiple_of(16)
}

/// Packs strip number `strip` of the first `rows` rows of a left operand.
///
/// # Safety
/// The elements may be read, and the lines hold a strip.
pub(super) unsafe fn pack_strip<T: Tiles>(
    a: Matrix<*const f32>,
    [rows, terms]: [usize; 2],
    strip: usize,
    to: &mut [Line],
) {
    let row = strip * T::TILE[0];
    // SAFETY: the caller's promise.
    unsafe { T::pack_rows(a.at(row, 0), a.strides(), T::TILE[0].min(rows - row), terms, to.as_mut_ptr().cast()) }
}

/// The right operand: packed panels of a tile's columns, of `k` terms each, or as it lies.
#[derive(Clone, Copy)]
enum Right<'a> {
    Packed(&'a [Line]),
    There(Matrix<*const f32>),
}

/// As [`product`].
///
/// # Safety
/// As [`product`]; the processor has the set.
unsafe fn product_by<T: Tiles>(
    [m, n, k]: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    parallel: bool,
) {
    let threads = if parallel { threads::count() } else { 1 };
    // Few rows do not repay packing. A tile's columns are read whole; those that lie a power of two apart meet in one place of the first cache.
    let few = if b.row.is_multiple_of(512) { 2 } else { 16 } * T::TILE[0];
    let is_there = b.column == 1 && n.is_multiple_of(T::TILE[1] / 2) && m <= few && n.saturating_mul(k) <= NEAR;
    let columns = part_of(n, (PACKED / k).max(T::TILE[1]), T::TILE[1]);
    // Many blocks for each thread, so that none waits long for another; at least one for each, by columns where rows are few.
    let rows = part_of(m, ROWS.min(m.div_ceil(8 * threads)).max(2 * T::TILE[0]), T::TILE[0]);
    let blocks = m.div_ceil(rows);
    let lines = T::TILE[1] / 16 * k;
    with_panels(&RIGHT, if is_there { 0 } else { k * columns.min(n.next_multiple_of(T::TILE[1])) }, |panels| {
        for first in (0..n).step_by(columns) {
            let columns = first..n.min(first + columns);
            let count = columns.len().div_ceil(T::TILE[1]);
            let pack = |panel: usize, to: &mut [Line]| {
                let column = columns.start + panel * T::TILE[1];
                // SAFETY: the caller's promise; a panel has a tile's columns for each term.
                unsafe {
                    let (start, [along, beside]) = (b.at(0, column), b.strides());
                    let across = T::TILE[1].min(columns.end - column);
                    T::pack_columns(start, [beside, along], across, k, to.as_mut_ptr().cast());
                }
            };
            let right = if is_there {
                Right::There(b)
            } else {
                let panels = &mut panels[..lines * count];
                if threads > 1 {
                    threads::each_chunk(panels, lines, pack);
                } else {
                    panels.chunks_exact_mut(lines).enumerate().for_each(|(panel, to)| pack(panel, to));
                }
                Right::Packed(panels)
            };
            let bands = threads.div_ceil(blocks).min(count);
            let band = count.div_ceil(bands);
            let run = |task: usize| {
                let (block, band_at) = (task / bands, task % bands);
                let block = block * rows..m.min(block * rows + rows);
                let here = (band_at * band).min(count)..(band_at * band + band).min(count);
                // SAFETY: the caller's promises; tasks write distinct blocks of `c`.
                unsafe { multiply::<T>(&c, &a, (right, k), [block, here], columns.clone()) };
            };
            if threads > 1 {
                threads::each(blocks * bands, run);
            } else {
                (0..blocks * bands).for_each(run);
            }
        }
    });
}

/// Multiplies a block of rows by some of the right operand's panels, which have `k` terms each.
///
/// # Safety
/// As [`product_by`].
unsafe fn multiply<T: Tiles>(
    c: &Matrix<*mut f32>,
    a: &Matrix<*const f32>,
    (right, k): (Right<'_>, usize),
    [rows, here]: [Range<usize>; 2],
    columns: Range<usize>,
) {
    let [tall, wide] = T::TILE;
    let strips = rows.len().div_ceil(tall);
    let most = part_of(k, TERMS, 1);
    // Rows that lie a power of two apart would meet in one place of the first cache.
    let is_near = rows.len().saturating_mul(k) <= NEAR || here.len() <= FEW;
    let is_there = a.column == 1 && !a.row.is_multiple_of(1024) && is_near;
    with_panels(&LEFT, if is_there { 0 } else { strips * tall * most }, |left| {
        let left: *mut f32 = left.as_mut_ptr().cast();
        for first in (0..k).step_by(most) {
            let terms = most.min(k - first);
            // SAFETY: the caller's promise; room for all strips; the panels have all terms, and the tile lies within `c`.
            unsafe {
                let strip_at = |strip: usize| {
                    let row = rows.start + strip * tall;
                    if is_there {
                        return Matrix { start: a.at(row, first), ..*a };
                    }
                    Matrix { start: left.add(strip * tall * terms).cast_const(), row: 1, column: tall }
                };
                for strip in (0..strips).filter(|_| !is_there) {
                    let row = rows.start + strip * tall;
                    let across = tall.min(rows.end - row);
                    T::pack_rows(a.at(row, first), a.strides(), across, terms, left.add(strip * tall * terms));
                }
                for panel in here.clone() {
                    let column = columns.start + panel * wide;
                    let right = match right {
                        Right::Packed(panels) => {
                            let line = (panel * k + first) * (wide / 16);
                            (panels[line..][..terms * (wide / 16)].as_ptr().cast(), wide)
                        }
                        Right::There(b) => (b.at(first, column), b.row),
                    };
                    for strip in 0..strips {
                        let row = rows.start + strip * tall;
                        let size = [tall.min(rows.end - row), wide.min(columns.end - column)];
                        T::tile(terms, strip_at(strip), right, (c.at(row, column), c.row), size, first > 0);
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Matrix, Tiles, product_by};
    use crate::spmd::math::Baseline;

    /// Products by a form, at sizes on both sides of its tiles, against float64.
    fn form<T: Tiles>(what: &str) {
        // Numbers by a linear congruence: any will do.
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        let [tall, wide] = T::TILE;
        for m in [1, tall - 1, tall, tall + 1, 2 * tall + 5, 131] {
            for n in [1, wide / 2, wide / 2 + 1, wide, wide + 3, 4 * wide, 150] {
                for k in [1, 7, 192, 400] {
                    for (turned, pad) in [(false, 0), (true, 3), (false, 5)] {
                        let (a_steps, b_steps) =
                            if turned { ([1, m + pad], [1, k + pad]) } else { ([k + pad, 1], [n + pad, 1]) };
                        let a: Vec<f32> = (0..(m + pad) * (k + pad)).map(|_| number()).collect();
                        let b: Vec<f32> = (0..(k + pad) * (n + pad)).map(|_| number()).collect();
                        // What stands behind the result's columns stays.
                        let mut c = vec![9.0_f32; m * (n + pad)];
                        let left = Matrix { start: a.as_ptr(), row: a_steps[0], column: a_steps[1] };
                        let right = Matrix { start: b.as_ptr(), row: b_steps[0], column: b_steps[1] };
                        let to = Matrix { start: c.as_mut_ptr(), row: n + pad, column: 1 };
                        // SAFETY: the vectors hold what the sizes and steps reach, and the processor has the set.
                        unsafe { product_by::<T>([m, n, k], to, left, right, pad == 5) };
                        for (row, line) in c.chunks_exact(n + pad).enumerate() {
                            for (column, &value) in line.iter().enumerate() {
                                let terms = |at: usize| {
                                    let [x, y] = [
                                        a[row * a_steps[0] + at * a_steps[1]],
                                        b[at * b_steps[0] + column * b_steps[1]],
                                    ];
                                    f64::from(x) * f64::from(y)
                                };
                                let expected = if column < n { (0..k).map(terms).sum() } else { 9.0 };
                                let error = (f64::from(value) - expected).abs();
                                assert!(
                                    error <= 1e-6 * k as f64,
                                    "{what}, {m} x {n} x {k}, {row}, {column}: {value}, not {expected}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_form_gives_the_products() {
        form::<Baseline>("baseline");
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            let avx512 = avx512 && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl");
            if avx2 {
                form::<crate::spmd::math::Fma>("AVX2");
            }
            if avx2 && avx512 {
                form::<crate::spmd::math::Fma512>("AVX-512");
            }
            println!("AVX2: {avx2}, AVX-512: {avx512}");
        }
    }
}
