//! The vendor's run-time compiler: NVRTC and hiprtc have one shape too. `program` goes through `Ways` for each kernel that is not in the cache on disk. A
//! compiler that is too old for the device, or too new for the driver, refuses, and the next way is tried: another compiler, then text that the driver
//! compiles further. Old compilers must not run twice at once.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use libloading::Library;

use super::library;
use super::vendor::{Architecture, CompilerNames, PortableNames, Vendor};
use crate::error::Error;
use cantus_base::listed::Listed;

type Code = c_int;
type Handle = *mut c_void;

/// The result of a run-time compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The code: machine code, or text that ends in a zero byte.
    pub code: Vec<u8>,
    /// Its warnings; empty when it has none.
    pub log: String,
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompileFault {
    /// The compiler refused the source; its log.
    Refused(String),
    /// The compiler failed otherwise.
    Failed(String),
}

type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;

/// The compiler, loaded.
pub(crate) struct Compiler {
    /// Major and minor.
    pub(crate) version: (i32, i32),
    create: Create,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Code,
    destroy: unsafe extern "C" fn(*mut Handle) -> Code,
    log_size: unsafe extern "C" fn(Handle, *mut usize) -> Code,
    log: unsafe extern "C" fn(Handle, *mut c_char) -> Code,
    code_size: unsafe extern "C" fn(Handle, *mut usize) -> Code,
    code: unsafe extern "C" fn(Handle, *mut c_char) -> Code,
    vendor: &'static Vendor,
    /// Older compilers of both vendors are not safe to run twice at once.
    turn: Mutex<()>,
}

/// Looks a function up.
///
/// # Safety
/// `F` is the type of that function.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: `F` is the function's type (this function's contract).
    unsafe { crate::library::symbol(library, name) }.ok_or_else(|| format!("the run-time compiler has no {name}"))
}

impl Compiler {
    /// Loads the compiler's library for a driver of that version, or says why it is missing.
    pub(super) fn library(vendor: &Vendor, version: i32) -> Result<&'static Library, String> {
        library::open(vendor.compiler_variable, (vendor.compilers)(version), vendor.compiler_remedy)
    }

    /// Loads the compiler for a driver of that version, or says why it is missing.
    pub(crate) fn new(vendor: &'static Vendor, names: &CompilerNames, version: i32) -> Result<Self, String> {
        Self::of(Self::library(vendor, version)?, vendor, names)
    }

    /// The compiler of a library that is loaded.
    fn of(library: &'static Library, vendor: &'static Vendor, names: &CompilerNames) -> Result<Self, String> {
        // SAFETY: the types are those of the vendor's header; the library stays loaded.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code = find(library, names.version)?;
            let (mut major, mut minor) = (0, 0);
            if version(&raw mut major, &raw mut minor) != 0 {
                return Err("the run-time compiler does not report its version".to_owned());
            }
            Ok(Self {
                version: (major, minor),
                create: find(library, names.create)?,
                compile: find(library, names.compile)?,
                destroy: find(library, names.destroy)?,
                log_size: find(library, names.log_size)?,
                log: find(library, names.log)?,
                code_size: find(library, names.code_size)?,
                code: find(library, names.code)?,
                vendor,
                turn: Mutex::default(),
            })
        }
    }

    /// Compiles for an architecture that is named, without a device.
    pub(crate) fn compile_for(
        &self,
        source: &str,
        name: &str,
        option: String,
        product: &str,
    ) -> crate::error::Result<Compiled> {
        let options = options(self.vendor, option);
        self.compile(source, name, &options).map_err(|fault| Error::Device {
            device: format!("{product} {}.{}", self.version.0, self.version.1),
            action: format!("compiling {name}"),
            message: match fault {
                CompileFault::Refused(log) => log,
                CompileFault::Failed(message) => message,
            },
        })
    }

    /// Compiles source to code for the device; beside it what the compiler said.
    pub(crate) fn compile(&self, source: &str, name: &str, options: &[String]) -> Result<Compiled, CompileFault> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| CompileFault::Refused("the source holds a zero byte".to_owned()))
        };
        let (source, name) = (text(source)?, text(name)?);
        let options = options.iter().map(|option| text(option)).try_listed()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).listed();
        let _turn = self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut program = Compilation { handle: std::ptr::null_mut(), compiler: self };
        let none = std::ptr::null();
        // SAFETY: the strings live during the call; the handle is written on success.
        let code = unsafe { (self.create)(&raw mut program.handle, source.as_ptr(), name.as_ptr(), 0, none, none) };
        if code != 0 {
            return Err(CompileFault::Failed(format!("the program could not be made (error {code})")));
        }
        let count = c_int::try_from(options.len()).unwrap_or(0);
        // SAFETY: the options live during the call.
        let code = unsafe { (self.compile)(program.handle, count, options.as_ptr()) };
        let log = program.take(self.log_size, self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        if code != 0 {
            return Err(CompileFault::Refused(format!("error {code}\n{log}")));
        }
        match program.take(self.code_size, self.code) {
            Some(code) if !code.is_empty() => Ok(Compiled { code, log }),
            _ => Err(CompileFault::Failed("the compiler gave no code".to_owned())),
        }
    }
}

/// A compiler and its options: one way to code for a device.
pub(super) struct Way {
    pub(super) compiler: Compiler,
    pub(super) options: Vec<String>,
}

/// The ways to code for a device, first choice first. The other compilers that are there, and then code that the driver compiles further, are
/// for what the first refuses: a device that is newer than the compiler, or a compiler that is newer than the driver.
pub(super) struct Ways {
    first: Way,
    others: OnceLock<Vec<Way>>,
    vendor: &'static Vendor,
    driver: i32,
    architecture: Architecture,
    /// The way that worked last.
    chosen: AtomicUsize,
}

impl Ways {
    /// The ways on a driver of that version, or why no compiler is available.
    pub(super) fn new(vendor: &'static Vendor, driver: i32, architecture: &Architecture) -> Result<Self, String> {
        let compiler = Compiler::new(vendor, &vendor.compiler_functions, driver)?;
        let first = Way { compiler, options: options(vendor, (vendor.architecture_option)(architecture)) };
        let (architecture, chosen) = (architecture.clone(), AtomicUsize::new(0));
        Ok(Self { first, others: OnceLock::new(), vendor, driver, architecture, chosen })
    }

    /// One by one, with their numbers, the one that worked last before all others.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Way)> {
        let chosen = self.chosen.load(Ordering::Relaxed);
        let rest = (0..).take_while(|&number| self.get(number).is_some()).filter(move |&number| number != chosen);
        std::iter::once(chosen).chain(rest).filter_map(|number| Some((number, self.get(number)?)))
    }

    /// Notes which worked.
    pub(super) fn choose(&self, number: usize) {
        self.chosen.store(number, Ordering::Relaxed);
    }

    fn get(&self, number: usize) -> Option<&Way> {
        match number.checked_sub(1) {
            None => Some(&self.first),
            Some(number) => self.others.get_or_init(|| self.find_others()).get(number),
        }
    }

    fn find_others(&self) -> Vec<Way> {
        let vendor = self.vendor;
        // Where code cannot be compiled further, compilers of several versions do not bear each other in one process.
        let Some(portable) = &vendor.portable else { return Vec::new() };
        let mut known = vec![self.first.compiler.version];
        let mut libraries = library::open_all(vendor.compiler_variable, (vendor.compilers)(self.driver));
        libraries.dedup_by_key(|library| std::ptr::from_ref::<Library>(library));
        let native = libraries.iter().skip(1).filter_map(|library| {
            let compiler = Compiler::of(library, vendor, &vendor.compiler_functions).ok()?;
            if known.contains(&compiler.version) {
                return None;
            }
            known.push(compiler.version);
            Some(Way { compiler, options: options(vendor, (vendor.architecture_option)(&self.architecture)) })
        });
        let native: Vec<Way> = native.listed();
        let (major, minor) = self.architecture.compute;
        let further = libraries.iter().filter_map(|library| {
            let newest = known_architectures(library, portable)
                .into_iter()
                .filter(|&known| known <= 10 * major + minor)
                .max()?;
            let compiler = Compiler::of(library, vendor, &portable.functions).ok()?;
            Some(Way { compiler, options: options(vendor, (portable.option)(newest)) })
        });
        native.into_iter().chain(further).listed()
    }
}

fn options(vendor: &Vendor, architecture: String) -> Vec<String> {
    let given = vendor.options.iter().map(|&option| option.to_owned());
    (!architecture.is_empty()).then_some(architecture).into_iter().chain(given).listed()
}

/// The architectures that a compiler knows; none where it does not tell.
fn known_architectures(library: &Library, names: &PortableNames) -> Vec<i32> {
    type Ask = unsafe extern "C" fn(*mut c_int) -> Code;
    // SAFETY: both functions have this type in the vendor's header.
    let (count, list) = unsafe { (find::<Ask>(library, names.count), find::<Ask>(library, names.list)) };
    let (Ok(count), Ok(list)) = (count, list) else { return Vec::new() };
    let mut number = 0;
    // SAFETY: the number is written on success.
    if unsafe { count(&raw mut number) } != 0 {
        return Vec::new();
    }
    let mut known = vec![0; usize::try_from(number).unwrap_or(0)];
    // SAFETY: the compiler writes as many as it said.
    if unsafe { list(known.as_mut_ptr()) } == 0 { known } else { Vec::new() }
}

/// A source being compiled.
struct Compilation<'a> {
    handle: Handle,
    compiler: &'a Compiler,
}

impl Compilation<'_> {
    /// A sized result.
    fn take(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> Code,
        fill: unsafe extern "C" fn(Handle, *mut c_char) -> Code,
    ) -> Option<Vec<u8>> {
        let mut bytes = 0_usize;
        // SAFETY: the handle is valid, and so is the pointer.
        if unsafe { size(self.handle, &raw mut bytes) } != 0 {
            return None;
        }
        let mut result = vec![0_u8; bytes];
        // SAFETY: the compiler writes as many bytes as it said.
        (unsafe { fill(self.handle, result.as_mut_ptr().cast()) } == 0).then_some(result)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: made by `create`, destroyed once.
            unsafe { (self.compiler.destroy)(&raw mut self.handle) };
        }
    }
}
