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
mod man;
mod new;
mod output;
mod parse;
mod pattern;
mod picture;
mod report;
mod run;
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
use clap::{Parser, Subcommand};

use global::Global;

/// Portable compute: one WGSL kernel on every GPU, and on the plain CPU with no driver at all.
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
  cantus devices                                   what this machine has, and which device is chosen
  cantus field 1024x1024 -o field.png              a picture, computed by a WGSL kernel
  cantus --backend cpu field 1024x1024 -o f.npy    the values themselves, on the CPU
  cantus run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=2 --invocations 1024 -o y=out.npy

Exit codes: 0 done, 1 failed while running, 2 bad input or usage.";

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
    Top(top::Arguments),
    Tune(tune::Arguments),
    Verify(verify::Arguments),
    #[cfg(feature = "zk")]
    Zk(zk::Arguments),
    #[cfg(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))]
    View(view::Arguments),
    /// A window with a moving picture (this program was built without it)
    #[cfg(not(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android")))))]
    View {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        anything: Vec<String>,
    },
    #[cfg(feature = "serve")]
    Serve(Box<cantus_serve::Arguments>),
    /// Serve this machine's devices over HTTP (this program was built without it)
    #[cfg(not(feature = "serve"))]
    Serve {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        anything: Vec<String>,
    },
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> ExitCode {
    #[cfg(all(sanitized, target_os = "linux"))]
    if let Some(code) = forks::serve() {
        return code;
    }
    run(Cli::parse())
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
        Command::Top(arguments) => top::run(global, &arguments),
        Command::Tune(arguments) => tune::run(global, &arguments),
        Command::Verify(arguments) => verify::run(global, &arguments),
        #[cfg(feature = "zk")]
        Command::Zk(arguments) => zk::run(global, &arguments),
        #[cfg(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))]
        Command::View(arguments) => view::run(global, &arguments),
        #[cfg(not(all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android")))))]
        Command::View { .. } => Err(Error::InvalidInput {
            what: "cantus view".to_owned(),
            reason: "this program was built without the window (cargo install --path cli --features viewer builds it with one)".to_owned(),
        }),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => match cantus_serve::run(&arguments, &["serve"]) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(reason) => Err(Error::InvalidInput { what: "cantus serve".to_owned(), reason }),
        },
        #[cfg(not(feature = "serve"))]
        Command::Serve { .. } => Err(Error::InvalidInput {
            what: "cantus serve".to_owned(),
            reason: "this program was built without the service (cargo install --path cli --features serve builds it with one)".to_owned(),
        }),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    };
    let mut stderr = std::io::stderr().lock();
    let message = result.as_ref().err().map(ToString::to_string);
    for warning in log::warnings(message.as_deref()) {
        let _ = writeln!(stderr, "warning: {warning}");
    }
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(stderr, "error: {error}");
            if let Some(hint) = hint(&error) {
                let _ = writeln!(stderr, "hint: {hint}");
            }
            ExitCode::from(if error.is_input() { 2 } else { 1 })
        }
    }
}

/// How to do in the program what the library's remedy says for code.
fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::TensorLost { cause, .. } => hint(cause),
        Error::InvalidSize { reason, .. } if reason.contains("memory limit") => {
            Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit")
        }
        Error::MemoryLimit { .. } => Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit"),
        Error::Stalled { .. } => Some("CANTUS_STALL_MS=MS raises the limit, CANTUS_STALL_MS=0 ends it"),
        Error::Timeout { .. } => Some("--timeout MS or CANTUS_TIMEOUT_MS raises the limit"),
        Error::EntryPoint { .. } => Some("--entry NAME chooses the entry point"),
        Error::Override { .. } => Some("--set NAME=VALUE sets an override"),
        Error::Binding { .. } => Some("--in and --out bind storage, --set NAME=VALUE sets uniforms"),
        _ => None,
    }
}
