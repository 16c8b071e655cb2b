//! FNV-1a over 64 bits: the same on every machine and in every version. It tells texts apart and finds damage; it is no defence against malice.

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

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

    /// The values of the algorithm's authors (draft-eastlake-fnv, appendix C).
    #[test]
    fn the_published_values() {
        let hash = |text: &str| Fnv::new().with(text.as_bytes()).value();
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
