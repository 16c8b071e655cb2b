//! Kernels compiled ahead against the executor, bit for bit: the conformance suite's kernels and 500 random programs, written as Rust
//! and compiled in one batch.
//!
//! A kernel that the generator leaves to the executor is listed with its reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

mod batch;

use std::process::ExitCode;
use std::sync::Arc;

use batch::{Batch, Run};
use cantus::spmd::Bytecode;
use cantus::{Kernel, testing};
use clap::Parser as _;
use kit::case::{Case, Values};
use kit::device::Target;
use kit::harness::{Arguments, Completion, Failed, Trial};
use kit::random::generate;
use kit::{check, executor, random};

/// Kernels compiled ahead, against the executor
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    harness: Arguments,
    /// Number of random programs
    #[arg(long, value_name = "N", default_value_t = 500)]
    random: u64,
    /// The baseline version in place of the best one
    #[arg(long)]
    baseline: bool,
    /// Keep the batch, and say where it is
    #[arg(long)]
    keep: bool,
}

fn cases(options: &Options) -> Vec<Case> {
    let mut cases = kit::cases::all();
    cases.extend((0..options.random).map(|seed| random::case(&generate::program(seed))));
    let filter = options.harness.filter.as_deref().unwrap_or_default();
    cases.retain(|case| case.name.contains(filter));
    cases
}

/// The text of the case's kernel. Generated without the overrides' values where all of them can come with the launch.
fn text(case: &Case, kernel: &Kernel) -> cantus::Result<String> {
    if !case.overrides.is_empty()
        && let Ok(text) = cantus_build::rust_within(&Kernel::from_wgsl(&case.wgsl)?, &case.name, "crate", true)
    {
        let arguments = batch::arguments(&text);
        if case.overrides.iter().all(|(name, _)| arguments.contains(name)) {
            return Ok(text);
        }
    }
    cantus_build::rust_within(kernel, &case.name, "crate", true)
}

/// The case's kernel, as the library sees it.
fn kernel(case: &Case) -> cantus::Result<Kernel> {
    let mut kernel = Kernel::from_wgsl(&case.wgsl)?;
    for (name, value) in &case.overrides {
        kernel = kernel.with_override(name, *value)?;
    }
    Ok(kernel)
}

/// The first element that differs. A NaN equals any other: its payload is open.
fn difference(ahead: &Values, executor: &Values) -> Option<String> {
    fn first<T: Copy + std::fmt::Debug>(a: &[T], b: &[T], same: impl Fn(T, T) -> bool) -> Option<String> {
        let place = a.iter().zip(b).position(|(a, b)| !same(*a, *b))?;
        Some(format!("[{place}]: ahead {:?}, executor {:?}", a[place], b[place]))
    }
    match (ahead, executor) {
        (Values::I16(a), Values::I16(b)) => first(a, b, |a, b| a == b),
        (Values::U16(a), Values::U16(b)) => first(a, b, |a, b| a == b),
        (Values::I32(a), Values::I32(b)) => first(a, b, |a, b| a == b),
        (Values::U32(a), Values::U32(b)) => first(a, b, |a, b| a == b),
        (Values::I64(a), Values::I64(b)) => first(a, b, |a, b| a == b),
        (Values::U64(a), Values::U64(b)) => first(a, b, |a, b| a == b),
        (Values::F16(a), Values::F16(b)) => {
            first(a, b, |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        }
        (Values::F32(a), Values::F32(b)) => {
            first(a, b, |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        }
        (Values::F64(a), Values::F64(b)) => {
            first(a, b, |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        }
        _ => Some(": of different types".to_owned()),
    }
}

/// Runs a case both ways. Where the bits differ, the case's own oracle may be content, which knows what WGSL leaves open.
fn compare(case: &Case, run: &Run) -> Result<Completion, Failed> {
    let decode = |bytes: &[Vec<u8>]| -> Vec<Values> {
        case.bindings.iter().zip(bytes).map(|(binding, bytes)| binding.initial.decode(bytes)).collect()
    };
    let executor = decode(&executor::Executor.run(case).map_err(|failure| format!("the executor: {}", failure.0))?);
    let ahead = decode(&run.run(case)?);
    let differs = case.bindings.iter().zip(ahead.iter().zip(&executor)).find_map(|(binding, (ahead, executor))| {
        difference(ahead, executor).map(|difference| format!("{}{difference}", binding.identifier()))
    });
    let Some(differs) = differs else { return Ok(Completion::Completed) };
    // Only atomics leave something open: the order in which invocations come.
    let judged = (0..case.bindings.len()).try_for_each(|i| check::judge(&case.bindings[i], i, &ahead, true));
    match judged {
        Ok(()) if case.wgsl.contains("atomic") => {
            println!("order open in WGSL, accepted by the case's oracle: {}: {differs}", case.name);
            Ok(Completion::Completed)
        }
        _ => Err(differs.into()),
    }
}

/// One kernel's place in the batch.
struct Taken {
    index: usize,
    program: Arc<Bytecode>,
    arguments: Vec<u32>,
}

/// Writes a case's kernel into the batch. `Err` says why the generator leaves it to the executor.
fn take(case: &Case, batch: &mut Batch) -> cantus::Result<Taken> {
    let kernel = kernel(case)?;
    let text = text(case, &kernel)?;
    let program = kernel.program()?.clone();
    let arguments = testing::ahead_arguments(&kernel, &batch::arguments(&text))?;
    Ok(Taken { index: batch.add(text), program, arguments })
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    let cases = cases(&options);
    let mut batch = Batch::new(options.baseline);
    let taken: Vec<_> = cases.iter().map(|case| take(case, &mut batch)).collect();
    let library = match batch.compile(options.keep) {
        Ok(library) => Arc::new(library),
        Err(reason) => {
            println!("FAILED: the batch does not compile: {reason}");
            return ExitCode::FAILURE;
        }
    };
    let (all, compiled) = (taken.len(), taken.iter().filter(|taken| taken.is_ok()).count());
    let with_arguments = taken.iter().flatten().filter(|taken| !taken.arguments.is_empty()).count();
    println!("{all} kernels, {} texts, {with_arguments} with overrides as arguments", library.count());
    let mut trials: Vec<Trial> = Vec::new();
    for (case, taken) in cases.into_iter().zip(taken) {
        let library = library.clone();
        trials.push(Trial::ignorable_test(case.name.clone(), move || match taken {
            Ok(Taken { index, program, arguments }) => compare(&case, &library.run(index, program, &arguments)),
            Err(error) => {
                let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                println!("left to the executor: {}: {reason}", case.name);
                Ok(Completion::ignored_with(reason))
            }
        }));
    }
    trials.push(Trial::test("nine in ten kernels are compiled ahead", move || {
        if compiled * 10 >= all * 9 { Ok(()) } else { Err(format!("{compiled} of {all}").into()) }
    }));
    options.harness.quiet |= options.harness.filter.take().is_none();
    libtest_mimic::run(&options.harness, trials).exit_code()
}
