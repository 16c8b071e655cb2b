//! `cantus serve`: the service of the crate `cantus-serve`.

use std::process::ExitCode;

use cantus::{Error, Result};

use super::global::Global;

/// Its settings are many.
pub type Arguments = Box<cantus_serve::Arguments>;

pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    cantus_serve::run(arguments, &["serve"])
        .map(|()| ExitCode::SUCCESS)
        .map_err(|reason| Error::invalid("cantus serve", reason))
}
