//! Memory that other threads may touch while this one does.
//!
//! # The model
//!
//! An access of the executor to a buffer is, for each element, one relaxed atomic load or store: nothing is read twice, so a value that was
//! checked is the value that is used; no element is torn (on targets without 64-bit atomics, 64-bit elements may be); nothing is ordered. A race
//! in a kernel therefore gives some value that was stored there, or the one before, and nothing worse.
//!
//! Rust has no atomic access that a loop over lanes could vectorise. Runs of elements that follow each other are therefore copied by assembly,
//! to which Rust's rules on data races do not apply and which the processor executes element by element as relaxed atomics (an access splits
//! only where a cache line ends, never within an aligned element); the lane loops work on the copy, which belongs to this thread. Elements
//! apart from each other are accessed by Rust's atomics: such loops are not vectorised anyway. WebAssembly without threads has no races; with threads
//! runs are copied by its own instruction for it, which moves bytes that were stored there even where others write meanwhile.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::math::Isa;

/// An element in memory.
pub(crate) trait Shared: Copy + Default {
    /// # Safety
    /// The address is valid and aligned for the element.
    unsafe fn get(from: *const Self) -> Self;
    /// # Safety
    /// The address is valid and aligned for the element, in memory that may be written.
    unsafe fn set(to: *mut Self, value: Self);
}

macro_rules! shared {
    ($($ty:ty: $atomic:ty as $word:ty;)*) => {$(
        impl Shared for $ty {
            #[inline(always)]
            unsafe fn get(from: *const Self) -> Self {
                // SAFETY: the address is valid and aligned for the element (this function's contract).
                unsafe { <$atomic>::from_ptr(from.cast_mut().cast()) }.load(Relaxed) as $ty
            }
            #[inline(always)]
            unsafe fn set(to: *mut Self, value: Self) {
                // SAFETY: the address is valid, aligned for the element and may be written (this function's contract).
                unsafe { <$atomic>::from_ptr(to.cast()) }.store(value as $word, Relaxed);
            }
        }
    )*};
}
shared! {
    u16: AtomicU16 as u16;
    i16: AtomicU16 as u16;
    u32: AtomicU32 as u32;
    u64: AtomicU64 as u64;
}

/// Copies elements that follow each other, by vectors as wide as those of the lane loops: a processor passes a store on to a load only when
/// the store covers it, and what is copied is read at once. One side is shared, the other belongs to this thread.
///
/// # Safety
/// Both sides are valid for `count` elements, aligned for them, and do not overlap. The processor has the vectors of `I`.
#[inline(always)]
pub(crate) unsafe fn copy<I: Isa, T: Shared>(from: *const T, to: *mut T, count: usize) {
    #[cfg(all(target_arch = "x86_64", not(sanitized)))]
    // SAFETY: `count` elements on both sides, apart from each other, and vectors of `I` (this function's contract).
    unsafe {
        let (from, to, bytes) = (from.cast(), to.cast(), count * size_of::<T>());
        match I::VECTOR_BYTES {
            64 => copy_by_64(from, to, bytes),
            32 => copy_by_32(from, to, bytes),
            _ => copy_by_16(from, to, bytes),
        }
    }
    #[cfg(all(target_arch = "aarch64", not(sanitized)))]
    // SAFETY: `count` elements on both sides, apart from each other (this function's contract).
    unsafe {
        copy_bytes(from.cast(), to.cast(), count * size_of::<T>());
    }
    // A sanitizer does not see what assembly does, and looks at one thread at a time.
    #[cfg(any(target_family = "wasm", sanitized))]
    // SAFETY: `count` elements on both sides, apart from each other (this function's contract).
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, count);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_family = "wasm", sanitized)))]
    for place in 0..count {
        // SAFETY: `place < count`, and both sides hold `count` elements, aligned for them (this function's contract).
        unsafe { T::set(to.add(place), T::get(from.add(place))) };
    }
}

/// Elements of 2, 4 or 8 bytes, each by one access or part of one: by pairs of vectors, and what is left by 16 bytes and less.
macro_rules! copy_by {
    ($name:ident: $bytes:literal, $move:literal, $a:literal, $b:literal) => {
        /// # Safety
        /// As [`copy`].
        #[cfg(all(target_arch = "x86_64", not(sanitized)))]
        #[inline(always)]
        unsafe fn $name(from: *const u8, to: *mut u8, bytes: usize) {
            // SAFETY: the loops end with the bytes, which both sides hold; the vectors are those of `I` (this function's contract).
            unsafe {
                std::arch::asm!(
                    "sub {n}, 2 * {vector}",
                    "jb 3f",
                    "2:",
                    concat!($move, " ", $a, ", [{from}]"),
                    concat!($move, " ", $b, ", [{from} + {vector}]"),
                    concat!($move, " [{to}], ", $a),
                    concat!($move, " [{to} + {vector}], ", $b),
                    "add {from}, 2 * {vector}",
                    "add {to}, 2 * {vector}",
                    "sub {n}, 2 * {vector}",
                    "jae 2b",
                    "3:",
                    "add {n}, 2 * {vector} - 16",
                    "js 5f",
                    "4:",
                    concat!($move, " xmm0, [{from}]"),
                    concat!($move, " [{to}], xmm0"),
                    "add {from}, 16",
                    "add {to}, 16",
                    "sub {n}, 16",
                    "jns 4b",
                    "5:",
                    "test {n}, 8",
                    "jz 6f",
                    "mov {word}, [{from}]",
                    "mov [{to}], {word}",
                    "add {from}, 8",
                    "add {to}, 8",
                    "6:",
                    "test {n}, 4",
                    "jz 7f",
                    "mov {word:e}, [{from}]",
                    "mov [{to}], {word:e}",
                    "add {from}, 4",
                    "add {to}, 4",
                    "7:",
                    "test {n}, 2",
                    "jz 8f",
                    "mov {word:x}, [{from}]",
                    "mov [{to}], {word:x}",
                    "8:",
                    vector = const $bytes,
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    n = inout(reg) bytes => _,
                    word = out(reg) _,
                    out("xmm0") _,
                    out("xmm1") _,
                    options(nostack),
                );
            }
        }
    };
}
copy_by!(copy_by_16: 16, "movups", "xmm0", "xmm1");
copy_by!(copy_by_32: 32, "vmovups", "ymm0", "ymm1");
copy_by!(copy_by_64: 64, "vmovups", "zmm0", "zmm1");

/// Elements of 2, 4 or 8 bytes, each by one access or part of one.
///
/// # Safety
/// As [`copy`].
#[cfg(all(target_arch = "aarch64", not(sanitized)))]
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the loops end with the bytes, which both sides hold (this function's contract).
    unsafe {
        std::arch::asm!(
            "2:",
            "subs {n}, {n}, #64",
            "b.lo 3f",
            "ldp {a:q}, {b:q}, [{from}]",
            "ldp {c:q}, {d:q}, [{from}, #32]",
            "stp {a:q}, {b:q}, [{to}]",
            "stp {c:q}, {d:q}, [{to}, #32]",
            "add {from}, {from}, #64",
            "add {to}, {to}, #64",
            "b 2b",
            "3:",
            "add {n}, {n}, #64",
            "4:",
            "subs {n}, {n}, #8",
            "b.lo 5f",
            "ldr {word}, [{from}], #8",
            "str {word}, [{to}], #8",
            "b 4b",
            "5:",
            "tbz {n}, #2, 6f",
            "ldr {word:w}, [{from}], #4",
            "str {word:w}, [{to}], #4",
            "6:",
            "tbz {n}, #1, 7f",
            "ldrh {word:w}, [{from}]",
            "strh {word:w}, [{to}]",
            "7:",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            n = inout(reg) bytes => _,
            word = out(reg) _,
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            options(nostack),
        );
    }
}

/// Bytes of a block: as wide as the widest vector.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Copies a block as [`copy`] does, by as few accesses as the vectors of `I` allow.
///
/// # Safety
/// As [`copy`], of [`BLOCK_BYTES`].
#[inline(always)]
pub(crate) unsafe fn copy_block<I: Isa, T: Shared>(from: *const T, to: *mut T) {
    #[cfg(all(target_arch = "x86_64", not(sanitized)))]
    // SAFETY: `BLOCK_BYTES` bytes on both sides, apart from each other, and vectors of `I` (this function's contract).
    unsafe {
        match I::VECTOR_BYTES {
            64 => std::arch::asm!(
                "vmovups zmm0, [{from}]", "vmovups [{to}], zmm0",
                from = in(reg) from, to = in(reg) to, out("xmm0") _, options(nostack, preserves_flags),
            ),
            32 => std::arch::asm!(
                "vmovups ymm0, [{from}]", "vmovups ymm1, [{from} + 32]",
                "vmovups [{to}], ymm0", "vmovups [{to} + 32], ymm1",
                from = in(reg) from, to = in(reg) to, out("xmm0") _, out("xmm1") _, options(nostack, preserves_flags),
            ),
            _ => std::arch::asm!(
                "movups xmm0, [{from}]", "movups xmm1, [{from} + 16]",
                "movups xmm2, [{from} + 32]", "movups xmm3, [{from} + 48]",
                "movups [{to}], xmm0", "movups [{to} + 16], xmm1",
                "movups [{to} + 32], xmm2", "movups [{to} + 48], xmm3",
                from = in(reg) from, to = in(reg) to,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, options(nostack, preserves_flags),
            ),
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(sanitized))))]
    // SAFETY: `BLOCK_BYTES` bytes on both sides, apart from each other (this function's contract).
    unsafe {
        copy::<I, T>(from, to, BLOCK_BYTES / size_of::<T>());
    }
}

/// Elements that are converted at a time: they fit into the first-level cache beside everything else.
const STAGE: usize = 64;

/// Reads a run of elements and converts each.
///
/// # Safety
/// As many elements as `into` has lie from `from` on within memory, aligned for them. The processor has the vectors of `I`.
#[inline(always)]
pub(crate) unsafe fn read_run<I: Isa, M: Shared, R>(mut from: *const M, into: &mut [R], convert: impl Fn(M) -> R) {
    let mut stage = [M::default(); STAGE];
    for into in into.chunks_mut(STAGE) {
        // SAFETY: `from` has at least the rest of `into` (this function's contract), and a chunk is no longer than the stage.
        unsafe {
            copy::<I, M>(from, stage.as_mut_ptr(), into.len());
            from = from.add(into.len());
        }
        for (into, value) in into.iter_mut().zip(&stage) {
            *into = convert(*value);
        }
    }
}

/// Converts values and writes them as a run of elements.
///
/// # Safety
/// As many elements as `values` has lie from `to` on within memory that may be written, aligned for them. The processor has the vectors of `I`.
#[inline(always)]
pub(crate) unsafe fn write_run<I: Isa, M: Shared, R: Copy>(values: &[R], mut to: *mut M, convert: impl Fn(R) -> M) {
    let mut stage = [M::default(); STAGE];
    for values in values.chunks(STAGE) {
        for (stage, value) in stage.iter_mut().zip(values) {
            *stage = convert(*value);
        }
        // SAFETY: `to` has room for the rest of `values` (this function's contract), and a chunk is no longer than the stage.
        unsafe {
            copy::<I, M>(stage.as_ptr(), to, values.len());
            to = to.add(values.len());
        }
    }
}

/// Writes one value as a run of elements.
///
/// # Safety
/// As [`write_run`], of `count` elements.
#[inline(always)]
pub(crate) unsafe fn fill_run<I: Isa, M: Shared>(value: M, to: *mut M, count: usize) {
    let stage = [value; STAGE];
    let mut place = 0;
    while place < count {
        let part = (count - place).min(STAGE);
        // SAFETY: `place + part <= count` elements from `to` on may be written (this function's contract); `part <= STAGE`.
        unsafe { copy::<I, M>(stage.as_ptr(), to.add(place), part) };
        place += part;
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, copy, copy_block, fill_run, read_run, write_run};
    use crate::math::{Baseline, Isa};
    #[cfg(target_arch = "x86_64")]
    use crate::math::{Fma, Fma512};

    #[test]
    fn runs_of_any_length_are_copied_whole() {
        runs::<Baseline>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            runs::<Fma>();
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            runs::<Fma512>();
        }
    }

    fn runs<I: Isa>() {
        let source: Vec<u16> = (0..700_u16).map(|i| i.wrapping_mul(91).wrapping_add(7)).collect();
        for count in (0..200).chain([255, 256, 257, 511, 512, 513]) {
            for start in [0, 1, 2, 5] {
                let mut target = vec![0xffff_u16; 700];
                // SAFETY: both hold 700 elements.
                unsafe { copy::<I, u16>(source.as_ptr().add(start), target.as_mut_ptr().add(3), count) };
                assert_eq!(target[3..3 + count], source[start..start + count]);
                assert!(target[..3].iter().chain(&target[3 + count..]).all(|word| *word == 0xffff));
            }
            let mut target = [0xffff_u16; BLOCK_BYTES / 2 + 6];
            // SAFETY: both hold a block more than what comes before it.
            unsafe { copy_block::<I, u16>(source.as_ptr().add(count), target.as_mut_ptr().add(3)) };
            assert_eq!(target[3..BLOCK_BYTES / 2 + 3], source[count..count + BLOCK_BYTES / 2]);
            assert!(target[..3].iter().chain(&target[BLOCK_BYTES / 2 + 3..]).all(|word| *word == 0xffff));
            let (mut wide, mut back) = (vec![0_u32; count], vec![0_u16; count + 1]);
            // SAFETY: all hold as many elements.
            unsafe {
                read_run::<I, _, _>(source.as_ptr(), &mut wide, |x: u16| u32::from(x) + 1);
                write_run::<I, _, _>(&wide, back.as_mut_ptr(), |x| (x - 1) as u16);
            }
            assert_eq!((&back[..count], back[count]), (&source[..count], 0));
            // SAFETY: `back` holds more than `count` elements.
            unsafe { fill_run::<I, _>(9_u16, back.as_mut_ptr(), count) };
            assert!(back[..count].iter().all(|word| *word == 9) && back[count] == 0);
        }
    }
}
