//! The cases, and the shipped kernels, through the real compilers of CUDA and HIP, which need no GPU. A warning is a failure.
//!
//! Libraries are found by `CANTUS_NVRTC` and `CANTUS_HIPRTC`, or by their usual names. With `CANTUS_PTXAS`, the path of that program,
//! registers of the shipped kernels are printed, and spilled ones are failures.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cantus::translate::{Dialect, Options, Translation};
use libloading::Library;

use crate::case::Case;
use crate::deviations;
use crate::host_c::{OPTIONS, translate};

/// Kernels compiled together: the compilers take longer to start than for a kernel.
const BATCH: usize = 30;

struct Language {
    dialect: Dialect,
    prefix: &'static str,
    variable: &'static str,
    required: &'static str,
    libraries: &'static [&'static str],
    architectures: &'static [&'static str],
}

const LANGUAGES: [Language; 2] = [
    Language {
        dialect: Dialect::Cuda,
        prefix: "nvrtc",
        variable: "CANTUS_NVRTC",
        required: "CANTUS_REQUIRE_NVRTC",
        libraries: &["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"],
        architectures: &["sm_75", "sm_90", "compute_90"],
    },
    Language {
        dialect: Dialect::Hip,
        prefix: "hiprtc",
        variable: "CANTUS_HIPRTC",
        required: "CANTUS_REQUIRE_HIPRTC",
        libraries: &["libhiprtc.so", "libamdhip64.so.5", "libamdhip64.so.6"],
        architectures: &["gfx90a", "gfx1030"],
    },
];

type Create = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
type LogSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Log = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

/// A compiler that is loaded at run time.
struct Compiler {
    create: Create,
    compile: Compile,
    log_size: LogSize,
    log: Log,
    destroy: Destroy,
    // Last: the functions live as long as it does.
    library: Library,
}

impl Compiler {
    fn load(language: &Language) -> Result<Self, String> {
        let named = std::env::var(language.variable).ok();
        let names: Vec<&str> = match &named {
            Some(name) => vec![name.as_str()],
            None => language.libraries.to_vec(),
        };
        let mut reasons = Vec::new();
        for name in names {
            match Self::open(name, language.prefix) {
                Ok(compiler) => return Ok(compiler),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(reasons.join("; "))
    }

    fn open(name: &str, prefix: &str) -> Result<Self, libloading::Error> {
        // SAFETY: a compiler's library, whose constructors do no harm; the functions are of these types in both libraries.
        unsafe {
            let library = Library::new(name)?;
            let symbol = |name: &str| format!("{prefix}{name}");
            Ok(Self {
                create: *library.get::<Create>(symbol("CreateProgram").as_bytes())?,
                compile: *library.get::<Compile>(symbol("CompileProgram").as_bytes())?,
                log_size: *library.get::<LogSize>(symbol("GetProgramLogSize").as_bytes())?,
                log: *library.get::<Log>(symbol("GetProgramLog").as_bytes())?,
                destroy: *library.get::<Destroy>(symbol("DestroyProgram").as_bytes())?,
                library,
            })
        }
    }

    /// The PTX of a source.
    fn ptx(&self, source: &str, architecture: &str) -> Result<Vec<u8>, String> {
        let source = CString::new(source).map_err(|error| error.to_string())?;
        let option = CString::new(format!("--gpu-architecture={architecture}")).map_err(|error| error.to_string())?;
        let options = [option.as_ptr()];
        let mut program = std::ptr::null_mut();
        // SAFETY: as in `check`; the functions are NVRTC's.
        unsafe {
            let size_of = self.library.get::<LogSize>(b"nvrtcGetPTXSize").map_err(|error| error.to_string())?;
            let get = self.library.get::<Log>(b"nvrtcGetPTX").map_err(|error| error.to_string())?;
            let none = std::ptr::null();
            let mut failed = (self.create)(&raw mut program, source.as_ptr(), c"kernel".as_ptr(), 0, none, none);
            failed |= (self.compile)(program, 1, options.as_ptr());
            let mut size = 0;
            failed |= size_of(program, &raw mut size);
            let mut text = vec![0_u8; size + 1];
            failed |= get(program, text.as_mut_ptr().cast());
            (self.destroy)(&raw mut program);
            text.truncate(size.saturating_sub(1));
            if failed == 0 { Ok(text) } else { Err(format!("no PTX: error {failed}")) }
        }
    }

    /// Compiles a source; what the compiler says, if it fails or warns.
    fn check(&self, source: &str, architecture: &str) -> Result<(), String> {
        let source = CString::new(source).map_err(|error| error.to_string())?;
        let option = CString::new(format!("--gpu-architecture={architecture}")).map_err(|error| error.to_string())?;
        let options = [option.as_ptr()];
        let mut program = std::ptr::null_mut();
        // SAFETY: the strings end in zero and outlive the calls; the log has the size that was asked for, and one more.
        unsafe {
            let none = std::ptr::null();
            let made = (self.create)(&raw mut program, source.as_ptr(), c"kernels".as_ptr(), 0, none, none);
            if made != 0 {
                return Err(format!("no program: error {made}"));
            }
            let compiled = (self.compile)(program, 1, options.as_ptr());
            let mut size = 0;
            (self.log_size)(program, &raw mut size);
            let mut log = vec![0_u8; size + 1];
            (self.log)(program, log.as_mut_ptr().cast());
            (self.destroy)(&raw mut program);
            let log = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().trim().to_owned());
            let log = log.unwrap_or_default();
            if compiled == 0 && log.is_empty() { Ok(()) } else { Err(format!("error {compiled}: {log}")) }
        }
    }
}

/// A kernel with a name, ready to be compiled with others.
struct Source {
    name: String,
    text: String,
}

/// Compiles everything for the languages whose name contains `filter`.
pub fn check(cases: &[Case], filter: &str) -> ExitCode {
    let mut well = true;
    for language in LANGUAGES.iter().filter(|language| language.prefix.contains(filter)) {
        match Compiler::load(language) {
            Ok(compiler) => well &= check_language(cases, language, &compiler),
            Err(reason) => {
                println!("{}: not run: {reason}", language.dialect.name());
                well &= std::env::var_os(language.required).is_none();
            }
        }
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_language(cases: &[Case], language: &Language, compiler: &Compiler) -> bool {
    let started = std::time::Instant::now();
    let mut failures = Vec::new();
    let mut sources = Vec::new();
    // Half of them as the backends hand over uniforms, half the other way.
    for (number, case) in cases.iter().enumerate() {
        let options = Options { uniforms_by_value: number % 2 == 0, bound_loops: true, ..OPTIONS };
        match translate(case, language.dialect, &options) {
            Ok(translation) => sources.push(source(&case.name, number, &translation)),
            Err(_) if deviations::find(language.dialect.name(), &case.name).is_some() => {}
            Err(failure) => failures.push(format!("{}: {}", case.name, failure.0)),
        }
    }
    for (number, shipped) in cantus::ops::kernels().iter().enumerate() {
        let options = Options { uniforms_by_value: true, ..OPTIONS };
        let translated = shipped.kernel().and_then(|kernel| kernel.translate(language.dialect, &options));
        match translated {
            Ok(translation) => sources.push(source(shipped.name(), cases.len() + number, &translation)),
            Err(error) => failures.push(format!("{}: {error}", shipped.name())),
        }
    }
    for architecture in language.architectures {
        failures.extend(check_batches(&sources, architecture, compiler));
    }
    if let (Dialect::Cuda, Ok(ptxas)) = (language.dialect, std::env::var("CANTUS_PTXAS")) {
        let shipped = &sources[sources.len() - cantus::ops::kernels().len().min(sources.len())..];
        for source in shipped {
            for number in [75, 90] {
                match registers(compiler, &ptxas, source, number) {
                    Ok(line) => println!("{} for sm_{number}: {line}", source.name),
                    Err(message) => failures.push(format!("{} for sm_{number}: {message}", source.name)),
                }
            }
        }
    }
    for failure in &failures {
        println!("FAILED {failure}");
    }
    println!(
        "{}: {} kernels for {}, {} failures, {:.1} s",
        language.dialect.name(),
        sources.len(),
        language.architectures.join(", "),
        failures.len(),
        started.elapsed().as_secs_f64()
    );
    failures.is_empty() && !sources.is_empty()
}

/// What `ptxas` says of a kernel's registers.
fn registers(compiler: &Compiler, ptxas: &str, source: &Source, number: u32) -> Result<String, String> {
    let ptx = compiler.ptx(&source.text, &format!("compute_{number}"))?;
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), ptx).map_err(|error| error.to_string())?;
    let output = std::process::Command::new(ptxas)
        .args(["-v", &format!("-arch=sm_{number}"), "-o", "/dev/null"])
        .arg(file.path())
        .output()
        .map_err(|error| format!("{ptxas}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let line = |word: &str| said.lines().find(|line| line.contains(word)).map(str::trim).map(str::to_owned);
    match (line("spill stores"), line("Used ")) {
        (Some(spills), Some(used)) if spills.contains(", 0 bytes spill stores, 0 bytes spill loads") => {
            Ok(used.replace("ptxas info    : ", ""))
        }
        _ => Err(said),
    }
}

/// A namespace around each keeps the types and helpers of kernels apart; entry points have no namespace.
fn source(name: &str, number: usize, translation: &Translation) -> Source {
    let entry = &translation.entry;
    let text = format!(
        "#define {entry} entry_{number}\nnamespace kernel_{number} {{\n{}\n}}\n#undef {entry}\n",
        translation.source
    );
    Source { name: name.to_owned(), text }
}

fn check_batches(sources: &[Source], architecture: &str, compiler: &Compiler) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let batches: Vec<&[Source]> = sources.chunks(BATCH).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text: String = batch.iter().map(|source| source.text.as_str()).collect();
                    if compiler.check(&text, architecture).is_ok() {
                        continue;
                    }
                    // One by one, to name those that fail.
                    let before = failures.lock().unwrap().len();
                    for source in *batch {
                        if let Err(log) = compiler.check(&source.text, architecture) {
                            let lines: Vec<&str> = log.lines().take(8).collect();
                            let line = format!("{} for {architecture}: {}", source.name, lines.join("\n  "));
                            failures.lock().unwrap().push(line);
                        }
                    }
                    let mut failures = failures.lock().unwrap();
                    if failures.len() == before {
                        failures.push(format!("{} and others for {architecture}, together only", batch[0].name));
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap()
}
