//! Prepared kernels, byte by byte, and bytecode, field by field.

use cantus::{Kernel, testing};

use crate::mutate::{self, Rng};
use crate::wgsl::{corpus, run};
use crate::{Input, Outcome, tiny};

/// A kernel that the executor runs.
fn kernel(text: &str) -> Option<Kernel> {
    let kernel = Kernel::from_wgsl(text).ok()?;
    let first = kernel.entry_points().ok()?.into_iter().next()?;
    let kernel = kernel.with_entry_point(&first).ok()?;
    kernel.program().ok()?;
    Some(kernel)
}

/// The first inputs of a class: whole kernels, and tiny ones.
struct Corpus<T> {
    whole: Vec<T>,
    tiny: Vec<T>,
}

impl<T: Clone> Corpus<T> {
    fn new(of: impl Fn(&Kernel) -> Option<T>) -> Self {
        // A few of the smaller whole ones: making them takes longer than running them.
        let all = corpus();
        let whole = all[..all.len() / 2].iter().step_by(6).filter_map(|text| of(&kernel(text)?)).collect();
        let tiny = (0..512).filter_map(|seed| of(&kernel(&tiny::text(&mut Rng::new(seed)))?)).collect();
        Self { whole, tiny }
    }

    /// Nearly all are tiny: they take a tenth of the time.
    fn pick<'a>(&'a self, rng: &mut Rng) -> &'a T {
        let from = if rng.one_in(32) { &self.whole } else { &self.tiny };
        rng.pick(from)
    }
}

pub fn prepared() -> Input {
    let corpus = Corpus::new(|kernel| kernel.prepare().ok());
    Box::new(move |rng| {
        let mut bytes = corpus.pick(rng).clone();
        let other = corpus.pick(rng);
        if !rng.one_in(8) {
            let most = if rng.one_in(2) { 1 } else { 8 };
            mutate::bytes(rng, &mut bytes, other, most);
            // What lies behind the checksum is to be tried as well.
            cantus::kernel::seal(&mut bytes);
        }
        let Ok(kernel) = Kernel::from_prepared(&bytes) else { return Outcome::Refused };
        let Ok(reflection) = kernel.reflection() else { return Outcome::Passed };
        let _ = (
            reflection.invocations(),
            reflection.bindings.iter().map(|binding| binding.layout.to_string().len()).sum::<usize>(),
        );
        match kernel.program() {
            Ok(program) => run(program, rng),
            Err(_) => Outcome::Passed,
        }
    })
}

impl testing::Choices for Rng {
    fn below(&mut self, n: usize) -> usize {
        Rng::below(self, n)
    }
    fn number(&mut self) -> u64 {
        Rng::number(self)
    }
}

pub fn programs() -> Input {
    let corpus = Corpus::new(|kernel| Some((**kernel.program().ok()?).clone()));
    Box::new(move |rng| {
        let mut program = corpus.pick(rng).clone();
        let other = corpus.pick(rng);
        for _ in 0..=rng.below(3) {
            testing::change(&mut program, other, rng);
        }
        if program.check().is_err() {
            return Outcome::Refused;
        }
        run(&program, rng)
    })
}
