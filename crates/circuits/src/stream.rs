//! States in files, for those that are larger than memory: amplitudes from a byte of a file on, in the machine's order.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use cantus::{Engine, Error, Result};
use num_complex::Complex;

use crate::circuit::Circuit;
use crate::compiled::{Precision, by_precision, check_final, costs, whole};
use crate::plan;
use crate::real::Real;
use crate::split::Split;
use crate::state::State;
use crate::strips::Strips;

/// A file that a circuit's final state is computed in, window by window, where memory does not hold it. The file has all amplitudes at each time; each sweep
/// reads and writes it once.
///
/// ```
/// use cantus_circuits::{Circuit, Precision, Stream};
/// let circuit = Circuit::from_qasm("include \"stdgates.inc\"; qubit[2] q; h q[0]; cx q[0], q[1];")?;
/// let engine = cantus::Engine::builder().backend("cpu").build()?;
/// # let path = std::env::temp_dir().join(format!("cantus-stream-{}", std::process::id()));
/// let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
/// let state = Stream::new(file, "bell").run(&engine, &circuit, &[], Precision::Single, |_, _| Ok(()))?;
/// assert!((state.probabilities()?[3] - 0.5).abs() < 1e-6);
/// # drop(state);
/// # std::fs::remove_file(&path).expect("the file");
/// # Ok::<_, cantus::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    file: File,
    name: String,
    first: u64,
    most: Option<usize>,
}

impl Stream {
    /// Takes a file that is open for reading and writing. Errors call it `name`.
    #[must_use]
    pub fn new(file: File, name: &str) -> Self {
        Self { file, name: name.to_owned(), first: 0, most: None }
    }

    /// Leaves bytes at the beginning as they are: amplitudes lie behind them. What was there before is overwritten.
    #[must_use]
    pub fn behind(mut self, bytes: u64) -> Self {
        self.first = bytes;
        self
    }

    /// Takes windows of at most 2^most amplitudes: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn within(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    /// Runs a circuit and returns its final state, which reads the file. `progress` is called after each window with the windows done so far and those of all;
    /// an error of it ends the run.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a circuit without one final state, and for parameters that do not fit; [`Error::Io`]; [`Error::Limit`] for more qubits
    /// than a file can have; those of the device and of `progress`.
    pub fn run(
        self,
        engine: &Engine,
        circuit: &Circuit,
        parameters: &[f64],
        precision: Precision,
        mut progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<State> {
        check_final(circuit)?;
        circuit.check_parameters(parameters)?;
        let qubits = circuit.qubits();
        plan::check_qubits(circuit, precision.bytes(), isize::MAX as u64)?;
        let split = Split::streaming(engine, qubits, precision, self.most);
        let (plan, recipe) = plan::plan(qubits, whole(circuit), &costs(engine));
        let bytes = precision.bytes() << qubits;
        let file = Stored::create(self.file, &self.name, self.first, bytes)?;
        by_precision!(precision, T => {
            let mut numbers = Vec::with_capacity(plan.entries);
            recipe.fill::<T>(circuit, &plan, parameters, &mut numbers);
            let mut strips = Strips::in_file::<T>(split, file)?;
            strips.windows(engine, &plan, &numbers, &mut progress)?;
            Ok(State::new(engine.clone(), strips, precision))
        })
    }
}

/// An open file, and where the amplitudes begin.
#[derive(Debug)]
pub(crate) struct Stored {
    file: Mutex<File>,
    first: u64,
    name: String,
}

impl Stored {
    /// A file that becomes long enough for amplitudes from a byte on, all of them 0.
    pub fn create(file: File, name: &str, first: u64, bytes: u64) -> Result<Self> {
        let stored = Self { file: Mutex::new(file), first, name: name.to_owned() };
        // What a file gains at its end is 0, and takes no room on most file systems until it is written.
        let grown = |file: &mut File| file.set_len(first).and_then(|()| file.set_len(first + bytes));
        stored.at(0, "cannot write", grown)?;
        Ok(stored)
    }

    fn at(&self, place: u64, action: &str, work: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.first + place)).and_then(|_| work(&mut file)).map_err(|error| Error::Io {
            action: action.to_owned(),
            path: self.name.clone(),
            reason: error.to_string(),
        })
    }

    pub fn read<T: Real>(&self, first: usize, into: &mut [Complex<T>]) -> Result<()> {
        let place = first as u64 * size_of::<Complex<T>>() as u64;
        self.at(place, "cannot read", |file| file.read_exact(bytemuck::cast_slice_mut(into)))
    }

    pub fn write<T: Real>(&self, first: usize, from: &[Complex<T>]) -> Result<()> {
        let place = first as u64 * size_of::<Complex<T>>() as u64;
        self.at(place, "cannot write", |file| file.write_all(bytemuck::cast_slice(from)))
    }
}
