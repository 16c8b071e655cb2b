//! Kernels as C: translated to the host dialect, compiled by the system's compiler with its sanitizers, and run as a program of their own.
//! A report of a sanitizer fails the case. All cases are translated and compiled together, at the beginning.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cantus::Kernel;
use cantus::translate::{Argument, Dialect, OpenClFeatures, Options, Translation};

use crate::case::{Case, Needs};
use crate::device::{Failure, Target};

const FLAGS: [&str; 8] = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O0",
    "-g1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];

/// Reads buffers, runs all workgroups of a kernel, and writes the buffers back.
const MAIN: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void need(int well, const char *what) {
    if (!well) {
        fprintf(stderr, "%s\n", what);
        exit(3);
    }
}

int main(int count, char **words) {
    need(count == 4, "usage: program CASE INPUT OUTPUT");
    alarm(120);
    FILE *input = fopen(words[2], "rb");
    need(input != NULL, "no input");
    uint32_t head[4];
    need(fread(head, sizeof(head), 1, input) == 1, "no head");
    void *buffers[16];
    uint32_t sizes[16];
    need(head[3] <= 16, "too many buffers");
    for (uint32_t i = 0; i < head[3]; i++) {
        need(fread(&sizes[i], sizeof(uint32_t), 1, input) == 1, "no size");
        buffers[i] = malloc(sizes[i]);
        need(buffers[i] != NULL, "no memory");
        need(sizes[i] == 0 || fread(buffers[i], sizes[i], 1, input) == 1, "no contents");
    }
    fclose(input);
    runner *run = runners[atoi(words[1])];
    for (uint32_t z = 0; z < head[2]; z++) {
        for (uint32_t y = 0; y < head[1]; y++) {
            for (uint32_t x = 0; x < head[0]; x++) {
                const uint32_t workgroup[3] = { x, y, z };
                run(buffers, sizes, workgroup, head);
            }
        }
    }
    FILE *output = fopen(words[3], "wb");
    need(output != NULL, "no output");
    for (uint32_t i = 0; i < head[3]; i++) {
        need(sizes[i] == 0 || fwrite(buffers[i], sizes[i], 1, output) == 1, "cannot write");
        free(buffers[i]);
    }
    need(fclose(output) == 0, "cannot write");
    return 0;
}
"#;

/// The beginning of this target's name.
pub const NAME: &str = "host C";

/// Cases as C programs.
pub struct HostC {
    compiler: String,
    folder: tempfile::TempDir,
    options: Options,
    /// By the case's name: its number in a program, or the reason why it is in none.
    built: HashMap<String, Result<Built, String>>,
    runs: AtomicUsize,
}

#[derive(Clone)]
struct Built {
    program: PathBuf,
    number: usize,
}

impl HostC {
    /// Translates and compiles the cases.
    ///
    /// # Errors
    /// Why there is no compiler.
    pub fn new(cases: &[Case]) -> Result<Self, String> {
        Self::with_options(cases, OPTIONS)
    }

    /// The same, translated by other options.
    ///
    /// # Errors
    /// Why there is no compiler.
    pub fn with_options(cases: &[Case], options: Options) -> Result<Self, String> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
        let folder = tempfile::tempdir().map_err(|error| format!("{NAME}: no folder: {error}"))?;
        let probe = folder.path().join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").map_err(|error| error.to_string())?;
        let program = folder.path().join("probe");
        let compiled = Command::new(&compiler).args(FLAGS).arg(&probe).arg("-o").arg(&program).output();
        let ran = compiled.is_ok_and(|output| output.status.success())
            && Command::new(&program).status().is_ok_and(|status| status.success());
        if !ran {
            return Err(format!("{NAME}: there is no compiler `{compiler}` with sanitizers"));
        }
        let mut all = Self { compiler, folder, options, built: HashMap::new(), runs: AtomicUsize::new(0) };
        let cases: Vec<&Case> = cases.iter().collect();
        all.built = all.build(&cases, "all")?;
        Ok(all)
    }

    fn build(&self, cases: &[&Case], name: &str) -> Result<HashMap<String, Result<Built, String>>, String> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let next = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((number, case)) = {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        cases.get(number).map(|case| (number, case))
                    } {
                        let outcome = self.compile(case, number, &folder);
                        outcomes.lock().unwrap().push((number, outcome));
                    }
                });
            }
        });
        let mut outcomes = outcomes.into_inner().unwrap();
        outcomes.sort_by_key(|(number, _)| *number);
        let (mut table, mut main) = (String::new(), String::from("#include <stdint.h>\n"));
        main.push_str("typedef void runner(void **, const uint32_t *, const uint32_t *, const uint32_t *);\n");
        let mut objects = Vec::new();
        for (number, outcome) in &outcomes {
            if outcome.is_ok() {
                let _ = writeln!(main, "extern runner run_{number};");
                let _ = write!(table, "run_{number}, ");
                objects.push(format!("{number}.o"));
            } else {
                table.push_str("0, ");
            }
        }
        let _ = writeln!(main, "static runner *const runners[] = {{ {table} 0 }};\n{MAIN}");
        std::fs::write(folder.join("main.c"), main).map_err(|error| error.to_string())?;
        let program = folder.join("program");
        let arguments: Vec<String> = objects.into_iter().chain(["main.c".to_owned()]).collect();
        self.run_compiler(
            &folder,
            &[&["-o", "program"], &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..], &["-lm"]].concat(),
        )?;
        let built = |(number, outcome): (usize, Result<(), String>)| {
            let built = outcome.map(|()| Built { program: program.clone(), number });
            (cases[number].name.clone(), built)
        };
        Ok(outcomes.into_iter().map(built).collect())
    }

    fn compile(&self, case: &Case, number: usize, folder: &Path) -> Result<(), String> {
        let translation = translate(case, Dialect::Host, &self.options.bound_loops(true)).map_err(|f| f.0)?;
        let file = format!("{number}.c");
        std::fs::write(folder.join(&file), wrapped(case, &translation, number)?).map_err(|error| error.to_string())?;
        self.run_compiler(folder, &["-c", &file])
    }

    fn run_compiler(&self, folder: &Path, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new(&self.compiler).args(FLAGS).args(arguments).current_dir(folder).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() && output.stderr.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = String::from_utf8_lossy(&output.stderr).lines().take(12).map(str::to_owned).collect();
        Err(format!("{}: {}", self.compiler, lines.join("\n  ")))
    }
}

/// Options without the features that only some devices have.
pub const OPTIONS: Options = {
    let mut opencl = OpenClFeatures::ALL;
    (opencl.fp16, opencl.subgroups) = (false, false);
    Options::new().opencl(opencl)
};

/// A case in a language.
pub fn translate(case: &Case, dialect: Dialect, options: &Options) -> Result<Translation, Failure> {
    let mut kernel = Kernel::from_named_wgsl(&case.name, &case.wgsl)?.with_entry_point("main")?;
    for &(name, value) in &case.overrides {
        kernel = kernel.with_override(name, value)?;
    }
    Ok(kernel.translate(dialect, options)?)
}

/// The source with a function behind it that takes buffers without types.
fn wrapped(case: &Case, translation: &Translation, number: usize) -> Result<String, String> {
    let place = |index: &usize| {
        let binding = translation.reflection.bindings.get(*index).map(|binding| binding.binding as usize);
        binding.filter(|place| *place < case.bindings.len()).ok_or("an argument without a binding".to_owned())
    };
    let mut list = vec!["workgroup".to_owned(), "workgroups".to_owned()];
    for argument in &translation.arguments {
        list.push(match argument {
            Argument::Pointer { index } => format!("buffers[{}]", place(index)?),
            Argument::Value { .. } => return Err("an argument by value".to_owned()),
            Argument::Sizes { indices } => {
                let sizes: Result<Vec<String>, String> =
                    indices.iter().map(|index| Ok(format!("sizes[{}]", place(index)?))).collect();
                format!("(cantus_sizes){{ {} }}", sizes?.join(", "))
            }
        });
    }
    let entry = &translation.entry;
    Ok(format!(
        "#define {entry} kernel_{number}\n{}\nvoid run_{number}(void **buffers, const u32 *sizes, const u32 *workgroup, const u32 *workgroups);\n\
         void run_{number}(void **buffers, const u32 *sizes, const u32 *workgroup, const u32 *workgroups) {{\n    \
         (void)buffers;\n    (void)sizes;\n    {entry}({});\n}}\n",
        translation.source,
        list.join(", ")
    ))
}

impl Target for HostC {
    fn name(&self) -> String {
        format!("{NAME} ({})", self.compiler)
    }

    fn missing(&self, _: &Needs) -> Option<String> {
        None
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failure> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let built = match self.built.get(&case.name) {
            Some(built) => built.clone(),
            None => {
                // One that is not of the batch: a program made smaller.
                let mut built = self.build(&[case], &format!("one{run}")).map_err(Failure)?;
                built.remove(&case.name).unwrap_or_else(|| Err("was not built".to_owned()))
            }
        };
        let built = built.map_err(Failure)?;
        let mut words: Vec<u8> = Vec::new();
        for number in case.workgroups.into_iter().chain([case.bindings.len() as u32]) {
            words.extend(number.to_le_bytes());
        }
        let contents: Vec<Vec<u8>> = case.bindings.iter().map(|binding| binding.initial.bytes()).collect();
        for bytes in &contents {
            words.extend((bytes.len() as u32).to_le_bytes());
            words.extend(bytes);
        }
        let folder = self.folder.path();
        let (input, output) = (folder.join(format!("in{run}")), folder.join(format!("out{run}")));
        std::fs::write(&input, words)?;
        let ran = Command::new(&built.program)
            .arg(built.number.to_string())
            .args([&input, &output])
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .env("UBSAN_OPTIONS", "print_stacktrace=1")
            .output()?;
        let report = String::from_utf8_lossy(&ran.stderr);
        // The fibers tell the sanitizer of each switch; it warns all the same.
        let report: Vec<&str> =
            report.lines().filter(|line| !line.contains("makecontext/swapcontext")).take(10).collect();
        if !ran.status.success() || !report.is_empty() {
            return Err(Failure(format!("{}: {}", ran.status, report.join("\n  "))));
        }
        let bytes = std::fs::read(&output)?;
        let _ = (std::fs::remove_file(&input), std::fs::remove_file(&output));
        let mut finals = Vec::new();
        let mut rest = bytes.as_slice();
        for content in &contents {
            let (here, after) =
                rest.split_at_checked(content.len()).ok_or(Failure("the output is short".to_owned()))?;
            finals.push(here.to_vec());
            rest = after;
        }
        Ok(finals)
    }
}
