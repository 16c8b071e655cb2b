//! The conformance suite: small WGSL kernels with oracles in plain Rust, on every device of the machine.
//!
//! One program that needs no source tree. It prints each failure with the first differing element, then a table of
//! devices, then what could not run and why, then one closing line; it exits with 1 if anything failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

mod accuracy;
mod atomics;
mod bare;
mod case;
mod check;
#[cfg(feature = "hip")]
mod compilers;
mod deviations;
mod device;
mod dispatch;
mod engine;
mod executor;
mod half_and_small;
mod hollow;
mod host_c;
mod inputs;
mod out_of_range;
mod overrides;
mod report;
mod shipped;
mod sources;
mod subgroup;
mod wide;
mod workgroup;

// The cases, by theme.
mod bits;
mod builtins;
mod control;
mod float;
mod integer;
mod layout;
mod matrix;
mod memory;
mod pointers;

use case::Case;
use device::Target;
use report::{Outcome, Report};

struct Options {
    list: bool,
    bare: bool,
    executor: bool,
    host_c: bool,
    sources: String,
    compile: Option<String>,
    print: bool,
    filter: String,
    device: String,
}

const USAGE: &str = "\
Usage: conformance [--list] [--filter TEXT] [--device TEXT] [--bare] [--print]
  --list         print the names of the cases and stop
  --print        print the WGSL of the cases and stop
  --filter TEXT  only cases whose name contains TEXT
  --device TEXT  only devices whose name contains TEXT
  --bare         run over bare wgpu, without Cantus
  --executor     run on the CPU executor alone, without an engine
  --host-c       run as C alone: translated, compiled with sanitizers
  --sources DIR  write the cases in every language of the C family to a folder and stop
  --compile TEXT compile the cases by nvrtc and hiprtc, or the one whose name contains TEXT, and stop";

fn options() -> Result<Options, String> {
    let mut options = Options {
        list: false,
        bare: false,
        executor: false,
        host_c: false,
        sources: String::new(),
        compile: None,
        print: false,
        filter: String::new(),
        device: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut text = || arguments.next().ok_or(format!("{argument} wants a text after it"));
        match argument.as_str() {
            "--list" => options.list = true,
            "--print" => options.print = true,
            "--bare" => options.bare = true,
            "--executor" => options.executor = true,
            "--host-c" => options.host_c = true,
            "--sources" => options.sources = text()?,
            "--compile" => options.compile = Some(text()?),
            "--filter" => options.filter = text()?,
            "--device" => options.device = text()?,
            // What `cargo test` passes to every test program.
            "--nocapture" | "--quiet" | "-q" => {}
            "--help" | "-h" => return Err(USAGE.to_owned()),
            other if !other.starts_with('-') => options.filter = other.to_owned(),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    Ok(options)
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for theme in [
        integer::cases,
        bits::cases,
        float::cases,
        builtins::cases,
        matrix::cases,
        control::cases,
        pointers::cases,
        layout::cases,
        memory::cases,
        atomics::cases,
        dispatch::cases,
        half_and_small::cases,
        wide::cases,
        out_of_range::cases,
        accuracy::cases,
        subgroup::cases,
        overrides::cases,
        workgroup::cases,
    ] {
        cases.extend(theme());
    }
    cases
}

fn main() -> std::process::ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            println!("{message}");
            return std::process::ExitCode::from(2);
        }
    };
    let cases: Vec<Case> = cases().into_iter().filter(|c| c.name.contains(&options.filter)).collect();
    if options.list || options.print {
        for case in &cases {
            println!("{}", case.name);
            if options.print {
                println!("{}", case.wgsl);
            }
        }
        println!("{} cases", cases.len());
        return std::process::ExitCode::SUCCESS;
    }
    if !options.sources.is_empty() {
        return sources::write(&cases, options.sources.as_ref());
    }
    if let Some(compiler) = &options.compile {
        #[cfg(feature = "hip")]
        return compilers::check(&cases, compiler);
        #[cfg(not(feature = "hip"))]
        {
            println!("--compile {compiler} needs the feature `hip`, which brings the loading of libraries");
            return std::process::ExitCode::from(2);
        }
    }
    let (mut targets, mut reasons) = match (options.bare, options.executor) {
        (true, _) => (bare::targets(), Vec::new()),
        (_, true) => (vec![Box::new(executor::Executor) as Box<dyn Target>], Vec::new()),
        _ if options.host_c => (Vec::new(), Vec::new()),
        _ => engine::targets(),
    };
    // Translating and compiling everything takes a while: not where another device was asked for.
    let plain = !options.bare && !options.executor && host_c::NAME.contains(&options.device);
    if options.host_c || plain {
        match host_c::HostC::new(&cases) {
            Ok(target) => targets.push(Box::new(target)),
            Err(reason) if std::env::var_os("CANTUS_REQUIRE_CC").is_some() => {
                println!("{reason}");
                return std::process::ExitCode::FAILURE;
            }
            Err(reason) => reasons.push(reason),
        }
    }
    reasons.iter().for_each(|reason| println!("no device: {reason}"));
    targets.retain(|t| t.name().contains(&options.device));
    // A panic is a failure of its case, with its message; the trace would only drown the report.
    std::panic::set_hook(Box::new(|_| {}));
    let mut report = Report::default();
    let hollow: Vec<(String, Outcome)> = hollow::cannot_fail(&cases)
        .into_iter()
        .map(|case| (case, Outcome::Failed("this case cannot fail".to_owned())))
        .collect();
    if !hollow.is_empty() {
        report.device("no device at all", hollow, std::time::Duration::ZERO);
    }
    for target in &targets {
        run(target.as_ref(), &cases, &options.filter, &mut report);
    }
    if report.close() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// All cases on one device, on as many threads as the machine has cores.
fn run(target: &dyn Target, cases: &[Case], filter: &str, report: &mut Report) {
    let started = std::time::Instant::now();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let outcomes = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((i, case)) = {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    cases.get(i).map(|case| (i, case))
                } {
                    let outcome = Outcome::of(target, case);
                    outcomes.lock().unwrap().push((i, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by_key(|(i, _)| *i);
    let mut outcomes: Vec<(String, Outcome)> =
        outcomes.into_iter().map(|(i, outcome)| (cases[i].name.clone(), outcome)).collect();
    let shipped = if "shipped".contains(filter) || filter.contains("shipped") { target.shipped() } else { Vec::new() };
    outcomes.extend(shipped.into_iter().map(|row| {
        let outcome = Outcome::of_shipped(target, &row.name, row.outcome);
        (row.name, outcome)
    }));
    report.device(&target.name(), outcomes, started.elapsed());
}
