//! Sixteen elements of a field of 31 bits side by side, by the vectors that the processor has: chosen at run time. `poseidon2` and `ntt` run through `run`
//! with their `Work`. Everything on the way must be inlined, or vector instructions end up in functions that were not compiled for them. `Plain` has the
//! same functions as loops and is what tests compare with.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::field::{Field as _, PrimeField};
use super::small::Montgomery31;
use cantus_base::instructions::InstructionSet;

/// Elements of a vector.
pub(super) const COUNT: usize = 16;

/// Elements of a field, or vectors of them.
///
/// Whoever calls any of it is code that the vectors' instructions may run in, all of it inlined there: see [`run`].
pub(super) trait Arithmetic: Copy {
    type Element: PrimeField;
    /// An element that many are multiplied by, made ready for it.
    type Factor: Copy;
    fn splat(x: Self::Element) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn factor(x: Self::Element) -> Self::Factor;
    fn scaled(self, by: Self::Factor) -> Self;
}

/// A division by a power of two, 2^k, up to the one that divides the modulus p less 1. With h 2^k - l = x for 0 <= l < 2^k it is
/// h + l (p - 1) / 2^k, which is below p: a shift and a product of one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halving {
    /// k.
    pub shift: u32,
    /// (p - 1) / 2^k.
    pub factor: u32,
    /// True if the opposite is meant.
    pub negative: bool,
}

impl Halving {
    /// Creates it from p - 1.
    pub(super) fn new(less: u32, shift: u32, negative: bool) -> Self {
        Self { shift, factor: less >> shift, negative }
    }

    fn mask(self) -> u32 {
        (1 << self.shift) - 1
    }
}

/// Sixteen elements.
pub(super) trait Lanes: Arithmetic<Element: Montgomery31> {
    fn load(from: &[Self::Element; COUNT]) -> Self;
    fn store(self, to: &mut [Self::Element; COUNT]);
    /// Up to sixteen, and zeros after them.
    #[inline(always)]
    fn load_some(from: &[Self::Element]) -> Self {
        let mut lanes = [Self::Element::ZERO; COUNT];
        lanes.iter_mut().zip(from).for_each(|(lane, &x)| *lane = x);
        Self::load(&lanes)
    }
    /// The first ones, as many as there is room for.
    #[inline(always)]
    fn store_some(self, to: &mut [Self::Element]) {
        let mut lanes = [Self::Element::ZERO; COUNT];
        self.store(&mut lanes);
        to.iter_mut().zip(lanes).for_each(|(x, lane)| *x = lane);
    }
    /// The sum with an element, to the power of 3 or 7.
    #[inline(always)]
    fn power<const EXPONENT: u32>(self, plus: Self::Element) -> Self {
        let x = self.add(Self::splat(plus));
        let square = x.mul(x);
        let cube = square.mul(x);
        if EXPONENT == 3 { cube } else { cube.mul(square.mul(square)) }
    }
    /// Half of it, so often, with the sum's: `sum` + 2^-k x, or `sum` - 2^-k x.
    fn halved(self, by: Halving, sum: Self) -> Self;
    /// a + b, and a - b times a factor.
    fn butterfly(self, other: Self, by: Self::Factor) -> (Self, Self);
    /// Element i of vector j becomes element j of vector i.
    fn transpose(square: &mut [Self; COUNT]);
}

impl<F: PrimeField> Arithmetic for F {
    type Element = Self;
    type Factor = Self;

    #[inline(always)]
    fn splat(x: Self) -> Self {
        x
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self - other
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    fn factor(x: Self) -> Self {
        x
    }

    #[inline(always)]
    fn scaled(self, by: Self) -> Self {
        self * by
    }
}

/// Work that runs by lanes of any kind.
pub(super) trait Work<F: Montgomery31> {
    /// Always inlined, as is everything that it calls with lanes.
    fn run<V: Lanes<Element = F>>(self);
}

/// Does the work by an instruction set's lanes, or by those of the set in use if that is a lesser one.
pub(super) fn run<F: Montgomery31, W: Work<F>>(set: InstructionSet, work: W) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f")]
        fn avx512<F: Montgomery31, W: Work<F>>(work: W) {
            work.run::<x86::Avx512<F>>();
        }
        #[target_feature(enable = "avx2")]
        fn avx2<F: Montgomery31, W: Work<F>>(work: W) {
            work.run::<x86::Avx2<F>>();
        }
        match set.min(InstructionSet::best()) {
            // SAFETY: the processor has the set in use.
            InstructionSet::Avx512 => unsafe { avx512(work) },
            // SAFETY: the processor has the set in use, and so this one.
            InstructionSet::Avx2 => unsafe { avx2(work) },
            InstructionSet::Baseline => work.run::<Plain<F>>(),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = set;
        work.run::<Plain<F>>();
    }
}

/// Lanes computed by loops, which the compiler may vectorise.
#[derive(Clone, Copy)]
pub(super) struct Plain<F>([F; COUNT]);

impl<F: PrimeField> Arithmetic for Plain<F> {
    type Element = F;
    type Factor = F;

    #[inline(always)]
    fn splat(x: F) -> Self {
        Self([x; COUNT])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }

    #[inline(always)]
    fn factor(x: F) -> F {
        x
    }

    #[inline(always)]
    fn scaled(self, by: F) -> Self {
        Self(self.0.map(|x| x * by))
    }
}

impl<F: Montgomery31> Lanes for Plain<F> {
    #[inline(always)]
    fn load(from: &[F; COUNT]) -> Self {
        Self(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [F; COUNT]) {
        *to = self.0;
    }

    #[inline(always)]
    fn halved(self, by: Halving, sum: Self) -> Self {
        let halved = Self(self.0.map(|x| {
            let word = x.word();
            let low = word.wrapping_neg() & by.mask();
            F::of_word(((word + low) >> by.shift) + low * by.factor)
        }));
        if by.negative { sum.sub(halved) } else { sum.add(halved) }
    }

    #[inline(always)]
    fn butterfly(self, other: Self, by: F) -> (Self, Self) {
        (self.add(other), self.sub(other).scaled(by))
    }

    #[inline(always)]
    fn transpose(square: &mut [Self; COUNT]) {
        for i in 0..COUNT {
            for j in 0..i {
                let own = square[i].0[j];
                square[i].0[j] = square[j].0[i];
                square[j].0[i] = own;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::field::Field;
    use super::super::small::{BabyBear, KoalaBear};
    use super::*;

    /// The sets that this processor has.
    pub(crate) fn sets() -> Vec<InstructionSet> {
        InstructionSet::ALL.into_iter().filter(|&set| set <= InstructionSet::best()).collect()
    }

    /// Elements at which carries and reductions go wrong, and others.
    pub(crate) fn elements<F: Montgomery31>(count: usize, seed: u64) -> Vec<F> {
        let mut list = Vec::new();
        for word in [0, 1, 2, F::MODULUS / 2, F::MODULUS / 2 + 1, F::MODULUS - 2, F::MODULUS - 1] {
            // As the word in memory, and as the value.
            list.extend([bytemuck::cast::<u32, F>(word), F::from_u64(word.into())]);
        }
        let mut state = seed;
        list.resize_with(count.max(list.len()), || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            F::from_u64(state >> 33)
        });
        list.truncate(count);
        list
    }

    struct Arithmetics<'a, F>(&'a [F; COUNT], &'a [F; COUNT], &'a mut Vec<[F; COUNT]>);

    impl<F: Montgomery31> Work<F> for Arithmetics<'_, F> {
        #[inline(always)]
        fn run<V: Lanes<Element = F>>(self) {
            let Self(a, b, results) = self;
            let mut note = |value: V| {
                let mut to = [F::ZERO; COUNT];
                value.store(&mut to);
                results.push(to);
            };
            let (x, y, factor) = (V::load(a), V::load(b), V::factor(b[0]));
            note(x.add(y));
            note(x.sub(y));
            note(x.mul(y));
            note(x.scaled(factor));
            let (sum, turned) = x.butterfly(y, factor);
            note(sum);
            note(turned);
            note(V::splat(b[1]));
            note(V::load_some(&a[..5]));
            note(x.power::<3>(b[2]));
            note(x.power::<7>(b[2]));
            for shift in [1, 2, 8, 15, 24] {
                note(x.halved(Halving::new(F::MODULUS - 1, shift, false), y));
                note(x.halved(Halving::new(F::MODULUS - 1, shift, true), y));
            }
            let mut some = [F::ZERO; COUNT];
            x.store_some(&mut some[..7]);
            note(V::load(&some));
            let mut square = [x; COUNT];
            for i in (1..COUNT).step_by(2) {
                square[i] = y.mul(square[i - 1]);
            }
            square.into_iter().for_each(&mut note);
            V::transpose(&mut square);
            square.into_iter().for_each(note);
        }
    }

    fn all<F: Montgomery31>() {
        let list = elements::<F>(64, 1);
        let groups = list.as_chunks::<COUNT>().0;
        for set in sets() {
            for (turn, a) in groups.iter().flat_map(|a| (0..COUNT).map(move |turn| (turn, a))) {
                for b in groups {
                    // Each of one with each of the other.
                    let b: [F; COUNT] = std::array::from_fn(|i| b[(i + turn) % COUNT]);
                    let mut results = Vec::new();
                    run(set, Arithmetics(a, &b, &mut results));
                    let each = |f: &dyn Fn(F, F) -> F| -> [F; COUNT] { std::array::from_fn(|i| f(a[i], b[i])) };
                    let mut expected = vec![
                        each(&|a, b| a + b),
                        each(&|a, b| a - b),
                        each(&|a, b| a * b),
                        each(&|a, _| a * b[0]),
                        each(&|a, b| a + b),
                        each(&|x, y| (x - y) * b[0]),
                        [b[1]; COUNT],
                        std::array::from_fn(|i| if i < 5 { a[i] } else { F::ZERO }),
                        each(&|a, _| (a + b[2]).pow(&[3])),
                        each(&|a, _| (a + b[2]).pow(&[7])),
                    ];
                    for shift in [1, 2, 8, 15, 24] {
                        let by = F::from_u64(1 << shift).inverse().unwrap_or(F::ZERO);
                        expected.extend([each(&|a, b| b + a * by), each(&|a, b| b - a * by)]);
                    }
                    expected.push(std::array::from_fn(|i| if i < 7 { a[i] } else { F::ZERO }));
                    assert_eq!(results[..expected.len()], expected, "{} by {set:?}", F::KIND);
                    let (before, after) = results[expected.len()..].split_at(COUNT);
                    for (i, j) in (0..COUNT).flat_map(|i| (0..COUNT).map(move |j| (i, j))) {
                        assert_eq!(before[i][j], after[j][i], "transposed by {set:?}");
                    }
                    assert!(results.iter().flatten().all(Field::is_reduced));
                }
            }
        }
    }

    #[test]
    fn lanes_are_the_elements() {
        all::<BabyBear>();
        all::<KoalaBear>();
    }
}
