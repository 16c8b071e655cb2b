//! The conformance suite: small WGSL kernels with oracles in plain Rust, on every device of the machine.
//!
//! One program that needs no source tree. It prints each failure with the first differing element, then a table of
//! devices, then what could not run and why, then one closing line; it exits with 1 if anything failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

mod compilers;
mod hollow;
mod report;
mod sources;
mod verified;

use kit::case::Case;
use kit::device::Target;
use kit::{bare, cases, engine, executor, host_c};
use report::{Outcome, Report};

struct Options {
    list: bool,
    bare: bool,
    executor: bool,
    compile: bool,
    host_c: bool,
    sources: String,
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
  --compile      run nothing: compile every kernel for CUDA and HIP (--device: the architecture)
  --host-c       run as C alone: translated, compiled with sanitizers
  --sources DIR  write the cases in every language of the C family to a folder and stop";

fn options() -> Result<Options, String> {
    let mut options = Options {
        list: false,
        bare: false,
        executor: false,
        compile: false,
        host_c: false,
        sources: String::new(),
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
            "--compile" => options.compile = true,
            "--host-c" => options.host_c = true,
            "--sources" => options.sources = text()?,
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

fn main() -> std::process::ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            println!("{message}");
            return std::process::ExitCode::from(2);
        }
    };
    let cases: Vec<Case> = cases::all().into_iter().filter(|c| c.name.contains(&options.filter)).collect();
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
    if options.compile {
        let mut report = Report::default();
        let there = compilers::run(&cases, &options.device, &mut report);
        let looked_at = compilers::registers(&mut report);
        let passed = report.close();
        let code = passed && there && looked_at;
        return if code { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE };
    }
    if !options.sources.is_empty() {
        return sources::write(&cases, options.sources.as_ref());
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
    let names: Vec<String> = targets.iter().map(|target| target.name()).collect();
    let whole =
        options.filter.is_empty() && options.device.is_empty() && !options.bare && !options.executor && !options.host_c;
    let absent = if whole { verified::missing(&names) } else { Vec::new() };
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
    for device in &absent {
        println!("{device} stands in the README's table, and is not on this machine");
    }
    validation(&mut report);
    let complete = absent.is_empty() || std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none();
    if report.close() && complete { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// With `CANTUS_VALIDATION` set, what Vulkan's validation layers said counts as failures.
fn validation(report: &mut Report) {
    if std::env::var_os("CANTUS_VALIDATION").is_none_or(|value| value.is_empty() || value == "0") {
        return;
    }
    let backend = cantus::backend::vulkan::VulkanBackend::new();
    if !backend.is_validated() {
        println!("not validated: VK_LAYER_KHRONOS_validation is not installed, or there is no Vulkan");
        return;
    }
    let messages = cantus::backend::vulkan::take_validation_messages();
    println!("Vulkan's validation layers were on, and said {} things", messages.len());
    let outcomes = messages.into_iter().map(|message| ("validation".to_owned(), Outcome::Failed(message)));
    report.device("vulkan's validation layers", outcomes.collect(), std::time::Duration::ZERO);
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
