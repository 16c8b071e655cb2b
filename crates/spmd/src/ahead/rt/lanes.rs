//! A value for each lane.

use core::ops::{Deref, DerefMut};

use super::super::math::{self, Isa};

/// A value for each of `N` lanes, aligned for any vector.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Lanes<T, const N: usize>([T; N]);

impl<T: Copy + Default, const N: usize> Default for Lanes<T, N> {
    #[inline(always)]
    fn default() -> Self {
        Lanes([T::default(); N])
    }
}

impl<T, const N: usize> Deref for Lanes<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Lanes<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

impl<T: Copy, const N: usize> Lanes<T, N> {
    /// The value of a lane.
    ///
    /// # Safety
    /// `lane` is below `N`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn get(&self, lane: usize) -> T {
        debug_assert!(lane < N);
        // SAFETY: `lane < N` (this function's contract).
        unsafe { *self.0.get_unchecked(lane) }
    }

    /// Sets the value of a lane.
    ///
    /// # Safety
    /// `lane` is below `N`.
    #[inline(always)]
    pub unsafe fn set(&mut self, lane: usize, value: T) {
        debug_assert!(lane < N);
        // SAFETY: `lane < N` (this function's contract).
        unsafe { *self.0.get_unchecked_mut(lane) = value }
    }
}

/// `lanes`, but no more than `N`. The compiler is kept from knowing how it came about: it would compute it again in each round of each
/// loop that runs to it.
#[inline(always)]
#[must_use]
pub fn at_most<const N: usize>(lanes: usize) -> usize {
    let lanes = core::hint::black_box(lanes.min(N));
    // SAFETY: the minimum of two numbers is no larger than one of them.
    unsafe { core::hint::assert_unchecked(lanes <= N) };
    lanes
}

/// The number of a row, as a number that the compiler knows nothing of. Otherwise it turns loops around and takes one element of each of
/// several rows by gathers and scatters where the processor has them (AVX-512), a tenth as quick as rows by runs.
#[inline(always)]
#[must_use]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(unused_mut, reason = "no gathers there that a compiler would take")
)]
pub fn apart(mut row: usize) -> usize {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction at all.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) row, options(pure, nomem, nostack, preserves_flags));
    }
    row
}

/// Returns how many of `n` lanes lie up to the last of the `count` active ones. Lanes after it, as at the end of a row, may hold values far
/// from those that the kernel is meant for, which are slow to compute: the sine of a wrapped index.
#[inline(always)]
#[must_use]
pub fn active<const N: usize>(mask: &Lanes<u32, N>, count: usize, n: usize) -> usize {
    if count == n {
        return n;
    }
    let last = mask.iter().take(n).rposition(|lane| *lane != 0);
    at_most::<N>(last.map_or(0, |last| last + 1))
}

/// `a` or `b`: never a branch, which would end in masked stores where lanes are kept.
#[inline(always)]
#[must_use]
pub fn select<T: Copy>(condition: bool, a: T, b: T) -> T {
    core::hint::select_unpredictable(condition, a, b)
}

/// Has its highest bit set where `x` is too large for the fast sine, cosine and tangent.
#[inline(always)]
#[must_use]
pub fn beyond(x: f32) -> u32 {
    math::FAST_TRIG_LIMIT.to_bits().wrapping_sub(x.to_bits() & 0x7fff_ffff)
}

/// Returns whether one of the [`beyond`]s that were or'ed together had its highest bit set.
#[inline(always)]
#[must_use]
pub fn is_beyond(all: u32) -> bool {
    all >> 31 != 0
}

macro_rules! exact {
    ($($name:ident)*) => {$(
        /// Right for every finite argument, as the executor's.
        #[inline(always)]
        #[must_use]
        pub fn $name<I: Isa>(x: f32) -> f32 {
            if x.abs() > math::FAST_TRIG_LIMIT { f64::$name(f64::from(x)) as f32 } else { math::$name::<I>(x) }
        }
    )*};
}
exact!(sin cos tan);

/// Orders streamed stores before whatever tells other threads that the launch is done.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}
