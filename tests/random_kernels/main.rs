//! Random kernels: the CPU executor against the machine's Vulkan and OpenCL devices and against C under sanitizers, and all against a plain
//! interpreter of the program's tree, which says who is wrong. For each seed a program of integers, bit for bit, and one of floats, within the
//! intervals that WGSL's accuracies leave. Two more hold constant expressions against the same ones evaluated from buffers, and from overrides.
//!
//! By default a fifth of 500 programs, the next one with each turn (`CANTUS_TURN`), and one in eight of them on OpenCL, whose compiler takes
//! ten times as long as all else. In the quick circle the executor has all of them, and a third meets one of the other targets. `--all` (or
//! `CANTUS_TESTS=all`) runs all of them everywhere.
//! `--seed N` (or `CANTUS_SEED=N`) replays one program; `--help` names the other options.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]

mod shrink;

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::Parser as _;

use kit::case::{Case, Values};
use kit::device::Target;
use kit::harness::{self, Arguments, Completion, Failed, Trial};
use kit::random::constants::{self, Form};
use kit::random::program::Program;
use kit::random::{case, floats, generate};
use kit::{bare, check, engine, executor, host_c, turn};

/// All the programs, those of a turn, and the share of them that runs on OpenCL.
const ALL: u64 = 500;
const COUNT: u64 = 100;
const ON_OPENCL: u64 = 8;

/// Random kernels on every device of the machine, against a plain interpreter
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    harness: Arguments,
    /// All programs, on every device
    #[arg(long)]
    all: bool,
    /// The first program [default: that of the turn]
    #[arg(long, value_name = "N")]
    first: Option<u64>,
    /// Number of programs
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// This program alone
    #[arg(long, value_name = "N", env = "CANTUS_SEED")]
    seed: Option<u64>,
    /// Only devices whose name contains the text
    #[arg(long, value_name = "TEXT", default_value = "")]
    device: String,
    /// Show the WGSL of the programs
    #[arg(long)]
    print: bool,
    /// One process of those that OpenCL's programs run in
    #[arg(long, hide = true)]
    child: bool,
}

impl Options {
    fn everything(&self) -> bool {
        self.all || turn::everything()
    }

    fn seeds(&self) -> Range<u64> {
        let (first, count) = match self.seed {
            Some(seed) => (seed, 1),
            None if self.everything() => (0, ALL),
            None => (turn::turn() % (ALL / COUNT) * COUNT, COUNT),
        };
        let first = self.first.unwrap_or(first);
        first..first + self.count.unwrap_or(count)
    }

    /// Returns whether targets beside the executor take a part of the programs, by turns.
    fn spares(&self) -> bool {
        turn::quick() && !self.all && self.seed.is_none() && self.device.is_empty()
    }

    /// One program in this many runs on OpenCL.
    fn on_opencl(&self) -> u64 {
        if self.everything() { 1 } else { ON_OPENCL }
    }
}

/// Programs that one child process runs.
const CHUNK: u64 = 6;

/// The programs on the OpenCL devices, in processes of their own: PoCL's compiler ends the process on some of them. Returns how many passed,
/// the seeds that differ, and those that a compiler gave up.
fn apart(seeds: Range<u64>) -> (u64, Vec<u64>, Vec<u64>) {
    let chunks: Vec<u64> = seeds.clone().step_by(CHUNK as usize).collect();
    let next = AtomicUsize::new(0);
    let sums = Mutex::new((0, Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&first) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = CHUNK.min(seeds.end - first);
                    let whole = child(first, count);
                    let alone = |seed: u64| (seed, 1, child(seed, 1));
                    // Who ended it is found one by one.
                    let parts = match whole {
                        Some(true) => vec![(first, count, whole)],
                        _ => (first..first + count).map(alone).collect(),
                    };
                    let mut sums = sums.lock().unwrap();
                    for (seed, count, outcome) in parts {
                        match outcome {
                            Some(true) => sums.0 += count,
                            Some(false) => sums.1.push(seed),
                            None => sums.2.push(seed),
                        }
                    }
                }
            });
        }
    });
    sums.into_inner().unwrap()
}

/// Runs programs on the OpenCL devices in a child process; `None` when it was ended by a signal.
fn child(first: u64, count: u64) -> Option<bool> {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env_remove("CANTUS_SEED").current_dir(std::env::temp_dir()).args([
        "--child",
        "--device",
        "opencl: ",
        "--first",
        &first.to_string(),
        "--count",
        &count.to_string(),
    ]);
    let output = command.output().unwrap();
    output.status.code().map(|code| code == 0)
}

/// Returns whether the program is one for the device. naga's own writers panic on pointers to parts of variables, which programs of floats have;
/// Cantus rewrites them.
fn suits(target: &dyn Target, case: &Case, exact: bool) -> bool {
    if exact {
        !target.name().starts_with("wgpu: ")
    } else {
        !target.name().starts_with("bare ") && target.missing(&case.needs).is_none()
    }
}

/// Returns whether the target at this place takes a program. `number` is the program's, if they are shared out: the executor, which comes first,
/// takes them all.
fn takes(number: Option<u64>, place: usize, targets: usize) -> bool {
    place == 0 || number.is_none_or(|number| turn::takes(number, place - 1, targets - 1))
}

/// Runs a program on the targets that take it; what differs, in words. Programs of integers have the same bits everywhere.
fn differences(case: &Case, exact: bool, targets: &[Box<dyn Target>], number: Option<u64>) -> Vec<String> {
    let mut seen: Vec<(String, Vec<Values>)> = Vec::new();
    let mut lines = Vec::new();
    let taking = (0..targets.len()).filter(|&place| takes(number, place, targets.len()));
    for target in taking.map(|place| &targets[place]).filter(|target| suits(target.as_ref(), case, exact)) {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target.run(case)));
        let bytes = match run {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(failure)) => {
                lines.push(format!("{}: {}", target.name(), failure.0));
                continue;
            }
            Err(_) => {
                lines.push(format!("{}: panicked", target.name()));
                continue;
            }
        };
        let finals: Vec<Values> = case.bindings.iter().zip(&bytes).map(|(b, bytes)| b.initial.decode(bytes)).collect();
        for (i, binding) in case.bindings.iter().enumerate() {
            if let Err(difference) = check::judge(binding, i, &finals, true) {
                lines.push(format!("{}, against the interpreter: {difference}", target.name()));
            }
        }
        if exact && let Some((other, _)) = seen.iter().find(|(_, values)| *values != finals) {
            lines.push(format!("{} and {other} differ", target.name()));
        }
        seen.push((target.name(), finals));
    }
    lines
}

fn targets(device: &str) -> Vec<Box<dyn Target>> {
    // On GL, Mesa ends long loops, and naga evaluates the condition of `break if` too late.
    let mut targets: Vec<Box<dyn Target>> = vec![Box::new(executor::Executor)];
    targets.extend(bare::targets().into_iter().filter(|t| !t.name().contains("(gl)")));
    let native = |name: &str| !name.contains("(GL)") && !name.starts_with("cpu: ");
    // OpenCL's run apart, unless they are asked for: see `apart`.
    let here = |name: &str| native(name) && (!name.starts_with("opencl: ") || !device.is_empty());
    targets.extend(engine::targets().0.into_iter().filter(|t| here(&t.name())));
    targets.retain(|t| t.name().contains(device));
    targets
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    std::panic::set_hook(Box::new(|_| {}));
    let mut targets = targets(&options.device);
    let seeds = options.seeds();
    let mut trials = Vec::new();
    if host_c::NAME.contains(&options.device) && !options.harness.list {
        // As C they are compiled all together.
        let last = |number| takes(options.spares().then_some(number), targets.len(), targets.len() + 1);
        let both = |seed| {
            let integers = last(seed).then(|| case(&generate::program(seed)));
            [integers, last(seed + 1).then(|| floats::case(seed))].into_iter().flatten()
        };
        let cases: Vec<Case> = seeds.clone().flat_map(both).collect();
        match host_c::HostC::new(&cases) {
            Ok(target) => targets.push(Box::new(target)),
            Err(reason) => trials.push(harness::absent(host_c::NAME.to_owned(), reason, "CANTUS_REQUIRE_CC")),
        }
    }
    let names: Vec<String> = targets.iter().map(|target| target.name()).collect();
    let devices: Arc<[Box<dyn Target>]> = targets.into();
    let number = |kind: u64, seed: u64| options.spares().then_some(seed + kind);
    if options.spares() {
        kit::not_run("two thirds of the programs on targets beside the executor", "./test --full runs them");
    }
    // The first that fails is made smaller.
    let to_shrink = Arc::new(AtomicBool::new(!options.child));
    for seed in seeds.clone() {
        let (program, of_floats) = (generate::program(seed), floats::case(seed));
        if options.print {
            println!("{}{}", case(&program).wgsl, of_floats.wgsl);
        }
        let (targets, to_shrink, share) = (devices.clone(), to_shrink.clone(), number(0, seed));
        trials.push(Trial::test(format!("integers {seed}"), move || {
            let lines = differences(&case(&program), true, &targets, share);
            if lines.is_empty() {
                return Ok(());
            }
            let smaller = to_shrink.swap(false, Ordering::Relaxed).then(|| smaller(program, &targets));
            Err((lines.join("\n") + &smaller.unwrap_or_default()).into())
        }));
        let (targets, share) = (devices.clone(), number(1, seed));
        trials.push(Trial::test(format!("floats {seed}"), move || {
            let lines = differences(&of_floats, false, &targets, share);
            if lines.is_empty() { Ok(()) } else { Err(format!("{}\n{}", lines.join("\n"), of_floats.wgsl).into()) }
        }));
    }
    for seed in seeds.clone() {
        for (kind, form, name) in [(2, Form::Buffers, "constants"), (3, Form::Overrides, "overrides")] {
            let case = constants::case(seed, form);
            if options.print {
                println!("{}", case.wgsl);
            }
            let (targets, share) = (devices.clone(), number(kind, seed));
            trials.push(Trial::test(format!("{name} {seed}"), move || {
                let lines = differences(&case, false, &targets, share);
                if lines.is_empty() { Ok(()) } else { Err(format!("{}\n{}", lines.join("\n"), case.wgsl).into()) }
            }));
        }
    }
    if seeds.end - seeds.start >= 20 {
        let seeds = seeds.clone();
        trials.push(Trial::test("more than half of the floats are known to three digits", move || {
            let share = seeds.clone().map(floats::share_known).sum::<f64>() / (seeds.end - seeds.start) as f64;
            if share > 0.5 { Ok(()) } else { Err(format!("{:.0} % are", share * 100.0).into()) }
        }));
    }
    if options.device.is_empty() && engine::targets().0.iter().any(|t| t.name().starts_with("opencl: ")) {
        let apart = seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(options.on_opencl());
        trials.push(Trial::ignorable_test(format!("OpenCL, seeds {apart:?}"), move || on_opencl(&apart)));
        if options.on_opencl() > 1 {
            kit::not_run("seven of eight seeds on OpenCL", "--all runs them");
        }
    }
    println!("seeds {seeds:?} on {}", names.join("; "));
    options.harness.quiet |= options.harness.filter.is_none();
    libtest_mimic::run(&options.harness, trials).exit_code()
}

/// The programs on the OpenCL devices. Where PoCL's compiler ends the process, or loses track of barriers in conditional loops, the program has
/// not run: the same source gives the right numbers as C and, translated otherwise, on every other device.
fn on_opencl(seeds: &Range<u64>) -> Result<Completion, Failed> {
    let (passed, differing, given_up) = apart(seeds.clone());
    let said =
        format!("{passed} passed; wrong by PoCL's compiler: {differing:?}; it ended the process on {given_up:?}");
    let left = differing.len() + given_up.len();
    // More of them would be a failure of another kind.
    match left {
        0 => Ok(Completion::Completed),
        _ if left as u64 * 10 <= seeds.end - seeds.start + 20 => {
            println!("known deviation: on OpenCL {said}");
            Ok(Completion::Completed)
        }
        _ => Err(said.into()),
    }
}

/// A smaller program that is still wrong, and what is.
fn smaller(program: Program, targets: &[Box<dyn Target>]) -> String {
    let smallest = case(&shrink::shrink(program, |candidate| still_wrong(candidate, targets)));
    format!("\nmade smaller:\n{}\n{}", smallest.wgsl, differences(&smallest, true, targets, None).join("\n"))
}

/// Returns whether a program still runs everywhere and comes out wrong somewhere.
fn still_wrong(program: &Program, targets: &[Box<dyn Target>]) -> bool {
    let lines =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| differences(&case(program), true, targets, None)));
    lines
        .is_ok_and(|lines| !lines.is_empty() && lines.iter().all(|l| l.contains("interpreter") || l.contains("differ")))
}
