//! Digests: 128 bits that stand for what was recorded. The table of common subexpressions (`common`) and replay (`survey`) both look things up by them.
//!
//! A digest has the structure: dtypes, shapes, strides, constants, functions, and an operation's name and parameters. What is read is added beside it,
//! because it is the same in two senses. To `common` it is the same if it is the same object, so it adds addresses. To replay it is the same if it is read
//! in the same places, so it adds numbers in the order of meeting: `x + x` is not `x + y`, and `x + y` is `a + b`.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use super::node::{Node, Typed};
use super::operation::Operation;

/// A digest of any number of words. Each word is multiplied into both sums by factors that are random for the process, and the halves of the products are
/// folded. Different words have the same digest with a probability of some 10^-38.
pub(in crate::ops) struct Digest {
    sums: [u64; 2],
    factors: [u64; 2],
    words: usize,
}

impl Default for Digest {
    fn default() -> Self {
        static FACTORS: LazyLock<[u64; 2]> =
            LazyLock::new(|| [(); 2].map(|()| RandomState::new().build_hasher().finish() | 1));
        Self { sums: *FACTORS, factors: *FACTORS, words: 0 }
    }
}

impl Digest {
    /// Returns the number of words so far, which is about the size of what they stand for.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns both halves.
    pub(super) fn halves(&self) -> [u64; 2] {
        self.sums
    }

    /// Adds what a node is, without what it reads.
    pub(super) fn node(&mut self, typed: &Typed) {
        (typed.dtype as u8, &typed.shape).hash(self);
        match &typed.node {
            Node::Read(view) => (0_u8, view.offset, &view.strides).hash(self),
            Node::Gather { view, stride, length, .. } => {
                (1_u8, view.offset, &view.strides, stride, length).hash(self);
            }
            Node::Constant(value) => (2_u8, value.to_bits()).hash(self),
            Node::Unary(op, _) => (3_u8, *op as usize).hash(self),
            Node::Binary(op, ..) => (4_u8, *op as usize).hash(self),
            Node::Select(..) => self.write_u8(5),
            Node::Cast(_) => self.write_u8(6),
            Node::Random { kind, seed, .. } => (7_u8, *kind as u8, seed).hash(self),
        }
    }

    /// Adds what an operation is, without its inputs. Returns what [`Operation::parameters`] does.
    pub(super) fn operation(&mut self, operation: &dyn Operation) -> bool {
        // Equal addresses are equal names.
        let name = operation.name();
        (name.as_ptr() as usize, name.len()).hash(self);
        operation.parameters(self)
    }
}

/// Returns the halves of a product, folded.
#[inline]
fn folded(word: u64, factor: u64) -> u64 {
    let product = u128::from(word) * u128::from(factor);
    (product as u64) ^ (product >> 64) as u64
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.write_usize(bytes.len());
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_ne_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let ([a, b], [x, y]) = (self.sums, self.factors);
        self.sums = [folded(a ^ word, x), folded(b ^ word, y)];
        self.words += 1;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    /// Half of it: both halves count.
    fn finish(&self) -> u64 {
        self.sums[0]
    }
}
