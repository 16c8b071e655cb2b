//! Products of float32 matrices: both operands are packed into panels, and tiles of the result (`tiles`) are kept in registers while a panel of
//! each runs past them; operands that are small are read where they lie.

use std::any::TypeId;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::memory::{CpuBuffer, Form, Keeper};
use super::tiles::{Begin, Matrix, Planes, Tiles, with_tiles};
use crate::threads;

/// Terms that are summed at a time: a panel of the right operand of this length stays in the first cache.
const TERMS: usize = 192;
/// Rows of the left operand that stay in the second cache.
const ROWS: usize = 96;
/// Floats of the right operand that are packed together. The left operand is packed again for each such part.
const PACKED: usize = 8 << 20;
/// Operands of up to this many elements stay in the second cache and are read in place.
const NEAR: usize = 1 << 18;
/// With up to this many panels of the right operand, the left one is not packed: each of its rows is read only once for each panel.
const FEW: usize = 2;
/// With up to this many strips, all rows are one block. Each task packs the panels that it multiplies, some together, so that they stay in the second
/// cache.
const ALONE: usize = 8;
const PANELS: usize = 4;

/// The bound of results that count as few beside very many terms, the least number of terms of a task (they fit in the second cache), and the most parts.
const SMALL: usize = 1 << 14;
const PIECE: usize = 2048;
const PIECES: usize = 256;

/// Rows up to which packing what is multiplied counts, and lines of panels that are kept at most: 1 GiB.
const KEEPING_PAYS: usize = 2048;
const MOST_KEPT: usize = 1 << 24;

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
    static TURNED: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with this thread's memory for panels of a right operand.
pub(super) fn with_right<R>(floats: usize, work: impl FnOnce(&mut [Line]) -> R) -> R {
    with_panels(&RIGHT, floats, work)
}

/// Runs `work` with this thread's memory for strips of a left operand.
pub(super) fn with_left<R>(floats: usize, work: impl FnOnce(&mut [Line]) -> R) -> R {
    with_panels(&LEFT, floats, work)
}

/// Runs `work` with this thread's memory for rows of a left operand that lie otherwise.
pub(super) fn with_turned<R>(floats: usize, work: impl FnOnce(*mut f32) -> R) -> R {
    with_panels(&TURNED, floats, |lines| work(lines.as_mut_ptr().cast()))
}

/// Runs `work` with a thread's memory for `floats` floats.
fn with_panels<R>(
    own: &'static std::thread::LocalKey<RefCell<Vec<Line>>>,
    floats: usize,
    work: impl FnOnce(&mut [Line]) -> R,
) -> R {
    // While a thread waits for others it may start another product, which finds no memory here and allocates its own.
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

/// Runs `work` with memory for two arrays of floats, whose values are arbitrary.
pub(super) fn with_scratch<R>([first, second]: [usize; 2], work: impl FnOnce([&mut [f32]; 2]) -> R) -> R {
    let own = first.next_multiple_of(16);
    with_panels(&COLUMNS, own + second, |lines| {
        // SAFETY: a line is sixteen floats.
        let floats = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<f32>(), lines.len() * 16) };
        let (one, other) = floats.split_at_mut(own);
        work([&mut one[..first], &mut other[..second]])
    })
}

/// Equal parts of `whole` of at most `most`, each a multiple of `step`.
fn part_of(whole: usize, most: usize, step: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).max(1)).next_multiple_of(step)
}

/// The way in which a product is computed.
#[derive(Clone, Copy, Default)]
pub(super) struct How<'a> {
    /// Run on all threads, not only on this one.
    pub parallel: bool,
    /// The keeper of the right operand's panels, if its contents may stay.
    pub keeper: Option<&'a Arc<Keeper>>,
}

/// A right operand: what its panels are packed from.
///
/// # Safety
/// Panels are as [`Columns::pack`] says.
pub(super) unsafe trait Columns: Copy + Sync {
    /// A panel begins with a line that its sums begin with.
    const BEGINS: bool;
    /// Terms that are summed at a time.
    const TERMS: usize;

    /// The floats, where tiles may read them as they lie.
    fn there(&self) -> Option<Matrix<*const f32>>;

    /// Returns its start and steps, by which a keeper identifies it.
    fn place(&self) -> [usize; 3];

    /// Packs some columns, at most a tile's, of some terms: the line that sums begin with, if there is one, then a tile's columns for each term,
    /// any numbers in place of those that are not there.
    ///
    /// # Safety
    /// The elements may be read, the processor has the set, and there is room.
    unsafe fn pack<T: Tiles>(&self, columns: Range<usize>, terms: Range<usize>, to: *mut f32);
}

// SAFETY: as the tiles pack it.
unsafe impl Columns for Matrix<*const f32> {
    const BEGINS: bool = false;
    const TERMS: usize = TERMS;

    fn there(&self) -> Option<Matrix<*const f32>> {
        Some(*self)
    }

    fn place(&self) -> [usize; 3] {
        [self.start.addr(), self.row, self.column]
    }

    unsafe fn pack<T: Tiles>(&self, columns: Range<usize>, terms: Range<usize>, to: *mut f32) {
        let [along, beside] = self.strides();
        // SAFETY: the elements may be read, there is room, and the processor has the set (this function's contract).
        unsafe { T::pack_columns(self.at(terms.start, columns.start), [beside, along], columns.len(), terms.len(), to) }
    }
}

/// c = a b.
///
/// # Safety
/// Every element that the sizes and strides reach is valid: for reads of `a` and `b`, for writes of `c`, whose columns lie side by side and which
/// nothing else touches.
pub(super) unsafe fn product(
    size: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    how: How<'_>,
) {
    let b = &b;
    // SAFETY: as this function's contract has it; each term that is asked for lies within `b`.
    unsafe { product_with(size, c, a, |first| Matrix { start: b.at(first, 0), ..*b }, how) }
}

/// As [`product`], by the right operand from an even term on.
///
/// # Safety
/// As there.
pub(super) unsafe fn product_with<B: Columns>(
    [m, n, k]: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    right: impl Fn(usize) -> B + Sync,
    how: How<'_>,
) {
    let terms = k.div_ceil(PIECES).max(PIECE).next_multiple_of(2);
    if k < 4 * PIECE || !(1..=SMALL).contains(&m.saturating_mul(n)) {
        // SAFETY: every element is valid, and `c` is touched by nothing else (this function's contract); `with_tiles` asks for the processor's set.
        return unsafe { with_tiles!(T => product_by::<T, _>([m, n, k], c, a, right(0), how)) };
    }
    // Few results with very many terms: each task takes a part of the terms, so both operands are read once.
    let (c, a, right) = (&c, &a, &right);
    let piece = |at: usize, sums: &mut [f32]| {
        let first = at * terms;
        let size = [m, n, terms.min(k - first)];
        let to = Matrix { start: sums.as_mut_ptr(), row: n, column: 1 };
        let how = How { parallel: false, keeper: None };
        // SAFETY: `first` and the terms behind it lie below `k`; the sums have the size; `with_tiles` asks for the processor's set.
        unsafe {
            let a = Matrix { start: a.at(0, first), ..*a };
            with_tiles!(T => product_by::<T, _>(size, to, a, right(first), how));
        }
    };
    with_scratch([k.div_ceil(terms) * m * n, 0], |[sums, _]| {
        if how.parallel {
            threads::each_chunk(sums, m * n, piece);
        } else {
            sums.chunks_exact_mut(m * n).enumerate().for_each(|(at, sums)| piece(at, sums));
        }
        let (total, rest) = sums.split_at_mut(m * n);
        for sums in rest.chunks_exact(m * n) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        for (row, total) in total.chunks_exact(n).enumerate() {
            // SAFETY: `row < m`, and `c` has `n` columns side by side that nothing else touches (this function's contract).
            unsafe { std::slice::from_raw_parts_mut(c.at(row, 0), n) }.copy_from_slice(total);
        }
    });
}

/// As [`product`], of integers of 32 bits, which wrap.
///
/// # Safety
/// As there.
pub(super) unsafe fn product_of_integers(
    size: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    how: How<'_>,
) {
    // SAFETY: every element is valid, and `c` is touched by nothing else (this function's contract); `with_tiles` asks for the processor's set.
    unsafe { with_tiles!(T => product_by::<<T as Planes>::Integers, _>(size, c, a, b, how)) }
}

/// Lines that are kept beside a buffer.
pub(super) struct Packed(Arc<CpuBuffer>, usize);

impl std::ops::Deref for Packed {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the buffer has that many aligned lines, and nothing writes to them any more.
        unsafe { std::slice::from_raw_parts(self.0.start().cast(), self.1) }
    }
}

/// Returns the lines that `make` packed, now or before: see [`Keeper::keep`].
pub(super) fn kept(keeper: &Arc<Keeper>, form: Form, lines: usize, make: impl FnOnce(&mut [Line])) -> Option<Packed> {
    let fill = |start: *mut u8| {
        // SAFETY: the buffer has that many aligned lines, and nothing else uses them meanwhile; any bits are floats.
        make(unsafe { std::slice::from_raw_parts_mut(start.cast(), lines) });
    };
    keeper.keep(form, size_of::<Line>() * lines, fill).map(|buffer| Packed(buffer, lines))
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
    // SAFETY: `row < rows`, the elements may be read, and the lines hold a strip (this function's contract).
    unsafe { T::pack_rows(a.at(row, 0), a.strides(), T::TILE[0].min(rows - row), terms, to.as_mut_ptr().cast()) }
}

/// The right operand: packed panels of a tile's columns, or as it lies.
#[derive(Clone, Copy)]
enum Right<'a> {
    /// Panels as [`Columns::pack`] packs them, the lines of each, and whether sums begin with its first.
    Packed(&'a [Line], usize, bool),
    There(Matrix<*const f32>),
}

/// As [`product`], of words that tiles multiply.
///
/// # Safety
/// As [`product`]; the processor has the set.
pub(super) unsafe fn product_by<T: Tiles, B: Columns>(
    [m, n, k]: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: B,
    how: How<'_>,
) {
    // A whole tile's columns are packed even if fewer exist. With very many terms that takes far more memory than the operand.
    let most = PACKED / T::TILE[1];
    for first in (0..k).step_by(most) {
        // SAFETY: `first < k`; every element is valid, and the processor has the set (this function's contract).
        unsafe {
            let a = Matrix { start: a.at(0, first), ..a };
            product_of::<T, B>([m, n], c, a, (b, first..k.min(first + most)), how);
        }
    }
}

/// As [`product_by`], of some terms, which are added to `c` where it holds those before them.
///
/// # Safety
/// As [`product_by`].
unsafe fn product_of<T: Tiles, B: Columns>(
    [m, n]: [usize; 2],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    (b, terms): (B, Range<usize>),
    How { parallel, keeper }: How<'_>,
) {
    let (k, wide) = (terms.len(), T::TILE[1]);
    let threads = if parallel { threads::count() } else { 1 };
    let lot = Lot { size: [m, n], c, a, b, terms, threads };
    if let Some(b) = lot.there::<T>() {
        // SAFETY: elements and set are as the function's contract has them, which is that of the method.
        return unsafe { lot.multiply_by::<T>(Right::There(b), 0..n) };
    }
    let lines = lot.lines::<T>();
    let whole = lines * n.div_ceil(wide);
    if let Some(keeper) = keeper.filter(|_| m <= KEEPING_PAYS && whole <= MOST_KEPT) {
        let form = ("panels", TypeId::of::<T>(), [n, k, lot.terms.start], b.place());
        // SAFETY: elements and set are as the function's contract has them; there is room for all panels.
        if let Some(panels) = kept(keeper, form, whole, |panels| unsafe { lot.pack::<T>(&(0..n), panels) }) {
            // SAFETY: elements and set are as the function's contract has them, which is that of the method.
            return unsafe { lot.multiply_by::<T>(Right::Packed(&panels, lines, B::BEGINS), 0..n) };
        }
    }
    if m <= ALONE * T::TILE[0] && n.div_ceil(wide) >= 2 * threads {
        // SAFETY: elements and set are as the function's contract has them, which is that of the method.
        return unsafe { lot.pack_and_multiply::<T>() };
    }
    let columns = part_of(n, (PACKED / k).max(wide), wide);
    with_panels(&RIGHT, 16 * lines * columns.min(n.next_multiple_of(wide)).div_ceil(wide), |panels| {
        for first in (0..n).step_by(columns) {
            let columns = first..n.min(first + columns);
            let panels = &mut panels[..lines * columns.len().div_ceil(wide)];
            // SAFETY: elements and set are as the function's contract has them; there is room for the panels of these columns.
            unsafe {
                lot.pack::<T>(&columns, panels);
                lot.multiply_by::<T>(Right::Packed(panels, lines, B::BEGINS), columns);
            }
        }
    });
}

/// Some terms of a product, and the threads that share the work.
struct Lot<B> {
    /// Rows and columns of the result.
    size: [usize; 2],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: B,
    terms: Range<usize>,
    threads: usize,
}

impl<B: Columns> Lot<B> {
    /// The right operand's terms as they lie, where tiles read them there.
    fn there<T: Tiles>(&self) -> Option<Matrix<*const f32>> {
        let ([m, n], [tall, wide]) = (self.size, T::TILE);
        // Packing does not pay for few rows. A tile's columns are read whole, and columns a power of two apart would share a set of the first cache.
        let there = self.b.there().filter(|b| {
            let few = if b.row.is_multiple_of(512) { 2 } else { 16 } * tall;
            b.column == 1 && n.is_multiple_of(wide / 2) && m <= few && n.saturating_mul(self.terms.len()) <= NEAR
        });
        there.map(|b| Matrix { start: b.start.wrapping_add(self.terms.start * b.row), ..b })
    }

    /// Lines of a packed panel.
    fn lines<T: Tiles>(&self) -> usize {
        T::TILE[1] / 16 * (self.terms.len() + usize::from(B::BEGINS))
    }

    /// Runs tasks, on all threads if there are several.
    fn each(&self, tasks: usize, run: impl Fn(usize) + Sync) {
        if self.threads > 1 {
            threads::each(tasks, run);
        } else {
            (0..tasks).for_each(run);
        }
    }

    /// Packs one of the panels of some columns.
    ///
    /// # Safety
    /// As [`product_by`]; a panel has room for a tile's columns for each term.
    unsafe fn pack_one<T: Tiles>(&self, columns: &Range<usize>, panel: usize, to: &mut [Line]) {
        let wide = T::TILE[1];
        let column = columns.start + panel * wide;
        // SAFETY: every element is valid, the processor has the set, and the panel has room (this function's contract).
        unsafe { self.b.pack::<T>(column..columns.end.min(column + wide), self.terms.clone(), to.as_mut_ptr().cast()) };
    }

    /// Packs the panels of some columns.
    ///
    /// # Safety
    /// As [`Lot::pack_one`].
    unsafe fn pack<T: Tiles>(&self, columns: &Range<usize>, panels: &mut [Line]) {
        // SAFETY: every element is valid, the processor has the set, and each panel has room (this function's contract).
        let pack = |panel: usize, to: &mut [Line]| unsafe { self.pack_one::<T>(columns, panel, to) };
        if self.threads > 1 {
            threads::each_chunk(panels, self.lines::<T>(), pack);
        } else {
            panels.chunks_exact_mut(self.lines::<T>()).enumerate().for_each(|(panel, to)| pack(panel, to));
        }
    }

    /// Multiplies all rows by some columns of the right operand.
    ///
    /// # Safety
    /// As [`product_by`].
    unsafe fn multiply_by<T: Tiles>(&self, right: Right<'_>, columns: Range<usize>) {
        let ([m, _], [tall, wide], k) = (self.size, T::TILE, self.terms.len());
        // Several blocks for each thread, so that none waits long for another. With few rows the columns are split, so that each thread has a block.
        let rows = part_of(m, ROWS.min(m.div_ceil(8 * self.threads)).max(2 * tall), tall);
        let blocks = m.div_ceil(rows);
        let count = columns.len().div_ceil(wide);
        let bands = self.threads.div_ceil(blocks).min(count);
        let band = count.div_ceil(bands);
        self.each(blocks * bands, |task| {
            let (block, band_at) = (task / bands, task % bands);
            let block = block * rows..m.min(block * rows + rows);
            let here = (band_at * band).min(count)..(band_at * band + band).min(count);
            let add = self.terms.start > 0;
            // SAFETY: every element is valid, and the processor has the set (this function's contract); tasks write distinct blocks of `c`.
            unsafe { multiply::<T, B>((&self.c, add), &self.a, (right, k), [block, here], columns.clone()) };
        });
    }

    /// Multiplies few rows: each task packs some panels at a time, and multiplies by them.
    ///
    /// # Safety
    /// As [`product_by`].
    unsafe fn pack_and_multiply<T: Tiles>(&self) {
        let ([m, n], wide, k) = (self.size, T::TILE[1], self.terms.len());
        let lines = self.lines::<T>();
        let together = (NEAR / 2 / (k * wide)).clamp(1, PANELS);
        let groups = n.div_ceil(wide).div_ceil(together);
        let each = groups.div_ceil(8 * self.threads);
        self.each(groups.div_ceil(each), |task| {
            with_panels(&RIGHT, 16 * lines * together, |panels| {
                for group in (task * each..groups).take(each) {
                    let columns = group * together * wide..n.min((group + 1) * together * wide);
                    let panels = &mut panels[..lines * columns.len().div_ceil(wide)];
                    for (panel, to) in panels.chunks_exact_mut(lines).enumerate() {
                        // SAFETY: every element is valid, and the processor has the set (this function's contract); there is room for a panel.
                        unsafe { self.pack_one::<T>(&columns, panel, to) };
                    }
                    let (right, here) = (Right::Packed(panels, lines, B::BEGINS), 0..columns.len().div_ceil(wide));
                    let add = self.terms.start > 0;
                    // SAFETY: every element is valid, and the processor has the set (this function's contract); tasks write distinct columns of `c`.
                    unsafe { multiply::<T, B>((&self.c, add), &self.a, (right, k), [0..m, here], columns) };
                }
            });
        });
    }
}

/// Multiplies a block of rows by some of the right operand's panels, which have `k` terms each.
///
/// # Safety
/// As [`product_by`].
unsafe fn multiply<T: Tiles, B: Columns>(
    (c, add): (&Matrix<*mut f32>, bool),
    a: &Matrix<*const f32>,
    (right, k): (Right<'_>, usize),
    [rows, here]: [Range<usize>; 2],
    columns: Range<usize>,
) {
    let [tall, wide] = T::TILE;
    let strips = rows.len().div_ceil(tall);
    let most = part_of(k, B::TERMS, 1);
    // Rows a power of two apart would share a set of the first cache.
    let is_near = rows.len().saturating_mul(k) <= NEAR || here.len() <= FEW;
    let is_there = a.column == 1 && !a.row.is_multiple_of(1024) && is_near;
    with_panels(&LEFT, if is_there { 0 } else { strips * tall * most }, |left| {
        let left: *mut f32 = left.as_mut_ptr().cast();
        for first in (0..k).step_by(most) {
            let terms = most.min(k - first);
            // SAFETY: every element is valid (this function's contract); room for all strips; the panels have all terms, and the tile
            // lies within `c`.
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
                    let mut begin = Begin { line: None, add: add || first > 0 };
                    let right = match right {
                        Right::Packed(panels, lines, begins) => {
                            let line = panel * lines;
                            begin.line = (begins && first == 0).then(|| panels[line..].as_ptr().cast());
                            let line = line + (first + usize::from(begins)) * (wide / 16);
                            (panels[line..][..terms * (wide / 16)].as_ptr().cast(), wide)
                        }
                        Right::There(b) => (b.at(first, column), b.row),
                    };
                    for strip in 0..strips {
                        let row = rows.start + strip * tall;
                        let size = [tall.min(rows.end - row), wide.min(columns.end - column)];
                        T::tile(terms, strip_at(strip), right, (c.at(row, column), c.row), size, begin);
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::registers::Integers;
    #[cfg(target_arch = "x86_64")]
    use super::super::registers::{Integers256, Integers512};
    use super::super::tiles::{Matrix, Tiles};
    use super::{How, product_by};
    use crate::spmd::math::Baseline;

    fn how(parallel: bool) -> How<'static> {
        How { parallel, ..How::default() }
    }

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
                        unsafe { product_by::<T, _>([m, n, k], to, left, right, how(pad == 5)) };
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

    /// Integers wrap, at sizes on both sides of a tile.
    fn integers<T: Tiles>(what: &str) {
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Some are no numbers as floats, quiet or not.
            f32::from_bits(if state & 7 == 0 { 0x7f80_0001 } else { state ^ state >> 13 })
        };
        let [tall, wide] = T::TILE;
        for m in [1, tall - 1, tall, 2 * tall + 5] {
            for n in [1, wide / 2, wide, wide + 3] {
                for (k, pad) in [(1, 3), (7, 0), (400, 5), (193, 0)] {
                    let a: Vec<f32> = (0..m * (k + pad)).map(|_| number()).collect();
                    let b: Vec<f32> = (0..k * (n + pad)).map(|_| number()).collect();
                    let mut c = vec![9.0_f32; m * n];
                    let left = Matrix { start: a.as_ptr(), row: k + pad, column: 1 };
                    let right = Matrix { start: b.as_ptr(), row: n + pad, column: 1 };
                    let to = Matrix { start: c.as_mut_ptr(), row: n, column: 1 };
                    // SAFETY: the vectors hold what the sizes and steps reach, and the processor has the set.
                    unsafe { product_by::<T, _>([m, n, k], to, left, right, how(pad == 5)) };
                    for (at, value) in c.iter().enumerate() {
                        let (row, column) = (at / n, at % n);
                        let expected = (0..k).fold(0_u32, |sum, at| {
                            let (x, y) = (a[row * (k + pad) + at].to_bits(), b[at * (n + pad) + column].to_bits());
                            sum.wrapping_add(x.wrapping_mul(y))
                        });
                        assert_eq!(value.to_bits(), expected, "{what}, {m} x {n} x {k}, {row}, {column}");
                    }
                }
            }
        }
    }

    #[test]
    fn very_many_terms_are_packed_in_parts() {
        let (m, n, k) = (3, 5, 2 * super::PACKED / 16 + 7);
        // Small whole numbers: float32 holds every sum of theirs.
        let number = |at: usize| (at * 7919 % 13 % 3) as f32;
        let a: Vec<f32> = (0..m * k).map(number).collect();
        let b: Vec<f32> = (0..k * n).map(|at| number(at + 5)).collect();
        let mut c = vec![9.0_f32; m * n];
        let (left, right) =
            (Matrix { start: a.as_ptr(), row: k, column: 1 }, Matrix { start: b.as_ptr(), row: n, column: 1 });
        // SAFETY: the vectors hold what the sizes and steps reach.
        unsafe {
            super::product([m, n, k], Matrix { start: c.as_mut_ptr(), row: n, column: 1 }, left, right, how(true))
        };
        for (at, value) in c.into_iter().enumerate() {
            let (row, column) = (at / n, at % n);
            let expected: f64 = (0..k).map(|t| f64::from(a[row * k + t]) * f64::from(b[t * n + column])).sum();
            assert_eq!(f64::from(value), expected, "{row}, {column}");
        }
    }

    #[test]
    fn few_results_of_many_terms_are_added_up_by_pieces() {
        for (m, n, k) in
            [(5, 7, 4 * super::PIECE), (64, 33, 9 * super::PIECE + 5), (2, 2, super::PIECES * super::PIECE + 3)]
        {
            let number = |at: usize| (at * 7919 % 13 % 3) as f32;
            // The left one is transposed, and the result lies within wider rows.
            let a: Vec<f32> = (0..m * k).map(number).collect();
            let b: Vec<f32> = (0..k * n).map(|at| number(at + 5)).collect();
            for parallel in [false, true] {
                let mut c = vec![9.0_f32; m * (n + 3)];
                let (left, right) =
                    (Matrix { start: a.as_ptr(), row: 1, column: m }, Matrix { start: b.as_ptr(), row: n, column: 1 });
                // SAFETY: the vectors hold what the sizes and steps reach.
                unsafe {
                    let c = Matrix { start: c.as_mut_ptr(), row: n + 3, column: 1 };
                    super::product([m, n, k], c, left, right, how(parallel));
                };
                for (at, value) in c.into_iter().enumerate() {
                    let (row, column) = (at / (n + 3), at % (n + 3));
                    let sum =
                        |column: usize| (0..k).map(|t| f64::from(a[t * m + row]) * f64::from(b[t * n + column])).sum();
                    let expected: f64 = if column < n { sum(column) } else { 9.0 };
                    assert_eq!(f64::from(value), expected, "{row}, {column} of {m} x {n} x {k}");
                }
            }
        }
    }

    #[test]
    fn every_form_gives_the_products() {
        integers::<Integers>("baseline");
        form::<Baseline>("baseline");
        #[cfg(target_arch = "x86_64")]
        {
            use cantus_base::instructions::InstructionSet;
            let [avx2, avx512] = [InstructionSet::Avx2, InstructionSet::Avx512].map(InstructionSet::is_there);
            if avx2 {
                form::<crate::spmd::math::Fma>("AVX2");
                integers::<Integers256>("AVX2");
            }
            if avx512 {
                form::<crate::spmd::math::Fma512>("AVX-512");
                integers::<Integers512>("AVX-512");
            }
            println!("AVX2: {avx2}, AVX-512: {avx512}");
        }
    }
}
