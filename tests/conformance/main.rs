//! The conformance suite: small WGSL kernels with oracles in plain Rust, on every device of the machine.
//!
//! One program that needs no source tree. It prints each failure with the first differing element, then a table of
//! devices, then what could not run and why, then one closing line; it exits with 1 if anything failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

mod clang;
mod compilers;
mod hollow;
mod report;
mod sources;
mod texts;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser as _;
use kit::case::Case;
use kit::device::Target;
use kit::{bare, cases, checks, engine, executor, host_c, turn, verified};
use libtest_mimic::{Arguments, Trial};
use report::{Outcome, Report, completion};

type SharedReport = Arc<Mutex<Report>>;

/// Small WGSL kernels with oracles in plain Rust, on every device of the machine.
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    harness: Arguments,
    /// Print the WGSL of the cases and stop
    #[arg(long)]
    print: bool,
    /// Only cases whose name contains the text, as FILTER alone
    #[arg(long = "filter", value_name = "TEXT", default_value = "")]
    part: String,
    /// Only devices whose name contains the text (with --compile: the architecture)
    #[arg(long, value_name = "TEXT", default_value = "")]
    device: String,
    /// Run over bare wgpu, without Cantus
    #[arg(long)]
    bare: bool,
    /// Run on the CPU executor alone, without an engine
    #[arg(long)]
    executor: bool,
    /// Run nothing: compile every kernel for CUDA and HIP
    #[arg(long)]
    compile: bool,
    /// Run nothing: check every kernel in the languages that naga writes (--device: those whose checker contains the text)
    #[arg(long)]
    texts: bool,
    /// Run as C alone: translated, compiled with sanitizers
    #[arg(long)]
    host_c: bool,
    /// Write the cases in every language of the C family to a folder and stop
    #[arg(long, value_name = "DIR", default_value = "")]
    sources: String,
}

impl Options {
    /// One way to run everything, and everything asked for.
    fn is_whole(&self) -> bool {
        self.part.is_empty() && self.device.is_empty() && !self.bare && !self.executor && !self.host_c
    }
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    // The filter is of cases; the devices' names have an option of their own.
    if let Some(filter) = options.harness.filter.take() {
        options.part = filter;
    }
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| case.name.contains(&options.part)).collect();
    if options.print || options.harness.list {
        for case in &cases {
            println!("{}", case.name);
            if options.print {
                println!("{}", case.wgsl);
            }
        }
        println!("{} cases", cases.len());
        return ExitCode::SUCCESS;
    }
    if options.compile {
        let mut report = Report::default();
        let there = compilers::run(&cases, &options.device, &mut report);
        let looked_at = compilers::registers(&mut report);
        return code(report.close() && there && looked_at);
    }
    if options.texts {
        let mut report = Report::default();
        let there = texts::run(&cases, &options.device, &options.part, false, &mut report);
        return code(report.close() && there);
    }
    if !options.sources.is_empty() {
        return sources::write(&cases, options.sources.as_ref());
    }
    let (targets, reasons) = match targets(&options, &cases) {
        Ok(found) => found,
        Err(reason) => {
            println!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    reasons.iter().for_each(|reason| kit::not_run("a backend without a device", reason));
    let names: Vec<String> = targets.iter().map(|target| target.name()).collect();
    let absent = if options.is_whole() { verified::missing(&names) } else { Vec::new() };
    // A panic is a failure of its case, with its message; the trace would only drown the report.
    std::panic::set_hook(Box::new(|_| {}));
    let report = Arc::new(Mutex::new(Report::default()));
    let cases: Vec<Arc<Case>> = cases.into_iter().map(Arc::new).collect();
    let trials = trials(targets, &cases, &options, &report);
    let checked = options.is_whole().then_some(cases);
    let conclusion = libtest_mimic::run(&quiet(options.harness), trials);
    let mut report = report.lock().unwrap();
    let checkers = checked.is_none_or(|cases| texts::run(cases.iter().map(AsRef::as_ref), "", "", true, &mut report));
    for device in &absent {
        println!("{device} stands in the README's table, and is not on this machine");
    }
    validation(&mut report);
    let complete = absent.is_empty() || std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_none();
    code(report.close() && complete && checkers && !conclusion.has_failed())
}

fn code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A character for a case: there are thousands, and the report names those that matter.
fn quiet(mut arguments: Arguments) -> Arguments {
    arguments.quiet |= arguments.format.is_none();
    arguments
}

type Targets = (Vec<Arc<dyn Target>>, Vec<String>);

/// Returns the devices where the cases run, and the reasons why not elsewhere.
///
/// # Errors
/// If there is no compiler for C, and one is required.
fn targets(options: &Options, cases: &[Case]) -> Result<Targets, String> {
    let (mut targets, mut reasons) = match (options.bare, options.executor) {
        (true, _) => (bare::targets(), Vec::new()),
        (_, true) => (vec![Box::new(executor::Executor) as Box<dyn Target>], Vec::new()),
        _ if options.host_c => (Vec::new(), Vec::new()),
        _ => engine::targets(),
    };
    // Translating and compiling everything takes a while: not where another device was asked for.
    let plain = !options.bare && !options.executor && host_c::NAME.contains(&options.device);
    if options.host_c || plain {
        match host_c::HostC::new(cases) {
            Ok(target) => targets.push(Box::new(target)),
            Err(reason) if std::env::var_os("CANTUS_REQUIRE_CC").is_some() => return Err(reason),
            Err(reason) => reasons.push(reason),
        }
    }
    targets.retain(|target| target.name().contains(&options.device));
    Ok((targets.into_iter().map(Arc::from).collect(), reasons))
}

/// Returns whether Vulkan's devices are treated as ones with memory of their own: a quarter with each turn then, unless all of them are asked for.
fn discrete() -> bool {
    std::env::var_os("CANTUS_VULKAN_DISCRETE").is_some() && !turn::everything()
}

/// Every case on every target, and what each target does at one go: the shipped kernels.
fn trials(targets: Vec<Arc<dyn Target>>, cases: &[Arc<Case>], options: &Options, report: &SharedReport) -> Vec<Trial> {
    let mut trials = Vec::new();
    let (all, shared) = (cases.to_vec(), report.clone());
    trials.push(Trial::test("every case can fail", move || {
        let hollow = hollow::cannot_fail(&all);
        let mut report = shared.lock().unwrap();
        for case in &hollow {
            report.add("no device at all", case, Outcome::Failed("this case cannot fail".to_owned()), Duration::ZERO);
        }
        if hollow.is_empty() { Ok(()) } else { Err(hollow.join("\n").into()) }
    }));
    // The processor and C take every case; the devices beside them take turns, one for each case, unless one was asked for.
    let plain = |name: &str| name.starts_with("cpu: ") || name.starts_with("host C");
    let beside: Vec<String> = targets.iter().map(|target| target.name()).filter(|name| !plain(name)).collect();
    let devices = beside.len();
    let shipped = "shipped".contains(&options.part) || options.part.contains("shipped");
    for target in targets {
        let name = target.name();
        let place = beside.iter().position(|other| *other == name && options.is_whole());
        let quarter = name.starts_with("vulkan: ") && discrete();
        let takes = move |number: usize| {
            let number = number as u64;
            place.is_none_or(|place| turn::takes(number, place, devices)) && (!quarter || turn::has_turn(number))
        };
        for (number, case) in cases.iter().enumerate() {
            let (title, turn) = (format!("{} on {name}", case.name), takes(number));
            let (target, case, report) = (target.clone(), case.clone(), report.clone());
            trials.push(Trial::ignorable_test(title, move || {
                let started = Instant::now();
                let outcome = if turn {
                    Outcome::of(target.as_ref(), &case)
                } else {
                    Outcome::NotRun("it is not their turn: `./test --all` runs all of them".to_owned())
                };
                let completion = completion(&outcome);
                report.lock().unwrap().add(&target.name(), &case.name, outcome, started.elapsed());
                completion
            }));
        }
        if shipped && target.engine().is_some() {
            let report = report.clone();
            trials.push(Trial::test(format!("shipped kernels and operations on {name}"), move || {
                let mut failed = 0;
                for (number, check) in checks::all().into_iter().enumerate() {
                    if !takes(number) {
                        continue;
                    }
                    let started = Instant::now();
                    let Some(outcome) = Outcome::of_check(target.as_ref(), &check) else { continue };
                    failed += usize::from(matches!(outcome, Outcome::Failed(_)));
                    report.lock().unwrap().add(&target.name(), &check.name, outcome, started.elapsed());
                }
                if failed == 0 { Ok(()) } else { Err(format!("{failed} failed").into()) }
            }));
        }
    }
    trials
}

/// With `CANTUS_VALIDATION` set, what Vulkan's validation layers said counts as failures.
fn validation(report: &mut Report) {
    if std::env::var_os("CANTUS_VALIDATION").is_none_or(|value| value.is_empty() || value == "0") {
        return;
    }
    let backend = cantus::backend::vulkan::VulkanBackend::new();
    if !backend.is_validated() {
        kit::not_run("validation", "VK_LAYER_KHRONOS_validation is not installed, or there is no Vulkan");
        return;
    }
    let messages = cantus::backend::vulkan::take_validation_messages();
    println!("Vulkan's validation layers were on, and said {} things", messages.len());
    for message in messages {
        report.add("vulkan's validation layers", "validation", Outcome::Failed(message), Duration::ZERO);
    }
}
