//! Elements of rows, by two coordinates: textures' texels. The lowering fuses a bounds check, an index and a load into one instruction (`lower/fuse.rs`),
//! and this runs it. Lanes whose texels follow each other in a row are copied as a run. Out of range gives zero, as the library's function says.

use super::isa::Lanes;
use super::machine::{Machine, ResolvedRows};
use super::shared::{BLOCK_BYTES, Shared, copy, copy_block};
use crate::bytecode::{B_UNIFORM, Instr, LINEAR};

/// Lanes that are looked at together.
const BLOCK: usize = BLOCK_BYTES / 4;
/// A block with this many breaks is loaded lane by lane: its runs are too short.
const MANY_BREAKS: u32 = 4;

impl ResolvedRows {
    /// The index of an element that exists, or else one that no count is above.
    #[inline(always)]
    fn index(&self, x: u32, y: u32) -> u32 {
        let index = self.base.wrapping_add(x.wrapping_add(y.wrapping_mul(self.width)).wrapping_mul(self.words));
        let is_there = (x < self.width) & (y < self.height) & (index < self.count);
        if is_there { index } else { u32::MAX }
    }

    /// The index of the first of `length` elements that follow each other in a row, if all exist.
    #[inline(always)]
    fn run(&self, x: u32, y: u32, length: usize) -> Option<u32> {
        let first = self.index(x, y);
        let is_whole =
            first < self.count && (self.width - x) as usize >= length && (self.count - first) as usize >= length;
        is_whole.then_some(first)
    }

    #[inline(always)]
    fn each(&self, xs: &[u32], ys: &[u32], d: &mut [u32]) {
        for ((x, y), d) in xs.iter().zip(ys).zip(d) {
            let index = self.index(*x, *y);
            // SAFETY: below the count.
            *d = if index < self.count { unsafe { u32::get(self.pointer.add(index as usize)) } } else { 0 };
        }
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn texel<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let rows = &{ machine.rows[i.x as usize] };
    // Lanes that are not in use load something, or zero.
    let n = machine.padded;
    // SAFETY: `i` is checked (this function's contract): registers have whole blocks of lanes; `ResolvedRows` holds for indices below its count.
    unsafe {
        let d = machine.target::<u32>(i.d, n);
        if i.form & LINEAR != 0 {
            let (x, y) = (machine.scalar::<u32>(i.a), machine.scalar::<u32>(i.b));
            // The row's part in front of its end, if the lanes begin in it and do not begin at 0 again.
            let first = rows.index(x, y);
            let inside = (rows.width.wrapping_sub(x) as usize).min(n);
            let is_run = first < rows.count && rows.words == 1 && u64::from(x) + n as u64 <= 1 << 32;
            if is_run && (rows.count - first) as usize >= inside {
                let (d, beyond) = d.split_at_mut(inside);
                copy::<I, u32>(rows.pointer.add(first as usize), d.as_mut_ptr(), inside);
                beyond.fill(0);
                return;
            }
            // Coordinates that are nowhere in memory: at an edge, once in a row.
            for (block, d) in (0_u32..).zip(d.as_chunks_mut::<BLOCK>().0) {
                let xs: [u32; BLOCK] = std::array::from_fn(|lane| x.wrapping_add(block * BLOCK as u32 + lane as u32));
                rows.each(&xs, &[y; BLOCK], d);
            }
        } else {
            let xs = machine.source::<u32>(i.a, n).as_chunks::<BLOCK>().0;
            if i.form & B_UNIFORM != 0 {
                let ys = [machine.scalar::<u32>(i.b); BLOCK];
                for (xs, d) in xs.iter().zip(d.as_chunks_mut::<BLOCK>().0) {
                    block::<I>(rows, xs, &ys, d);
                }
            } else {
                let ys = machine.source::<u32>(i.b, n).as_chunks::<BLOCK>().0;
                for ((xs, ys), d) in xs.iter().zip(ys).zip(d.as_chunks_mut::<BLOCK>().0) {
                    block::<I>(rows, xs, ys, d);
                }
            }
        }
    }
}

/// Loads a block of lanes: as a run, as a few (rows of a workgroup that is no wider), or one by one.
#[inline(always)]
fn block<I: Lanes>(rows: &ResolvedRows, xs: &[u32; BLOCK], ys: &[u32; BLOCK], d: &mut [u32; BLOCK]) {
    let breaks = breaks::<I>(xs, ys);
    if rows.words != 1 || breaks.count_ones() >= MANY_BREAKS {
        return rows.each(xs, ys, d);
    }
    if breaks == 0
        && let Some(first) = rows.run(xs[0], ys[0], BLOCK)
    {
        // SAFETY: a run of so many elements.
        return unsafe { copy_block::<I, u32>(rows.pointer.add(first as usize), d.as_mut_ptr()) };
    }
    let (mut start, mut ends) = (0, breaks | 1 << BLOCK);
    while ends != 0 {
        let end = ends.trailing_zeros() as usize;
        ends &= ends - 1;
        // Never out of range: a break is a lane.
        let (Some(xs), Some(ys), Some(d)) = (xs.get(start..end), ys.get(start..end), d.get_mut(start..end)) else {
            return;
        };
        match rows.run(xs[0], ys[0], xs.len()) {
            // SAFETY: a run of so many elements.
            Some(first) => unsafe { copy::<I, u32>(rows.pointer.add(first as usize), d.as_mut_ptr(), d.len()) },
            None => rows.each(xs, ys, d),
        }
        start = end;
    }
}

/// Returns a bit for each lane but the first that does not lie to the right of the lane before it.
#[inline(always)]
fn breaks<I: Lanes>(xs: &[u32; BLOCK], ys: &[u32; BLOCK]) -> u32 {
    // By hand: what the optimiser makes of sixteen comparisons takes three times as long as the loads.
    #[cfg(all(target_arch = "x86_64", not(sanitized)))]
    {
        use std::arch::x86_64::{
            __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256,
            _mm256_movemask_ps, _mm256_set1_epi32, _mm512_add_epi32, _mm512_alignr_epi32, _mm512_cmpeq_epi32_mask,
            _mm512_loadu_si512, _mm512_mask_cmpeq_epi32_mask, _mm512_set1_epi32,
        };
        if I::VECTOR_BYTES == 64 {
            // SAFETY: the processor has the vectors of `I`, and a block is 64 bytes.
            return unsafe {
                let (x, y) = (_mm512_loadu_si512(xs.as_ptr().cast()), _mm512_loadu_si512(ys.as_ptr().cast()));
                // The lane before each; of the first, the last.
                let (left, above) = (_mm512_alignr_epi32::<15>(x, x), _mm512_alignr_epi32::<15>(y, y));
                let next = _mm512_add_epi32(left, _mm512_set1_epi32(1));
                let follows = _mm512_mask_cmpeq_epi32_mask(_mm512_cmpeq_epi32_mask(above, y), next, x);
                u32::from(!follows & !1)
            };
        }
        if I::VECTOR_BYTES == 32 {
            // SAFETY: the processor has the vectors of `I`; both reads of eight elements from `lane` and from the one before lie in a block.
            let follows = |lane: usize| unsafe {
                let load =
                    |values: &[u32; BLOCK], lane| _mm256_loadu_si256(values.as_ptr().add(lane).cast::<__m256i>());
                let next = _mm256_add_epi32(load(xs, lane - 1), _mm256_set1_epi32(1));
                let in_row = _mm256_cmpeq_epi32(load(ys, lane - 1), load(ys, lane));
                let both = _mm256_and_si256(_mm256_cmpeq_epi32(next, load(xs, lane)), in_row);
                (_mm256_movemask_ps(_mm256_castsi256_ps(both)) as u32) << lane
            };
            return !(follows(1) | follows(8)) & 0xfffe;
        }
    }
    let mut breaks = 0;
    for lane in 1..BLOCK {
        let follows = (xs[lane] == xs[lane - 1].wrapping_add(1)) & (ys[lane] == ys[lane - 1]);
        breaks |= u32::from(!follows) << lane;
    }
    breaks
}
