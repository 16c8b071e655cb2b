//! FNV-1a over 64 bits: the same on every machine and in every version. It tells texts apart and finds damage; it is no defence against malice.

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// 2^64 over the golden ratio, made odd: its bits are spread, so that a product mixes all lower bits into the higher ones.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash being computed.
#[derive(Clone, Copy)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(START)
    }
}

impl Fnv {
    /// Creates a hash of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another hash of the same bytes: two together are a name of 128 bits.
    #[must_use]
    pub fn second() -> Self {
        Self(!START)
    }

    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)))
    }

    /// Adds many bytes, eight at a time, in a fraction of the time. Any single change changes the value, which is not FNV's and depends on how the bytes
    /// are split over calls.
    #[must_use]
    pub fn with_block(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        // A product leaves the highest bit where it is: the shift and the next turn bring it down, for the next product to spread.
        let add = |hash: u64, word: &[u8; 8]| {
            let product = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(SPREAD);
            product ^ (product >> 32)
        };
        Self(words.iter().fold(self.0, add)).with(rest)
    }

    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

/// Returns the hash of these bytes.
pub fn fnv(bytes: &[u8]) -> u64 {
    Fnv::new().with(bytes).value()
}

#[cfg(test)]
mod tests {
    use super::Fnv;

    #[test]
    fn every_bit_of_a_block_counts() {
        let block: Vec<u8> = (0..101).collect();
        let hash = |block: &[u8]| Fnv::new().with_block(block).value();
        let mut seen = std::collections::HashSet::from([hash(&block), hash(&block[1..]), hash(&block[..100])]);
        let flipped = |bits: &[usize]| {
            let mut block = block.clone();
            bits.iter().for_each(|bit| block[bit / 8] ^= 1 << (bit % 8));
            hash(&block)
        };
        for bit in 0..8 * block.len() {
            assert!(seen.insert(flipped(&[bit])), "bit {bit}");
        }
        // The sign of two numbers.
        for word in 1..12 {
            assert!(seen.insert(flipped(&[63, 64 * word + 63])), "word {word}");
        }
    }

    /// The values of the algorithm's authors (draft-eastlake-fnv, appendix C).
    #[test]
    fn the_published_values() {
        let hash = |text: &str| Fnv::new().with(text.as_bytes()).value();
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
