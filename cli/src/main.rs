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
mod child;
#[cfg(feature = "circuits")]
mod circuits;
mod coherence;
mod colormap;
mod compile;
#[cfg(feature = "shell")]
mod completions;
mod config;
mod crash;
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
mod room;
mod run;
#[cfg(feature = "serve")]
mod serve;
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
use cantus::config::Fallback;
use cantus::error::{BindingError, LimitError, OverrideError, without_remedies};
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

/// One row for each subcommand: its name, its module's, and the condition under which it is built, with what a program without it says.
macro_rules! subcommands {
    ($($name:ident: $module:ident $(if $condition:tt else $about:literal, $what:literal, $feature:literal)?;)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $(
                $(#[cfg $condition])?
                $name(Box<$module::Arguments>),
                $(
                    #[cfg(not $condition)]
                    #[command(about = concat!($about, " (this program was built without it)"))]
                    $name(NotBuilt),
                )?
            )*
        }

        fn dispatch(global: &Global, command: Command) -> cantus::Result<ExitCode> {
            match command {
                $(
                    $(#[cfg $condition])?
                    Command::$name(arguments) => $module::run(global, &arguments),
                    $(
                        #[cfg(not $condition)]
                        Command::$name(_) => Err(not_built(stringify!($module), $what, $feature)),
                    )?
                )*
            }
        }
    };
}

subcommands! {
    Devices: devices;
    Field: field;
    Pattern: pattern;
    Coherence: coherence;
    Animate: animate;
    Run: run;
    Job: job;
    Compile: compile;
    Kernels: kernels;
    New: new;
    Config: config;
    Bench: bench;
    Top: top if (feature = "top") else "Watch devices and engines", "the monitor", "top";
    Tune: tune;
    Verify: verify;
    Zk: zk if (feature = "zk")
        else "Compute with finite fields and curves, for zero-knowledge proofs", "fields and curves", "zk";
    Circuits: circuits if (feature = "circuits") else "Run and draw quantum circuits from OpenQASM files", "circuits", "circuits";
    View: view if (all(feature = "viewer", not(any(target_arch = "wasm32", target_os = "ios", target_os = "android"))))
        else "Open a window with the field or a kernel's picture", "the window", "viewer";
    Serve: serve if (feature = "serve") else "Serve this machine's devices over HTTP", "the service", "serve";
    Completions: completions if (feature = "shell") else "Print a shell's completions", "shells' completions", "shell";
    Man: man if (feature = "shell") else "Write the manual pages", "the manual pages", "shell";
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
    Error::invalid(
        format!("cantus {subcommand}"),
        format!(
            "this program was built without {what} (cargo install --path cli --features {feature} builds it with it, --features full \
             with everything)"
        ),
    )
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

fn run(mut cli: Cli) -> ExitCode {
    if cli.global.verbose < 3 {
        log::hush_drivers();
    }
    log::begin(cli.global.verbose);
    output::refuse_large_files();
    crash::explain();
    if cli.global.quiet {
        report::be_quiet();
    }
    if matches!(cli.command, Command::Run(_) | Command::Job(_))
        && let Ok(told) = cli.global.told()
        && told.backend.is_some_and(|name| name != "cpu")
    {
        match child::run() {
            None => {}
            Some(child::Ended::With(code)) => return code,
            Some(child::Ended::ByDriver) if told.fallback == Some(Fallback::Always) => {
                let _ = writeln!(std::io::stderr(), "warning: the driver ended its process; the CPU runs the kernel");
                cli.global.use_the_cpu();
            }
            Some(child::Ended::ByDriver) => return ExitCode::FAILURE,
        }
    }
    let global = &cli.global;
    // What the settings say wrongly is told by the subcommand that needs them.
    room::limit(global.told().ok().and_then(|told| told.memory_limit));
    let result = global.check().and_then(|()| dispatch(global, cli.command));
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
        Error::Limit(LimitError::MemoryLimit { .. }) => {
            Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit")
        }
        Error::MemoryLimit { .. } => Some("--memory-limit SIZE or CANTUS_MEMORY_LIMIT raises the limit"),
        Error::Stalled { .. } => Some("CANTUS_STALL_MS=MS raises the limit, CANTUS_STALL_MS=0 removes it"),
        Error::Timeout { .. } => Some("--timeout MS or CANTUS_TIMEOUT_MS raises the limit"),
        Error::EntryPoint { available, .. } if available.len() > 1 => Some("--entry NAME chooses the entry point"),
        Error::Override { fault: OverrideError::Unset(_), .. } => Some("--set NAME=VALUE sets an override"),
        // Other faults of a binding are of what was given to it.
        Error::Binding { fault: BindingError::Unbound(_), .. } => {
            Some("--in NAME=FILE fills a binding, --out NAME=DTYPE[SHAPE] makes one of zeros")
        }
        Error::Binding { fault: BindingError::Unset(_), .. } => {
            Some("--set NAME=VALUE or NAME.MEMBER=VALUE sets a uniform")
        }
        _ => None,
    }
}
