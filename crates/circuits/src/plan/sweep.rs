//! The order of passes: as many as a part of the state allows that has all amplitudes of some of its places. The processor takes
//! tiles into its cache so, and a state that is larger than a binding is taken window by window.

use super::Op;

/// Places of the state vector of which a tile has all amplitudes: 2^15 of complex64 are 256 KiB.
const TILE: usize = 15;
/// The lowest places, which each tile has, so that memory is read in runs.
const RUN: usize = 5;
/// Smaller states are one tile, which one thread takes.
const SPLIT: usize = 12;

/// Passes that run part by part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sweep {
    /// The places that a part has, ascending.
    pub places: Vec<u8>,
    /// The passes, in order.
    pub ops: Vec<usize>,
}

impl Sweep {
    /// The places that a part does not have, ascending.
    pub fn outside(&self, qubits: usize) -> Vec<u8> {
        (0..qubits as u8).filter(|place| !self.places.contains(place)).collect()
    }
}

/// The number with the bits of another one at places.
pub(crate) fn deposit(number: usize, places: &[u8]) -> usize {
    places.iter().enumerate().map(|(at, place)| (number >> at & 1) << place).sum()
}

/// The sweeps of the processor on a state of 2^qubits amplitudes.
pub(super) fn tiles(qubits: usize, ops: &[Op]) -> Vec<Sweep> {
    let size = if qubits <= SPLIT { qubits } else { TILE.min(qubits - 2) };
    // A tile may grow by what a matrix mixes.
    schedule(qubits, ops, size, RUN.min(size), RUN + super::MOST_TARGETS)
}

/// The sweeps of passes by parts of `size` places, or of up to `most` where a pass needs it. The lowest `run` places are always among them.
pub(crate) fn schedule(qubits: usize, ops: &[Op], size: usize, run: usize, most: usize) -> Vec<Sweep> {
    // Without qubits nothing waits.
    let all = if qubits == 0 { u64::MAX } else { (1_u64 << qubits) - 1 };
    let mut left: Vec<usize> = Vec::new();
    let mut unseen = 0..ops.len();
    let mut sweeps = Vec::new();
    while !left.is_empty() || !unseen.is_empty() {
        let (mut tile, mut taken, mut rest) = ((1_u64 << run) - 1, Vec::new(), Vec::new());
        // What waits for a later sweep, with all that depends on it.
        let (mut touched, mut mixed) = (0, 0);
        let mut earlier = left.into_iter();
        // Once every place waits, nothing more can run.
        while mixed != all {
            let Some(at) = earlier.next().or_else(|| unseen.next()) else { break };
            let op = &ops[at];
            let (mixes, touches) = (op.mixes(), op.touches());
            let waits = mixes & touched != 0 || touches & mixed != 0;
            if !waits && (tile | mixes).count_ones() as usize <= size.max(most).min(qubits) {
                tile |= mixes;
                taken.push(at);
            } else {
                touched |= touches;
                mixed |= mixes;
                rest.push(at);
            }
        }
        rest.extend(earlier);
        // Room that is left goes to the lowest places: longer runs.
        for place in 0..qubits {
            if (tile.count_ones() as usize) < size {
                tile |= 1 << place;
            }
        }
        sweeps.push(Sweep { places: (0..qubits as u8).filter(|place| tile >> place & 1 == 1).collect(), ops: taken });
        left = rest;
    }
    sweeps
}
