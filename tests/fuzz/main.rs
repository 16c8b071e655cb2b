//! Hostile input by the thousand: texts, modules, prepared kernels, bytecode, `.npy` files, cache files, OpenQASM programs and arguments of the
//! program. Each must end in a result or an error, in bounded time and memory.
//!
//! `--minutes M` (default: a few seconds for each class), `--seed N` (printed), `--class NAME` for one class, `--input N` for one input of
//! it: what a crash is reported with. `--keep FILE` adds the figures to those of earlier runs and goes on behind their inputs, up to
//! `--most N` inputs of each class; without time (`--minutes 0`) it prints what is kept. A child process runs the inputs and says which one
//! it is at; when it dies or hangs, that input is noted and the next child goes on behind it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod arguments;
mod bytecode;
mod circuits;
mod files;
mod keep;
mod mutate;
mod points;
mod tiny;
mod wgsl;

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use mutate::Rng;

/// The stage that an input reached.
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

const CLASSES: [Class; 9] = [
    ("wgsl", wgsl::texts),
    ("modules", wgsl::modules),
    ("prepared", bytecode::prepared),
    ("bytecode", bytecode::programs),
    ("npy", files::npy),
    ("points", points::points),
    ("cache", files::cache),
    ("arguments", arguments::program),
    ("circuits", circuits::programs),
];

/// An input that takes more processor time hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// So does one that takes longer in real time: a busy machine gives a child of low priority little.
const PATIENCE_BY_CLOCK: Duration = Duration::from_secs(600);
/// A child that holds more has no bound. A sanitizer's shadow is part of it.
const MOST_MEMORY_KIB: u64 = 6 << 20;
/// The time after which a child ends; the figures are kept.
const A_CHILD: Duration = Duration::from_secs(240);

struct Options {
    minutes: f64,
    seed: u64,
    class: Option<String>,
    input: Option<u64>,
    /// The folder for the figures of all runs.
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
    let mut rng = Rng::new(seed ^ (class as u64) << 56 ^ input.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    rng.input = input;
    rng
}

/// The figures of a class's inputs.
#[derive(Default)]
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
    if let (Some(input), &[class]) = (options.input, classes.as_slice()) {
        // Alone and in this process, for a debugger.
        return deep(|| {
            let outcome = CLASSES[class].1()(&mut rng(options.seed, class, input));
            println!("{}", ["refused", "passed", "ran"][outcome as usize]);
        });
    }
    if let (Some((first, seconds)), &[class]) = (options.child, classes.as_slice()) {
        return deep(|| child(options.seed, class, first, seconds, options.most));
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
            println!("arguments  not run: CANTUS_PROGRAM names no program (./test --fuzz builds one that forks)");
            crashed |= std::env::var("CI").is_ok_and(|ci| ci == "true");
            continue;
        }
        // What a class leaves of its time is for those behind it.
        let left = end.saturating_duration_since(Instant::now()) / (classes.len() - place) as u32;
        let mut figures = keep::read(options.keep.as_deref(), options.seed, CLASSES[class].0);
        parent(&options, class, Instant::now() + left, &mut figures);
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

/// All inputs of a process share one deep stack.
fn deep(work: impl FnOnce() + Send) -> ExitCode {
    match cantus::testing::on_deep_stack(work) {
        Ok(()) => ExitCode::SUCCESS,
        // As a panic ends a program.
        Err(_) => ExitCode::from(101),
    }
}

/// Runs children until the time is over, or there were inputs enough.
fn parent(options: &Options, class: usize, end: Instant, all: &mut Figures) {
    // Many crashes have one cause: the first ones tell.
    while Instant::now() < end && all.inputs < options.most && all.crashes.len() < 20 {
        let left = end.saturating_duration_since(Instant::now()).as_secs_f64().clamp(0.1, A_CHILD.as_secs_f64());
        one_child(options, class, left, all);
        keep::write(options.keep.as_deref(), options.seed, CLASSES[class].0, all);
    }
}

/// Runs one child to its end.
fn one_child(options: &Options, class: usize, seconds: f64, all: &mut Figures) {
    let (first, most) = (all.next, options.most - all.inputs);
    let place = files::folder();
    let place = place.path().join("state");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--seed", &options.seed.to_string(), "--class", CLASSES[class].0])
        .args(["--child", &first.to_string(), &seconds.to_string(), "--most", &most.to_string()])
        .env(STATE, &place)
        .stdout(Stdio::null())
        .stderr(if std::env::var_os(LOUD).is_some() { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .unwrap();
    let child_id = child.id();
    // Since when it is at its input, and the processor time by then. Making the corpus is nobody's time.
    let mut begun: Option<(u64, Instant, Duration)> = None;
    let (mut how, mut most_memory) = (None, 0);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
        let (memory, time) = (memory_kib(child_id), processor_time(child_id));
        most_memory = most_memory.max(memory);
        match (State::read(&place), begun) {
            (Some(state), Some((at, clock, since))) if state.at == at => {
                if time.saturating_sub(since) > PATIENCE || clock.elapsed() > PATIENCE_BY_CLOCK {
                    how = Some("it hangs".to_owned());
                }
            }
            (Some(state), _) => begun = Some((state.at, Instant::now(), time)),
            (None, _) => {}
        }
        if memory > MOST_MEMORY_KIB {
            how = Some(format!("it takes {} MiB", memory >> 10));
        }
        if how.is_some() {
            let _ = child.kill();
        }
    };
    let state = State::read(&place);
    // Where it came to no input, the first one is to blame.
    let state = state.unwrap_or(State { at: first, ..State::default() });
    all.inputs += state.inputs;
    all.passed += state.passed;
    all.ran += state.ran;
    all.seconds += state.seconds;
    all.next = state.at + 1;
    all.memory_kib = all.memory_kib.max(state.memory_kib).max(most_memory);
    if state.slowest.0 > all.slowest.0 {
        all.slowest = state.slowest;
    }
    if state.done != 1 || !status.success() {
        all.inputs += 1;
        all.crashes.push((state.at, how.unwrap_or_else(|| status.to_string())));
    }
}

/// Runs inputs until its time is over, and says at which it is before each.
fn child(seed: u64, class: usize, first: u64, seconds: f64, most: u64) {
    let file = std::fs::File::create(std::env::var_os(STATE).expect("the parent names it")).unwrap();
    if std::env::var_os(LOUD).is_none() {
        // What naga panics at is contained, and looking for the names of functions takes longer than anything else.
        std::panic::set_hook(Box::new(|_| ()));
    }
    let mut run = CLASSES[class].1();
    let begin = Instant::now();
    let mut state = State::default();
    for input in first.. {
        if input > first && (begin.elapsed().as_secs_f64() > seconds || state.inputs == most) {
            break;
        }
        state.at = input;
        state.write(&file);
        let started = (Instant::now(), own_processor_time());
        let outcome = run(&mut rng(seed, class, input));
        // The time of the program whose arguments they are is not this process's.
        let took = match CLASSES[class].0 {
            "arguments" => started.0.elapsed(),
            _ => own_processor_time().saturating_sub(started.1),
        };
        let took = took.as_secs_f64();
        state.inputs += 1;
        state.seconds += took;
        state.passed += u64::from(outcome != Outcome::Refused);
        state.ran += u64::from(outcome == Outcome::Ran);
        if took > state.slowest.0 {
            state.slowest = (took, input);
        }
    }
    state.memory_kib = memory_kib(std::process::id());
    state.done = 1;
    state.write(&file);
}

/// With it, children say on stderr what panics.
const LOUD: &str = "CANTUS_FUZZ_LOUD";
/// The file in which a child reports its progress: a file, because a pipe wakes the parent at each input.
const STATE: &str = "CANTUS_FUZZ_STATE";

/// The progress of a child.
#[derive(Clone, Copy, Default)]
struct State {
    at: u64,
    inputs: u64,
    passed: u64,
    ran: u64,
    slowest: (f64, u64),
    seconds: f64,
    memory_kib: u64,
    done: u64,
}

impl State {
    fn write(&self, file: &std::fs::File) {
        let (slowest, which) = self.slowest;
        let numbers = [
            self.at,
            self.inputs,
            self.passed,
            self.ran,
            slowest.to_bits(),
            which,
            self.seconds.to_bits(),
            self.memory_kib,
            self.done,
        ];
        file.write_all_at(bytemuck::cast_slice(&numbers), 0).unwrap();
    }

    /// Nothing before the first input.
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let numbers: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        let [at, inputs, passed, ran, slowest, which, seconds, memory_kib, done] = numbers.try_into().ok()?;
        let (slowest, seconds) = ((f64::from_bits(slowest), which), f64::from_bits(seconds));
        Some(Self { at, inputs, passed, ran, slowest, seconds, memory_kib, done })
    }
}

/// Processor time that this process took so far, in all of its threads.
fn own_processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is every process's own, and the time is written here.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
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
