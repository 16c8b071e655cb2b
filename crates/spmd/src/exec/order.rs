//! Orders of workgroups, by which tests find races between them. WGSL promises no order, and what runs on all threads has another one each time: one thread and
//! a chosen order make a failure come again.

/// An order in which the workgroups of a launch run, one after the other on one thread. Where the result depends on the order, the kernel has a race; each
/// order gives the same result every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// From the first to the last: x first, then y, then z.
    Forward,
    /// From the last to the first.
    Reversed,
    /// A permutation that the seed chooses.
    Random(u64),
}

impl Order {
    /// Returns the number of the workgroup that runs at a place below `count`.
    pub(crate) fn at(self, place: u64, count: u64) -> u64 {
        match self {
            Self::Forward => place,
            Self::Reversed => count - 1 - place,
            Self::Random(seed) => permuted(seed, place, count),
        }
    }
}

/// Permutes the numbers below `count`: a Feistel network over the bits of the largest one, again until the number is below `count`.
fn permuted(seed: u64, place: u64, count: u64) -> u64 {
    let half = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut number = place;
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 1..=4 {
            (left, right) = (right, left ^ (mixed(seed ^ mixed(right ^ round << 32)) & mask));
        }
        number = left << half | right;
        if number < count {
            return number;
        }
    }
}

/// `SplitMix64`'s output function (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mixed(state: u64) -> u64 {
    let x = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn each_order_has_every_workgroup_once() {
        for order in [Order::Forward, Order::Reversed, Order::Random(0), Order::Random(7)] {
            for count in (1..70).chain([255, 256, 257, 1000, 4097]) {
                let mut all: Vec<u64> = (0..count).map(|place| order.at(place, count)).collect();
                all.sort_unstable();
                assert!(all.iter().copied().eq(0..count), "{order:?} of {count}");
            }
        }
        let of = |seed| (0..100).map(|place| Order::Random(seed).at(place, 100)).collect::<Vec<_>>();
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        // The largest counts have places too.
        for count in [1 << 62, u64::MAX] {
            assert!((0..50).all(|place| Order::Random(1).at(count - 1 - place, count) < count));
        }
    }
}
