//! The `cantus` program, one file for each subcommand: arguments in, library calls, files and text out. No computing here.
//!
//! Data goes to stdout; what was done, warnings and errors go to stderr. Exit code 2 for bad input or usage, 1 for a failure at run
//! time.

mod animate;
mod animation;
mod bench;
mod bench_ops;
mod bench_page;
#[cfg(feature = "zk")]
mod bench_zk;
mod coherence;
mod colormap;
mod compile;
#[cfg(feature = "shell")]
mod completions;
mod config;
mod devices;
mod field;
#[cfg(all(sanitized, target_os = "linux"))]
mod forks;
mod global;
mod grid;
mod job;
mod kernels;
mod log;
#[cfg(feature = "shell")]
mod man;
mod new;
mod output;
mod parse;
mod pattern;
mod picture;
mod progress;
mod report;
mod run;
#[cfg(feature = "top")]
mod top;
mod tune;
mod verify;
#[cfg(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))]
mod view;
#[cfg(feature = "zk")]
mod zk;

use std::io::Write;
use std::process::ExitCode;

use cantus::Error;
use cantus::error::without_remedies;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Command as Described, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use global::Global;

/// Portable compute: one WGSL kernel on every GPU, and on any CPU without a driver.
#[derive(Debug, Parser)]
#[command(name = "cantus", version, max_term_width = 100, after_help = EXAMPLES, propagate_version = false)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cantus devices                        the devices, and the best one
  cantus field 1024x1024 -o field.png   a picture, computed by a WGSL kernel
  cantus --backend cpu field -o f.npy   the values themselves, on the CPU
  cantus run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=2 \\
      --invocations @y -o y=out.npy     your own kernel, over files

Exit codes: 0 done, even if another device took over (with a warning);
1 failed while running; 2 bad input or usage.";

#[derive(Debug, Subcommand)]
enum Command {
    Devices(devices::Arguments),
    Field(field::Arguments),
    Pattern(pattern::Arguments),
    Coherence(coherence::Arguments),
    Animate(animate::Arguments),
    Run(run::Arguments),
    Job(job::Arguments),
    Compile(compile::Arguments),
    Kernels(kernels::Arguments),
    New(new::Arguments),
    Config(config::Arguments),
    Bench(bench::Arguments),
    #[cfg(feature = "top")]
    Top(top::Arguments),
    /// Watch devices and engines (this program was built without it)
    #[cfg(not(feature = "top"))]
    Top(NotBuilt),
    Tune(tune::Arguments),
    Verify(verify::Arguments),
    #[cfg(feature = "zk")]
    Zk(zk::Arguments),
    /// Compute with finite fields and curves, for zero-knowledge proofs (this program was built without it)
    #[cfg(not(feature = "zk"))]
    Zk(NotBuilt),
    #[cfg(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))]
    View(view::Arguments),
    /// Open a window with the field or a kernel's picture (this program was built without it)
    #[cfg(not(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android")))))]
    View(NotBuilt),
    #[cfg(feature = "serve")]
    Serve(Box<cantus_serve::Arguments>),
    /// Serve this machine's devices over HTTP (this program was built without it)
    #[cfg(not(feature = "serve"))]
    Serve(NotBuilt),
    #[cfg(feature = "shell")]
    Completions(completions::Arguments),
    /// Print a shell's completions (this program was built without it)
    #[cfg(not(feature = "shell"))]
    Completions(NotBuilt),
    #[cfg(feature = "shell")]
    Man(man::Arguments),
    /// Write the manual pages (this program was built without it)
    #[cfg(not(feature = "shell"))]
    Man(NotBuilt),
}

/// The arguments of a subcommand that only other builds have.
#[allow(dead_code, reason = "with every feature every subcommand is built")]
#[derive(Debug, Args)]
struct NotBuilt {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    anything: Vec<String>,
}

#[allow(dead_code, reason = "with every feature every subcommand is built")]
fn not_built(subcommand: &str, what: &str, feature: &str) -> Error {
    Error::InvalidInput {
        what: format!("cantus {subcommand}"),
        reason: format!(
            "this program was built without {what} (cargo install --path cli --features {feature} builds it with it, --features full \
             with everything)"
        ),
    }
}

fn main() -> ExitCode {
    #[cfg(all(sanitized, target_os = "linux"))]
    if let Some(code) = forks::serve() {
        return code;
    }
    let matches = described().try_get_matches().unwrap_or_else(|error| negative(error).exit());
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => {
            if let Some(name) = matches.subcommand_name() {
                cantus::engine::publish_as(&format!("cantus {name}"));
            }
            run(cli)
        }
        Err(error) => error.exit(),
    }
}

/// A negative number where only others are taken isn't an unknown flag.
fn negative(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let number = given.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    if error.kind() != ErrorKind::UnknownArgument || !number {
        return error;
    }
    let text = format!("negative numbers are not accepted here: {given}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(ErrorKind::InvalidValue, text)
}

/// The arguments, words of a choice in any case.
fn described() -> Described {
    fn forgiving(command: Described) -> Described {
        let any_case = |argument: Arg| match argument.get_action().takes_values() {
            true => argument.ignore_case(true),
            false => argument,
        };
        command.mut_args(any_case).mut_subcommands(forgiving)
    }
    forgiving(Cli::command())
}

fn run(cli: Cli) -> ExitCode {
    if cli.global.verbose < 3 {
        log::hush_drivers();
    }
    log::begin(cli.global.verbose);
    let global = &cli.global;
    let result = match cli.command {
        Command::Devices(arguments) => devices::run(global, &arguments),
        Command::Field(arguments) => field::run(global, &arguments),
        Command::Pattern(arguments) => pattern::run(global, &arguments),
        Command::Coherence(arguments) => coherence::run(global, &arguments),
        Command::Animate(arguments) => animate::run(global, &arguments),
        Command::Run(arguments) => run::run(global, &arguments),
        Command::Job(arguments) => job::run(global, &arguments),
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Kernels(arguments) => kernels::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Config(arguments) => config::run(global, &arguments),
        Command::Bench(arguments) => bench::run(global, &arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(global, &arguments),
        #[cfg(not(feature = "top"))]
        Command::Top(_) => Err(not_built("top", "the monitor", "top")),
        Command::Tune(arguments) => tune::run(global, &arguments),
        Command::Verify(arguments) => verify::run(global, &arguments),
        #[cfg(feature = "zk")]
        Command::Zk(arguments) => zk::run(global, &arguments),
        #[cfg(not(feature = "zk"))]
        Command::Zk(_) => Err(not_built("zk", "fields and curves", "zk")),
        #[cfg(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))]
        Command::View(arguments) => view::run(global, &arguments),
        #[cfg(not(all(
            feature = "viewer",
            not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))
        )))]
        Command::View(_) => Err(not_built("view", "the window", "viewer")),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => match cantus_serve::run(&arguments, &["serve"]) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(reason) => Err(Error::InvalidInput { what: "cantus serve".to_owned(), reason }),
        },
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => Err(not_built("serve", "the service", "serve")),
        #[cfg(feature = "shell")]
        Command::Completions(arguments) => completions::run(&arguments),
        #[cfg(not(feature = "shell"))]
        Command::Completions(_) => Err(not_built("completions", "shells' completions", "shell")),
        #[cfg(feature = "shell")]
        Command::Man(arguments) => man::run(&arguments),
        #[cfg(not(feature = "shell"))]
        Command::Man(_) => Err(not_built("man", "the manual pages", "shell")),
    };
    let mut stderr = std::io::stderr().lock();
    let message = result.as_ref().err().map(|error| without_remedies(&error.to_string()));
    for warning in log::warnings(message.as_deref()) {
        let _ = writeln!(stderr, "warning: {warning}");
    }
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(stderr, "error: {}", message.unwrap_or_default());
            if let Some(hint) = hint(&error, global) {
                let _ = writeln!(stderr, "hint: {hint}");
            }
            ExitCode::from(if error.is_input() { 2 } else { 1 })
        }
    }
}

/// Returns the program's way to do what the library's remedy says for code.
fn hint(error: &Error, global: &Global) -> Option<&'static str> {
    let named = || global.told().is_ok_and(|told| told.backend.is_some());
    match error {
        Error::TensorLost { cause, .. } => hint(cause, global),
        Error::Unsupported { .. } if named() => {
            Some("another device runs it if no backend is named, or with CANTUS_FALLBACK=always")
        }
        Error::OutOfMemory { .. } => Some("use a smaller size"),
        Error::InvalidSize { reason, .. } if reason.contains("memory limit") => {
            Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit")
        }
        Error::MemoryLimit { .. } => Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit"),
        Error::Stalled { .. } => Some("CANTUS_STALL_MS=MS raises the limit, CANTUS_STALL_MS=0 removes it"),
        Error::Timeout { .. } => Some("--timeout MS or CANTUS_TIMEOUT_MS raises the limit"),
        Error::EntryPoint { .. } => Some("--entry NAME chooses the entry point"),
        Error::Override { .. } => Some("--set NAME=VALUE sets an override"),
        // Of what textures and samplers take, the error says it.
        Error::Binding { reason, .. } if !reason.contains("texture") && !reason.contains("sampler") => {
            Some("--in and --out bind storage, --set NAME=VALUE sets uniforms")
        }
        _ => None,
    }
}
