//! Ranges within blocks: plain arithmetic, no Vulkan.
//!
//! Best fit over the free ranges; neighbours are joined when given back. An arena holds buffers only, so the granularity that Vulkan
//! demands between buffers and images (`bufferImageGranularity`) never arises within a block.

use cantus_base::listed::Listed;
use std::collections::BTreeMap;

/// The free ranges of one block.
#[derive(Debug, Clone)]
pub(super) struct Ranges {
    bytes: u64,
    /// Start and length; no two touch.
    free: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, free: std::iter::once((0, bytes)).mapped() }
    }

    /// True when nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.free.first_key_value().is_some_and(|(&start, &length)| start == 0 && length == self.bytes)
    }

    /// Takes a range of this many bytes at a multiple of `alignment`; its start.
    pub(super) fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let alignment = alignment.max(1);
        let fits = self.free.iter().filter_map(|(&start, &length)| {
            let aligned = start.div_ceil(alignment).checked_mul(alignment)?;
            let end = aligned.checked_add(bytes)?;
            (end <= start + length).then_some((length, start, aligned))
        });
        let (length, start, aligned) = fits.min()?;
        self.free.remove(&start);
        if aligned > start {
            self.free.insert(start, aligned - start);
        }
        let rest = start + length - (aligned + bytes);
        if rest > 0 {
            self.free.insert(aligned + bytes, rest);
        }
        Some(aligned)
    }

    /// Gives a range back that was taken.
    pub(super) fn give(&mut self, start: u64, bytes: u64) {
        let (mut start, mut bytes) = (start, bytes);
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            (start, bytes) = (before, bytes + length);
        }
        if let Some(length) = self.free.remove(&(start + bytes)) {
            bytes += length;
        }
        self.free.insert(start, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_never_overlap_and_keep_their_alignment(
            steps in proptest::collection::vec((1_u64..5000, 0_u32..9, any::<bool>(), any::<usize>()), 1..200)
        ) {
            let total = 1 << 16;
            let mut ranges = Ranges::new(total);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (bytes, shift, give, pick) in steps {
                if give && !taken.is_empty() {
                    let (start, bytes) = taken.swap_remove(pick % taken.len());
                    ranges.give(start, bytes);
                } else if let Some(start) = ranges.take(bytes, 1 << shift) {
                    prop_assert_eq!(start % (1 << shift), 0);
                    prop_assert!(start + bytes <= total);
                    for (other, length) in &taken {
                        prop_assert!(start + bytes <= *other || other + length <= start);
                    }
                    taken.push((start, bytes));
                }
                // What is free and what is taken make up the whole.
                let free: u64 = ranges.free.values().sum();
                let used: u64 = taken.iter().map(|(_, bytes)| bytes).sum();
                prop_assert_eq!(free + used, total);
                prop_assert_eq!(ranges.is_empty(), taken.is_empty());
            }
            for (start, bytes) in taken {
                ranges.give(start, bytes);
            }
            prop_assert!(ranges.is_empty());
            prop_assert_eq!(ranges.take(total, 256), Some(0));
        }
    }

    #[test]
    fn a_full_block_has_no_room() {
        let mut ranges = Ranges::new(1024);
        assert_eq!(ranges.take(1025, 1), None);
        assert_eq!(ranges.take(1000, 256), Some(0));
        assert_eq!(ranges.take(24, 1), Some(1000));
        assert_eq!(ranges.take(1, 1), None);
        assert_eq!(ranges.take(u64::MAX, 256), None);
    }
}
