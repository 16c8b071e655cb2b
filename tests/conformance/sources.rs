//! The cases in every language of the C family, as files: to read, and for compilers to check.

use std::path::Path;
use std::process::ExitCode;

use cantus::translate::Dialect;

use kit::case::Case;
use kit::device::Failure;
use kit::host_c::{OPTIONS, translate};

/// Writes `NAME.cu`, `.hip`, `.cl` and `.c` of each case, and prints what cannot be expressed.
pub fn write(cases: &[Case], folder: &Path) -> ExitCode {
    if let Err(error) = std::fs::create_dir_all(folder) {
        println!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let languages = [(Dialect::Cuda, "cu"), (Dialect::Hip, "hip"), (Dialect::OpenCl, "cl"), (Dialect::Host, "c")];
    let mut sources = Vec::new();
    for case in cases {
        for (dialect, extension) in languages {
            let options = OPTIONS.uniforms_by_value(dialect != Dialect::Host).bound_loops(true);
            sources.push((&*case.name, dialect, extension, translate(case, dialect, &options)));
        }
    }
    for shipped in cantus::ops::kernels() {
        for (dialect, extension) in languages {
            let options = OPTIONS.uniforms_by_value(true);
            let translated = shipped.kernel().and_then(|kernel| kernel.translate(dialect, &options));
            sources.push((shipped.name(), dialect, extension, translated.map_err(Failure::from)));
        }
    }
    for (name, dialect, extension, source) in sources {
        match source {
            Ok(translation) => {
                let path = folder.join(format!("{name}.{extension}"));
                if let Err(error) = std::fs::write(&path, translation.source) {
                    println!("{}: {error}", path.display());
                    return ExitCode::FAILURE;
                }
            }
            Err(failure) => println!("{name} in {}: {}", dialect.name(), failure.0),
        }
    }
    ExitCode::SUCCESS
}
