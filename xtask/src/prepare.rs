//! Links every kernel in `shaders/` twice (portable, and with native maths), prepares it, and writes `shaders/src/prepared/`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use cantus::Kernel;

use crate::link::{LIBRARY, link};

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The crate through which others have the texts.
const CRATE: &str = "src";
/// Kernels whose elements are expressions, or numbers of a field, put in at run time: no text on their own.
const FRAMES: [&str; 2] = ["tensor", "zk"];
/// Kernels with known answers: they run as they are, unlinked and not prepared.
const ANSWERS: &str = "answers";

/// A file as it should be.
pub struct Generated {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Writes the prepared kernels, and removes those whose shader is gone.
pub fn write(root: &Path) -> Outcome<String> {
    write_all(&root.join("shaders/src/prepared"), &generate(root)?)
}

/// Makes a folder hold the given files and no others.
pub fn write_all(folder: &Path, generated: &[Generated]) -> Outcome<String> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !generated.iter().any(|file| file.path == path) {
            fs::remove_file(&path)?;
        }
    }
    let mut written = 0;
    for file in generated {
        if fs::read(&file.path).ok().as_ref() != Some(&file.bytes) {
            fs::write(&file.path, &file.bytes)?;
            written += 1;
        }
    }
    Ok(format!("{} files are up to date, {written} of them written", generated.len()))
}

/// Files that are not as they should be.
pub fn stale(root: &Path, generated: &[Generated]) -> Vec<String> {
    generated
        .iter()
        .filter(|file| fs::read(&file.path).ok().as_ref() != Some(&file.bytes))
        .map(|file| file.path.strip_prefix(root).unwrap_or(&file.path).display().to_string())
        .collect()
}

/// Compares what the shaders give now with what is committed.
pub fn check(root: &Path) -> Outcome<String> {
    let generated = generate(root)?;
    let stale = stale(root, &generated);
    if stale.is_empty() {
        return Ok(format!("{} files are fresh", generated.len()));
    }
    Err(format!("not fresh: {} (run cargo xtask prepare and commit)", stale.join(", ")).into())
}

fn generate(root: &Path) -> Outcome<Vec<Generated>> {
    let mut generated = libraries(root)?;
    for (_, name, kernel) in kernels(root)? {
        kernel.program()?;
        let target = root.join("shaders/src/prepared").join(&name);
        let portable = kernel.wgsl().to_owned();
        generated.push(Generated { path: target.with_extension("wgsl"), bytes: portable.into_bytes() });
        generated.push(Generated { path: target.with_extension("kernel"), bytes: kernel.prepare()? });
    }
    Ok(generated)
}

/// A folder of which no file is prepared.
fn is_apart(family: &str) -> bool {
    [LIBRARY, CRATE].contains(&family) || FRAMES.contains(&family)
}

/// A file of functions that operations put kernels together from at run time, without an entry point.
fn is_library(file: &Path) -> Outcome<bool> {
    Ok(!fs::read_to_string(file)?.contains("@compute"))
}

/// Returns those files, linked for both kinds of device.
fn libraries(root: &Path) -> Outcome<Vec<Generated>> {
    let shaders = root.join("shaders");
    let mut generated = Vec::new();
    for family in sorted(&shaders)?.into_iter().filter(|family| family.is_dir() && !is_apart(&stem(family))) {
        for file in sorted(&family)? {
            if !is_library(&file)? {
                continue;
            }
            let (family, name) = (stem(&family), stem(&file));
            let target = root.join("shaders/src/prepared").join(format!("{family}_{name}"));
            for (extension, features) in [("portable.wgsl", &[][..]), ("native.wgsl", &["native_math"][..])] {
                let text = link(&shaders, &format!("{family}/{name}"), features)?;
                generated.push(Generated { path: target.with_extension(extension), bytes: text.into_bytes() });
            }
        }
    }
    Ok(generated)
}

/// Every kernel in `shaders/`, linked, with its family and name.
pub fn kernels(root: &Path) -> Outcome<Vec<(String, String, Kernel)>> {
    let shaders = root.join("shaders");
    let mut kernels = Vec::new();
    for family in sorted(&shaders)? {
        let family_name = stem(&family);
        if is_apart(&family_name) || family_name == ANSWERS || !family.is_dir() {
            continue;
        }
        for file in sorted(&family)? {
            let name = stem(&file);
            let module = format!("{family_name}/{name}");
            if is_library(&file)? {
                continue;
            }
            let portable = link(&shaders, &module, &[])?;
            let native = link(&shaders, &module, &["native_math"])?;
            let kernel = Kernel::from_wgsl_pair(&format!("{name}.wgsl"), &portable, &native)?;
            if kernel.name() != name {
                return Err(format!("{}: its entry point is {}, not {name}", file.display(), kernel.name()).into());
            }
            kernels.push((family_name.clone(), name, kernel));
        }
    }
    Ok(kernels)
}

/// The entries of a folder in order.
fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

/// The file's name without its extension.
fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
