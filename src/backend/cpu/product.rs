//! Products of float32 matrices for processors with AVX2 and FMA, and for WebAssembly: both operands are packed into panels, and tiles
//! of the result are kept in registers while a panel of each runs past them. (The `gemm` crate has the same tile, but packs by calls of
//! `memmove`, a fifth of the time.) What this file does not take goes to that crate.

use std::cell::RefCell;
use std::ops::Range;

use crate::threads;

/// Rows and columns of a tile.
pub(super) const TILE: [usize; 2] = [6, 16];
/// Terms that are summed at a time: so long a panel of the right operand stays in the first cache.
const TERMS: usize = 256;
/// Rows of the left operand that stay in the second cache.
const ROWS: usize = 96;
/// Floats of the right operand that are packed at a time: they stay in the last cache.
const PACKED: usize = 2 << 20;

/// Lines that a thread keeps for its next product: 32 MiB.
const KEPT: usize = 1 << 19;

/// Sixteen floats, a cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line(pub(super) [f32; 16]);

pub(super) const EMPTY: Line = Line([0.0; 16]);

thread_local! {
    /// Memory for panels. It stays, because new memory would cost more than filling it.
    static LEFT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static RIGHT: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static COLUMNS: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
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

/// Packs rows for [`tile_of_panels`]: `TILE[0]` values for each of `terms` terms, zeros for rows that are not there.
///
/// # Safety
/// `rows` rows of `terms` floats may be read from `start` on.
pub(super) unsafe fn pack_rows(start: *const f32, terms: usize, rows: usize, to: &mut [f32]) {
    assert!(to.len() >= terms * TILE[0], "room for all terms");
    // SAFETY: the caller's promise, and as asserted.
    unsafe { Matrix::pack::<{ TILE[0] }>(start, [terms, 1], rows, terms, to.as_mut_ptr()) }
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

    /// Packs `length` values across (rows of a left operand, columns of a right one) from `first` on, at most `N`, for all terms: `N` values for
    /// each term, zeros in place of what is not there. `across` and `along` are the strides.
    ///
    /// # Safety
    /// The elements may be read; `to` has room for `N` floats per term.
    #[inline(always)]
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
            } else if length == N {
                for term in 0..terms {
                    for i in 0..N {
                        *to.add(term * N + i) = *start.add(i * across + term * along);
                    }
                }
            } else {
                for term in 0..terms {
                    for i in 0..N {
                        *to.add(term * N + i) = if i < length { *start.add(i * across + term * along) } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// Whether this processor has what the tile takes. With AVX-512 the `gemm` crate's tiles are larger.
pub(super) fn serves([m, n, k]: [usize; 3]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let processor =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && !is_x86_feature_detected!("avx512f");
        processor && m >= TILE[0] && n >= TILE[1] && k >= 16
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "wasm32") && m > 0 && n > 0 && k > 0
    }
}

/// Equal parts of `whole` of at most `most`, each a multiple of `step`.
fn part(whole: usize, most: usize, step: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).max(1)).next_multiple_of(step)
}

/// c = a b, on all threads or on this one.
///
/// # Safety
/// The processor serves it ([`serves`]). Every element that the sizes and strides reach is valid: for reads of `a` and `b`, for writes of `c`,
/// whose columns lie side by side and which nothing else touches.
pub(super) unsafe fn product(
    [m, n, k]: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    parallel: bool,
) {
    let threads = if parallel { threads::count() } else { 1 };
    let columns = part(n, (PACKED / k).max(TILE[1]), TILE[1]);
    // Many blocks for each thread, so that none waits long for another; at least one for each, by columns where rows are few.
    let rows = part(m, ROWS.min(m.div_ceil(8 * threads)).max(4 * TILE[0]), TILE[0]);
    let blocks = m.div_ceil(rows);
    with_panels(&RIGHT, k * columns.min(n.next_multiple_of(TILE[1])), |panels| {
        for first in (0..n).step_by(columns) {
            let columns = first..n.min(first + columns);
            let count = columns.len().div_ceil(TILE[1]);
            let panels = &mut panels[..k * count];
            let pack = |panel: usize, to: &mut [Line]| {
                let column = columns.start + panel * TILE[1];
                // SAFETY: the caller's promise; a panel has a line for each term.
                unsafe {
                    let (start, [along, beside]) = (b.at(0, column), b.strides());
                    let across = TILE[1].min(columns.end - column);
                    Matrix::pack::<{ TILE[1] }>(start, [beside, along], across, k, to.as_mut_ptr().cast());
                }
            };
            if threads > 1 {
                threads::each_chunk(panels, k, pack);
            } else {
                panels.chunks_exact_mut(k).enumerate().for_each(|(panel, to)| pack(panel, to));
            }
            let panels = &*panels;
            let bands = threads.div_ceil(blocks).min(count);
            let band = count.div_ceil(bands);
            let run = |task: usize| {
                let (block, band_at) = (task / bands, task % bands);
                let block = block * rows..m.min(block * rows + rows);
                let here = (band_at * band).min(count)..(band_at * band + band).min(count);
                // SAFETY: the caller's promises; tasks write distinct blocks of `c`.
                unsafe { multiply(&c, &a, (panels, k), [block, here], columns.clone()) };
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
/// As [`product`].
unsafe fn multiply(
    c: &Matrix<*mut f32>,
    a: &Matrix<*const f32>,
    (panels, k): (&[Line], usize),
    [rows, here]: [Range<usize>; 2],
    columns: Range<usize>,
) {
    let strips = rows.len().div_ceil(TILE[0]);
    let most = part(k, TERMS, 1);
    with_panels(&LEFT, strips * TILE[0] * most, |left| {
        let left: *mut f32 = left.as_mut_ptr().cast();
        for first in (0..k).step_by(most) {
            let terms = most.min(k - first);
            for strip in 0..strips {
                let row = rows.start + strip * TILE[0];
                // SAFETY: the caller's promise, and room for all strips.
                unsafe {
                    let across = TILE[0].min(rows.end - row);
                    let to = left.add(strip * TILE[0] * terms);
                    Matrix::pack::<{ TILE[0] }>(a.at(row, first), a.strides(), across, terms, to);
                }
            }
            for panel in here.clone() {
                let right: *const f32 = panels[panel * k + first..][..terms].as_ptr().cast();
                let column = columns.start + panel * TILE[1];
                for strip in 0..strips {
                    let row = rows.start + strip * TILE[0];
                    let size = [TILE[0].min(rows.end - row), TILE[1].min(columns.end - column)];
                    // SAFETY: the panels have all terms; the tile lies within `c`; the processor serves it.
                    unsafe {
                        let to = Matrix { start: c.at(row, column), ..*c };
                        tile_of(terms, left.add(strip * TILE[0] * terms), right, to, size, first > 0);
                    }
                }
            }
        }
    });
}

/// A tile of the result, also at its edges, where less than a whole one is stored. `add`: to what is there.
///
/// # Safety
/// As [`tile`]; `size` of the tile lies within `c`.
unsafe fn tile_of(terms: usize, a: *const f32, b: *const f32, c: Matrix<*mut f32>, size: [usize; 2], add: bool) {
    // SAFETY: the caller's promise; `whole` has room for a tile.
    unsafe {
        if size == TILE {
            return tile(terms, a, b, c.start, c.row, add);
        }
        let mut whole = [EMPTY; TILE[0]];
        tile(terms, a, b, whole.as_mut_ptr().cast(), TILE[1], false);
        for (row, Line(values)) in whole.iter().enumerate().take(size[0]) {
            for (column, value) in values.iter().enumerate().take(size[1]) {
                let to = c.at(row, column);
                *to = if add { *to + value } else { *value };
            }
        }
    }
}

/// The product of a panel of rows ([`pack_rows`]) and one of columns.
///
/// # Safety
/// The processor serves it ([`serves`]).
pub(super) unsafe fn tile_of_panels(a: &[f32], b: &[Line], to: &mut [Line; TILE[0]]) {
    let terms = b.len().min(a.len() / TILE[0]);
    // SAFETY: both panels have this many terms, and `to` is a tile.
    unsafe {
        tile(terms, a.as_ptr(), b.as_ptr().cast(), to.as_mut_ptr().cast(), TILE[1], false);
    }
}

/// c = a b or c += a b for a whole tile, with `terms` terms.
///
/// # Safety
/// The processor serves it ([`serves`]). `a` has 6 and `b` 16 floats for each term, `b` on a cache line; `c` has 6 rows of 16.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn tile(terms: usize, a: *const f32, b: *const f32, c: *mut f32, c_row: usize, add: bool) {
    use lanes::{LANES, PART};
    // SAFETY: the caller's promise; the parts make up the tile.
    unsafe {
        for row in 0..TILE[0] {
            lanes::prefetch(c.add(row * c_row));
        }
        for column in (0..TILE[1]).step_by(PART[1] * LANES) {
            for row in (0..TILE[0]).step_by(PART[0]) {
                let (mut a, mut b) = (a.add(row), b.add(column));
                let mut sums = [[lanes::zero(); PART[1]]; PART[0]];
                for _ in 0..terms {
                    let mut right = [lanes::zero(); PART[1]];
                    for (place, right) in right.iter_mut().enumerate() {
                        *right = lanes::load_aligned(b.add(place * LANES));
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let left = lanes::splat(a.add(row));
                        for (sum, right) in sums.iter_mut().zip(right) {
                            *sum = lanes::multiply_add(left, right, *sum);
                        }
                    }
                    a = a.add(TILE[0]);
                    b = b.add(TILE[1]);
                }
                for (below, sums) in sums.iter().enumerate() {
                    for (place, sum) in sums.iter().enumerate() {
                        let to = c.add((row + below) * c_row + column + place * LANES);
                        lanes::store(to, if add { lanes::add(*sum, lanes::load(to)) } else { *sum });
                    }
                }
            }
        }
    }
}

/// Eight floats of AVX2.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        __m256, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_load_ps,
        _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    };

    pub(super) const LANES: usize = 8;
    /// Rows and vectors of a tile that are summed at a time: twelve of sums, two of the right operand and one of the left one are fifteen of
    /// sixteen registers.
    pub(super) const PART: [usize; 2] = [6, 2];

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn zero() -> __m256 {
        _mm256_setzero_ps()
    }

    /// Asks for a row of the result before it is needed.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn prefetch(at: *const f32) {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }

    /// # Safety
    /// Eight floats may be read, which begin at a multiple of 32 bytes.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn load_aligned(at: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_load_ps(at) }
    }

    /// # Safety
    /// Eight floats may be read.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn load(at: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(at) }
    }

    /// # Safety
    /// A float may be read.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn splat(at: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        _mm256_broadcast_ss(unsafe { &*at })
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        _mm256_fmadd_ps(a, b, c)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add(a: __m256, b: __m256) -> __m256 {
        _mm256_add_ps(a, b)
    }

    /// # Safety
    /// Eight floats may be written.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn store(at: *mut f32, value: __m256) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(at, value) }
    }
}

/// Four floats, which become a vector wherever the target has some: on the web those of simd128.
#[cfg(not(target_arch = "x86_64"))]
mod lanes {
    pub(super) const LANES: usize = 4;
    /// Rows and vectors of a tile that are summed at a time: eight of sums, four of the right operand and two besides leave two of sixteen registers.
    pub(super) const PART: [usize; 2] = [2, 4];

    type Vector = [f32; LANES];

    pub(super) fn zero() -> Vector {
        [0.0; LANES]
    }

    pub(super) fn prefetch(_: *const f32) {}

    /// # Safety
    /// Four floats may be read.
    #[inline(always)]
    pub(super) unsafe fn load_aligned(at: *const f32) -> Vector {
        // SAFETY: the caller's promise.
        unsafe { load(at) }
    }

    /// # Safety
    /// Four floats may be read.
    #[inline(always)]
    pub(super) unsafe fn load(at: *const f32) -> Vector {
        // SAFETY: the caller's promise.
        unsafe { *at.cast() }
    }

    /// # Safety
    /// A float may be read.
    #[inline(always)]
    pub(super) unsafe fn splat(at: *const f32) -> Vector {
        // SAFETY: the caller's promise.
        [unsafe { *at }; LANES]
    }

    #[inline(always)]
    pub(super) fn multiply_add([a, b, c, d]: Vector, x: Vector, sum: Vector) -> Vector {
        [a * x[0] + sum[0], b * x[1] + sum[1], c * x[2] + sum[2], d * x[3] + sum[3]]
    }

    #[inline(always)]
    pub(super) fn add([a, b, c, d]: Vector, x: Vector) -> Vector {
        [a + x[0], b + x[1], c + x[2], d + x[3]]
    }

    /// # Safety
    /// Four floats may be written.
    #[inline(always)]
    pub(super) unsafe fn store(at: *mut f32, value: Vector) {
        // SAFETY: the caller's promise.
        unsafe { *at.cast() = value }
    }
}
