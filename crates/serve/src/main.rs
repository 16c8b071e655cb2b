//! The program `cantus-serve`: the service by itself.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "cantus-serve", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    arguments: cantus_serve::Arguments,
}

fn main() -> ExitCode {
    match cantus_serve::run(&Cli::parse().arguments, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "error: {reason}");
            ExitCode::FAILURE
        }
    }
}
