//! The outcomes of a run: a row of bits for each shot, as texts and counts. Trajectories and samples of a final state both fill it, so what a caller reads does
//! not depend on how the shots were run.

use std::collections::BTreeMap;

use crate::circuit::Circuit;

/// The outcomes of a run: the classical bits of each shot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shots {
    bits: usize,
    words: Vec<u64>,
    /// Where a register ends, from the highest on.
    cuts: Vec<usize>,
}

impl Shots {
    /// The bits of each shot, by its number.
    pub(crate) fn of(circuit: &Circuit, shots: usize, outcomes: impl IntoIterator<Item = (u64, Vec<bool>)>) -> Self {
        let words = circuit.bits().div_ceil(64).max(1);
        let mut rows = vec![0_u64; shots * words];
        for (shot, bits) in outcomes {
            for (bit, _) in bits.iter().enumerate().filter(|(_, one)| **one) {
                if let Some(word) = rows.get_mut(shot as usize * words + bit / 64) {
                    *word |= 1 << (bit % 64);
                }
            }
        }
        let cuts = circuit.bit_registers().iter().map(|register| register.range.start).collect();
        Self { bits: circuit.bits(), words: rows, cuts }
    }

    /// Returns the number of shots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len() / self.bits.div_ceil(64).max(1)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the classical bits of a shot, bit 0 first; none for a shot that there is not.
    #[must_use]
    pub fn bits(&self, shot: usize) -> Vec<bool> {
        let words = self.bits.div_ceil(64).max(1);
        let row = self.words.get(shot * words..(shot + 1) * words).unwrap_or(&[]);
        (0..self.bits).map_while(|bit| row.get(bit / 64).map(|word| word >> (bit % 64) & 1 == 1)).collect()
    }

    /// Returns a shot as text: bit 0 last, a space between registers, as Qiskit writes it.
    #[must_use]
    pub fn text(&self, shot: usize) -> String {
        let bits = self.bits(shot);
        let mut text = String::with_capacity(bits.len() + self.cuts.len());
        for (bit, one) in bits.iter().enumerate().rev() {
            text.push(if *one { '1' } else { '0' });
            if self.cuts.contains(&bit) && bit > 0 {
                text.push(' ');
            }
        }
        text
    }

    /// Returns how often each outcome came, in the order of their texts.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, u64)> {
        let mut rows: BTreeMap<&[u64], (usize, u64)> = BTreeMap::new();
        let words = self.bits.div_ceil(64).max(1);
        for (shot, row) in self.words.chunks_exact(words).enumerate() {
            rows.entry(row).or_insert((shot, 0)).1 += 1;
        }
        let mut counts: Vec<_> = rows.into_values().map(|(shot, count)| (self.text(shot), count)).collect();
        counts.sort();
        counts
    }
}
