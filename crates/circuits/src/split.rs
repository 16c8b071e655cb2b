//! How the amplitudes of a state lie in memory: in one tensor, or in strips of equal size where one binding of the device does not hold them all.

use cantus::{Engine, Result};
use num_complex::Complex;

use crate::circuit::Circuit;
use crate::compiled::Precision;
use crate::gate::MOST_TARGETS;
use crate::plan::{self, Form, Op, Plan, Sweep, deposit};
use crate::real::Real;

/// The bits of a window's numbers above those of a strip's: a matrix of as many qubits fits, wherever they are.
const FREE: usize = MOST_TARGETS;
/// Kernels number the amplitudes of a window with 32 bits.
const MOST: usize = 30;
/// The bindings that a device's memory is taken for where it does not tell.
const UNKNOWN: u64 = 16;

/// A state of 2^qubits amplitudes in strips of 2^strip. Passes run on windows of 2^window amplitudes, which are copied from strips and back: from the strips
/// whose numbers differ in a few bits, so that the window has all amplitudes of those places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    pub qubits: usize,
    pub strip: usize,
    pub window: usize,
}

impl Split {
    /// The split where a tensor has up to 2^most amplitudes.
    pub fn of(qubits: usize, most: usize) -> Self {
        let most = most.clamp(FREE, MOST);
        if qubits <= most {
            return Self { qubits, strip: qubits, window: qubits };
        }
        // Two more windows than the state are in memory, so they are a quarter of it at most.
        let window = most.min(qubits - 2).max(FREE);
        Self { qubits, strip: window - FREE, window }
    }

    /// The split of a circuit's state on an engine's device. `most` is for tests: the bits of the largest tensor, where the device has more.
    ///
    /// # Errors
    /// [`cantus::Error::Limit`] for a state that the device's memory does not hold.
    pub fn fitting(engine: &Engine, circuit: &Circuit, precision: Precision, most: Option<usize>) -> Result<Self> {
        let (device, amplitude) = (&engine.selected().device, precision.bytes());
        let binding = Self::binding(engine);
        let memory = device.memory_bytes.unwrap_or(binding.saturating_mul(UNKNOWN));
        plan::check_qubits(circuit, amplitude, memory)?;
        let split = Self::of(circuit.qubits(), Self::most(engine, precision, most));
        if !split.is_whole() {
            let windows = 2 * (amplitude << split.window);
            plan::check_qubits(circuit, amplitude, memory.saturating_sub(windows))?;
        }
        Ok(split)
    }

    /// The split for a state in a file: windows take a part of the memory.
    pub fn streaming(engine: &Engine, qubits: usize, precision: Precision, most: Option<usize>) -> Self {
        const SHARES: u64 = 16;
        let memory = engine.selected().device.memory_bytes.unwrap_or(Self::binding(engine).saturating_mul(UNKNOWN));
        let share = (memory / SHARES / precision.bytes()).max(1).ilog2() as usize;
        Self::of(qubits, Self::most(engine, precision, most).min(share))
    }

    fn binding(engine: &Engine) -> u64 {
        let limits = &engine.selected().device.capabilities.limits;
        limits.storage_binding_bytes.min(limits.buffer_bytes)
    }

    /// The bits of the largest tensor of amplitudes.
    fn most(engine: &Engine, precision: Precision, most: Option<usize>) -> usize {
        let largest = (Self::binding(engine) / precision.bytes()).max(1).ilog2() as usize;
        most.map_or(largest, |most| most.min(largest))
    }

    /// Returns whether one tensor has all amplitudes.
    pub fn is_whole(self) -> bool {
        self.strip == self.qubits
    }

    /// Returns the number of strips.
    pub fn strips(self) -> usize {
        1 << (self.qubits - self.strip)
    }

    /// The passes in the order in which windows take them: with each sweep, one window after the other goes through memory.
    pub fn stages(self, plan: &Plan) -> Vec<Sweep> {
        plan::schedule(plan.qubits, &plan.ops, self.window, self.strip, self.window)
    }

    /// The times that the processor goes through memory for a plan: in strips, also for the copies of windows.
    pub fn sweeps(self, plan: &Plan) -> usize {
        if self.is_whole() {
            return plan.sweeps.len();
        }
        let all = (1_u64 << self.qubits) - 1;
        let numbers = vec![Complex::new(0.0_f32, 0.0); plan.entries];
        self.stages(plan).iter().map(|stage| local(plan, stage, all, &numbers).0.sweeps.len() + 1).sum()
    }
}

/// The passes of a stage on the window whose first amplitude has the number `base`, with their tables. Controls and diagonals outside of the window are decided.
pub(crate) fn local<T: Real>(plan: &Plan, stage: &Sweep, base: u64, numbers: &[Complex<T>]) -> (Plan, Vec<Complex<T>>) {
    let inside: u64 = stage.places.iter().map(|place| 1 << place).sum();
    let place = |place: u8| stage.places.binary_search(&place).ok().map(|at| at as u8);
    let mask =
        |mask: u64| -> u64 { stage.places.iter().enumerate().map(|(at, place)| (mask >> place & 1) << at).sum() };
    let (mut ops, mut tables) = (Vec::with_capacity(stage.ops.len()), Vec::new());
    for op in stage.ops.iter().filter_map(|at| plan.ops.get(*at)) {
        let (ones, zeros) = (op.ones & !inside, op.zeros & !inside);
        if base & ones != ones || base & zeros != 0 {
            continue;
        }
        let targets: Vec<u8> = op.targets.iter().filter_map(|target| place(*target)).collect();
        let table = numbers.get(op.table..op.table + op.entries()).unwrap_or(&[]);
        let new = Op { form: op.form, targets, ones: mask(op.ones), zeros: mask(op.zeros), table: tables.len() };
        match op.form {
            Form::Dense => tables.extend_from_slice(table),
            Form::Diagonal => {
                // Bits of an entry's number: those that windows have, and those that `base` decides.
                let is_inside = |at: &u8| inside >> op.targets[usize::from(*at)] & 1 == 1;
                let (within, outside): (Vec<u8>, Vec<u8>) = (0..op.targets.len() as u8).partition(is_inside);
                let decided: usize =
                    outside.iter().map(|at| (base as usize >> op.targets[usize::from(*at)] & 1) << at).sum();
                tables.extend((0..new.entries()).filter_map(|index| table.get(decided | deposit(index, &within))));
            }
        }
        ops.push(new);
    }
    (Plan::of(stage.places.len(), ops), tables)
}
