//! Random kernels: the CPU executor against the machine's Vulkan and OpenCL devices and against C under sanitizers, and all against a plain
//! interpreter of the program's tree, which says who is wrong. For each seed a program of integers, bit for bit, and one of floats, within the
//! intervals that WGSL's accuracies leave.
//!
//! By default a fifth of 500 programs, the next one with each turn (`CANTUS_TURN`), and one in eight of them on OpenCL, whose compiler takes
//! ten times as long as all else. `--all` (or `CANTUS_TESTS=all`) runs all of them everywhere.
//! `--seed N` (or `CANTUS_SEED=N`) replays one program, `--count N` sets how many run, `--first N` where they start,
//! `--device TEXT` picks devices, `--print` shows the WGSL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]

mod shrink;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::case::{Case, Values};
use kit::device::Target;
use kit::random::program::Program;
use kit::random::{case, floats, generate};
use kit::{bare, check, engine, executor, host_c, turn};

/// All the programs, those of a turn, and the share of them that runs on OpenCL.
const ALL: u64 = 500;
const COUNT: u64 = 100;
const ON_OPENCL: u64 = 8;

struct Options {
    seed: Option<u64>,
    first: u64,
    count: u64,
    /// One program in this many runs on OpenCL.
    opencl: u64,
    device: String,
    print: bool,
}

fn options() -> Result<Options, String> {
    let seed =
        std::env::var("CANTUS_SEED").ok().map(|s| s.parse().map_err(|_| format!("CANTUS_SEED={s} is no number")));
    let (first, count) = if turn::everything() { (0, ALL) } else { (turn::turn() % (ALL / COUNT) * COUNT, COUNT) };
    let opencl = if turn::everything() { 1 } else { ON_OPENCL };
    let mut options = Options { seed: seed.transpose()?, first, count, opencl, device: String::new(), print: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut text = || arguments.next().ok_or(format!("{argument} wants a value after it"));
        let number = |s: String| s.parse().map_err(|_| format!("{s} is no number"));
        match argument.as_str() {
            "--seed" => options.seed = Some(number(text()?)?),
            "--first" => options.first = number(text()?)?,
            "--all" => (options.first, options.count, options.opencl) = (0, ALL, 1),
            "--count" => options.count = number(text()?)?,
            "--device" => options.device = text()?,
            "--print" => options.print = true,
            "--nocapture" | "--quiet" | "-q" => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

/// Programs that one child process runs.
const CHUNK: u64 = 6;

/// The programs on the OpenCL devices, in processes of their own: PoCL's compiler ends the process on some of them. Returns how many passed,
/// the seeds that differ, and those that a compiler gave up.
fn apart(seeds: std::ops::Range<u64>) -> (u64, Vec<u64>, Vec<u64>) {
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
    command.env("CANTUS_RANDOM_CHILD", "1").current_dir(std::env::temp_dir()).args([
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

/// Whether the program is one for the device. naga's own writers panic on pointers to parts of variables, which programs of floats have;
/// Cantus rewrites them.
fn suits(target: &dyn Target, case: &Case, exact: bool) -> bool {
    if exact {
        !target.name().starts_with("wgpu: ")
    } else {
        !target.name().starts_with("bare ") && target.missing(&case.needs).is_none()
    }
}

/// Runs a program everywhere; what differs, in words. Programs of integers have the same bits everywhere.
fn differences(case: &Case, exact: bool, targets: &[Box<dyn Target>]) -> Vec<String> {
    let mut seen: Vec<(String, Vec<Values>)> = Vec::new();
    let mut lines = Vec::new();
    for target in targets.iter().filter(|target| suits(target.as_ref(), case, exact)) {
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
    // GL runs without integer guards: division by zero is not WGSL's there.
    let mut targets: Vec<Box<dyn Target>> = vec![Box::new(executor::Executor)];
    targets.extend(bare::targets().into_iter().filter(|t| !t.name().contains("(gl)")));
    let native = |name: &str| !name.contains("(GL)") && !name.starts_with("cpu: ");
    // OpenCL's run apart, unless they are asked for: see `apart`.
    let here = |name: &str| native(name) && (!name.starts_with("opencl: ") || !device.is_empty());
    targets.extend(engine::targets().0.into_iter().filter(|t| here(&t.name())));
    targets.retain(|t| t.name().contains(device));
    targets
}

fn main() -> std::process::ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            println!("{message}");
            return std::process::ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let mut targets = targets(&options.device);
    let seeds: std::ops::Range<u64> = match options.seed {
        Some(seed) => seed..seed + 1,
        None => options.first..options.first + options.count,
    };
    if host_c::NAME.contains(&options.device) {
        // As C they are compiled all together.
        let both = |seed| [case(&generate::program(seed)), floats::case(seed)];
        let cases: Vec<Case> = seeds.clone().flat_map(both).collect();
        match host_c::HostC::new(&cases) {
            Ok(target) => targets.push(Box::new(target)),
            Err(reason) if std::env::var_os("CANTUS_REQUIRE_CC").is_some() => {
                println!("{reason}");
                return std::process::ExitCode::FAILURE;
            }
            Err(reason) => println!("not run: {reason}"),
        }
    }
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<(Program, Vec<String>)>> = Mutex::new(Vec::new());
    let float_failures: Mutex<Vec<(Case, Vec<String>)>> = Mutex::new(Vec::new());
    let count = (seeds.end - seeds.start) as usize;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    let seed = seeds.start + i as u64;
                    let (program, of_floats) = (generate::program(seed), floats::case(seed));
                    let of_integers = case(&program);
                    if options.print {
                        println!("{}{}", of_integers.wgsl, of_floats.wgsl);
                    }
                    let lines = differences(&of_integers, true, &targets);
                    if !lines.is_empty() {
                        failures.lock().unwrap().push((program, lines));
                    }
                    let lines = differences(&of_floats, false, &targets);
                    if !lines.is_empty() {
                        float_failures.lock().unwrap().push((of_floats, lines));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort_by_key(|(program, _)| program.seed);
    for (program, lines) in &failures {
        println!("FAILED seed {}:\n  {}", program.seed, lines.join("\n  "));
    }
    let mut float_failures = float_failures.into_inner().unwrap();
    float_failures.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    for (case, lines) in &float_failures {
        println!("FAILED {}:\n  {}\n{}", case.name, lines.join("\n  "), case.wgsl);
    }
    let is_child = std::env::var_os("CANTUS_RANDOM_CHILD").is_some();
    if let Some((program, _)) = failures.first().filter(|_| !is_child) {
        let smallest = shrink::shrink(program.clone(), |candidate| still_wrong(candidate, &targets));
        println!("seed {}, made smaller:\n{}", program.seed, case(&smallest).wgsl);
        println!("  {}", differences(&case(&smallest), true, &targets).join("\n  "));
    }
    let tight = seeds.clone().map(floats::share_known).sum::<f64>() / count as f64;
    println!("of the floats {:.0} % are known to three digits", tight * 100.0);
    let names: Vec<String> = targets.iter().map(|t| t.name()).collect();
    println!("devices: {}", names.join("; "));
    let opencl = options.device.is_empty() && engine::targets().0.iter().any(|t| t.name().starts_with("opencl: "));
    let seeds_apart = seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(options.opencl);
    println!("seeds {}..{}", seeds.start, seeds.end);
    let count_apart = (seeds_apart.end - seeds_apart.start) as usize;
    let (passed_apart, differing, given_up) = if opencl { apart(seeds_apart.clone()) } else { Default::default() };
    if opencl {
        println!("on OpenCL, against the interpreter: {passed_apart} of the seeds {seeds_apart:?} passed");
    }
    if opencl && seeds_apart != seeds {
        println!("not run: on OpenCL the seeds from {} on: --all runs them", seeds_apart.end);
    }
    if !differing.is_empty() {
        // The same source gives the right numbers as C and, translated otherwise, on every other device.
        println!("known deviation: PoCL 3.1 loses track of barriers in conditional loops, seeds {differing:?}");
    }
    if !given_up.is_empty() {
        println!("not run on OpenCL: its compiler ends the process on the seeds {given_up:?}");
    }
    let failed = failures.len() + float_failures.len();
    println!(
        "{} passed, {failed} failed, {} skipped in {:.1} s",
        2 * count - failed,
        given_up.len() + differing.len(),
        started.elapsed().as_secs_f64()
    );
    // More of them would be a failure of another kind.
    if failed == 0 && (count < 20 || tight > 0.5) && (given_up.len() + differing.len()) * 10 <= count_apart + 20 {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}

/// Whether a program still runs everywhere and comes out wrong somewhere.
fn still_wrong(program: &Program, targets: &[Box<dyn Target>]) -> bool {
    let lines = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| differences(&case(program), true, targets)));
    lines
        .is_ok_and(|lines| !lines.is_empty() && lines.iter().all(|l| l.contains("interpreter") || l.contains("differ")))
}
