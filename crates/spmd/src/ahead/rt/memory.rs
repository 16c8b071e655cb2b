//! Elements in memory. As in the executor: out of range, a load gives zero and a store does nothing. Generated code makes a `Place` for each access of a
//! chunk. `holds` is asked once for a run of lanes; then loads and stores of that run need no check. Others are checked one by one, and a load always reads
//! something, so loops over lanes have no branch.

use super::super::math;
use super::chunk::Memory;

/// The layout of an element in memory, and its type in a lane.
pub trait Element {
    /// The type in memory.
    type Stored: Copy;
    /// The type in a lane.
    type Value: Copy + Default;
    /// Memory to lane.
    fn decode(stored: Self::Stored) -> Self::Value;
    /// Lane to memory.
    fn encode(value: Self::Value) -> Self::Stored;
}

macro_rules! element {
    ($($(#[$doc:meta])* $name:ident: $stored:ty => $value:ty, $decode:expr, $encode:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Element for $name {
            type Stored = $stored;
            type Value = $value;
            #[inline(always)]
            fn decode(stored: $stored) -> $value {
                $decode(stored)
            }
            #[inline(always)]
            fn encode(value: $value) -> $stored {
                $encode(value)
            }
        }
    )*};
}
element! {
    /// 32 bits.
    Word: u32 => u32, |x| x, |x| x;
    /// 64 bits.
    Wide: u64 => u64, |x| x, |x| x;
    /// f16, computed as f32.
    Half: u16 => f32, math::f16_to_f32, math::f32_to_f16;
    /// i16, computed as i32.
    Short: i16 => u32, |x| i32::from(x) as u32, |x| x as i16;
    /// u16, computed as u32.
    UnsignedShort: u16 => u32, u32::from, |x| x as u16;
}

/// The number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// This many.
    Fixed(u32),
    /// All that the memory holds from `start`, `stride` bytes each, times `scale`.
    Runtime {
        /// Bytes before the array.
        start: u32,
        /// Bytes of an element of the array.
        stride: u32,
        /// Parts of an element that are counted.
        scale: u32,
    },
}

/// Elements `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub struct Place<const STRIDE: usize> {
    pointer: *mut u8,
    count: u32,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "streaming stores ask for it"))]
    bytes: usize,
}

/// The element that a load reads in place of one that does not exist. Never written: stores are guarded by the count.
static NOTHING: u64 = 0;

impl<const STRIDE: usize> Place<STRIDE> {
    /// The elements of `size` bytes from `offset` on, as many as really lie within the memory.
    ///
    /// # Safety
    /// The memory is valid for its bytes.
    #[inline(always)]
    #[must_use]
    pub unsafe fn new(memory: Memory, offset: u32, size: u32, count: Count) -> Self {
        let bytes = memory.bytes as u64;
        let count = match count {
            Count::Fixed(count) => u64::from(count),
            Count::Runtime { start, stride, scale } => {
                (bytes.saturating_sub(u64::from(start)) / u64::from(stride)).saturating_mul(u64::from(scale))
            }
        };
        let room = match (bytes.checked_sub(u64::from(offset) + u64::from(size)), STRIDE as u64) {
            (None, _) => 0,
            (Some(_), 0) => u64::MAX,
            (Some(rest), stride) => rest / stride + 1,
        };
        let count = count.min(room).min(u64::from(u32::MAX)) as u32;
        // SAFETY: with at least one element in range, the offset lies within the memory.
        let pointer = unsafe {
            if count == 0 { (&raw const NOTHING).cast_mut().cast::<u8>() } else { memory.pointer.add(offset as usize) }
        };
        Place { pointer, count, bytes: memory.bytes }
    }

    /// Elements.
    #[inline(always)]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether elements `first`, `first + step`, … `first + (lanes - 1) step` exist.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, first: u32, step: u32, lanes: usize) -> bool {
        u64::from(first) + u64::from(step) * (lanes as u64).saturating_sub(1) < u64::from(self.count)
    }

    /// Returns whether elements `first + x * steps[0] + y * steps[1] + z * steps[2]` exist for all x, y and z below the sizes.
    #[inline(always)]
    #[must_use]
    pub fn holds_box(&self, first: u32, steps: [u32; 3], sizes: [u32; 3]) -> bool {
        let along = |axis: usize| u64::from(steps[axis]) * u64::from(sizes[axis].saturating_sub(1));
        u64::from(first) + along(0) + along(1) + along(2) < u64::from(self.count)
    }

    /// Element `index`, or zero.
    ///
    /// # Safety
    /// The place was made for elements of this kind.
    #[inline(always)]
    #[must_use]
    pub unsafe fn load<E: Element>(&self, index: u32) -> E::Value {
        let within = index < self.count;
        // Always reads something, so that a loop over lanes needs no branch.
        let near = if within { index } else { 0 };
        // SAFETY: element 0 exists and has this kind (this function's contract), or stands for nothing (8 bytes).
        let value = E::decode(unsafe { self.pointer.add(near as usize * STRIDE).cast::<E::Stored>().read_unaligned() });
        if within { value } else { E::Value::default() }
    }

    /// Element `first + lane * step` of a run that [`Place::holds`].
    ///
    /// # Safety
    /// The run is held, and the place was made for elements of this kind.
    #[inline(always)]
    #[must_use]
    pub unsafe fn load_run<E: Element>(&self, first: u32, step: u32, lane: usize) -> E::Value {
        // SAFETY: the run is held, so this element exists and has this kind (this function's contract).
        E::decode(unsafe {
            let start = self.pointer.add(first as usize * STRIDE);
            start.add(lane * (step as usize * STRIDE)).cast::<E::Stored>().read_unaligned()
        })
    }

    /// Sets element `index` if it exists.
    ///
    /// # Safety
    /// The place was made for elements of this kind, in memory that may be written.
    #[inline(always)]
    pub unsafe fn store<E: Element>(&self, index: u32, value: E::Value) {
        if index < self.count {
            // SAFETY: within range; the elements have this kind and may be written (this function's contract).
            unsafe { self.pointer.add(index as usize * STRIDE).cast::<E::Stored>().write_unaligned(E::encode(value)) }
        }
    }

    /// Sets element `first + lane * step` of a run that [`Place::holds`].
    ///
    /// # Safety
    /// The run is held; else as [`Place::store`].
    #[inline(always)]
    pub unsafe fn store_run<E: Element>(&self, first: u32, step: u32, lane: usize, value: E::Value) {
        // SAFETY: the run is held, so this element exists, has this kind and may be written (this function's contract).
        unsafe {
            let start = self.pointer.add(first as usize * STRIDE);
            start.add(lane * (step as usize * STRIDE)).cast::<E::Stored>().write_unaligned(E::encode(value));
        }
    }

    /// Stores a run of 32-bit elements that [`Place::holds`] and that follow each other, past the caches where the memory
    /// has at least `stream_from` bytes. Then [`super::fence`] is due before the launch ends.
    ///
    /// # Safety
    /// As [`Place::store_run`]; the stride is 4.
    #[inline(always)]
    pub unsafe fn store_row<T: Copy>(&self, first: u32, values: &[T], stream_from: usize) {
        const { assert!(size_of::<T>() == 4 && STRIDE == 4) };
        // SAFETY: the run is held, so element `first` exists (this function's contract).
        let target = unsafe { self.pointer.add(first as usize * 4) };
        #[cfg(target_arch = "x86_64")]
        if self.bytes >= stream_from && target.addr().is_multiple_of(16) && values.len().is_multiple_of(4) {
            // SAFETY: the run is held (this function's contract), the address is a multiple of 16, and SSE2 is part of x86-64.
            unsafe {
                use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
                let (from, to) = (values.as_ptr().cast::<__m128i>(), target.cast::<__m128i>());
                for quad in 0..values.len() / 4 {
                    _mm_stream_si128(to.add(quad), _mm_loadu_si128(from.add(quad)));
                }
            }
            return;
        }
        let _ = stream_from;
        // SAFETY: the run is held (this function's contract), and lanes are never in the memory of a binding.
        unsafe { core::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), target, size_of_val(values)) }
    }

    /// The address of element `index`, for an atomic operation; `None` out of range.
    #[inline(always)]
    #[must_use]
    pub fn address(&self, index: u32) -> Option<*mut u8> {
        // SAFETY: within range.
        (index < self.count).then(|| unsafe { self.pointer.add(index as usize * STRIDE) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, Memory, Place};

    #[test]
    fn a_box_is_held_where_each_of_its_elements_exists() {
        let mut words = [0_u32; 40];
        let memory = Memory { pointer: words.as_mut_ptr().cast(), bytes: size_of_val(&words) };
        // SAFETY: the words outlive the place.
        let place = unsafe { Place::<4>::new(memory, 0, 4, Count::Runtime { start: 0, stride: 4, scale: 1 }) };
        assert_eq!(place.count(), 40);
        let (mut held, mut refused) = (0, 0);
        for first in [0, 1, 20, 36, 39, 40, u32::MAX] {
            for steps in [[1, 0, 0], [1, 8, 0], [2, 5, 16], [0, 1, 1], [u32::MAX, 1, 1], [1, 1 << 31, 0]] {
                for sizes in [[1, 1, 1], [4, 1, 1], [4, 2, 1], [3, 2, 2]] {
                    let axis =
                        |axis: usize| (0..sizes[axis]).map(move |place| u64::from(place) * u64::from(steps[axis]));
                    let exists = axis(0).all(|x| {
                        axis(1).all(|y| axis(2).all(|z| u64::from(first) + x + y + z < u64::from(place.count())))
                    });
                    assert_eq!(place.holds_box(first, steps, sizes), exists, "{first} {steps:?} {sizes:?}");
                    *(if exists { &mut held } else { &mut refused }) += 1;
                }
            }
        }
        assert!(held > 20 && refused > 20, "{held} {refused}");
    }
}
