//! Kernels compiled ahead against the executor, bit for bit: the conformance suite's kernels and 500 random programs, written as Rust
//! and compiled in one batch.
//!
//! A kernel that the generator leaves to the executor is listed with its reason. `--filter TEXT` picks cases, `--random N` says how many
//! random programs, `--baseline` takes the baseline version in place of the best one, `--keep` keeps the batch and says where.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

mod batch;

use std::process::ExitCode;
use std::time::Instant;

use batch::{Batch, Run};
use cantus::{Kernel, testing};
use kit::case::{Case, Values};
use kit::device::Target;
use kit::random::generate;
use kit::{check, executor, random};

struct Options {
    filter: String,
    random: u64,
    baseline: bool,
    keep: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { filter: String::new(), random: 500, baseline: false, keep: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut text = || arguments.next().ok_or(format!("{argument} wants a value after it"));
        match argument.as_str() {
            "--filter" => options.filter = text()?,
            "--random" => options.random = text()?.parse().map_err(|_| "--random wants a number".to_owned())?,
            "--baseline" => options.baseline = true,
            "--keep" => options.keep = true,
            "--nocapture" | "--quiet" | "-q" => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

fn cases(options: &Options) -> Vec<Case> {
    let mut cases = kit::cases::all();
    cases.extend((0..options.random).map(|seed| random::case(&generate::program(seed))));
    cases.retain(|case| case.name.contains(&options.filter));
    cases
}

/// The text of the case's kernel. Generated without the overrides' values where all of them can come with the launch.
fn text(case: &Case, kernel: &Kernel) -> cantus::Result<String> {
    if !case.overrides.is_empty()
        && let Ok(text) = testing::ahead_within(&Kernel::from_wgsl(&case.wgsl)?, &case.name, "crate", true)
    {
        let arguments = batch::arguments(&text);
        if case.overrides.iter().all(|(name, _)| arguments.contains(name)) {
            return Ok(text);
        }
    }
    testing::ahead_within(kernel, &case.name, "crate", true)
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

/// What one case came to.
enum Outcome {
    Same,
    /// The bits differ, and the case's own oracle, which knows what WGSL leaves open, is content.
    Open(String),
    Failed(String),
}

fn compare(case: &Case, run: &Run) -> Outcome {
    let decode = |bytes: &[Vec<u8>]| -> Vec<Values> {
        case.bindings.iter().zip(bytes).map(|(binding, bytes)| binding.initial.decode(bytes)).collect()
    };
    let executor = match executor::Executor.run(case) {
        Ok(bytes) => decode(&bytes),
        Err(failure) => return Outcome::Failed(format!("the executor: {}", failure.0)),
    };
    let ahead = match run.run(case) {
        Ok(bytes) => decode(&bytes),
        Err(failure) => return Outcome::Failed(failure),
    };
    let differs = case.bindings.iter().zip(ahead.iter().zip(&executor)).find_map(|(binding, (ahead, executor))| {
        difference(ahead, executor).map(|difference| format!("{}{difference}", binding.identifier()))
    });
    let Some(differs) = differs else { return Outcome::Same };
    // Only atomics leave something open: the order in which invocations come.
    let judged = (0..case.bindings.len()).try_for_each(|i| check::judge(&case.bindings[i], i, &ahead, true));
    match judged {
        Ok(()) if case.wgsl.contains("atomic") => Outcome::Open(differs),
        _ => Outcome::Failed(differs),
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            println!("{message}");
            return ExitCode::from(2);
        }
    };
    let started = Instant::now();
    let cases = cases(&options);
    let mut batch = Batch::new(options.baseline);
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let mut with_arguments = 0;
    for case in &cases {
        let text = kernel(case).and_then(|kernel| Ok((text(case, &kernel)?, kernel)));
        match text {
            Ok((text, kernel)) => {
                let program = match kernel.program() {
                    Ok(program) => program.clone(),
                    Err(error) => {
                        left.push((case.name.as_str(), format!("the executor refuses it too: {error}")));
                        continue;
                    }
                };
                let arguments = match testing::ahead_arguments(&kernel, &batch::arguments(&text)) {
                    Ok(arguments) => arguments,
                    Err(error) => {
                        println!("{}: {error}", case.name);
                        return ExitCode::FAILURE;
                    }
                };
                with_arguments += usize::from(!arguments.is_empty());
                taken.push((case, batch.add(text), program, arguments));
            }
            Err(error) => left.push((case.name.as_str(), error.to_string())),
        }
    }
    let written = started.elapsed();
    let library = match batch.compile(options.keep) {
        Ok(library) => library,
        Err(reason) => {
            println!("FAILED: the batch does not compile: {reason}");
            return ExitCode::FAILURE;
        }
    };
    let compiled = started.elapsed() - written;
    let (mut same, mut open, mut failed) = (0, Vec::new(), 0);
    for (case, index, program, arguments) in &taken {
        let run = library.run(*index, program.clone(), arguments);
        match compare(case, &run) {
            Outcome::Same => same += 1,
            Outcome::Open(difference) => open.push(format!("{}: {difference}", case.name)),
            Outcome::Failed(difference) => {
                failed += 1;
                println!("FAILED {}: {difference}", case.name);
            }
        }
    }
    for (name, reason) in &left {
        println!("left to the executor: {name}: {}", reason.lines().next().unwrap_or_default());
    }
    for line in &open {
        println!("order open in WGSL, accepted by the case's oracle: {line}");
    }
    println!(
        "{} kernels, {} texts, {with_arguments} with overrides as arguments: {same} with the executor's bits, {} in an order that is open, {} left to the executor, {failed} failed; \
         {:.1} s to write, {:.1} s to compile, {:.1} s in all",
        cases.len(),
        library.count(),
        open.len(),
        left.len(),
        written.as_secs_f64(),
        compiled.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    // Nine in ten kernels must really have run.
    if failed == 0 && (same + open.len()) * 10 >= cases.len() * 9 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
