//! The program `cantus` from outside: what it writes, prints and refuses. On the CPU backend, where the device does not matter.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops where it fails"
)]

#[cfg(feature = "circuits")]
mod circuits;
mod compile;
#[cfg(target_os = "linux")]
mod doubles;
mod files;
#[cfg(unix)]
mod guards;
mod jobs;
mod misuse;
mod newcomer;
mod pictures;
mod proofs;
mod run;
mod tools;
#[cfg(all(unix, feature = "top"))]
mod top;
mod verify;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use cantus::Element;

/// A folder of its own, in which the program runs with no configuration but its own.
struct Place {
    folder: tempfile::TempDir,
}

/// The outcome of a run of the program.
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, in this folder, without the machine's settings.
    fn command(&self) -> Command {
        let mut command = Command::cargo_bin("cantus").unwrap();
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CANTUS_")) {
            command.env_remove(name);
        }
        let home = self.folder.path();
        command.current_dir(home).env("XDG_CONFIG_HOME", home.join("config")).env("HOME", home).env("APPDATA", home);
        command
    }

    /// Runs the program as it is.
    fn run_plain(&self, arguments: &str) -> Done {
        run(self.command().args(words(arguments)))
    }

    /// Runs the program on the CPU backend.
    fn run(&self, arguments: &str) -> Done {
        run(self.command().args(["--backend", "cpu"]).args(words(arguments)))
    }

    /// Runs the program with bytes on stdin: its exit code, what it wrote to stdout, and to stderr.
    fn serve(&self, arguments: &str, input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
        let output = self.command().args(words(arguments)).write_stdin(input).output().unwrap();
        (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs the program on the CPU backend, which must succeed; returns stdout.
    fn succeed(&self, arguments: &str) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        done.stdout
    }

    /// Runs the program on the CPU backend, which must print JSON.
    fn json(&self, arguments: &str) -> serde_json::Value {
        let stdout = self.succeed(arguments);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("cantus {arguments}: {error}\n{stdout}"))
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    /// The shared library of a source, by a C or C++ compiler; `None` without one, which is said.
    #[cfg(target_os = "linux")]
    fn library(&self, name: &str, compiler: &str, file: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
        let library = self.path(name);
        self.write(file, source);
        let mut command = std::process::Command::new(compiler);
        let built = command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(self.path(file)).args(options).status();
        if built.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Some(library);
        }
        assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "{compiler}: {built:?}");
        cantus_skips::not_run(file, &format!("{compiler} does not build it"));
        None
    }

    /// A `.npy` file of values.
    fn npy<T: Element>(&self, name: &str, shape: &[usize], values: &[T]) {
        cantus::tensor::npy::write(self.path(name), T::DTYPE, shape, bytemuck::cast_slice(values)).unwrap();
    }

    /// The shape and the values of a float32 `.npy` file, read by the crate and not by us.
    fn read_f32(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let array: ndarray::ArrayD<f32> = ndarray_npy::read_npy(self.path(name)).unwrap();
        (array.shape().to_vec(), array.iter().copied().collect())
    }

    /// The names of all files here, in order.
    fn files(&self) -> Vec<String> {
        fn collect(folder: &Path, files: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                // What OpenCL and Vulkan drivers keep for themselves is theirs.
                if path.file_name().is_some_and(|name| name == ".cache") {
                    continue;
                }
                if path.is_dir() { collect(&path, files) } else { files.push(path.display().to_string()) }
            }
        }
        let mut files = Vec::new();
        collect(self.folder.path(), &mut files);
        files.sort();
        files
    }

    /// Runs the program on the CPU backend, which must refuse: see [`Done::refused`]. No file may be left behind.
    fn refuse(&self, arguments: &str, code: i32, fragments: &[&str]) {
        let before = self.files();
        self.run(arguments).refused(arguments, code, fragments);
        assert_eq!(self.files(), before, "cantus {arguments}");
    }
}

impl Done {
    /// Asserts that exit code, one clear message on stderr with all of `fragments`, and nothing on stdout.
    fn refused(&self, arguments: &str, code: i32, fragments: &[&str]) {
        let Self { code: found, stdout, stderr } = self;
        assert_eq!(*found, Some(code), "cantus {arguments}\n{stderr}");
        assert!(stderr.starts_with("error: "), "cantus {arguments}\n{stderr}");
        for fragment in fragments {
            assert!(stderr.contains(fragment), "cantus {arguments}: no \"{fragment}\" in\n{stderr}");
        }
        assert!(!stderr.contains(".tmp"), "cantus {arguments}: a temporary file's name in\n{stderr}");
        assert!(stdout.is_empty(), "cantus {arguments}\n{stdout}");
    }
}

fn run(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Arguments by spaces; `''` is an empty one.
fn words(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split_whitespace().map(|word| if word == "''" { "" } else { word })
}
