//! `cantus man`: the manual pages, one for each subcommand.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use cantus::Result;
use clap::Args;

use super::global::Global;
use super::output::{self, OutputFile};
use super::report;

/// Write the manual pages to a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder; created if it is missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  cantus man ~/.local/share/man/man1 && man cantus-run";

/// Runs the subcommand.
///
/// # Errors
/// [`cantus::Error::Io`] when a page cannot be written.
pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).map_err(|error| output::fault(folder, &error))?;
    let mut program = super::described();
    program.build();
    let mut pages = vec![("cantus".to_owned(), program.clone())];
    for command in program.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()) {
        let name = format!("cantus-{}", command.get_name());
        // The page's title is the whole name.
        let titled: &'static str = Box::leak(name.clone().into_boxed_str());
        pages.push((name, command.clone().name(titled)));
    }
    let count = pages.len();
    for (name, command) in pages {
        let path = folder.join(format!("{name}.1"));
        let fault = |error: std::io::Error| output::fault(&path, &error);
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text).map_err(fault)?;
        let mut file = OutputFile::create(&path)?;
        file.write_all(&text).map_err(fault)?;
        file.commit()?;
    }
    Ok(report::done(&format!("{count} pages -> {}", folder.display())))
}
