//! The permutation Poseidon2 (Grassi, Khovratovich, Schofnegger, 2023) with its authors' constants, on the host. Constants come from the authors' generator
//! (Grain) at the first use of a width, and the matrices from their papers and Plonky3. Rows of fields of 31 bits are permuted sixteen at a time by lanes.
//! A sponge here has no padding: callers decide what a row means.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{cast_slice, cast_slice_mut};

use super::field::{Field, PrimeField};
use super::kind::FieldKind;
use super::lanes::{Arithmetic, COUNT, Halving, Lanes, Work, run as by_lanes};
use super::small::{BabyBear, KoalaBear, Montgomery31};
use cantus_base::instructions::InstructionSet;
use cantus_base::listed::Listed;

/// The permutation of rows of that many elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poseidon2<F> {
    width: usize,
    /// The exponent of the power that each round takes.
    exponent: u32,
    /// Constants of the full rounds, `width` each: the first half of them comes before the partial rounds.
    full: Vec<F>,
    /// Constants of the partial rounds, for the first element.
    partial: Vec<F>,
    /// The diagonal that is added to the matrix of ones in partial rounds.
    diagonal: Vec<F>,
    /// The diagonal's last, from `SHARED` on, where they are powers of a half.
    halvings: Vec<Halving>,
}

/// The first of the diagonals of 16 and 24 elements: numbers and powers of two, as pairs.
const SHARED: [(i64, i32); 9] = [(-2, 0), (1, 0), (2, 0), (1, -1), (3, 0), (4, 0), (-1, -1), (-3, 0), (-4, 0)];

/// Full rounds.
pub const FULL_ROUNDS: usize = 8;

/// 2^`exponent`, or a half so often, times a small number; negative ones are opposites.
fn scaled<F: PrimeField>(number: i64, exponent: i32) -> F {
    let two = F::from_u64(2);
    let power = if exponent < 0 { two.inverse().unwrap_or(F::ONE) } else { two }.pow(&[exponent.unsigned_abs().into()]);
    let value = F::from_u64(number.unsigned_abs()) * power;
    if number < 0 { -value } else { value }
}

impl<F: PrimeField> Poseidon2<F> {
    /// The instances of the authors: BabyBear and KoalaBear of 16 and 24 elements with Plonky3's diagonals, and BN254's scalars of 3 elements; `None`
    /// for others.
    ///
    /// ```
    /// use cantus::zk::{BabyBear, Field, Poseidon2};
    ///
    /// let poseidon = Poseidon2::<BabyBear>::standard(16).unwrap();
    /// let mut row: Vec<BabyBear> = (0..16).map(BabyBear::from_u64).collect();
    /// poseidon.permute(&mut row);
    /// assert_ne!(row[0], BabyBear::ZERO);
    /// ```
    #[must_use]
    pub fn standard(width: usize) -> Option<Self> {
        let (exponent, partial, rest): (u32, usize, &[(i64, i32)]) = match (F::KIND, width) {
            (FieldKind::BabyBear, 16) => (7, 13, &[(1, -8), (1, -2), (1, -3), (1, -27), (-1, -8), (-1, -4), (-1, -27)]),
            (FieldKind::BabyBear, 24) => (
                7,
                21,
                &[
                    (1, -8),
                    (1, -2),
                    (1, -3),
                    (1, -4),
                    (1, -7),
                    (1, -9),
                    (1, -27),
                    (-1, -8),
                    (-1, -2),
                    (-1, -3),
                    (-1, -4),
                    (-1, -5),
                    (-1, -6),
                    (-1, -7),
                    (-1, -27),
                ],
            ),
            (FieldKind::KoalaBear, 16) => {
                (3, 20, &[(1, -8), (1, -3), (1, -24), (-1, -8), (-1, -3), (-1, -4), (-1, -24)])
            }
            (FieldKind::KoalaBear, 24) => (
                3,
                23,
                &[
                    (1, -8),
                    (1, -2),
                    (1, -3),
                    (1, -4),
                    (1, -5),
                    (1, -6),
                    (1, -24),
                    (-1, -8),
                    (-1, -3),
                    (-1, -4),
                    (-1, -5),
                    (-1, -6),
                    (-1, -7),
                    (-1, -9),
                    (-1, -24),
                ],
            ),
            (FieldKind::Bn254Fr, 3) => (5, 56, &[]),
            _ => return None,
        };
        let diagonal = match F::KIND {
            FieldKind::Bn254Fr => [1, 1, 2].map(F::from_u64).to_vec(),
            _ => SHARED.iter().chain(rest).map(|&(number, exponent)| scaled(number, exponent)).listed(),
        };
        let mut constants = Grain::new(F::KIND.bits(), width, partial).elements::<F>(FULL_ROUNDS * width + partial);
        // In the order of rounds: partial ones lie between two halves of full ones.
        let before = FULL_ROUNDS / 2 * width;
        let partial = constants.drain(before..before + partial).listed();
        let less = (-F::ONE).to_limbs().first().copied().unwrap_or(0);
        let halvings =
            rest.iter().map(|&(sign, exponent)| Halving::new(less, exponent.unsigned_abs(), sign < 0)).listed();
        Some(Self { width, exponent, full: constants, partial, diagonal, halvings })
    }

    /// [`Poseidon2::standard`], made once.
    pub(super) fn known(width: usize) -> Option<Arc<Self>> {
        type Instance = (FieldKind, usize, Arc<dyn Any + Send + Sync>);
        static KNOWN: Mutex<Vec<Instance>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., instance)) = known.iter().find(|&&(kind, of, _)| (kind, of) == (F::KIND, width)) {
            return instance.clone().downcast().ok();
        }
        let instance = Arc::new(Self::standard(width)?);
        known.push((F::KIND, width, instance.clone()));
        Some(instance)
    }

    /// Elements of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The exponent of the power that each round takes.
    #[must_use]
    pub fn exponent(&self) -> u32 {
        self.exponent
    }

    /// The constants: of full rounds, of partial rounds, and the diagonal, one after the other.
    #[must_use]
    pub fn constants(&self) -> Vec<F> {
        [&self.full[..], &self.partial, &self.diagonal].concat()
    }

    /// Permutes a row; what is not [`Poseidon2::width`] long stays as it is.
    pub fn permute(&self, row: &mut [F]) {
        if row.len() == self.width {
            self.permute_each(row);
        }
    }

    #[inline(always)]
    fn permute_each<A: Arithmetic<Element = F>>(&self, row: &mut [A]) {
        mix(row);
        let (before, after) = self.full.split_at(self.full.len() / 2);
        self.full_rounds(row, before);
        for &constant in &self.partial {
            row[0] = self.power(row[0].add(A::splat(constant)));
            let mut sum = row[0];
            for &value in &row[1..] {
                sum = sum.add(value);
            }
            for (value, &factor) in row.iter_mut().zip(&self.diagonal) {
                *value = sum.add(value.scaled(A::factor(factor)));
            }
        }
        self.full_rounds(row, after);
    }

    #[inline(always)]
    fn full_rounds<A: Arithmetic<Element = F>>(&self, row: &mut [A], constants: &[F]) {
        for constants in constants.chunks_exact(self.width) {
            for (value, &constant) in row.iter_mut().zip(constants) {
                *value = self.power(value.add(A::splat(constant)));
            }
            mix(row);
        }
    }

    #[inline(always)]
    fn power<A: Arithmetic<Element = F>>(&self, x: A) -> A {
        let square = x.mul(x);
        match self.exponent {
            3 => square.mul(x),
            5 => square.mul(square).mul(x),
            _ => square.mul(x).mul(square.mul(square)),
        }
    }

    /// Absorbs a row of any length by `rate` elements at a time, which take the places of the state's first, and gives the state's first `out`.
    #[must_use]
    pub fn absorb(&self, row: &[F], rate: usize, out: usize) -> Vec<F> {
        let mut state = vec![F::ZERO; self.width];
        for chunk in row.chunks(rate.max(1)) {
            state[..chunk.len()].copy_from_slice(chunk);
            self.permute(&mut state);
        }
        state.truncate(out);
        state
    }

    /// [`Poseidon2::absorb`] of rows. Whole rows on both sides; neither rate nor result exceeds the width.
    pub(super) fn absorb_rows(&self, rows: &[F], to: &mut [F], sponge: Sponge) {
        let by_lanes = to.len() > sponge.out;
        match (F::KIND, self.width) {
            (FieldKind::BabyBear, 16) if by_lanes => self.by_lanes_of::<BabyBear, 16, 7>(rows, to, sponge),
            (FieldKind::BabyBear, 24) if by_lanes => self.by_lanes_of::<BabyBear, 24, 7>(rows, to, sponge),
            (FieldKind::KoalaBear, 16) if by_lanes => self.by_lanes_of::<KoalaBear, 16, 3>(rows, to, sponge),
            (FieldKind::KoalaBear, 24) if by_lanes => self.by_lanes_of::<KoalaBear, 24, 3>(rows, to, sponge),
            _ => {
                let rows = rows.chunks_exact(sponge.length).zip(to.chunks_exact_mut(sponge.out));
                rows.for_each(|(row, to)| to.copy_from_slice(&self.absorb(row, sponge.rate, sponge.out)));
            }
        }
    }

    /// Computes for the field under its other name.
    fn by_lanes_of<G: Montgomery31, const WIDTH: usize, const EXPONENT: u32>(
        &self,
        rows: &[F],
        to: &mut [F],
        sponge: Sponge,
    ) {
        if let Some(poseidon) = (self as &dyn Any).downcast_ref::<Poseidon2<G>>() {
            let (rows, to) = (cast_slice(rows), cast_slice_mut(to));
            by_lanes(InstructionSet::best(), Absorb::<G, WIDTH, EXPONENT> { poseidon, rows, to, sponge });
        }
    }
}

/// The rule by which rows are absorbed.
#[derive(Clone, Copy)]
pub(super) struct Sponge {
    /// Elements of a row.
    pub length: usize,
    pub rate: usize,
    pub out: usize,
}

/// Rows that are absorbed by lanes.
struct Absorb<'a, F, const WIDTH: usize, const EXPONENT: u32> {
    poseidon: &'a Poseidon2<F>,
    rows: &'a [F],
    to: &'a mut [F],
    sponge: Sponge,
}

impl<F: Montgomery31, const WIDTH: usize, const EXPONENT: u32> Work<F> for Absorb<'_, F, WIDTH, EXPONENT> {
    #[inline(always)]
    fn run<V: Lanes<Element = F>>(self) {
        let Sponge { length, rate, out } = self.sponge;
        for (rows, to) in self.rows.chunks(COUNT * length).zip(self.to.chunks_mut(COUNT * out)) {
            let mut state = [V::splat(F::ZERO); WIDTH];
            for first in (0..length).step_by(rate) {
                let taken = rate.min(length - first);
                for place in (0..taken).step_by(COUNT) {
                    let taken = COUNT.min(taken - place);
                    let mut square = [V::splat(F::ZERO); COUNT];
                    for (row, lanes) in rows.chunks_exact(length).zip(&mut square) {
                        *lanes = V::load_some(&row[first + place..][..taken]);
                    }
                    V::transpose(&mut square);
                    state[place..].iter_mut().zip(square).take(taken).for_each(|(value, own)| *value = own);
                }
                permute::<V, WIDTH, EXPONENT>(self.poseidon, &mut state);
            }
            for place in (0..out).step_by(COUNT) {
                let mut square = [V::splat(F::ZERO); COUNT];
                square.iter_mut().zip(&state[place..]).for_each(|(lanes, &value)| *lanes = value);
                V::transpose(&mut square);
                for (row, lanes) in to.chunks_exact_mut(out).zip(square) {
                    lanes.store_some(&mut row[place..]);
                }
            }
        }
    }
}

/// Permutes rows side by side, an element of each in a value.
#[inline(always)]
fn permute<V: Lanes, const WIDTH: usize, const EXPONENT: u32>(
    poseidon: &Poseidon2<V::Element>,
    state: &mut [V; WIDTH],
) {
    let (before, after) = poseidon.full.split_at(poseidon.full.len() / 2);
    let less = V::Element::MODULUS - 1;
    let [half, minus_half] = [false, true].map(|negative| Halving::new(less, 1, negative));
    mix(state);
    full_rounds::<V, WIDTH, EXPONENT>(state, before);
    for &constant in &poseidon.partial {
        // All but the first are ready before its power is: their sum too.
        let mut sums = [state[1], state[2], state[3]];
        for (place, &value) in state[4..].iter().enumerate() {
            sums[place % 3] = sums[place % 3].add(value);
        }
        let rest = sums[0].add(sums[1]).add(sums[2]);
        let first = state[0].power::<EXPONENT>(constant);
        let sum = rest.add(first);
        let [_, b, c, d, e, f, g, h, i] = *state.first_chunk::<9>().unwrap_or(&[sum; 9]);
        let (double_e, double_f, double_h, double_i) = (e.add(e), f.add(f), h.add(h), i.add(i));
        state[0] = rest.sub(first);
        state[1] = sum.add(b);
        state[2] = sum.add(c.add(c));
        state[3] = d.halved(half, sum);
        state[4] = sum.add(double_e.add(e));
        state[5] = sum.add(double_f.add(double_f));
        state[6] = g.halved(minus_half, sum);
        state[7] = sum.sub(double_h.add(h));
        state[8] = sum.sub(double_i.add(double_i));
        for (value, &halving) in state[SHARED.len()..].iter_mut().zip(&poseidon.halvings) {
            *value = value.halved(halving, sum);
        }
    }
    full_rounds::<V, WIDTH, EXPONENT>(state, after);
}

#[inline(always)]
fn full_rounds<V: Lanes, const WIDTH: usize, const EXPONENT: u32>(state: &mut [V; WIDTH], constants: &[V::Element]) {
    for constants in constants.as_chunks::<WIDTH>().0 {
        for (value, &constant) in state.iter_mut().zip(constants) {
            *value = value.power::<EXPONENT>(constant);
        }
        mix(state);
    }
}

/// The matrix of full rounds: by fours, then each four with the sum of all of them; of three elements, each and the sum.
#[inline(always)]
fn mix<A: Arithmetic>(row: &mut [A]) {
    if row.len() < 4 {
        let sum = row.iter().skip(1).fold(row[0], |sum, &value| sum.add(value));
        row.iter_mut().for_each(|value| *value = value.add(sum));
        return;
    }
    let mut sums = [A::splat(A::Element::ZERO); 4];
    for four in row.as_chunks_mut::<4>().0 {
        // The circulant matrix of 2, 3, 1, 1.
        let [a, b, c, d] = *four;
        let (ab, bc, cd, da) = (a.add(b), b.add(c), c.add(d), d.add(a));
        let all = ab.add(cd);
        *four = [all.add(ab).add(b), all.add(bc).add(c), all.add(cd).add(d), all.add(da).add(a)];
        for i in 0..4 {
            sums[i] = sums[i].add(four[i]);
        }
    }
    for four in row.as_chunks_mut::<4>().0 {
        for i in 0..4 {
            four[i] = four[i].add(sums[i]);
        }
    }
}

/// Grain's register of 80 bits in the mode that Poseidon's authors define: what its constants come from.
struct Grain(u128);

impl Grain {
    fn new(bits: u32, width: usize, partial: usize) -> Self {
        // A prime field, a power map, and the sizes; the rest are ones. The first bit is the lowest.
        let fields =
            [(1, 2), (0, 4), (u64::from(bits), 12), (width as u64, 12), (FULL_ROUNDS as u64, 10), (partial as u64, 10)];
        let mut state = 0_u128;
        let mut place = 0;
        for (value, length) in fields.into_iter().chain([((1 << 30) - 1, 30)]) {
            for bit in (0..length).rev() {
                state |= u128::from(value >> bit & 1) << place;
                place += 1;
            }
        }
        let mut grain = Self(state);
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    fn step(&mut self) -> u32 {
        let tap = |place: u32| (self.0 >> place & 1) as u32;
        let bit = tap(62) ^ tap(51) ^ tap(38) ^ tap(23) ^ tap(13) ^ tap(0);
        self.0 = self.0 >> 1 | u128::from(bit) << 79;
        bit
    }

    /// The second of each two bits whose first is 1.
    fn bit(&mut self) -> u32 {
        loop {
            let (first, second) = (self.step(), self.step());
            if first == 1 {
                return second;
            }
        }
    }

    fn elements<F: PrimeField>(&mut self, count: usize) -> Vec<F> {
        let mut elements = Vec::with_capacity(count);
        while elements.len() < count {
            let mut limbs = vec![0_u32; F::WORDS];
            for place in (0..F::KIND.bits() as usize).rev() {
                limbs[place / 32] |= self.bit() << (place % 32);
            }
            elements.extend(F::from_limbs(&limbs));
        }
        elements
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::tests::{elements, sets};
    use super::*;

    fn all<F: Montgomery31, const WIDTH: usize, const EXPONENT: u32>() {
        let poseidon = &Poseidon2::<F>::standard(WIDTH).expect("there is one");
        // Fewer rows than lanes, as many, and more; rows of one element to several times the rate, and a rest.
        for (count, length, rate, out) in
            [(1, WIDTH, WIDTH, WIDTH), (16, 1, 8, 8), (17, 8, 8, 8), (35, 19, 8, 3), (64, 2 * WIDTH, WIDTH, 1)]
        {
            let rows = &elements::<F>(count * length, 3);
            let expected: Vec<F> = rows.chunks(length).flat_map(|row| poseidon.absorb(row, rate, out)).collect();
            for set in sets() {
                let mut to = vec![F::ZERO; count * out];
                let sponge = Sponge { length, rate, out };
                by_lanes(set, Absorb::<F, WIDTH, EXPONENT> { poseidon, rows, to: &mut to, sponge });
                assert_eq!(to, expected, "{count} rows of {length} elements of {}, {WIDTH} wide, by {set:?}", F::KIND);
            }
        }
    }

    #[test]
    fn rows_by_lanes_are_rows_alone() {
        all::<BabyBear, 16, 7>();
        all::<BabyBear, 24, 7>();
        all::<KoalaBear, 16, 3>();
        all::<KoalaBear, 24, 3>();
    }
}
