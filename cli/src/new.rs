//! `cantus new`: a folder with a small app that builds and runs, to be changed from there.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cantus::{Error, Result};
use clap::{Args, ValueEnum};

use super::global::Global;
use super::{output, report};

/// Create a folder with a small app: a Rust or Python program, a window, a page, tests for wgpu code, or a simulation for `cantus job`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, which must not exist yet; its last part is the app's name
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// Kind of app
    #[arg(long, value_name = "KIND", default_value = "rust")]
    kind: Kind,
    /// The folder of Cantus's sources, for all but `job` [default: where this program was built, else the published package]
    #[arg(long, value_name = "FOLDER")]
    cantus: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cantus new heat                a Rust program with its own kernel
  cantus new rod --kind python   the same in Python
  cantus new sea --kind window   a window whose picture a kernel computes
  cantus new waves --kind page   an animated page; from a checkout, web/build.sh comes first
  cantus new coral --kind job    a simulation from a TOML file
  cantus new sums --kind wgpu-test
                                 wgpu code, and tests that need no GPU

Each prints what to type next.";

/// A kind of app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A Rust program with its own kernel
    Rust,
    /// A Python program with its own kernel
    Python,
    /// A window that a kernel draws, frame by frame
    Window,
    /// A page with its own kernel, on WebGPU or the CPU
    Page,
    /// Simulations for cantus job
    Job,
    /// A crate that computes with wgpu, and tests that need no GPU
    WgpuTest,
}

/// A file's name and text; `{{name}}`, `{{crate}}` and `{{cantus}}` in it are replaced.
type File = (&'static str, &'static str);

impl Kind {
    fn files(self) -> &'static [File] {
        match self {
            Self::Rust => &[
                ("README.md", include_str!("../templates/rust/README.md")),
                ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
                (".gitignore", include_str!("../templates/rust/gitignore")),
                ("src/main.rs", include_str!("../templates/rust/src/main.rs")),
                ("src/step.wgsl", include_str!("../templates/rust/src/step.wgsl")),
            ],
            Self::Python => &[
                ("README.md", include_str!("../templates/python/README.md")),
                ("requirements.txt", include_str!("../templates/python/requirements.txt")),
                (".gitignore", include_str!("../templates/python/gitignore")),
                ("main.py", include_str!("../templates/python/main.py")),
                ("step.wgsl", include_str!("../templates/rust/src/step.wgsl")),
            ],
            Self::Window => &[
                ("README.md", include_str!("../templates/window/README.md")),
                ("Cargo.toml", include_str!("../templates/window/Cargo.toml.in")),
                (".gitignore", include_str!("../templates/window/gitignore")),
                ("src/main.rs", include_str!("../templates/window/src/main.rs")),
                ("src/waves.wgsl", include_str!("../templates/window/src/waves.wgsl")),
            ],
            Self::Page => &[
                ("README.md", include_str!("../templates/page/README.md")),
                ("package.json", include_str!("../templates/page/package.json")),
                (".gitignore", include_str!("../templates/page/gitignore")),
                ("vite.config.js", include_str!("../templates/page/vite.config.js")),
                ("index.html", include_str!("../templates/page/index.html")),
                ("main.js", include_str!("../templates/page/main.js")),
                ("waves.wgsl", include_str!("../templates/page/waves.wgsl")),
            ],
            Self::Job => &[
                ("README.md", include_str!("../templates/job/README.md")),
                ("life.toml", include_str!("../templates/job/life.toml")),
                ("life.wgsl", include_str!("../templates/job/life.wgsl")),
                ("reaction.toml", include_str!("../templates/job/reaction.toml")),
                ("reaction.wgsl", include_str!("../templates/job/reaction.wgsl")),
            ],
            Self::WgpuTest => &[
                ("README.md", include_str!("../templates/wgpu-test/README.md")),
                ("Cargo.toml", include_str!("../templates/wgpu-test/Cargo.toml.in")),
                (".gitignore", include_str!("../templates/wgpu-test/gitignore")),
                (".github/workflows/test.yml", include_str!("../templates/wgpu-test/test.yml")),
                ("src/lib.rs", include_str!("../templates/wgpu-test/src/lib.rs")),
                ("src/sums.wgsl", include_str!("../templates/wgpu-test/src/sums.wgsl")),
                ("tests/sums.rs", include_str!("../templates/wgpu-test/tests/sums.rs")),
            ],
        }
    }

    /// Returns the next command to type, in the folder.
    fn next(self) -> &'static str {
        match self {
            Self::Rust | Self::Window => "cargo run",
            Self::Python => "pip install -r requirements.txt && python main.py",
            Self::Page => "npm install && npx vite",
            Self::Job => "cantus job reaction.toml",
            Self::WgpuTest => "cargo test",
        }
    }
}

/// The sources that this program was built from. A release knows none: they are on no other machine, and its bytes depend on no folder.
const SOURCES: Option<&str> =
    if option_env!("CANTUS_RELEASE").is_some() { None } else { Some(concat!(env!("CARGO_MANIFEST_DIR"), "/..")) };

/// Runs the subcommand.
///
/// # Errors
/// [`Error::InvalidInput`] for what is not a name, or sources that aren't there; [`Error::Io`] when the folder cannot be made.
pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let folder = &arguments.folder;
    let name = name(folder)?;
    let cantus = match arguments.kind {
        Kind::Job => String::new(),
        kind => dependency(kind, arguments.cantus.as_deref().or(SOURCES.map(Path::new)), arguments.cantus.is_some())?,
    };
    let fault = |error: std::io::Error| output::fault(folder, &error);
    if folder.exists() {
        return Err(fault(std::io::Error::other("it already exists (choose another name)")));
    }
    // Made beside its place and then renamed: whole, or not at all.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new().prefix(".cantus-new.").tempdir_in(parent).map_err(fault)?;
    for (file, text) in arguments.kind.files() {
        let path = temporary.path().join(file);
        if let Some(inner) = path.parent() {
            std::fs::create_dir_all(inner).map_err(fault)?;
        }
        let text = text.replace("{{name}}", name).replace("{{cantus}}", &cantus);
        // As Rust says it.
        let text = text.replace("{{crate}}", &name.replace('-', "_"));
        std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(fault)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(temporary.path(), std::fs::Permissions::from_mode(0o755)).map_err(fault)?;
    }
    std::fs::rename(temporary.path(), folder).map_err(fault)?;
    // Its folder has moved away: there is nothing to remove.
    let _ = temporary.keep();
    let (shown, count) = (folder.display(), arguments.kind.files().len());
    let first =
        unbuilt(&cantus).map_or_else(String::new, |script| format!("{script} (once: it builds the package), then "));
    Ok(report::done(&format!("{shown}: {count} files. Next: {first}cd {shown} && {}", arguments.kind.next())))
}

/// The app's name: one that Cargo and npm take.
fn name(folder: &Path) -> Result<&str> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    if starts && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_') {
        return Ok(name);
    }
    Err(Error::invalid(
        format!("the name \"{name}\""),
        "it takes lower-case letters, digits, - and _, a letter first, as in my-app",
    ))
}

/// The app's dependency on Cantus: a folder that has its sources, else the published package of this version; what `is_named` must be there.
fn dependency(kind: Kind, folder: Option<&Path>, is_named: bool) -> Result<String> {
    let wanted = match kind {
        Kind::Page => "web/package.json",
        Kind::Python => "python/pyproject.toml",
        Kind::WgpuTest => "crates/wgpu/Cargo.toml",
        _ => "src/lib.rs",
    };
    let version = env!("CARGO_PKG_VERSION");
    match (folder.and_then(|folder| sources(folder, wanted)), folder) {
        (Some(found), _) => Ok(match kind {
            Kind::Page => format!("file:{found}/web"),
            Kind::Python => format!("{found}/python"),
            Kind::WgpuTest => format!("{{ path = \"{found}/crates/wgpu\" }}"),
            _ => format!("{{ path = \"{found}\" }}"),
        }),
        (None, Some(folder)) if is_named => Err(Error::invalid(
            format!("the sources of Cantus in {}", folder.display()),
            format!("there is no {wanted}; name a checkout with --cantus FOLDER"),
        )),
        (None, _) => Ok(match kind {
            Kind::Page => format!("^{version}"),
            Kind::Python => format!("cantus-compute~={version}"),
            _ => format!("\"{version}\""),
        }),
    }
}

/// The script that builds the npm package which a page takes from the sources, where that was not done yet.
fn unbuilt(dependency: &str) -> Option<String> {
    let web = dependency.strip_prefix("file:")?;
    // Its build writes this last.
    (!Path::new(web).join("pkg/profile").is_file()).then(|| format!("{web}/build.sh"))
}

/// A folder with this file, absolute; a path that TOML and JSON take as it is.
fn sources(folder: &Path, wanted: &str) -> Option<String> {
    let absolute = std::fs::canonicalize(folder).ok().filter(|folder| folder.join(wanted).is_file())?;
    let text = absolute.to_str().filter(|text| !text.contains(['"', '\\']) || cfg!(windows))?;
    Some(text.trim_start_matches(r"\\?\").replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_its_sources_names_the_published_package() {
        let version = env!("CARGO_PKG_VERSION");
        for folder in [None, Some(Path::new("no/such/folder"))] {
            assert_eq!(dependency(Kind::Rust, folder, false).ok(), Some(format!("\"{version}\"")));
            assert_eq!(dependency(Kind::Page, folder, false).ok(), Some(format!("^{version}")));
            let python = dependency(Kind::Python, folder, false).ok();
            assert_eq!(python, Some(format!("cantus-compute~={version}")));
        }
        assert!(
            dependency(Kind::Rust, Some(Path::new("no/such/folder")), true).is_err(),
            "what is named must be there"
        );
    }

    #[test]
    fn a_package_that_is_not_built_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let web = format!("file:{}", folder.path().display());
        assert!(unbuilt(&web).is_some_and(|script| script.ends_with("/build.sh")));
        std::fs::create_dir(folder.path().join("pkg")).unwrap();
        std::fs::write(folder.path().join("pkg/profile"), "release").unwrap();
        assert_eq!(unbuilt(&web), None);
        assert_eq!(unbuilt("^0.1.0"), None, "a published package is built");
    }

    #[test]
    fn a_program_beside_its_sources_names_them() {
        let of = |kind| dependency(kind, SOURCES.map(Path::new), false).unwrap_or_default();
        assert!(of(Kind::Rust).starts_with("{ path = \"") && of(Kind::Page).starts_with("file:"));
        assert!(Path::new(&of(Kind::Python)).join("pyproject.toml").is_file(), "{}", of(Kind::Python));
    }
}
