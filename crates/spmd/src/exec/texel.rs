//! Elements of rows, by two coordinates: textures' texels.

use super::isa::Lanes;
use super::machine::{Machine, ResolvedRows};
use super::shared::{BLOCK_BYTES, Shared, copy, copy_block};
use crate::bytecode::{B_UNIFORM, Instr, LINEAR};

/// Lanes that are looked at together.
const BLOCK: usize = BLOCK_BYTES / 4;
/// Lanes of a row where a workgroup is no wider.
const HALF: usize = BLOCK / 2;

impl ResolvedRows {
    /// The index of an element that exists, or else one that no count is above.
    #[inline(always)]
    fn index(&self, x: u32, y: u32) -> u32 {
        let index = self.base.wrapping_add(x.wrapping_add(y.wrapping_mul(self.width)).wrapping_mul(self.words));
        let is_there = (x < self.width) & (y < self.height) & (index < self.count);
        if is_there { index } else { u32::MAX }
    }

    /// The index of the first of elements that follow each other in a row, and all exist.
    #[inline(always)]
    fn run<const N: usize>(&self, xs: &[u32; N], ys: &[u32; N]) -> Option<u32> {
        let (x, y) = (xs[0], ys[0]);
        let mut apart = 0;
        for (lane, (at_x, at_y)) in (0_u32..).zip(xs.iter().zip(ys)) {
            apart |= (at_x ^ x.wrapping_add(lane)) | (at_y ^ y);
        }
        let first = self.index(x, y);
        let is_whole = apart == 0 && self.words == 1 && first < self.count && self.width - x >= N as u32;
        (is_whole && self.count - first >= N as u32).then_some(first)
    }

    #[inline(always)]
    fn each<const N: usize>(&self, xs: &[u32; N], ys: &[u32; N], d: &mut [u32]) {
        for (d, (x, y)) in d.iter_mut().zip(xs.iter().zip(ys)) {
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
            let xs = |block: usize| std::array::from_fn(|lane| x.wrapping_add((block * BLOCK + lane) as u32));
            blocks::<I>(rows, d, xs, |_| [y; BLOCK]);
        } else if i.form & B_UNIFORM != 0 {
            let xs = machine.source::<u32>(i.a, n).as_chunks::<BLOCK>().0.as_ptr();
            let y = machine.scalar::<u32>(i.b);
            blocks::<I>(rows, d, |block| *xs.add(block), |_| [y; BLOCK]);
        } else {
            let xs = machine.source::<u32>(i.a, n).as_chunks::<BLOCK>().0.as_ptr();
            let ys = machine.source::<u32>(i.b, n).as_chunks::<BLOCK>().0.as_ptr();
            blocks::<I>(rows, d, |block| *xs.add(block), |block| *ys.add(block));
        }
    }
}

/// Loads blocks of lanes; `xs` and `ys` give their coordinates.
#[inline(always)]
fn blocks<I: Lanes>(
    rows: &ResolvedRows,
    d: &mut [u32],
    xs: impl Fn(usize) -> [u32; BLOCK],
    ys: impl Fn(usize) -> [u32; BLOCK],
) {
    for (block, d) in d.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let (xs, ys) = (xs(block), ys(block));
        if let Some(first) = rows.run(&xs, &ys) {
            // SAFETY: a run of so many elements.
            unsafe { copy_block::<I, u32>(rows.pointer.add(first as usize), d.as_mut_ptr()) };
            continue;
        }
        let halves = xs.as_chunks::<HALF>().0.iter().zip(ys.as_chunks::<HALF>().0);
        for (d, (xs, ys)) in d.as_chunks_mut::<HALF>().0.iter_mut().zip(halves) {
            match rows.run(xs, ys) {
                // SAFETY: a run of so many elements.
                Some(first) => unsafe { copy::<I, u32>(rows.pointer.add(first as usize), d.as_mut_ptr(), HALF) },
                None => rows.each(xs, ys, d),
            }
        }
    }
}
