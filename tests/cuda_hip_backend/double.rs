//! The double's own questions, and what scenarios share.

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::sync::Arc;

use cantus::backend::cpu::CpuBackend;
use cantus::backend::cuda::CudaBackend;
use cantus::backend::hip::HipBackend;
use cantus::backend::{Backend, Registry};
use cantus::engine::Builder;
use cantus::{Engine, Fallback};

/// One of the two, with its double.
pub struct Vendor {
    pub name: &'static str,
    library: libloading::Library,
}

impl Vendor {
    pub fn named(name: &str) -> Self {
        let name = if name == "hip" { "hip" } else { "cuda" };
        Self::of(name, std::env::var_os("CANTUS_DOUBLE_LIBRARY").expect("is set").as_ref())
    }

    /// The double in a file of its own: what another copy of it counts is not counted here.
    pub fn of(name: &'static str, path: &std::path::Path) -> Self {
        // SAFETY: the double's initialisers do nothing but set variables.
        Self { name, library: unsafe { libloading::Library::new(path) }.expect("the double loads") }
    }

    pub fn backend(&self) -> Arc<dyn Backend> {
        if self.name == "hip" { Arc::new(HipBackend::new()) } else { Arc::new(CudaBackend::new()) }
    }

    /// This vendor's devices, with the CPU behind them.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::empty();
        registry.register(self.backend());
        registry.register(Arc::new(CpuBackend::new()));
        registry
    }

    /// Engines on them. The compiler is the system's, and takes seconds for all known answers.
    pub fn builder(&self) -> Builder {
        Engine::builder().registry(self.registry()).placement(false).known_answers(false)
    }

    /// An engine that may not fall back.
    pub fn engine(&self) -> Engine {
        self.builder().fallback(Fallback::Never).build().expect("opens")
    }

    fn ask(&self, question: &str, word: &str) -> i64 {
        let word = CString::new(word).expect("has no zero byte");
        // SAFETY: the double's functions of this kind have this type.
        unsafe {
            let ask: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_long> =
                self.library.get(question.as_bytes()).expect("is there");
            ask(word.as_ptr())
        }
    }

    /// A function of the driver's, of that type.
    pub fn call<T: Copy>(&self, name: &str) -> T {
        // SAFETY: whoever calls it says the type, and keeps the library.
        unsafe { *self.library.get::<T>(name.as_bytes()).expect("is there") }
    }

    /// Returns the number of calls of a function.
    pub fn calls(&self, role: &str) -> i64 {
        self.ask("cantus_double_calls", role)
    }

    /// Returns the number of live objects of a kind.
    pub fn live(&self, kind: &str) -> i64 {
        self.ask("cantus_double_live", kind)
    }

    /// From its nth call on, a function fails with a code; 0 ends it.
    pub fn fail(&self, role: &str, nth: i64, code: i32) {
        let role = CString::new(role).expect("has no zero byte");
        // SAFETY: this is the function's type.
        unsafe {
            let fail: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char, c_long, c_int)> =
                self.library.get(b"cantus_double_fail").expect("is there");
            fail(role.as_ptr(), nth, code);
        }
    }

    /// From now on every event reports this code.
    pub fn stick(&self, code: i32) {
        // SAFETY: this is the function's type.
        unsafe {
            let stick: libloading::Symbol<'_, unsafe extern "C" fn(c_int)> =
                self.library.get(b"cantus_double_stick").expect("is there");
            stick(code);
        }
    }

    /// While it is on, nothing in a stream goes on: a kernel without end.
    pub fn hold(&self, on: bool) {
        // SAFETY: this is the function's type.
        unsafe {
            let hold: libloading::Symbol<'_, unsafe extern "C" fn(c_int)> =
                self.library.get(b"cantus_double_hold").expect("is there");
            hold(c_int::from(on));
        }
    }

    /// Makes the second device current on this thread, as an app may; what is current is returned as a number.
    pub fn enter_second(&self) -> usize {
        // SAFETY: these are the functions' types.
        unsafe {
            if self.name == "hip" {
                let set: libloading::Symbol<'_, unsafe extern "C" fn(c_int) -> c_int> =
                    self.library.get(b"hipSetDevice").expect("is there");
                assert_eq!(set(1), 0);
            } else {
                let retain: libloading::Symbol<'_, unsafe extern "C" fn(*mut usize, c_int) -> c_int> =
                    self.library.get(b"cuDevicePrimaryCtxRetain").expect("is there");
                let set: libloading::Symbol<'_, unsafe extern "C" fn(usize) -> c_int> =
                    self.library.get(b"cuCtxSetCurrent").expect("is there");
                let release: libloading::Symbol<'_, unsafe extern "C" fn(c_int) -> c_int> =
                    self.library.get(b"cuDevicePrimaryCtxRelease_v2").expect("is there");
                let mut context = 0;
                assert_eq!((retain(&raw mut context, 1), set(context), release(1)), (0, 0, 0));
            }
        }
        self.current()
    }

    /// Returns the device that is current on this thread, as a number.
    pub fn current(&self) -> usize {
        // SAFETY: these are the functions' types.
        unsafe {
            if self.name == "hip" {
                let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
                    self.library.get(b"hipGetDevice").expect("is there");
                let mut device = -1;
                assert_eq!(get(&raw mut device), 0);
                usize::try_from(device).expect("is a number")
            } else {
                let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut usize) -> c_int> =
                    self.library.get(b"cuCtxGetCurrent").expect("is there");
                let mut context = 0;
                assert_eq!(get(&raw mut context), 0);
                context
            }
        }
    }

    /// From now on the first device has this UUID.
    pub fn set_uuid(&self, uuid: [u8; 16]) {
        // SAFETY: this is the function's type.
        unsafe { self.call::<unsafe extern "C" fn(*const [u8; 16])>("cantus_double_uuid")(&raw const uuid) }
    }

    /// Returns the misuses of the library.
    pub fn misuses(&self) -> Vec<String> {
        // SAFETY: these are the functions' types; the texts live as long as the library.
        unsafe {
            let count: libloading::Symbol<'_, unsafe extern "C" fn() -> c_long> =
                self.library.get(b"cantus_double_misuses").expect("is there");
            let text: libloading::Symbol<'_, unsafe extern "C" fn(c_long) -> *const c_char> =
                self.library.get(b"cantus_double_misuse").expect("is there");
            (0..count()).map(|index| CStr::from_ptr(text(index)).to_string_lossy().into_owned()).collect()
        }
    }

    /// Nothing was done wrong, and nothing is left.
    pub fn assert_clean(&self) {
        assert_eq!(self.misuses(), Vec::<String>::new());
        let of_driver = [
            "memory",
            "pinned",
            "event",
            "stream",
            "module",
            "program",
            "context",
            "graph",
            "executable graph",
            "external memory",
        ];
        for kind in of_driver.into_iter().chain(["product library", "product", "layout", "preference", "ring member"]) {
            assert_eq!(self.live(kind), 0, "{kind} left behind");
        }
    }
}
