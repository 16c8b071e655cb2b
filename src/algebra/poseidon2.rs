//! The permutation Poseidon2 (Grassi, Khovratovich, Schofnegger, 2023) with its authors' constants, on the host.

use super::field::PrimeField;
use super::kind::FieldKind;

/// The permutation of rows of so many elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poseidon2<F> {
    width: usize,
    /// The exponent of the power that each round takes.
    exponent: u32,
    /// Constants of the full rounds, `width` each: the first half of them comes before the partial rounds.
    full: Vec<F>,
    /// Constants of the partial rounds, for the first element.
    partial: Vec<F>,
    /// What is added to the matrix of ones in partial rounds, on the diagonal.
    diagonal: Vec<F>,
}

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
        // Numbers and powers of two, as pairs.
        const SHARED: [(i64, i32); 9] = [(-2, 0), (1, 0), (2, 0), (1, -1), (3, 0), (4, 0), (-1, -1), (-3, 0), (-4, 0)];
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
            _ => SHARED.iter().chain(rest).map(|&(number, exponent)| scaled(number, exponent)).collect(),
        };
        let mut constants = Grain::new(F::KIND.bits(), width, partial).elements::<F>(FULL_ROUNDS * width + partial);
        // The authors' own instances take constants in the order of rounds; Plonky3's of KoalaBear takes those of all full rounds first.
        let full = if F::KIND == FieldKind::KoalaBear { FULL_ROUNDS } else { FULL_ROUNDS / 2 };
        let partial = constants.drain(full * width..full * width + partial).collect();
        Some(Self { width, exponent, full: constants, partial, diagonal })
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
        if row.len() != self.width {
            return;
        }
        mix(row);
        let (before, after) = self.full.split_at(self.full.len() / 2);
        let full = |row: &mut [F], constants: &[F]| {
            for constants in constants.chunks_exact(self.width) {
                row.iter_mut().zip(constants).for_each(|(value, &constant)| *value = self.power(*value + constant));
                mix(row);
            }
        };
        full(row, before);
        for &constant in &self.partial {
            row[0] = self.power(row[0] + constant);
            let sum = row.iter().fold(F::ZERO, |sum, &value| sum + value);
            row.iter_mut().zip(&self.diagonal).for_each(|(value, &factor)| *value = sum + *value * factor);
        }
        full(row, after);
    }

    #[inline(always)]
    fn power(&self, x: F) -> F {
        let square = x.square();
        match self.exponent {
            3 => square * x,
            5 => square.square() * x,
            _ => square.square() * square * x,
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
}

/// The matrix of full rounds: by fours, then each four with the sum of all of them; of three elements, each and the sum.
fn mix<F: PrimeField>(row: &mut [F]) {
    if row.len() < 4 {
        let sum = row.iter().fold(F::ZERO, |sum, &value| sum + value);
        row.iter_mut().for_each(|value| *value += sum);
        return;
    }
    let mut sums = [F::ZERO; 4];
    for four in row.as_chunks_mut::<4>().0 {
        // The circulant matrix of 2, 3, 1, 1.
        let [a, b, c, d] = *four;
        let all = a + b + c + d;
        *four = [all + a + b.double(), all + b + c.double(), all + c + d.double(), all + d + a.double()];
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum += *value;
        }
    }
    for four in row.as_chunks_mut::<4>().0 {
        for (value, sum) in four.iter_mut().zip(sums) {
            *value += sum;
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
