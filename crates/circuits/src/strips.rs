//! The amplitudes of a state: in tensors of equal size on the device, or in a file. Passes run window by window; see [`Split`]. `State` holds one. A plan
//! runs in windows: strips whose numbers differ in a few bits are copied together so that all mixed places lie within. Strips of zeros share one tensor
//! until they are written.

use std::fmt::Debug;
use std::sync::Arc;

use cantus::{Engine, Error, Result, Tensor};
use num_complex::Complex;

use crate::apply::{self, Before};
use crate::native::Run;
use crate::observable::Factors;
use crate::plan::{Plan, deposit};
use crate::real::Real;
use crate::split::{Split, local};
use crate::stream::Stored;

/// A state's amplitudes, strip by strip. Copies share the tensors; passes make new ones.
#[derive(Debug, Clone)]
pub(crate) struct Strips {
    split: Split,
    place: Place,
    /// Amplitudes are 0 at numbers that have other bits.
    support: u64,
}

#[derive(Debug, Clone)]
enum Place {
    /// Each [1, 2^strip]. Strips of zeros share one.
    Device(Vec<Tensor>),
    File(Arc<Stored>),
}

/// Called with the windows done so far and those of all.
pub(crate) type Progress<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

impl Strips {
    /// Runs a plan on a state, or on the one whose qubits are all 0.
    pub fn run<T: Run>(
        engine: &Engine,
        split: Split,
        plan: &Arc<Plan>,
        tables: &Tensor,
        from: Option<&Self>,
    ) -> Result<Self> {
        if split.is_whole() {
            let before = from.map(|from| Before { parts: from.tensors(), support: from.support });
            let whole = apply::run::<T>(engine, plan, tables, 1, before)?;
            return Ok(Self { split, place: Place::Device(vec![whole]), support: u64::MAX });
        }
        let mut strips = match from {
            Some(from) => from.clone(),
            None => Self::zero::<T>(engine, split)?,
        };
        let mut numbers = vec![Complex::new(T::ZERO, T::ZERO); plan.entries];
        T::read(tables, 0, &mut numbers)?;
        strips.windows(engine, plan, &numbers, &mut |_, _| Ok(()))?;
        Ok(strips)
    }

    /// All qubits are 0.
    fn zero<T: Run>(engine: &Engine, split: Split) -> Result<Self> {
        let tables = apply::tables::<T>(engine, 1, 0)?;
        <T as Real>::write(&tables, &[Complex::new(T::ZERO, T::ZERO)])?;
        let first = apply::run::<T>(engine, &Arc::new(Plan::of(split.strip, Vec::new())), &tables, 1, None)?;
        let zeros = engine.zeros_of(T::COMPLEX, first.shape())?;
        let mut strips = vec![zeros; split.strips()];
        if let Some(strip) = strips.first_mut() {
            *strip = first;
        }
        Ok(Self { split, place: Place::Device(strips), support: 0 })
    }

    /// The state in a file of zeros, whose qubits become all 0.
    pub fn in_file<T: Run>(split: Split, file: Stored) -> Result<Self> {
        file.write(0, &[Complex::new(T::from_f64(1.0), T::ZERO)])?;
        Ok(Self { split, place: Place::File(Arc::new(file)), support: 0 })
    }

    pub fn split(&self) -> Split {
        self.split
    }

    /// The tensors; none of a state in a file.
    pub fn tensors(&self) -> &[Tensor] {
        match &self.place {
            Place::Device(strips) => strips,
            Place::File(_) => &[],
        }
    }

    /// Runs a plan, window by window. The memory of a window is free again before the next one begins.
    pub fn windows<T: Run>(
        &mut self,
        engine: &Engine,
        plan: &Plan,
        numbers: &[Complex<T>],
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let Split { qubits, strip, window } = self.split;
        let stages = self.split.stages(plan);
        let each = 1_usize << (qubits - window);
        let all = (stages.len() * each) as u64;
        for (round, stage) in stages.iter().enumerate() {
            let outside = stage.outside(qubits);
            let high = stage.places.get(strip..).unwrap_or(&[]);
            let support = stage.places.iter().enumerate().map(|(at, place)| (self.support >> place & 1) << at).sum();
            for tile in 0..each {
                let base = deposit(tile, &outside);
                // A window of zeros stays one.
                if base as u64 & !self.support == 0 {
                    let (plan, table) = local(plan, stage, base as u64, numbers);
                    if !plan.ops.is_empty() {
                        let strips: Vec<usize> =
                            (0..1 << high.len()).map(|number| (base | deposit(number, high)) >> strip).collect();
                        self.window::<T>(engine, &strips, plan, &table, support)?;
                    }
                }
                progress((round * each + tile + 1) as u64, all)?;
            }
            self.support |= stage.ops.iter().map(|at| plan.ops[*at].mixes()).fold(0, |all, mixes| all | mixes);
        }
        Ok(())
    }

    /// Runs a plan on the window that strips make.
    fn window<T: Run>(
        &mut self,
        engine: &Engine,
        strips: &[usize],
        plan: Plan,
        table: &[Complex<T>],
        support: u64,
    ) -> Result<()> {
        let tables = apply::tables::<T>(engine, 1, plan.entries)?;
        T::write(&tables, table)?;
        let parts = self.take::<T>(engine, strips)?;
        let before = Before { parts: &parts, support };
        let after = apply::run::<T>(engine, &Arc::new(plan), &tables, 1, Some(before))?;
        drop(parts);
        match &mut self.place {
            Place::Device(known) => {
                for (at, strip) in strips.iter().enumerate() {
                    let part = if let [_] = strips {
                        after.clone()
                    } else {
                        apply::part::<T>(engine, &after, at << self.split.strip, 1 << self.split.strip)?
                    };
                    if let Some(known) = known.get_mut(*strip) {
                        *known = part;
                    }
                }
                // The work holds what it reads until it has run.
                engine.finish()
            }
            Place::File(file) => {
                let mut part = vec![Complex::new(T::ZERO, T::ZERO); 1 << self.split.strip];
                for (at, strip) in strips.iter().enumerate() {
                    T::read(&after, at << self.split.strip, &mut part)?;
                    file.write(strip << self.split.strip, &part)?;
                }
                Ok(())
            }
        }
    }

    /// Strips in a row: tensors of equal size.
    fn take<T: Run>(&self, engine: &Engine, strips: &[usize]) -> Result<Vec<Tensor>> {
        match &self.place {
            Place::Device(known) => Ok(strips.iter().filter_map(|strip| known.get(*strip).cloned()).collect()),
            Place::File(file) => {
                let size = 1 << self.split.strip;
                let mut all = vec![Complex::new(T::ZERO, T::ZERO); size * strips.len()];
                for (strip, into) in strips.iter().zip(all.chunks_exact_mut(size)) {
                    file.read(strip << self.split.strip, into)?;
                }
                let window = engine.output(None, T::COMPLEX, &[1, all.len()], "amplitudes")?;
                T::write(&window, &all)?;
                Ok(vec![window])
            }
        }
    }

    /// Reads amplitudes from one on, all of them in one strip.
    pub fn read<T: Run>(&self, first: usize, into: &mut [Complex<T>]) -> Result<()> {
        match &self.place {
            Place::Device(strips) => match strips.get(first >> self.split.strip) {
                Some(strip) => T::read(strip, first & ((1 << self.split.strip) - 1), into),
                None => Err(Error::index("the state", format!("no amplitude {first}"))),
            },
            Place::File(file) => file.read(first, into),
        }
    }

    /// The bits of a number within a strip, and of the strip's number.
    fn cut(&self, mask: usize) -> (usize, usize) {
        (mask & ((1 << self.split.strip) - 1), mask >> self.split.strip)
    }

    /// The sum of conj(a[i ^ flip]) b[i], with the sign of the bits of i that `signs` has.
    pub fn inner<T: Run>(engine: &Engine, a: &Self, b: &Self, flip: usize, signs: usize) -> Result<Complex<f64>> {
        let ((flip, flip_strip), (signs, signs_strip)) = (b.cut(flip), b.cut(signs));
        let mut sum = Complex::new(0.0, 0.0);
        for strip in 0..b.split.strips() {
            let (from, to) = (a.take::<T>(engine, &[strip ^ flip_strip])?, b.take::<T>(engine, &[strip])?);
            let ([from], [to]) = (&from[..], &to[..]) else { continue };
            let part = apply::inner::<T>(engine, b.split.strip, (from, to), flip, signs)?;
            sum += if (strip & signs_strip).count_ones() & 1 == 1 { -part } else { part };
        }
        Ok(sum)
    }

    /// A sum of Pauli strings times the state.
    pub fn accumulate<T: Run>(&self, engine: &Engine, terms: &[Factors]) -> Result<Self> {
        let mut strips = Vec::with_capacity(self.split.strips());
        for strip in 0..self.split.strips() {
            let mut from: Vec<usize> = terms.iter().map(|term| strip ^ self.cut(term.flip).1).collect();
            from.sort_unstable();
            from.dedup();
            let own = |term: &Factors| {
                let ((flip, flip_strip), (signs, signs_strip)) = (self.cut(term.flip), self.cut(term.signs));
                let source = strip ^ flip_strip;
                let odd = (source & signs_strip).count_ones() & 1 == 1;
                let factor = if odd { -term.factor } else { term.factor };
                (from.binary_search(&source).unwrap_or(0), Factors { flip, signs, factor })
            };
            let own = Arc::new(terms.iter().map(own).collect());
            let parts = self.take::<T>(engine, &from)?;
            let parts: Vec<&Tensor> = parts.iter().collect();
            strips.push(apply::accumulate::<T>(engine, self.split.strip, &parts, &own)?);
        }
        Ok(Self { split: self.split, place: Place::Device(strips), support: u64::MAX })
    }
}
