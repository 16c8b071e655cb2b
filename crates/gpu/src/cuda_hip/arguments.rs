//! The arguments of a launch.

use std::ffi::c_void;

/// The arguments of a launch, as bytes with their places.
#[derive(Default)]
pub(super) struct Arguments {
    words: Vec<u64>,
    places: Vec<usize>,
    pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers are rebuilt before each use and point into `words`.
unsafe impl Send for Arguments {}

impl Arguments {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.places.clear();
    }

    /// Adds an argument of `size` bytes, zeros behind what is given. Each starts at a multiple of 16 bytes, which no type exceeds.
    pub(super) fn push(&mut self, given: &[u8], size: usize) {
        let start = self.words.len().next_multiple_of(2);
        self.words.resize(start + size.div_ceil(8), 0);
        self.places.push(start);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words[start..]);
        let length = given.len().min(size);
        bytes[..length].copy_from_slice(&given[..length]);
    }

    /// Overwrites the argument at a place, as [`Arguments::push`] filled it.
    pub(super) fn set(&mut self, place: usize, given: &[u8]) {
        let start = self.places.get(place).copied().unwrap_or(self.words.len());
        let end = self.places.get(place + 1).copied().unwrap_or(self.words.len());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.words.get_mut(start..end).unwrap_or_default());
        let length = given.len().min(bytes.len());
        bytes[..length].copy_from_slice(&given[..length]);
    }

    /// The first word of an argument: an address, where it is one.
    pub(super) fn word(&self, place: usize) -> Option<u64> {
        self.words.get(*self.places.get(place)?).copied()
    }

    /// Adds a structure of 32-bit numbers.
    pub(super) fn push_numbers(&mut self, count: usize, numbers: impl Iterator<Item = u32>) {
        self.push(&[], count * 4);
        let start = self.places.last().copied().unwrap_or(0);
        let places: &mut [u32] = bytemuck::cast_slice_mut(&mut self.words[start..]);
        places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    }

    pub(super) fn pointers(&mut self) -> &mut [*mut c_void] {
        self.pointers.clear();
        let start = self.words.as_mut_ptr();
        // SAFETY: every place lies within `words`.
        self.pointers.extend(self.places.iter().map(|&place| unsafe { start.add(place) }.cast()));
        &mut self.pointers
    }
}
