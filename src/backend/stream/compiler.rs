//! The vendor's run-time compiler: NVRTC and hiprtc have one shape too.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Mutex;

use libloading::Library;

use super::library;
use super::vendor::{Architecture, CompilerNames, Vendor};
use crate::error::Error;

type Code = c_int;
type Handle = *mut c_void;

/// What a run-time compiler made of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The code: machine code, or text that ends in a zero byte.
    pub code: Vec<u8>,
    /// Its warnings; empty when it has none.
    pub log: String,
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend) enum CompileFault {
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
pub(in crate::backend) struct Compiler {
    /// Major and minor.
    pub(in crate::backend) version: (i32, i32),
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
    // SAFETY: the caller's promise.
    unsafe { library.get::<F>(name.as_bytes()) }
        .map(|symbol| *symbol)
        .map_err(|_| format!("the run-time compiler has no {name}"))
}

impl Compiler {
    /// Loads the compiler's library for a driver of that version, or says why there is none.
    pub(super) fn library(vendor: &Vendor, version: i32) -> Result<&'static Library, String> {
        library::open(vendor.compiler_variable, (vendor.compilers)(version))
            .map_err(|reason| format!("{reason} ({})", vendor.compiler_remedy))
    }

    /// Loads the compiler for a driver of that version, or says why there is none.
    pub(in crate::backend) fn new(
        vendor: &'static Vendor,
        names: &CompilerNames,
        version: i32,
    ) -> Result<Self, String> {
        let library = Self::library(vendor, version)?;
        // SAFETY: the types are those of the vendor's header; the library stays loaded.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code = find(library, names.version)?;
            let (mut major, mut minor) = (0, 0);
            if version(&raw mut major, &raw mut minor) != 0 {
                return Err("the run-time compiler does not tell its version".to_owned());
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
    pub(in crate::backend) fn compile_for(
        &self,
        source: &str,
        name: &str,
        option: String,
        product: &str,
    ) -> crate::error::Result<Compiled> {
        let given = self.vendor.options.iter().map(|&option| option.to_owned());
        let options: Vec<String> = std::iter::once(option).chain(given).collect();
        self.compile(source, name, &options).map_err(|fault| Error::Device {
            device: format!("{product} {}.{}", self.version.0, self.version.1),
            action: format!("compiling {name}"),
            message: match fault {
                CompileFault::Refused(log) => log,
                CompileFault::Failed(message) => message,
            },
        })
    }

    /// The options for an architecture.
    pub(super) fn options(&self, architecture: &Architecture) -> Vec<String> {
        let option = (self.vendor.architecture_option)(architecture);
        let given = self.vendor.options.iter().map(|&option| option.to_owned());
        (!option.is_empty()).then_some(option).into_iter().chain(given).collect()
    }

    /// Compiles source to code for the device; beside it what the compiler said.
    pub(in crate::backend) fn compile(
        &self,
        source: &str,
        name: &str,
        options: &[String],
    ) -> Result<Compiled, CompileFault> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| CompileFault::Refused("the source holds a zero byte".to_owned()))
        };
        let (source, name) = (text(source)?, text(name)?);
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
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
