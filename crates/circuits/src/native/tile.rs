//! Sweeps over a state vector: each tile is taken into the cache, multiplied by every pass of the sweep, and put back. `native` calls `sweeps` with lowered
//! passes. Tiles are disjoint, each is one thread's, and its copy stays in the cache for all passes of the sweep. Only amplitudes that can be other than
//! zero are touched (`support`).

use std::mem::MaybeUninit;

use num_complex::Complex;
use rayon::prelude::*;

use super::lanes::Lanes;
use super::lower::{Dense, Diagonal, Factors, Lowered, Moves, ROWS, lower};
use crate::plan::{Plan, deposit};

/// The most vectors of a group, with each one's exchanges.
const MOST: usize = 1 << crate::gate::MOST_TARGETS;

/// A line of the cache, at which a tile's copy begins.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code, reason = "memory for a tile")] [u8; 64]);

/// [`tile`], compiled for an instruction set.
pub(super) type Tile<L> = unsafe fn(&[Lowered<L>], *mut Complex<<L as Lanes>::Part>, usize, u64);

/// The state's memory. Tiles are disjoint, and each is one thread's at a time.
struct Memory<T>(*mut Complex<T>);

// SAFETY: threads take disjoint tiles of it.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: threads take disjoint tiles of it through a shared reference.
unsafe impl<T: Send> Sync for Memory<T> {}

/// Runs the plan on a state of 2^qubits amplitudes. `tables` are the plan's. Amplitudes may be other than 0 only at numbers whose bits are among `support`'s.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn sweeps<L: Lanes>(
    plan: &Plan,
    tables: &[Complex<L::Part>],
    state: &mut [Complex<L::Part>],
    mut support: u64,
    stop: &(dyn Fn() -> bool + Sync),
    tile_of: Tile<L>,
) {
    let qubits = plan.qubits;
    for sweep in &plan.sweeps {
        // A vector is the least that a tile has.
        let bits = sweep.places.len().max(L::LOG);
        // SAFETY: as the caller promises.
        let lowered = |at: &usize| unsafe {
            let op = &plan.ops[*at];
            lower::<L>(op, sweep, bits, &tables[op.table..op.table + op.entries()])
        };
        let ops: Vec<Lowered<L>> = sweep.ops.iter().map(lowered).collect();
        let before = support;
        support |= sweep.ops.iter().map(|at| plan.ops[*at].mixes()).fold(0, |all, mixes| all | mixes);
        if sweep.places.len() == qubits && qubits >= L::LOG {
            // SAFETY: the one tile is the whole state.
            unsafe { tile_of(&ops, state.as_mut_ptr(), bits, 0) };
            continue;
        }
        let outside = sweep.outside(qubits);
        let run = (0..).zip(&sweep.places).take_while(|(at, place)| at == *place).count();
        let runs: Vec<usize> =
            (0..1_usize << (sweep.places.len() - run)).map(|number| deposit(number, &sweep.places[run..])).collect();
        let lines = ((1_usize << bits) * size_of::<Complex<L::Part>>()).div_ceil(64);
        let memory = Memory(state.as_mut_ptr());
        let tiles = 0..1_usize << outside.len();
        let one = |copy: &mut Vec<Line>, tile: usize| {
            let memory = &memory;
            let base = deposit(tile, &outside);
            // A tile of zeros stays one.
            if base as u64 & !before != 0 || stop() {
                return;
            }
            let copy = copy.as_mut_ptr().cast::<Complex<L::Part>>();
            // SAFETY: base and runs are distinct parts of the number of an amplitude, so each run lies within the state, and no two
            // tiles have one in common. The copy has room for the tile, and zeros behind a tile that is smaller than a vector.
            unsafe {
                for (at, from) in runs.iter().enumerate() {
                    std::ptr::copy_nonoverlapping(memory.0.add(base + from), copy.add(at << run), 1 << run);
                }
                tile_of(&ops, copy, bits, base as u64);
                for (at, to) in runs.iter().enumerate() {
                    std::ptr::copy_nonoverlapping(copy.add(at << run), memory.0.add(base + to), 1 << run);
                }
            }
        };
        let room = || vec![Line([0; 64]); lines];
        if tiles.len() == 1 {
            one(&mut room(), 0);
        } else {
            tiles.into_par_iter().for_each_init(room, |copy, tile| one(copy, tile));
        }
    }
}

/// Multiplies a tile by all passes. `base` is the number of its first amplitude in the state.
///
/// # Safety
/// The processor has the instruction set, and the tile has 2^bits amplitudes.
#[inline(always)]
pub(super) unsafe fn tile<L: Lanes>(ops: &[Lowered<L>], tile: *mut Complex<L::Part>, bits: usize, base: u64) {
    let vectors = bits - L::LOG;
    for op in ops {
        let visit = op.visit();
        if base & visit.outside_ones != visit.outside_ones || base & visit.outside_zeros != 0 {
            continue;
        }
        let groups = 1_usize << (vectors - visit.fixed.len());
        // SAFETY: the places of the pass are among the tile's, so groups lie within it; the instruction set as the caller promises.
        unsafe {
            match op {
                Lowered::Diagonal(diagonal) => multiply_diagonal(diagonal, tile, groups, base),
                Lowered::Moves(moves) => exchange::<L>(moves, tile, groups),
                Lowered::Dense(dense) => match (&dense.factors, dense.offsets.len()) {
                    (Factors::Scalars(_), 1) => multiply::<L, 1, false>(dense, tile, groups),
                    (Factors::Scalars(_), 2) => multiply::<L, 2, false>(dense, tile, groups),
                    (Factors::Scalars(_), _) => multiply::<L, ROWS, false>(dense, tile, groups),
                    (Factors::Vectors(_), 1) => multiply::<L, 1, true>(dense, tile, groups),
                    (Factors::Vectors(_), 2) => multiply::<L, 2, true>(dense, tile, groups),
                    (Factors::Vectors(_), _) => multiply::<L, ROWS, true>(dense, tile, groups),
                },
            }
        }
    }
}

/// Runs `$body` with the first vector of each group. Neighbours lie in a row up to the lowest fixed place. A closure would not be compiled for the
/// instruction set.
macro_rules! groups {
    ($visit:expr, $groups:expr, |$first:ident| $body:block) => {
        let run = $visit.fixed.first().map_or($groups, |place| 1_usize << place);
        let mut start = 0;
        while start < $groups {
            let at = $visit.first(start);
            let mut $first = at;
            while $first < at + run {
                $body
                $first += 1;
            }
            start += run;
        }
    };
}

/// # Safety
/// As [`tile`]; the pass's factors are scalars, or vectors if `VECTORS` says so, for blocks of `R` rows.
#[inline(always)]
unsafe fn multiply<L: Lanes, const R: usize, const VECTORS: bool>(
    dense: &Dense<L>,
    tile: *mut Complex<L::Part>,
    groups: usize,
) {
    let (scalars, vectors) = match &dense.factors {
        Factors::Scalars(factors) => (factors.as_ptr(), std::ptr::null()),
        Factors::Vectors(factors) => (std::ptr::null(), factors.as_ptr()),
    };
    let (offsets, exchanges) = (&dense.offsets[..], &dense.exchanges[..]);
    let inputs = offsets.len() * exchanges.len();
    let mut taken: [MaybeUninit<[L::Vector; 2]>; MOST] = [const { MaybeUninit::uninit() }; MOST];
    groups!(dense.visit, groups, |first| {
        // SAFETY: vectors of a group lie in the tile; `inputs` is at most MOST, and that many are written before they are read; there are
        // factors for each row and each input.
        unsafe {
            let mut next = taken.as_mut_ptr();
            for offset in offsets {
                let vector = L::load(tile.add((first + offset) << L::LOG));
                for mask in exchanges {
                    let vector = if *mask == 0 { vector } else { L::exchange(vector, *mask) };
                    (*next).write([vector, L::times_i(vector)]);
                    next = next.add(1);
                }
            }
            for block in 0..offsets.len() / R {
                let mut sums = [L::zero(); R];
                let mut factor = block * inputs * R;
                for input in 0..inputs {
                    let [x, ix] = (*taken.as_ptr().add(input)).assume_init();
                    for sum in &mut sums {
                        let [re, im] = if VECTORS {
                            *vectors.add(factor)
                        } else {
                            let [re, im] = *scalars.add(factor);
                            [L::splat(re), L::splat(im)]
                        };
                        *sum = L::multiply_add(im, ix, L::multiply_add(re, x, *sum));
                        factor += 1;
                    }
                }
                for (row, sum) in sums.into_iter().enumerate() {
                    L::store(tile.add((first + *offsets.get_unchecked(block * R + row)) << L::LOG), sum);
                }
            }
        }
    });
}

/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn multiply_diagonal<L: Lanes>(diagonal: &Diagonal<L>, tile: *mut Complex<L::Part>, groups: usize, base: u64) {
    let set = |(place, mask): &(u8, u32)| if base >> place & 1 == 1 { *mask } else { 0 };
    let outside: u32 = diagonal.outside.iter().map(set).sum();
    let (low, high, entries) = (diagonal.low.as_ptr(), diagonal.high.as_ptr(), diagonal.entries.as_ptr());
    groups!(diagonal.visit, groups, |vector| {
        // SAFETY: vectors of a group lie in the tile, and the three parts of an entry's number are distinct bits of it.
        unsafe {
            let number = outside | *low.add(vector & 63) | *high.add(vector >> 6);
            let (re, im) = L::parts(*entries.add(number as usize));
            let at = tile.add(vector << L::LOG);
            let x = L::load(at);
            L::store(at, L::multiply_add(im, L::times_i(x), L::multiply_add(re, x, L::zero())));
        }
    });
}

/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn exchange<L: Lanes>(moves: &Moves, tile: *mut Complex<L::Part>, groups: usize) {
    let mut taken: [MaybeUninit<L::Vector>; MOST] = [const { MaybeUninit::uninit() }; MOST];
    groups!(moves.visit, groups, |first| {
        // SAFETY: vectors of a group lie in the tile, at most MOST of them, and each is written to `taken` before it is read there.
        unsafe {
            for (slot, from) in taken.iter_mut().zip(&moves.from) {
                slot.write(L::load(tile.add((first + from) << L::LOG)));
            }
            for (slot, to) in taken.iter().zip(&moves.to) {
                L::store(tile.add((first + to) << L::LOG), slot.assume_init());
            }
        }
    });
}
