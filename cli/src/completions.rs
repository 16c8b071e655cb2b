//! `cantus completions`: what a shell needs to complete subcommands and flags.

use std::process::ExitCode;

use cantus::Result;
use clap::Args;
use clap_complete::Shell;

use super::global::Global;
use super::report;

/// Print a shell's completions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  cantus completions bash > ~/.local/share/bash-completion/completions/cantus
  cantus completions zsh > ~/.zfunc/_cantus      fpath+=~/.zfunc before compinit
  cantus completions fish > ~/.config/fish/completions/cantus.fish
  cantus completions powershell >> $PROFILE";

/// Runs the subcommand.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::described(), "cantus", &mut text);
    report::print(&String::from_utf8_lossy(&text))
}
