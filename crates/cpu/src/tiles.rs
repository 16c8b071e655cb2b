//! Tiles of a product in an instruction set's registers, and the panels that they read. `product` and `windows` walk a product tile by tile and call these.
//! One source serves every instruction set (`registers`): 12 by 32 on AVX-512, 6 by 16 elsewhere. A partial tile is computed whole on a copy, so the inner
//! loop has no ends.

use std::ops::Range;

use super::patches::{self, Patches, Run};
use super::registers::{Integers, Lanes};
#[cfg(target_arch = "x86_64")]
use super::registers::{Integers256, Integers512, Pairs, Quads};
use crate::spmd::math::Baseline;
#[cfg(target_arch = "x86_64")]
use crate::spmd::math::{Fma, Fma512};

/// The number of terms by which the left operand is prefetched.
const AHEAD: usize = 16;
/// A matrix in memory, by its strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Matrix<T> {
    pub start: T,
    pub row: usize,
    pub column: usize,
}

// SAFETY: `T` is a pointer. The code that makes one promises that its elements may be read (`product`), or are written by one task each.
unsafe impl<T> Send for Matrix<T> {}
// SAFETY: tasks share what they read; of what is written, each touches its own elements.
unsafe impl<T> Sync for Matrix<T> {}

impl Matrix<*mut f32> {
    /// # Safety
    /// The matrix has such an element.
    pub(super) unsafe fn at(&self, row: usize, column: usize) -> *mut f32 {
        // SAFETY: the matrix has this element (this function's contract), so the address lies within its memory.
        unsafe { self.start.add(row * self.row + column * self.column) }
    }
}

impl Matrix<*const f32> {
    /// # Safety
    /// The matrix has such an element.
    pub(super) unsafe fn at(&self, row: usize, column: usize) -> *const f32 {
        // SAFETY: the matrix has this element (this function's contract), so the address lies within its memory.
        unsafe { self.start.add(row * self.row + column * self.column) }
    }

    pub(super) fn strides(&self) -> [usize; 2] {
        [self.row, self.column]
    }
}

/// Packs `length` values across (rows of a left operand, columns of a right one), at most `N`, for all terms: `N` values for each term, any ones in
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
    // SAFETY: `length` by `terms` elements may be read, and `to` holds `N` floats for each term (this function's contract).
    unsafe {
        if length == N && across == 1 {
            for term in 0..terms {
                start.add(term * along).copy_to_nonoverlapping(to.add(term * N), N);
            }
        } else {
            // Sixteen elements of each line in turn: lines a power of two apart share a set of the first cache, which holds only a few of them.
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
            // What is not there may be anything, since its results are not kept: whole lines are read as long as they end before the last one does.
            if across == 1 && length < N && along > 0 {
                let whole = terms.saturating_sub((N - length).div_ceil(along));
                while first < whole {
                    start.add(first * along).copy_to_nonoverlapping(to.add(first * N), N);
                    first += 1;
                }
            }
            while length == N && first < terms {
                for i in 0..N {
                    *to.add(first * N + i) = *start.add(i * across + first * along);
                }
                first += 1;
            }
            for term in first..terms {
                for i in 0..N {
                    *to.add(term * N + i) = if i < length { *start.add(i * across + term * along) } else { 0.0 };
                }
            }
        }
    }
}

/// The values that the sums of a tile begin with.
#[derive(Clone, Copy)]
pub(super) struct Begin {
    /// The first values of a tile's columns, the same for each row; `None` for zeros.
    pub line: Option<*const f32>,
    /// True if what the result holds is added.
    pub add: bool,
}

/// Floats of the largest tile.
const LARGEST: usize = 12 * 32;

/// Tiles of a product in an instruction set's registers.
///
/// # Safety
/// The processor has the set.
pub(super) trait Tiles: Lanes + 'static {
    /// Rows and columns of a tile.
    const TILE: [usize; 2];

    /// c = a b, c = line + a b, and so on, for `size` of a tile.
    ///
    /// # Safety
    /// For each of `terms` terms there are as many floats of `a` as rows, by its strides, and a tile's columns of `b`, or half of
    /// them where the size is no more; as many in the line that the sums begin with. `c` has the size.
    unsafe fn tile(
        terms: usize,
        a: Matrix<*const f32>,
        b: (*const f32, usize),
        c: (*mut f32, usize),
        size: [usize; 2],
        begin: Begin,
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
}

/// The operations of convolutions in addition to tiles of floats, and tiles of integers.
///
/// # Safety
/// The processor has the set.
pub(super) trait Planes: Tiles {
    /// The set's tiles of integers of 32 bits.
    type Integers: Tiles;

    /// Packs what weights meet at a tile's columns: see [`patches::lay_out`].
    ///
    /// # Safety
    /// As there.
    unsafe fn lay_out(image: *const f32, patches: &Patches, weights: Range<usize>, runs: &[Run], to: *mut f32);

    /// Adds up planes as they lie: see [`patches::planes`].
    ///
    /// # Safety
    /// As there.
    unsafe fn planes(image: *const f32, patches: &Patches, weights: *const f32, to: *mut f32, outputs: usize);
}

/// The rows and vectors of sums leave registers for a tile's columns of one term and for one element of the left operand. Fewer rows and half of the
/// vectors serve the edges.
macro_rules! tiles {
    ($($(#[$gate:meta])? $isa:ident $([$features:literal])?: $rows:literal x $columns:literal, [$large:literal, $middle:literal, $small:literal] by $vectors:literal or $half:literal;)*) => {$(
        $(#[$gate])?
        impl Tiles for $isa {
            const TILE: [usize; 2] = [$rows, $columns];

            unsafe fn tile(
                terms: usize,
                a: Matrix<*const f32>,
                b: (*const f32, usize),
                c: (*mut f32, usize),
                size: [usize; 2],
                begin: Begin,
            ) {
                $(#[target_feature(enable = $features)])?
                unsafe fn tile(
                    terms: usize,
                    a: Matrix<*const f32>,
                    b: (*const f32, usize),
                    c: (*mut f32, usize),
                    size: [usize; 2],
                    begin: Begin,
                ) {
                    // Both are packed, so their steps are constants in the instructions.
                    // SAFETY: the operands have the elements (the contract of `Tiles::tile`), and this code may use the set.
                    unsafe {
                        match (b.1, size[1] * 2 > $columns) {
                            ($columns, true) if a.row == 1 => {
                                let (a, b) = (Matrix { row: 1, column: $rows, ..a }, (b.0, $columns));
                                parts::<$isa, $large, $middle, $small, $vectors>(terms, a, b, c, size, begin);
                            }
                            (_, true) => parts::<$isa, $large, $middle, $small, $vectors>(terms, a, b, c, size, begin),
                            (_, false) => parts::<$isa, $large, $middle, $small, $half>(terms, a, b, c, size, begin),
                        }
                    }
                }
                // SAFETY: the operands have the elements, and the processor has the set (the contracts of `Tiles::tile` and `Tiles`).
                unsafe { tile(terms, a, b, c, size, begin) }
            }

            unsafe fn pack_rows(start: *const f32, strides: [usize; 2], rows: usize, terms: usize, to: *mut f32) {
                // SAFETY: the elements may be read, and there is room for a strip (the contract of `pack`).
                unsafe { pack::<$rows>(start, strides, rows, terms, to) }
            }

            unsafe fn pack_columns(start: *const f32, strides: [usize; 2], columns: usize, terms: usize, to: *mut f32) {
                // SAFETY: the elements may be read, and there is room for a panel (the contract of `pack`).
                unsafe { pack::<$columns>(start, strides, columns, terms, to) }
            }
        }
    )*};
}
tiles! {
    #[cfg(target_arch = "x86_64")]
    Fma512["avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"]: 12 x 32, [12, 8, 4] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Pairs["avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"]: 12 x 32, [12, 8, 4] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Quads["avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"]: 12 x 32, [12, 8, 4] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Integers512["avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"]: 12 x 32, [12, 8, 4] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Fma["avx2,fma"]: 6 x 16, [6, 4, 2] by 2 or 1;
    #[cfg(target_arch = "x86_64")]
    Integers256["avx2,fma"]: 6 x 16, [6, 4, 2] by 2 or 1;
    // NEON has thirty-two registers, the others have sixteen.
    #[cfg(target_arch = "aarch64")]
    Baseline: 6 x 16, [6, 4, 2] by 4 or 2;
    #[cfg(target_arch = "aarch64")]
    Integers: 6 x 16, [6, 4, 2] by 4 or 2;
    #[cfg(not(target_arch = "aarch64"))]
    Baseline: 6 x 16, [2, 2, 2] by 4 or 2;
    #[cfg(not(target_arch = "aarch64"))]
    Integers: 6 x 16, [2, 2, 2] by 4 or 2;
}

macro_rules! planes {
    ($($(#[$gate:meta])? $isa:ident $([$features:literal])?, $integers:ident: $columns:literal;)*) => {$(
        $(#[$gate])?
        impl Planes for $isa {
            type Integers = $integers;

            unsafe fn lay_out(image: *const f32, patches: &Patches, weights: Range<usize>, runs: &[Run], to: *mut f32) {
                $(#[target_feature(enable = $features)])?
                unsafe fn lay_out(image: *const f32, patches: &Patches, weights: Range<usize>, runs: &[Run], to: *mut f32) {
                    // SAFETY: what is met may be read, and there is room (the contract of `patches::lay_out`); this code may use the set.
                    unsafe { patches::lay_out::<$isa, $columns>(image, patches, weights, runs, to) }
                }
                // SAFETY: as there, and the processor has the set (the contract of `Planes`).
                unsafe { lay_out(image, patches, weights, runs, to) }
            }

            unsafe fn planes(image: *const f32, patches: &Patches, weights: *const f32, to: *mut f32, outputs: usize) {
                $(#[target_feature(enable = $features)])?
                unsafe fn planes(image: *const f32, patches: &Patches, weights: *const f32, to: *mut f32, outputs: usize) {
                    // SAFETY: what patches reach may be read, and there are weights and room for `outputs` planes (the contract of `patches::planes`).
                    unsafe {
                        match outputs {
                            1 => patches::planes::<$isa, 1>(image, patches, weights, to),
                            2 => patches::planes::<$isa, 2>(image, patches, weights, to),
                            3 => patches::planes::<$isa, 3>(image, patches, weights, to),
                            _ => patches::planes::<$isa, { patches::TOGETHER }>(image, patches, weights, to),
                        }
                    }
                }
                // SAFETY: as there, and the processor has the set (the contract of `Planes`).
                unsafe { planes(image, patches, weights, to, outputs) }
            }
        }
    )*};
}
planes! {
    #[cfg(target_arch = "x86_64")]
    Fma512["avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"], Integers512: 32;
    #[cfg(target_arch = "x86_64")]
    Fma["avx2,fma"], Integers256: 16;
    Baseline, Integers: 16;
}

/// Computes a tile in parts of `LARGE`, `MIDDLE` or `SMALL` rows.
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
    begin: Begin,
) {
    let mut row = 0;
    while row < rows {
        let size = [rows - row, columns];
        // SAFETY: rows from `row` on are there (the contract of `Tiles::tile`), and the code may use the set.
        unsafe {
            let (a, c) = (Matrix { start: a.at(row, 0), ..a }, (c.add(row * c_row), c_row));
            if size[0] > MIDDLE {
                part::<I, LARGE, VECTORS>(terms, a, b, c, size, begin);
                row += LARGE;
            } else if size[0] > SMALL {
                part::<I, MIDDLE, VECTORS>(terms, a, b, c, size, begin);
                row += MIDDLE;
            } else {
                part::<I, SMALL, VECTORS>(terms, a, b, c, size, begin);
                row += SMALL;
            }
        }
    }
}

/// Computes `R` rows of `V` vectors of columns in registers. If the size is less, rows of the left operand are repeated in place of those that are
/// missing, and are not stored.
///
/// # Safety
/// As [`Tiles::tile`].
#[inline(always)]
unsafe fn part<I: Lanes, const R: usize, const V: usize>(
    terms: usize,
    a: Matrix<*const f32>,
    (mut b, b_row): (*const f32, usize),
    (c, c_row): (*mut f32, usize),
    [rows, columns]: [usize; 2],
    begin: Begin,
) {
    // SAFETY: `a` has `rows` lines, `b` and the line that sums begin with have `V` vectors, `c` has the size (the contract of `Tiles::tile`).
    unsafe {
        let mut lines = [a.start; R];
        for (row, line) in lines.iter_mut().enumerate() {
            *line = a.at(row.min(rows - 1), 0);
            I::prefetch(c.add(row.min(rows - 1) * c_row));
        }
        let mut first = [I::zero(); V];
        if let Some(line) = begin.line {
            let mut place = 0;
            while place < V {
                first[place] = I::load(line.wrapping_add(place * I::LANES));
                place += 1;
            }
        }
        let mut sums = [first; R];
        let (mut at, mut term) = (0, 0);
        // A `while` loop with an index: in builds with little optimisation iterators are not inlined, and all registers spill.
        while term < terms {
            I::prefetch(a.start.wrapping_add(at + AHEAD * a.column));
            let mut right = [I::zero(); V];
            let mut place = 0;
            while place < V {
                right[place] = I::load(b.wrapping_add(place * I::LANES));
                place += 1;
            }
            let mut row = 0;
            while row < R {
                let left = I::splat(lines[row].wrapping_add(at));
                let mut place = 0;
                while place < V {
                    sums[row][place] = I::multiply_add(left, right[place], sums[row][place]);
                    place += 1;
                }
                row += 1;
            }
            at += a.column;
            b = b.wrapping_add(b_row);
            term += 1;
        }
        // A partial tile is copied to and from a whole one.
        let mut whole: [f32; LARGEST];
        let wide = V * I::LANES;
        let (rows, columns) = (rows.min(R), columns.min(wide));
        let is_whole = rows == R && columns == wide;
        let (to, to_row) = if is_whole {
            (c, c_row)
        } else {
            whole = [0.0; LARGEST];
            (whole.as_mut_ptr(), wide)
        };
        if begin.add && !is_whole {
            copy_rows((c, c_row), (to, to_row), [rows, columns]);
        }
        let mut row = 0;
        while row < R {
            let mut place = 0;
            while place < V {
                let (sum, at) = (sums[row][place], to.add(row * to_row + place * I::LANES));
                I::store(at, if begin.add { I::add(sum, I::load(at)) } else { sum });
                place += 1;
            }
            row += 1;
        }
        if !is_whole {
            copy_rows((to, to_row), (c, c_row), [rows, columns]);
        }
    }
}

/// Copies rows: the same for all sets and sizes of tiles.
///
/// # Safety
/// Both have as many rows and columns, by the steps between rows.
unsafe fn copy_rows(
    (from, from_row): (*const f32, usize),
    (to, to_row): (*mut f32, usize),
    [rows, columns]: [usize; 2],
) {
    for row in 0..rows {
        // SAFETY: both have `columns` floats in this row (this function's contract).
        unsafe { from.add(row * from_row).copy_to_nonoverlapping(to.add(row * to_row), columns) };
    }
}

/// An expression with the tiles of the processor's widest instruction set as a type.
macro_rules! with_tiles {
    ($tiles:ident => $work:expr) => {{
        #[cfg(target_arch = "x86_64")]
        match cantus_base::instructions::InstructionSet::best() {
            cantus_base::instructions::InstructionSet::Avx512 => {
                type $tiles = crate::spmd::math::Fma512;
                $work
            }
            cantus_base::instructions::InstructionSet::Avx2 => {
                type $tiles = crate::spmd::math::Fma;
                $work
            }
            cantus_base::instructions::InstructionSet::Baseline => {
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
