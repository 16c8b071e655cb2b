//! Compiles every shipped kernel's translation to PTX by NVRTC 12, and writes `native-fastpaths/cuda/ptx/`: what runs where NVRTC is not
//! installed. PTX of a newer compiler would need a newer driver.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use cantus::backend::cuda;
use cantus::ops;
use cantus::translate::{Dialect, Options};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The architecture that every card since Turing runs.
const ARCHITECTURE: &str = "compute_75";

/// The translated source of each shipped kernel, with its name and the first line of its PTX.
fn sources() -> Outcome<Vec<(String, String, String)>> {
    let kernels = ops::kernels().iter().map(|shipped| {
        let options = Options::new().bound_loops(true).uniforms_by_value(true);
        let translation = shipped.kernel()?.translate(Dialect::Cuda, &options)?;
        Ok((shipped.name().to_owned(), cuda::source_line(&translation.source), translation.source))
    });
    kernels.collect()
}

fn path(root: &Path, name: &str) -> PathBuf {
    root.join("native-fastpaths/cuda/ptx").join(name).with_extension("ptx")
}

/// Writes the files.
pub fn write(root: &Path) -> Outcome<String> {
    fs::create_dir_all(root.join("native-fastpaths/cuda/ptx"))?;
    let sources = sources()?;
    for (name, line, source) in &sources {
        fs::write(path(root, name), file(name, line, source)?)?;
    }
    Ok(format!("{} files are up to date", sources.len()))
}

fn file(name: &str, line: &str, source: &str) -> Outcome<String> {
    let ptx = String::from_utf8(cuda::compile(source, name, ARCHITECTURE)?.code)?;
    Ok(format!("{line}\n{}\n", ptx.trim_end_matches('\0').trim()))
}

/// Checks that each file was made from what its kernel translates to now; by compiling it again too where `recompile` is set.
pub fn check(root: &Path, recompile: bool) -> Outcome<String> {
    let mut stale = Vec::new();
    let sources = sources()?;
    for (name, line, source) in &sources {
        let committed = fs::read_to_string(path(root, name)).unwrap_or_default();
        let same = committed.lines().next() == Some(line) && (!recompile || committed == file(name, line, source)?);
        if !same {
            stale.push(name.clone());
        }
    }
    if stale.is_empty() {
        return Ok(format!("{} files are fresh", sources.len()));
    }
    Err(format!("not fresh: {} (run cargo xtask ptx with NVRTC 12 and commit)", stale.join(", ")).into())
}
