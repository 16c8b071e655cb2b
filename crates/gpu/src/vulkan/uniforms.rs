//! The uniform contents of a submission: gathered, written to mapped memory once, and reached by offsets.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use super::memory::RawBuffer;

/// A submission takes at most this many bytes of uniforms; a batch with more is split.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// A range of a buffer being filled with uniform contents.
#[derive(Default)]
pub(super) struct Uniforms {
    place: Option<(Arc<RawBuffer>, u64)>,
    contents: Vec<u8>,
    /// Contents placed before, by hash: equal contents are stored once.
    placed: FxHashMap<u64, usize>,
    alignment: u64,
}

impl Uniforms {
    /// Starts over, with a range of a buffer from an offset on that is a multiple of the alignment.
    pub(super) fn start(&mut self, place: Option<(Arc<RawBuffer>, u64)>, alignment: u64) {
        self.place = place;
        self.contents.clear();
        self.placed.clear();
        self.alignment = alignment;
    }

    /// Puts contents in, zero-filled to `bytes`; returns their offset in the buffer.
    pub(super) fn add(&mut self, contents: &[u8], bytes: u64) -> u64 {
        let base = self.place.as_ref().map_or(0, |(_, base)| *base);
        let mut hasher = FxHasher::default();
        contents.hash(&mut hasher);
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&start) = self.placed.get(&hash)
            && self.contents.get(start..start + contents.len()) == Some(contents)
        {
            return base + start as u64;
        }
        let start = self.contents.len();
        self.contents.extend_from_slice(contents);
        let end = start as u64 + footprint(bytes.max(contents.len() as u64), self.alignment);
        self.contents.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
        self.placed.insert(hash, start);
        base + start as u64
    }

    /// The buffer, if the submission has uniforms at all.
    pub(super) fn buffer(&self) -> Option<&Arc<RawBuffer>> {
        self.place.as_ref().map(|(buffer, _)| buffer)
    }

    /// Writes what was gathered; false when that failed.
    pub(super) fn write(&self) -> bool {
        match &self.place {
            Some((buffer, base)) if !self.contents.is_empty() => buffer.write(*base, &self.contents),
            _ => true,
        }
    }
}

/// Bytes that contents of this size take at most.
pub(super) fn footprint(bytes: u64, alignment: u64) -> u64 {
    bytes.max(1).next_multiple_of(alignment.max(1))
}
