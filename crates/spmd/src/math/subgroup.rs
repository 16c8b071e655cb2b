//! Subgroup operations: 32 consecutive lanes of one workgroup. `mask` holds a word for each lane, zero for inactive ones;
//! `None` if all are active. Inactive lanes take no part.

/// Lanes of a subgroup.
const SIZE: usize = 32;

/// One value for the subgroup.
pub const SCAN_REDUCE: u8 = 0;
/// Inclusive scan: each lane's value includes its own.
pub const SCAN_INCLUSIVE: u8 = 1;
/// Exclusive scan: each lane's value is that of the lanes before it.
pub const SCAN_EXCLUSIVE: u8 = 2;

#[inline(always)]
fn active(mask: Option<&[u32]>, lane: usize) -> bool {
    mask.is_none_or(|mask| mask.get(lane).is_some_and(|word| *word != 0))
}

/// Folds over the active lanes of each subgroup, from the first on.
#[inline(always)]
pub fn collect<const SCAN: u8, T: Copy>(
    d: &mut [T],
    a: &[T],
    mask: Option<&[u32]>,
    identity: T,
    fold: impl Fn(T, T) -> T,
) {
    for (group, (d, a)) in d.chunks_mut(SIZE).zip(a.chunks(SIZE)).enumerate() {
        let mut sum = identity;
        for (lane, (d, a)) in d.iter_mut().zip(a).enumerate() {
            if !active(mask, group * SIZE + lane) {
                continue;
            }
            let next = fold(sum, *a);
            match SCAN {
                SCAN_INCLUSIVE => *d = next,
                SCAN_EXCLUSIVE => *d = sum,
                _ => {}
            }
            sum = next;
        }
        if SCAN == SCAN_REDUCE {
            d.fill(sum);
        }
    }
}

/// Votes of the active lanes of each subgroup, as bits.
#[inline(always)]
pub fn ballot(d: &mut [u32], a: &[u32], mask: Option<&[u32]>) {
    for (group, (d, a)) in d.chunks_mut(SIZE).zip(a.chunks(SIZE)).enumerate() {
        let votes = a.iter().enumerate().filter(|(lane, a)| **a != 0 && active(mask, group * SIZE + lane));
        let votes = votes.fold(0_u32, |votes, (lane, _)| votes | 1 << lane);
        d.fill(votes);
    }
}

/// Each active lane takes the value of another: `from` gives its place in the subgroup from the lane's own place, its
/// operand, and the first active lane. WGSL leaves two values open: of a lane that does not exist, ours is the lane's own; of one that takes
/// no part, zero.
#[inline(always)]
pub fn gather(d: &mut [u32], a: &[u32], b: Option<&[u32]>, mask: Option<&[u32]>, from: impl Fn(u32, u32, u32) -> u32) {
    for (group, (d, a)) in d.chunks_mut(SIZE).zip(a.chunks(SIZE)).enumerate() {
        let start = group * SIZE;
        let first = (0..a.len()).find(|lane| active(mask, start + lane)).unwrap_or(0) as u32;
        for (lane, d) in d.iter_mut().enumerate() {
            if !active(mask, start + lane) {
                continue;
            }
            let operand = b.and_then(|b| b.get(start + lane)).copied().unwrap_or(0);
            let other = from(lane as u32, operand, first) as usize;
            let other = if other < a.len() { other } else { lane };
            *d = if active(mask, start + other) { a.get(other).copied().unwrap_or(0) } else { 0 };
        }
    }
}
