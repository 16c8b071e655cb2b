//! Hostile input by the thousand: texts, modules, prepared kernels, bytecode, `.npy` files, cache files and arguments of the program. Each
//! must end in a result or an error, in bounded time and memory.
//!
//! `--minutes M` (default: a few seconds for each class), `--seed N` (printed), `--class NAME` for one class, `--input N` for one input of
//! it: what a crash is reported with. `--keep FILE` adds the figures to those of earlier runs and goes on behind their inputs, up to
//! `--most N` inputs of each class; without time (`--minutes 0`) it prints what is kept. A child process runs the inputs and says which one
//! it is at; when it dies or hangs, that input is noted and the next child goes on behind it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod arguments;
mod bytecode;
mod files;
mod keep;
mod mutate;
mod points;
mod tiny;
mod wgsl;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use mutate::Rng;

/// How far an input came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The front check refused it.
    Refused,
    /// It passed, and something behind the check refused it or stopped it.
    Passed,
    /// It ran.
    Ran,
}

/// One class of inputs.
type Input = Box<dyn FnMut(&mut Rng) -> Outcome>;

type Class = (&'static str, fn() -> Input);

const CLASSES: [Class; 8] = [
    ("wgsl", wgsl::texts),
    ("modules", wgsl::modules),
    ("prepared", bytecode::prepared),
    ("bytecode", bytecode::programs),
    ("npy", files::npy),
    ("points", points::points),
    ("cache", files::cache),
    ("arguments", arguments::program),
];

/// An input that takes more processor time hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// So does one that takes longer by the clock: a busy machine gives a child of low priority little.
const PATIENCE_BY_CLOCK: Duration = Duration::from_secs(600);
/// A child that holds more has no bound. A sanitizer's shadow is part of it.
const MOST_MEMORY_KIB: u64 = 6 << 20;
/// Inputs between two reports of a child.
const REPORT: u64 = 64;

struct Options {
    minutes: f64,
    seed: u64,
    class: Option<String>,
    input: Option<u64>,
    /// Where the figures of all runs are kept.
    keep: Option<std::path::PathBuf>,
    /// Most inputs of a class, those of earlier runs among them.
    most: u64,
    /// The first input of a child, and the seconds that it has.
    child: Option<(u64, f64)>,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { minutes: 0.5, seed: 1, class: None, input: None, keep: None, most: u64::MAX, child: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut text = || arguments.next().ok_or(format!("{argument} wants a value after it"));
        match argument.as_str() {
            "--minutes" => options.minutes = text()?.parse().map_err(|_| "minutes are a number")?,
            "--seed" => options.seed = text()?.parse().map_err(|_| "a seed is a number")?,
            "--class" => options.class = Some(text()?),
            "--input" => options.input = Some(text()?.parse().map_err(|_| "an input is a number")?),
            "--keep" => options.keep = Some(text()?.into()),
            "--most" => options.most = text()?.parse().map_err(|_| "the most inputs are a number")?,
            "--child" => {
                let first = text()?.parse().map_err(|_| "the first input is a number")?;
                options.child = Some((first, text()?.parse().map_err(|_| "seconds are a number")?));
            }
            "--nocapture" | "--quiet" | "-q" => {}
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

/// The inputs of a class are numbered; each has a generator of its own, so that one can be run alone.
fn rng(seed: u64, class: usize, input: u64) -> Rng {
    Rng::new(seed ^ (class as u64) << 56 ^ input.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[derive(Default)]
/// What came of the inputs of a class.
pub struct Figures {
    inputs: u64,
    passed: u64,
    ran: u64,
    slowest: (f64, u64),
    memory_kib: u64,
    /// Of all time that the inputs took.
    seconds: f64,
    /// The input behind the last.
    next: u64,
    crashes: Vec<(u64, String)>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            println!("{reason}");
            return ExitCode::from(2);
        }
    };
    let chosen = |name: &str| options.class.as_deref().is_none_or(|class| class == name);
    let classes: Vec<usize> = (0..CLASSES.len()).filter(|class| chosen(CLASSES[*class].0)).collect();
    if let (Some(input), [class]) = (options.input, classes.as_slice()) {
        // Alone and in this process, for a debugger.
        let outcome = CLASSES[*class].1()(&mut rng(options.seed, *class, input));
        println!("{}", ["refused", "passed", "ran"][outcome as usize]);
        return ExitCode::SUCCESS;
    }
    if let (Some((first, seconds)), [class]) = (options.child, classes.as_slice()) {
        child(options.seed, *class, first, seconds, options.most);
        return ExitCode::SUCCESS;
    }
    println!("seed {}", options.seed);
    println!(
        "{:<10} {:>9} {:>7} {:>7} {:>8}  slowest input         memory     each",
        "class", "inputs", "passed", "ran", "crashes"
    );
    let end = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let mut crashed = false;
    for (place, &class) in classes.iter().enumerate() {
        if CLASSES[class].0 == "arguments" && arguments::built().is_none() {
            println!("arguments  not run: the program is not there (cargo build --bin cantus, or CANTUS_PROGRAM)");
            crashed |= std::env::var("CI").is_ok_and(|ci| ci == "true");
            continue;
        }
        // What a class leaves of its time is for those behind it.
        let left = end.saturating_duration_since(Instant::now()) / (classes.len() - place) as u32;
        let mut figures = keep::read(options.keep.as_deref(), options.seed, CLASSES[class].0);
        parent(&options, class, Instant::now() + left, &mut figures);
        keep::write(options.keep.as_deref(), options.seed, CLASSES[class].0, &figures);
        let percent = |part: u64| 100.0 * part as f64 / figures.inputs.max(1) as f64;
        println!(
            "{:<10} {:>9} {:>6.1}% {:>6.1}% {:>8}  {:>7.0} ms {:<10} {:>5} MiB  {:>6.2} ms",
            CLASSES[class].0,
            figures.inputs,
            percent(figures.passed),
            percent(figures.ran),
            figures.crashes.len(),
            figures.slowest.0 * 1e3,
            format!("(#{})", figures.slowest.1),
            figures.memory_kib >> 10,
            figures.seconds * 1e3 / figures.inputs.max(1) as f64
        );
        for (input, how) in &figures.crashes {
            crashed = true;
            println!("  --seed {} --class {} --input {input}: {how}", options.seed, CLASSES[class].0);
        }
    }
    ExitCode::from(u8::from(crashed))
}

/// Runs children until the time is over, or there were inputs enough.
fn parent(options: &Options, class: usize, end: Instant, all: &mut Figures) {
    // Many crashes have one cause: the first ones tell.
    while Instant::now() < end && all.inputs < options.most && all.crashes.len() < 20 {
        let left = end.saturating_duration_since(Instant::now()).as_secs_f64().max(0.1);
        one_child(options, class, left, all);
    }
}

/// Runs one child to its end.
fn one_child(options: &Options, class: usize, seconds: f64, all: &mut Figures) {
    let (first, most) = (all.next, options.most - all.inputs);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--seed", &options.seed.to_string(), "--class", CLASSES[class].0])
        .args(["--child", &first.to_string(), &seconds.to_string(), "--most", &most.to_string()])
        .stdout(Stdio::piped())
        .stderr(if std::env::var_os("CANTUS_FUZZ_LOUD").is_some() { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .unwrap();
    let child_id = child.id();
    let (sender, lines) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader =
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let (mut current, mut done, mut how) = (first, false, None);
    let now = || (Instant::now(), processor_time(child_id));
    // Making the corpus is nobody's time.
    let mut begun = None;
    let mut reported = Figures::default();
    loop {
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => {
                let words: Vec<&str> = line.split(' ').collect();
                match words.as_slice() {
                    ["at", number] => {
                        let next = number.parse().unwrap_or(current);
                        if next != current || begun.is_none() {
                            (current, begun) = (next, Some(now()));
                        }
                    }
                    ["figures", inputs, passed, ran, slowest, which, seconds, memory] => {
                        let number = |text: &str| text.parse().unwrap_or(0);
                        reported = Figures {
                            inputs: number(inputs),
                            passed: number(passed),
                            ran: number(ran),
                            slowest: (slowest.parse().unwrap_or(0.0), number(which)),
                            memory_kib: number(memory),
                            seconds: seconds.parse().unwrap_or(0.0),
                            ..Figures::default()
                        };
                    }
                    ["done"] => done = true,
                    _ => {}
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let hangs = begun.is_some_and(|(clock, time): (Instant, Duration)| {
                    processor_time(child_id).saturating_sub(time) > PATIENCE || clock.elapsed() > PATIENCE_BY_CLOCK
                });
                let memory = memory_kib(child_id);
                if hangs || memory > MOST_MEMORY_KIB {
                    how = Some(if hangs { "it hangs".to_owned() } else { format!("it takes {} MiB", memory >> 10) });
                    let _ = child.kill();
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().unwrap();
    let _ = reader.join();
    all.inputs += reported.inputs;
    all.passed += reported.passed;
    all.ran += reported.ran;
    all.seconds += reported.seconds;
    all.next = current + 1;
    all.memory_kib = all.memory_kib.max(reported.memory_kib);
    if reported.slowest.0 > all.slowest.0 {
        all.slowest = reported.slowest;
    }
    if !done {
        all.inputs += 1;
        all.crashes.push((current, how.unwrap_or_else(|| status.to_string())));
    }
}

/// Runs inputs until its time is over, and says at which it is before each.
fn child(seed: u64, class: usize, first: u64, seconds: f64, most: u64) {
    let mut run = CLASSES[class].1();
    let begin = Instant::now();
    let mut figures = Figures::default();
    let mut out = std::io::stdout().lock();
    let now = || (Instant::now(), processor_time(std::process::id()));
    for input in first.. {
        if begin.elapsed().as_secs_f64() > seconds || figures.inputs == most {
            break;
        }
        let _ = writeln!(out, "at {input}");
        let started = now();
        let outcome = run(&mut rng(seed, class, input));
        // The time of the program whose arguments they are is not this process's.
        let took =
            if CLASSES[class].0 == "arguments" { started.0.elapsed() } else { now().1.saturating_sub(started.1) };
        let took = took.as_secs_f64();
        figures.inputs += 1;
        figures.seconds += took;
        figures.passed += u64::from(outcome != Outcome::Refused);
        figures.ran += u64::from(outcome == Outcome::Ran);
        if took > figures.slowest.0 {
            figures.slowest = (took, input);
        }
        if figures.inputs % REPORT == 0 {
            report(&mut out, &figures);
        }
    }
    report(&mut out, &figures);
    let _ = writeln!(out, "done");
}

fn report(out: &mut impl std::io::Write, figures: &Figures) {
    let Figures { inputs, passed, ran, slowest, seconds, .. } = figures;
    let memory = memory_kib(std::process::id());
    let _ = writeln!(out, "figures {inputs} {passed} {ran} {} {} {seconds} {memory}", slowest.0, slowest.1);
}

/// Processor time that a process took so far, in steps of 10 ms: what other programs take of the machine counts for nothing.
fn processor_time(process: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything: user's and system's time, in ticks of 10 ms.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// The most memory that a process ever had at once.
fn memory_kib(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
