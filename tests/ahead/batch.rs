//! Many generated kernels as one library: written, compiled by one call of rustc, loaded.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use cantus::ahead::{Compiled, Entry};
use cantus::spmd::{Bytecode, Launch, Memory};

use kit::case::Case;
use kit::executor::Aligned;

/// The position of a batch: rows, sizes, versions of one kernel.
pub struct Batch {
    texts: Vec<String>,
    known: HashMap<String, usize>,
    baseline: bool,
}

/// The loaded library.
pub struct Library {
    entries: Vec<Entry>,
    texts: Vec<String>,
    // Last, so that the code outlives what points into it.
    _library: libloading::Library,
    _folder: Option<tempfile::TempDir>,
}

/// One kernel of it.
pub struct Run {
    compiled: Compiled,
    program: Arc<Bytecode>,
    arguments: Vec<u32>,
}

/// The overrides that a text takes as arguments.
pub fn arguments(text: &str) -> Vec<&str> {
    let list = text.split_once("const ARGUMENTS: &[&str] = &[").and_then(|(_, rest)| rest.split_once("];"));
    let names = list.map_or("", |(list, _)| list).split(',').map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).collect()
}

impl Batch {
    pub fn new(baseline: bool) -> Self {
        let best = cantus::spmd::instruction_set() != "baseline";
        Batch { texts: Vec::new(), known: HashMap::new(), baseline: baseline || !best }
    }

    /// Adds a kernel; the same text once.
    pub fn add(&mut self, text: String) -> usize {
        // The first line names the source.
        let body = text.split_once('\n').map_or("", |(_, rest)| rest).to_owned();
        let next = self.texts.len();
        let index = *self.known.entry(body).or_insert(next);
        if index == next {
            self.texts.push(text);
        }
        index
    }

    /// Compiles and loads.
    pub fn compile(self, keep: bool) -> Result<Library, String> {
        let error = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(error)?;
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let version = if self.baseline { "baseline" } else { cantus::spmd::instruction_set() };
        let mut list = format!(
            "#![allow(warnings)]\n#[path = {:?}]\npub mod math;\n#[path = {:?}]\npub mod rt;\n",
            root.join("crates/spmd/src/math/mod.rs"),
            root.join("crates/spmd/src/ahead/rt/mod.rs")
        );
        let mut arms = String::new();
        for (index, text) in self.texts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("k{index}.rs")), text).map_err(error)?;
            let _ = writeln!(list, "mod k{index};");
            let _ = writeln!(arms, "        {index} => k{index}::{version},");
        }
        let _ = write!(
            list,
            "#[unsafe(no_mangle)]\npub extern \"C\" fn cantus_ahead_entry(index: usize) -> Option<rt::Entry> {{\n    \
             Some(match index {{\n{arms}        _ => return None,\n    }})\n}}\n"
        );
        let source = folder.path().join("lib.rs");
        std::fs::write(&source, list).map_err(error)?;
        let target = folder.path().join(libloading::library_filename("batch"));
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        // As this program itself, where that was built so: `-Zsanitizer=address`.
        let flags = std::env::var("CANTUS_BATCH_FLAGS").unwrap_or_default();
        let output = Command::new(rustc)
            .args(flags.split_whitespace())
            .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "batch", "--cap-lints", "allow"])
            .args(["-C", "opt-level=1", "-C", "codegen-units=2", "-C", "debuginfo=0", "-C", "panic=abort", "-o"])
            .arg(&target)
            .arg(&source)
            .output()
            .map_err(|error| format!("rustc does not start: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let kept = folder.keep();
            return Err(format!("{}\n(in {})", text.chars().take(6000).collect::<String>(), kept.display()));
        }
        let folder = if keep {
            println!("the batch is in {}", folder.keep().display());
            None
        } else {
            Some(folder)
        };
        // SAFETY: the library was made above, and runs nothing when it is loaded.
        let library = unsafe { libloading::Library::new(&target) }.map_err(|error| error.to_string())?;
        // SAFETY: the function is declared so above.
        let entry = unsafe { library.get::<unsafe extern "C" fn(usize) -> Option<Entry>>(b"cantus_ahead_entry") };
        let entry = entry.map_err(|error| error.to_string())?;
        // SAFETY: the function is declared so above, and every index is known.
        let entries: Option<Vec<Entry>> = (0..self.texts.len()).map(|index| unsafe { entry(index) }).collect();
        let entries = entries.ok_or("a kernel is missing")?;
        Ok(Library { entries, texts: self.texts, _library: library, _folder: folder })
    }
}

impl Library {
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    pub fn run(&self, index: usize, program: Arc<Bytecode>, arguments: &[u32]) -> Run {
        let entry = self.entries[index];
        let text = &self.texts[index];
        let number = |before: &str| -> u32 {
            let rest = text.split_once(before).map_or("", |(_, rest)| rest);
            rest.split(';').next().and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        let row = if text.contains("a run along x") { number("const LANES: usize =") } else { 0 };
        let compiled = Compiled {
            name: "main",
            fingerprint: 0,
            workgroup_size: program.workgroup_size(),
            row,
            bindings: &[],
            // Only their number matters here.
            arguments: &[""; 64][..arguments.len()],
            work: 1,
            baseline: entry,
            #[cfg(target_arch = "x86_64")]
            avx2: entry,
            #[cfg(target_arch = "x86_64")]
            avx512: entry,
        };
        Run { compiled, program, arguments: arguments.to_vec() }
    }
}

impl Run {
    /// Runs a case on this thread; the final bytes of every binding, in order.
    pub fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let mut buffers: Vec<Aligned> = case.bindings.iter().map(|b| Aligned::new(&b.initial.bytes())).collect();
        let mut slots: Vec<Option<&mut [u8]>> = buffers.iter_mut().map(|buffer| Some(buffer.bytes())).collect();
        let mut memory = Vec::new();
        for binding in self.program.bindings() {
            let bytes = slots.get_mut(binding.binding as usize).and_then(Option::take);
            let bytes = bytes.ok_or_else(|| format!("binding {} twice", binding.binding))?;
            memory.push(if binding.writable { Memory::new(bytes) } else { Memory::read_only(bytes) });
        }
        let deadline = web_time::Instant::now() + std::time::Duration::from_secs(20);
        let launch = Launch::new(case.workgroups, &memory).deadline(deadline).parallel(false);
        // SAFETY: the generator wrote it, for this program.
        unsafe { cantus::testing::execute_ahead(&self.compiled, &self.program, &self.arguments, &launch) }
            .map_err(|stopped| stopped.to_string())?;
        if !buffers.iter().all(Aligned::is_whole) {
            return Err("it wrote outside of a binding".to_owned());
        }
        Ok(buffers.iter_mut().map(|buffer| buffer.bytes().to_vec()).collect())
    }
}
