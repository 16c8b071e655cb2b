//! The cases in every language of the C family, as files: to read, and for compilers to check.

use std::path::Path;
use std::process::ExitCode;

use cantus::translate::{Dialect, Options};

use crate::case::Case;
use crate::host_c::{OPTIONS, translate};

/// Writes `NAME.cu`, `.hip`, `.cl` and `.c` of each case, and prints what cannot be expressed.
pub fn write(cases: &[Case], folder: &Path) -> ExitCode {
    if let Err(error) = std::fs::create_dir_all(folder) {
        println!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let languages = [(Dialect::Cuda, "cu"), (Dialect::Hip, "hip"), (Dialect::OpenCl, "cl"), (Dialect::Host, "c")];
    for case in cases {
        for (dialect, extension) in languages {
            let options = Options { uniforms_by_value: dialect != Dialect::Host, bound_loops: true, ..OPTIONS };
            match translate(case, dialect, &options) {
                Ok(translation) => {
                    let path = folder.join(format!("{}.{extension}", case.name));
                    if let Err(error) = std::fs::write(&path, translation.source) {
                        println!("{}: {error}", path.display());
                        return ExitCode::FAILURE;
                    }
                }
                Err(failure) => println!("{} in {}: {}", case.name, dialect.name(), failure.0),
            }
        }
    }
    ExitCode::SUCCESS
}
