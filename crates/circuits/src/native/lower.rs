//! Passes as a tile sees them: places in the tile, and factors in the order in which vectors take them. `native` lowers each pass of a sweep once for a
//! run. Targets lie within vectors, across the vectors of a tile, or outside of the tile (then only controls and diagonals are allowed). What is lowered
//! depends on the tile's size and the lanes' type, not on the state.

use num_complex::Complex;

use super::lanes::Lanes;
use crate::plan::{Form, Op, Sweep};
use crate::real::Real;

/// The most rows of a matrix that are summed at once.
pub(super) const ROWS: usize = 4;

/// A pass on the vectors of a tile.
pub(super) enum Lowered<L: Lanes> {
    Dense(Dense<L>),
    Diagonal(Diagonal<L>),
    Moves(Moves),
}

impl<L: Lanes> Lowered<L> {
    pub fn visit(&self) -> &Visit {
        match self {
            Self::Dense(dense) => &dense.visit,
            Self::Diagonal(diagonal) => &diagonal.visit,
            Self::Moves(moves) => &moves.visit,
        }
    }
}

/// The vectors that a pass visits: with a zero at each place of `fixed`, and `ones` set.
pub(super) struct Visit {
    /// Places among the bits of a vector's number, ascending.
    pub fixed: Vec<u8>,
    pub ones: usize,
    /// Of the bits of the state outside of the tile, those that must be 1, and those that must be 0.
    pub outside_ones: u64,
    pub outside_zeros: u64,
}

impl Visit {
    /// The vector of a group.
    #[inline(always)]
    pub fn first(&self, group: usize) -> usize {
        let mut at = group;
        for place in &self.fixed {
            let low = at & ((1 << place) - 1);
            at = (at - low) << 1 | low;
        }
        at | self.ones
    }
}

/// The factors of a matrix: for each block of rows, each column and each row of the block.
pub(super) enum Factors<L: Lanes> {
    /// The same for all numbers of a vector.
    Scalars(Vec<[L::Part; 2]>),
    /// Real parts and imaginary ones, twice each.
    Vectors(Vec<[L::Vector; 2]>),
}

pub(super) struct Dense<L: Lanes> {
    pub visit: Visit,
    /// How far the vectors of a group lie behind its first one.
    pub offsets: Vec<usize>,
    /// The exchanges within a vector: for each index of the targets within vectors.
    pub exchanges: Vec<usize>,
    pub factors: Factors<L>,
}

pub(super) struct Diagonal<L: Lanes> {
    pub visit: Visit,
    pub entries: Vec<L::Vector>,
    /// The part of an entry's number that follows from the low six bits of a vector's number, and from the rest.
    pub low: Vec<u32>,
    pub high: Vec<u32>,
    /// Bits of the state outside of the tile, and the bits of an entry's number that they set.
    pub outside: Vec<(u8, u32)>,
}

/// A permutation of whole vectors, which takes no arithmetic.
pub(super) struct Moves {
    pub visit: Visit,
    /// How far the vectors that move lie behind a group's first one, and how far those that come in their places.
    pub to: Vec<usize>,
    pub from: Vec<usize>,
}

/// The bit of a tile's index for each place.
fn local(sweep: &Sweep, place: u8) -> Option<usize> {
    sweep.places.iter().position(|known| *known == place)
}

/// Parts twice each: the processor multiplies vectors of complex numbers by them.
fn twice<L: Lanes>(numbers: &[Complex<L::Part>]) -> [L::Vector; 2] {
    let double = |part: fn(&Complex<L::Part>) -> L::Part| {
        let parts: Vec<_> = numbers.iter().map(|number| Complex::new(part(number), part(number))).collect();
        // SAFETY: there are 2^LOG numbers, and the caller runs for this instruction set.
        unsafe { L::load(parts.as_ptr()) }
    };
    [double(|number| number.re), double(|number| number.im)]
}

/// Where a pass acts, of what is outside the tile, across vectors and within them.
struct Controls {
    visit: Visit,
    lane_ones: usize,
    lane_zeros: usize,
}

fn controls(op: &Op, sweep: &Sweep, log: usize) -> Controls {
    let mut found = Controls {
        visit: Visit { fixed: Vec::new(), ones: 0, outside_ones: 0, outside_zeros: 0 },
        lane_ones: 0,
        lane_zeros: 0,
    };
    for place in (0..64_u8).filter(|place| (op.ones | op.zeros) >> place & 1 == 1) {
        let one = op.ones >> place & 1 == 1;
        let visit = &mut found.visit;
        match local(sweep, place) {
            None if one => visit.outside_ones |= 1 << place,
            None => visit.outside_zeros |= 1 << place,
            Some(bit) if bit < log && one => found.lane_ones |= 1 << bit,
            Some(bit) if bit < log => found.lane_zeros |= 1 << bit,
            Some(bit) => {
                visit.fixed.push((bit - log) as u8);
                visit.ones |= usize::from(one) << (bit - log);
            }
        }
    }
    found
}

/// A pass for a tile of `bits` bits.
///
/// # Safety
/// The processor has the instruction set.
pub(super) unsafe fn lower<L: Lanes>(op: &Op, sweep: &Sweep, bits: usize, table: &[Complex<L::Part>]) -> Lowered<L> {
    match op.form {
        // SAFETY: as the caller promises.
        Form::Dense => unsafe { dense(op, sweep, table) },
        // SAFETY: as the caller promises.
        Form::Diagonal => Lowered::Diagonal(unsafe { diagonal(op, sweep, bits, table) }),
    }
}

/// # Safety
/// As [`lower`].
unsafe fn dense<L: Lanes>(op: &Op, sweep: &Sweep, table: &[Complex<L::Part>]) -> Lowered<L> {
    let Controls { mut visit, lane_ones, lane_zeros } = controls(op, sweep, L::LOG);
    let side = 1_usize << op.targets.len();
    // Targets ascend, so those within vectors are the low bits of an index.
    let places: Vec<usize> = op.targets.iter().filter_map(|place| local(sweep, *place)).collect();
    let inner: Vec<usize> = places.iter().copied().filter(|bit| *bit < L::LOG).collect();
    let outer: Vec<usize> = places.iter().filter(|bit| **bit >= L::LOG).map(|bit| bit - L::LOG).collect();
    visit.fixed.extend(outer.iter().map(|bit| *bit as u8));
    visit.fixed.sort_unstable();
    let spread = |index: usize, bits: &[usize]| bits.iter().enumerate().map(|(at, bit)| (index >> at & 1) << bit).sum();
    let offsets: Vec<usize> = (0..1 << outer.len()).map(|index| spread(index, &outer)).collect();
    let exchanges: Vec<usize> = (0..1 << inner.len()).map(|index| spread(index, &inner)).collect();
    if inner.is_empty()
        && lane_ones | lane_zeros == 0
        && let Some(columns) = permutation(table, side)
    {
        let moved = columns.iter().enumerate().filter(|(row, column)| row != *column);
        let (to, from) = moved.map(|(row, column)| (offsets[row], offsets[*column])).unzip();
        return Lowered::Moves(Moves { visit, to, from });
    }
    let entry = |row: usize, column: usize| table[row * side + column];
    let block = ROWS.min(offsets.len());
    let rows = (0..offsets.len() / block).flat_map(|first| {
        let columns = (0..offsets.len()).flat_map(move |column| {
            (0..1_usize << inner_len(&op.targets, sweep, L::LOG)).map(move |mask| (column, mask))
        });
        columns.flat_map(move |(column, mask)| (0..block).map(move |row| (first * block + row, column, mask)))
    });
    let factors = if inner.is_empty() && lane_ones | lane_zeros == 0 {
        Factors::Scalars(rows.map(|(row, column, _)| entry(row, column)).map(|entry| [entry.re, entry.im]).collect())
    } else {
        let zero = <L::Part as Real>::ZERO;
        let one = <L::Part as Real>::from_f64(1.0);
        let vector = |(row, column, mask): (usize, usize, usize)| {
            let lane = |lane: usize| {
                if lane & lane_ones != lane_ones || lane & lane_zeros != 0 {
                    return Complex::new(if row == column && mask == 0 { one } else { zero }, zero);
                }
                let own: usize = inner.iter().enumerate().map(|(at, bit)| (lane >> bit & 1) << at).sum();
                entry(row << inner.len() | own, column << inner.len() | (own ^ mask))
            };
            twice::<L>(&(0..1 << L::LOG).map(lane).collect::<Vec<_>>())
        };
        Factors::Vectors(rows.map(vector).collect())
    };
    Lowered::Dense(Dense { visit, offsets, exchanges, factors })
}

/// The column of each row's 1, if the matrix is a permutation.
fn permutation<T: Real>(table: &[Complex<T>], side: usize) -> Option<Vec<usize>> {
    let (zero, one) = (Complex::new(T::ZERO, T::ZERO), Complex::new(T::from_f64(1.0), T::ZERO));
    let column = |row: &[Complex<T>]| {
        let column = row.iter().position(|entry| *entry == one)?;
        row.iter().enumerate().all(|(at, entry)| at == column || *entry == zero).then_some(column)
    };
    table.chunks_exact(side).map(column).collect()
}

/// The number of targets within vectors.
fn inner_len(targets: &[u8], sweep: &Sweep, log: usize) -> usize {
    targets.iter().filter(|place| local(sweep, **place).is_some_and(|bit| bit < log)).count()
}

/// # Safety
/// As [`lower`].
unsafe fn diagonal<L: Lanes>(op: &Op, sweep: &Sweep, bits: usize, table: &[Complex<L::Part>]) -> Diagonal<L> {
    let Controls { visit, lane_ones, lane_zeros } = controls(op, sweep, L::LOG);
    let mut inner = Vec::new();
    let (mut across, mut outside) = (Vec::new(), Vec::new());
    // Bits of an entry's number: the targets that are not within vectors, in order; those that are make its lanes.
    let mut kept = Vec::new();
    for (at, place) in op.targets.iter().enumerate() {
        match local(sweep, *place) {
            Some(bit) if bit < L::LOG => inner.push((at, bit)),
            Some(bit) => {
                across.push((bit - L::LOG, 1_u32 << kept.len()));
                kept.push(at);
            }
            None => {
                outside.push((*place, 1_u32 << kept.len()));
                kept.push(at);
            }
        }
    }
    let one = Complex::new(<L::Part as Real>::from_f64(1.0), <L::Part as Real>::ZERO);
    let vector = |number: usize| {
        let lane = |lane: usize| {
            if lane & lane_ones != lane_ones || lane & lane_zeros != 0 {
                return one;
            }
            let own: usize = inner.iter().map(|(at, bit)| (lane >> bit & 1) << at).sum();
            let others: usize = kept.iter().enumerate().map(|(bit, at)| (number >> bit & 1) << at).sum();
            table[own | others]
        };
        let lanes: Vec<Complex<L::Part>> = (0..1 << L::LOG).map(lane).collect();
        // SAFETY: there are 2^LOG numbers, and the caller promises the instruction set.
        unsafe { L::load(lanes.as_ptr()) }
    };
    let entries = (0..1 << kept.len()).map(vector).collect();
    let vectors = bits - L::LOG;
    let part = |number: usize, first: usize| {
        let set =
            |(bit, mask): &(usize, u32)| if *bit >= first && number >> (bit - first) & 1 == 1 { *mask } else { 0 };
        across.iter().map(set).sum()
    };
    let low_bits = vectors.min(6);
    let low = (0..1_usize << low_bits).map(|number| part(number, 0)).collect();
    let high = (0..1_usize << (vectors - low_bits)).map(|number| part(number, low_bits)).collect();
    Diagonal { visit, entries, low, high, outside }
}
