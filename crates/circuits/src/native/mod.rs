//! Native operations of the processor: passes tile by tile in its cache, and sums. `Compiled` and `State` run on the CPU through these functions
//! (`NativeOperation::Function`), and by kernels elsewhere. A plan counts as equal only to itself, so programs are cached by it without a comparison.
//! AVX-512, AVX2 and plain loops give the same bits up to fused products.

mod lanes;
mod lower;
mod sums;
mod tile;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cantus::backend::native::{Function, NativeOperation};
#[cfg(target_arch = "x86_64")]
use cantus_base::instructions::InstructionSet;
use num_complex::Complex;
use rayon::prelude::*;

use crate::observable::Factors;
use crate::plan::Plan;
use crate::real::Real;
use lanes::Plain;
use lower::Lowered;

/// Bytes that a thread fills or copies at a time.
const CHUNK: usize = 1 << 20;

/// A plan that is equal to itself alone: comparing two takes no time.
#[derive(Debug, Clone)]
struct Same<T>(Arc<T>);

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Same<T> {}

impl<T> Hash for Same<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// Amplitudes in a binding's memory.
fn amplitudes<T: Real>(bytes: &[u8]) -> Result<&[Complex<T>], String> {
    bytemuck::try_cast_slice(bytes).map_err(|error| format!("a binding's memory: {error}"))
}

fn amplitudes_mut<T: Real>(bytes: &mut [u8]) -> Result<&mut [Complex<T>], String> {
    bytemuck::try_cast_slice_mut(bytes).map_err(|error| format!("a binding's memory: {error}"))
}

/// Copies bytes, many at once.
fn copy(from: &[u8], to: &mut [u8]) {
    to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| to.copy_from_slice(from));
}

/// Runs a plan on `count` states. The inputs are the plan's tables of each state, and as many parts as the states to begin with come in, if any; else all
/// qubits are 0.
pub(crate) fn run<T: Run>(plan: &Arc<Plan>, count: usize, parts: usize, support: u64) -> NativeOperation {
    let (amplitude, states) = (size_of::<Complex<T>>(), count << plan.qubits);
    let mut sizes = vec![count * plan.entries.max(1) * amplitude];
    sizes.extend(std::iter::repeat_n(states / parts.max(1) * amplitude, parts));
    sizes.push(states * amplitude);
    let parameters = (Same(plan.clone()), T::COMPLEX, support);
    let function = Function::new(parameters, sizes, move |(plan, _, support), inputs, result, stop| {
        let plan = &*plan.0;
        let [tables, parts @ ..] = inputs else { return Err("no inputs".to_owned()) };
        let size = result.len() / parts.len().max(1);
        if parts.is_empty() {
            result.par_chunks_mut(CHUNK).for_each(|to| to.fill(0));
        } else {
            result.chunks_mut(size.max(1)).zip(parts).for_each(|(to, from)| copy(from, to));
        }
        let (tables, result) = (amplitudes::<T>(tables)?, amplitudes_mut::<T>(result)?);
        result.par_chunks_exact_mut(1 << plan.qubits).enumerate().for_each(|(at, state)| {
            if let (true, Some(first)) = (parts.is_empty(), state.first_mut()) {
                first.re = T::from_f64(1.0);
            }
            T::run(plan, &tables[at * plan.entries..], state, *support, stop);
        });
        Ok(())
    });
    NativeOperation::Function(function)
}

/// Consecutive amplitudes of the input.
pub(crate) fn part<T: Run>(first: usize, count: usize) -> NativeOperation {
    let amplitude = size_of::<Complex<T>>();
    let sizes = vec![(first + count) * amplitude, count * amplitude];
    let function = Function::new((first, T::COMPLEX), sizes, |_, inputs, result, _| {
        let [whole] = inputs else { return Err(format!("{} inputs", inputs.len())) };
        copy(&whole[whole.len() - result.len()..], result);
        Ok(())
    });
    NativeOperation::Function(function)
}

/// The sum of conj(a[i ^ flip]) b[i], with the sign of the bits of i that `signs` has, as two float64.
pub(crate) fn inner<T: Run>(qubits: usize, flip: usize, signs: usize) -> NativeOperation {
    let bytes = size_of::<Complex<T>>() << qubits;
    let function =
        Function::new((flip, signs, T::COMPLEX), vec![bytes, bytes, 16], |(flip, signs, _), inputs, result, _| {
            let [a, b] = inputs else { return Err(format!("{} inputs", inputs.len())) };
            let sum = sums::inner::<T>(amplitudes(a)?, amplitudes(b)?, *flip, *signs);
            result.copy_from_slice(bytemuck::bytes_of(&[sum.re, sum.im]));
            Ok(())
        });
    NativeOperation::Function(function)
}

/// A sum of Pauli strings times states of equal size, each of one among the inputs.
pub(crate) fn accumulate<T: Run>(qubits: usize, inputs: usize, terms: &Arc<Vec<(usize, Factors)>>) -> NativeOperation {
    let bytes = size_of::<Complex<T>>() << qubits;
    let sizes = vec![bytes; inputs + 1];
    let function = Function::new((Same(terms.clone()), T::COMPLEX), sizes, |(terms, _), inputs, result, stop| {
        let before: Vec<&[Complex<T>]> = inputs.iter().map(|bytes| amplitudes(bytes)).collect::<Result<_, _>>()?;
        sums::accumulate::<T>(&before, amplitudes_mut(result)?, &terms.0, stop)
    });
    NativeOperation::Function(function)
}

/// Precisions whose passes are compiled for each instruction set.
pub(crate) trait Run: Real {
    /// Runs a plan on a state whose amplitudes are 0 except at numbers whose bits are among `support`'s.
    fn run(
        plan: &Plan,
        tables: &[Complex<Self>],
        state: &mut [Complex<Self>],
        support: u64,
        stop: &(dyn Fn() -> bool + Sync),
    );
}

macro_rules! run {
    ($($part:ty: $wide:ident $narrow:ident;)*) => {$(
        impl Run for $part {
            fn run(
                plan: &Plan,
                tables: &[Complex<Self>],
                state: &mut [Complex<Self>],
                support: u64,
                stop: &(dyn Fn() -> bool + Sync),
            ) {
                #[cfg(target_arch = "x86_64")]
                {
                    use lanes::x86::{$narrow, $wide};

                    #[target_feature(enable = "avx512f,avx2,fma")]
                    unsafe fn wide(ops: &[Lowered<$wide>], tile: *mut Complex<$part>, bits: usize, base: u64) {
                        // SAFETY: this function is compiled for the instruction set; the tile as its caller promises.
                        unsafe { tile::tile(ops, tile, bits, base) }
                    }

                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn narrow(ops: &[Lowered<$narrow>], tile: *mut Complex<$part>, bits: usize, base: u64) {
                        // SAFETY: this function is compiled for the instruction set, which its caller has found.
                        unsafe { tile::tile(ops, tile, bits, base) }
                    }

                    #[target_feature(enable = "avx512f,avx2,fma")]
                    unsafe fn wide_sweeps(
                        plan: &Plan,
                        tables: &[Complex<$part>],
                        state: &mut [Complex<$part>],
                        support: u64,
                        stop: &(dyn Fn() -> bool + Sync),
                    ) {
                        // SAFETY: this function is compiled for the instruction set, which its caller has found.
                        unsafe { tile::sweeps::<$wide>(plan, tables, state, support, stop, wide) }
                    }

                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn narrow_sweeps(
                        plan: &Plan,
                        tables: &[Complex<$part>],
                        state: &mut [Complex<$part>],
                        support: u64,
                        stop: &(dyn Fn() -> bool + Sync),
                    ) {
                        // SAFETY: this function is compiled for the instruction set, which its caller has found.
                        unsafe { tile::sweeps::<$narrow>(plan, tables, state, support, stop, narrow) }
                    }

                    match InstructionSet::best() {
                        // SAFETY: the processor has it.
                        InstructionSet::Avx512 => return unsafe { wide_sweeps(plan, tables, state, support, stop) },
                        // SAFETY: the processor has it.
                        InstructionSet::Avx2 => return unsafe { narrow_sweeps(plan, tables, state, support, stop) },
                        InstructionSet::Baseline => {}
                    }
                }
                // SAFETY: plain Rust runs everywhere.
                unsafe { tile::sweeps::<Plain<Self>>(plan, tables, state, support, stop, plain::<Self>) }
            }
        }
    )*};
}
run! {
    f32: Wide32 Narrow32;
    f64: Wide64 Narrow64;
}

/// # Safety
/// As [`tile::tile`].
unsafe fn plain<T: Real>(ops: &[Lowered<Plain<T>>], tile: *mut Complex<T>, bits: usize, base: u64) {
    // SAFETY: as the caller promises.
    unsafe { tile::tile::<Plain<T>>(ops, tile, bits, base) }
}

#[cfg(test)]
mod tests {
    use super::lanes::Lanes;
    use super::*;
    use crate::plan::{Form, Op};

    /// A generator of numbers between -1 and 1.
    fn numbers(mut seed: u64) -> impl FnMut() -> f64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
        }
    }

    /// Each amplitude by the definition of a pass.
    fn oracle(op: &Op, table: &[Complex<f64>], state: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let inner =
            |at: usize| op.targets.iter().enumerate().map(|(bit, place)| (at >> place & 1) << bit).sum::<usize>();
        let acts = |at: usize| at as u64 & op.ones == op.ones && at as u64 & op.zeros == 0;
        let side = 1 << op.targets.len();
        let space = op.space() as usize;
        let amplitude = |at: usize| match op.form {
            _ if !acts(at) => state[at],
            Form::Diagonal => table[inner(at)] * state[at],
            Form::Dense => (0..side)
                .map(|column| {
                    let from =
                        op.targets.iter().enumerate().map(|(bit, place)| (column >> bit & 1) << place).sum::<usize>();
                    table[inner(at) * side + column] * state[at & !space | from]
                })
                .sum(),
        };
        (0..state.len()).map(amplitude).collect()
    }

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn tiles<L: Lanes>(ops: &[Lowered<L>], tile: *mut Complex<L::Part>, bits: usize, base: u64) {
        // SAFETY: as the caller promises.
        unsafe { tile::tile::<L>(ops, tile, bits, base) }
    }

    #[test]
    fn passes_are_as_defined_on_every_instruction_set() {
        let mut random = numbers(5);
        for round in 0..300_usize {
            let qubits = 1 + round % 14;
            let mut ops = Vec::new();
            let mut entries = 0;
            for _ in 0..4 {
                let mut places: Vec<u8> = (0..qubits as u8).collect();
                places.sort_by_key(|_| (random() * 1e6) as i64);
                let form = if random() < 0.0 { Form::Diagonal } else { Form::Dense };
                let count = 1 + (random().abs() * 5.0) as usize % 5;
                let mut targets: Vec<u8> = places.drain(..count.min(qubits)).collect();
                targets.sort_unstable();
                let mut controls = places.into_iter().filter(|_| random() > 0.5).take(3).collect::<Vec<_>>();
                let zeros = controls.split_off(controls.len() / 2);
                let mask = |places: &[u8]| places.iter().map(|place| 1_u64 << place).sum();
                let op = Op { form, targets, ones: mask(&controls), zeros: mask(&zeros), table: entries };
                entries += op.entries();
                ops.push(op);
            }
            let plan = Plan::of(qubits, ops);
            let tables: Vec<Complex<f64>> = (0..entries).map(|_| Complex::new(random(), random()) * 0.4).collect();
            let state: Vec<Complex<f64>> = (0..1 << qubits).map(|_| Complex::new(random(), random())).collect();
            let expected = plan.ops.iter().fold(state.clone(), |state, op| oracle(op, &tables[op.table..], &state));

            let check = |found: &[Complex<f64>], within: f64, what: &str| {
                let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                assert!(worst < within, "{what}: {worst} in {plan:?}");
            };
            let single = |numbers: &[Complex<f64>]| -> Vec<Complex<f32>> {
                numbers.iter().map(|n| Complex::new(n.re as f32, n.im as f32)).collect()
            };
            let wide = |numbers: &[Complex<f32>]| numbers.iter().map(|n| crate::real::wide(*n)).collect::<Vec<_>>();
            let mut result = state.clone();
            f64::run(&plan, &tables, &mut result, u64::MAX, &|| false);
            check(&result, 1e-12, "float64");
            let (tables32, mut result) = (single(&tables), single(&state));
            f32::run(&plan, &tables32, &mut result, u64::MAX, &|| false);
            check(&wide(&result), 2e-4, "float32");
            let mut result = single(&state);
            // SAFETY: plain Rust runs everywhere.
            unsafe { tile::sweeps::<Plain<f32>>(&plan, &tables32, &mut result, u64::MAX, &|| false, plain::<f32>) };
            check(&wide(&result), 2e-4, "plain float32");
            #[cfg(target_arch = "x86_64")]
            if InstructionSet::Avx2.is_there() {
                let (mut narrow, mut double) = (single(&state), state.clone());
                // SAFETY: the processor has it.
                unsafe {
                    tile::sweeps(&plan, &tables32, &mut narrow, u64::MAX, &|| false, tiles::<lanes::x86::Narrow32>);
                    tile::sweeps(&plan, &tables, &mut double, u64::MAX, &|| false, tiles::<lanes::x86::Narrow64>);
                }
                check(&wide(&narrow), 2e-4, "AVX2 float32");
                check(&double, 1e-12, "AVX2 float64");
            }
        }
    }
}
