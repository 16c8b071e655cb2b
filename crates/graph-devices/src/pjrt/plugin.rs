//! Plugins: where they are looked for, how they are loaded, and how their functions are called. What a library gives is checked before it is used. `mod`
//! looks for plugins and loads one only after a trial (`trial`). A plugin's table is checked for version, size and the functions that are needed before any
//! call. Objects hold what must outlive them (`Owned`). Libraries stay loaded until the process ends.

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::abi::{self, Api, Args, Call, Fault, Number, One, Text};
use super::simulate;
use crate::graph::Precision;
use crate::library;

/// A kind of plugin.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name in `CANTUS_PJRT_PLUGIN`.
    pub(super) name: &'static str,
    /// The device's name for users.
    pub(super) title: &'static str,
    /// Places in a Python environment's packages, or beside the program.
    files: &'static [&'static str],
    /// One of these is there where such a device is; without any the plugin is only used when it is asked for.
    signs: &'static [&'static str],
    /// The folder with a node per device, and the prefix of the nodes' names.
    nodes: Option<(&'static str, &'static str)>,
    pub(super) priority: i32,
    /// Variables that the library reads, with places beside it; what is set stays.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Settings of the client, all of them bools.
    pub(super) options: &'static [(&'static CStr, bool)],
}

/// Plugins for GPUs rank below `cuda` and `hip`, and take no memory ahead.
const KINDS: &[Kind] = &[
    Kind {
        name: "tt",
        title: "Tenstorrent",
        files: &["pjrt_plugin_tt/pjrt_plugin_tt.so", "jax_plugin_tt/pjrt_plugin_tt.so", "pjrt_plugin_tt.so"],
        signs: &["/dev/tenstorrent"],
        nodes: Some(("/dev/tenstorrent", "")),
        priority: 85,
        environment: &[("TT_METAL_RUNTIME_ROOT", "tt-metal"), ("TT_METAL_HOME", "tt-metal")],
        options: &[],
    },
    Kind {
        name: "tpu",
        title: "TPU",
        files: &["libtpu/libtpu.so", "libtpu.so"],
        signs: &["/dev/accel0", "/dev/vfio/0"],
        nodes: Some(("/dev", "accel")),
        priority: 75,
        environment: &[],
        options: &[],
    },
    Kind {
        name: "neuron",
        title: "Neuron",
        files: &["libneuronxla/libneuronpjrt.so", "libneuronpjrt.so"],
        signs: &["/dev/neuron0"],
        nodes: Some(("/dev", "neuron")),
        priority: 75,
        environment: &[],
        options: &[],
    },
    Kind {
        name: "cuda",
        title: "CUDA by XLA",
        files: &[
            "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
            "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
            "xla_cuda_plugin.so",
        ],
        signs: &[],
        nodes: None,
        priority: 65,
        environment: &[],
        options: &[(c"preallocate", false)],
    },
    Kind {
        name: "rocm",
        title: "ROCm by XLA",
        files: &[
            "jax_plugins/xla_rocm7/xla_rocm_plugin.so",
            "jax_plugins/xla_rocm60/xla_rocm_plugin.so",
            "xla_rocm_plugin.so",
        ],
        signs: &[],
        nodes: None,
        priority: 65,
        environment: &[],
        options: &[(c"preallocate", false)],
    },
    Kind {
        name: "xpu",
        title: "Intel by XLA",
        files: &["jax_plugins/intel_extension_for_openxla/pjrt_plugin_xpu.so", "pjrt_plugin_xpu.so"],
        signs: &[],
        nodes: None,
        priority: 65,
        environment: &[],
        options: &[],
    },
];

const SIMULATED: Kind = Kind {
    name: "simulate",
    title: "Simulated tiles",
    files: &[],
    signs: &[],
    nodes: None,
    priority: 85,
    environment: &[],
    options: &[],
};

const OTHER: Kind = Kind {
    name: "other",
    title: "PJRT plugin",
    files: &[],
    signs: &[],
    nodes: None,
    priority: 75,
    environment: &[],
    options: &[],
};

/// A plugin that may be loaded.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) kind: &'static Kind,
    pub(super) source: Source,
    /// The number of devices of its client, as far as it is known before the client exists.
    pub(super) devices: usize,
}

impl Candidate {
    fn new(kind: &'static Kind, source: Source, asked: Option<usize>) -> Self {
        let nodes = kind.nodes.map_or(0, |(folder, prefix)| {
            let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
            names.filter(|name| is_node(&name.to_string_lossy(), prefix)).count()
        });
        Self { kind, source, devices: asked.unwrap_or(nodes).clamp(1, abi::MOST_DEVICES) }
    }
}

/// `accel12` is one of `accel`.
fn is_node(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Library(PathBuf),
    Simulator(Precision),
}

impl Source {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Library(path) => path.display().to_string(),
            Self::Simulator(Precision::Bf16) => "the simulator, in bf16".to_owned(),
            Self::Simulator(_) => "the simulator".to_owned(),
        }
    }
}

/// Folders of Python packages of the environment that is active, and the program's own.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for prefix in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os) {
        let versions = std::fs::read_dir(Path::new(&prefix).join("lib")).into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("site-packages")).filter(|path| path.is_dir()));
    }
    folders.extend(std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_path_buf)));
    folders
}

fn library(kind: &Kind, folders: &[PathBuf]) -> Option<PathBuf> {
    let places = kind.files.iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
    places.into_iter().find(|path| path.is_file())
}

/// The plugins to look at, and what was asked for and is not there.
pub(super) fn candidates(asked: Option<&str>) -> (Vec<Candidate>, Vec<String>) {
    let folders = folders();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        let present = KINDS.iter().filter(|kind| kind.signs.iter().any(|sign| Path::new(sign).exists()));
        for kind in present {
            match library(kind, &folders) {
                Some(path) => found.push(Candidate::new(kind, Source::Library(path), None)),
                None => missing.push(format!("there is a device of {}, and no plugin for it (install it in the active Python environment, or name it in CANTUS_PJRT_PLUGIN)", kind.title)),
            }
        }
        return (found, missing);
    };
    for name in std::env::split_paths(asked).filter_map(|path| path.to_str().map(str::to_owned)) {
        // `NAME*4`: a client of four devices.
        let (name, devices) = match name.rsplit_once('*').map(|(name, count)| (name.to_owned(), count.parse().ok())) {
            Some((name, Some(count))) => (name, Some(count)),
            _ => (name, None),
        };
        let simulator = |precision| Candidate::new(&SIMULATED, Source::Simulator(precision), devices);
        if name == "simulate" {
            found.push(simulator(Precision::Full));
        } else if name == "simulate-bf16" {
            found.push(simulator(Precision::Bf16));
        } else if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
            match library(kind, &folders) {
                Some(path) => found.push(Candidate::new(kind, Source::Library(path), devices)),
                None => missing.push(format!(
                    "{name}: {} is in no active Python environment (install the plugin there, or give its path)",
                    kind.files.join(" or ")
                )),
            }
        } else {
            let path = PathBuf::from(&name);
            let of_kind = KINDS.iter().find(|kind| {
                kind.files.iter().any(|file| Path::new(file).file_name().is_some_and(|name| path.ends_with(name)))
            });
            found.push(Candidate::new(of_kind.unwrap_or(&OTHER), Source::Library(path), devices));
        }
    }
    (found, missing)
}

/// A table of functions that was checked. Libraries stay loaded as long as the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plugin {
    api: *const Api,
}

// SAFETY: the table is constant, and PJRT's functions may be called from any thread.
unsafe impl Send for Plugin {}
// SAFETY: nothing writes to the table, and PJRT's functions may be called from several threads at once.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// Loads a plugin; nothing is made of a device yet. Whoever has not tried it before does so first.
    pub(super) fn load(source: &Source) -> Result<Self, String> {
        let path = match source {
            Source::Simulator(precision) => return Self::checked(simulate::api(*precision)),
            Source::Library(path) => path,
        };
        // SAFETY: the user or a table of known plugins names the library; its initialisers run as those of any library.
        let library = unsafe { library::load(path) }?;
        type Get = unsafe extern "C" fn() -> *const Api;
        // SAFETY: the symbol's type is the header's.
        let get = unsafe { library.get::<Get>(b"GetPjrtApi\0") }.map(|symbol| *symbol);
        let get = get.map_err(|_| "it is no PJRT plugin: GetPjrtApi is missing".to_owned());
        // Code that has run may have started threads.
        std::mem::forget(library);
        // SAFETY: the function takes nothing.
        Self::checked(unsafe { get?() })
    }

    fn checked(api: *const Api) -> Result<Self, String> {
        if api.is_null() || !api.is_aligned() {
            return Err("it gave no table of functions".to_owned());
        }
        // SAFETY: every table begins with its size and version; no more is read before the size is checked.
        let (size, major, minor) = unsafe { ((*api).struct_size, (*api).version.major, (*api).version.minor) };
        if major != abi::MAJOR {
            return Err(format!("it is of PJRT {major}.{minor}, Cantus speaks PJRT {}", abi::MAJOR));
        }
        if size < size_of::<Api>() {
            return Err(format!("it is of PJRT {major}.{minor}, whose table of {size} bytes is too old"));
        }
        let plugin = Self { api };
        match abi::NEEDED.iter().find(|call| plugin.function(**call).is_none()) {
            Some(call) => Err(format!("it lacks the function {call:?}")),
            None => Ok(plugin),
        }
    }

    /// The version of the interface.
    pub(super) fn version(&self) -> (i32, i32) {
        // SAFETY: the table was checked.
        unsafe { ((*self.api).version.major, (*self.api).version.minor) }
    }

    fn function(&self, call: Call) -> Option<abi::Function> {
        // SAFETY: the table was checked to be as long.
        unsafe { (*self.api).functions[call as usize] }
    }

    pub(super) fn has(&self, call: Call) -> bool {
        self.function(call).is_some()
    }

    /// Calls a function that returns an error.
    pub(super) fn call<T>(&self, call: Call, body: T) -> Result<T, Fault> {
        let missing = || Fault { code: abi::UNIMPLEMENTED, message: format!("the plugin has no {call:?}") };
        let function = self.function(call).ok_or_else(missing)?;
        let mut args = Args::new(body);
        // SAFETY: the structure is that of the function: see `Call` and the types of its callers.
        let error = unsafe { function((&raw mut args).cast()) };
        if error.is_null() { Ok(args.body) } else { Err(self.fault(error)) }
    }

    /// Calls a function that returns nothing.
    fn tell<T>(&self, call: Call, body: T) -> T {
        let mut args = Args::new(body);
        if let Some(function) = self.function(call) {
            // SAFETY: as in `call`; what is in the register of a result is not looked at.
            unsafe { function((&raw mut args).cast()) };
        }
        args.body
    }

    /// Returns the text of an error and destroys it.
    pub(super) fn fault(&self, error: *mut c_void) -> Fault {
        let message = self.tell(Call::ErrorMessage, Text { object: error, text: std::ptr::null(), length: 0 });
        let code = self.function(Call::ErrorGetCode).map_or(2, |function| {
            let mut args = Args::new(Number { object: error, number: 2 });
            // SAFETY: as in `call`.
            unsafe { function((&raw mut args).cast()) };
            args.body.number
        });
        let message = text(message.text, message.length);
        self.tell(Call::ErrorDestroy, One { object: error });
        Fault { code, message }
    }

    /// Destroys an object.
    pub(super) fn destroy(&self, call: Call, object: *mut c_void) {
        if !object.is_null() {
            let _ = self.call(call, One { object });
        }
    }

    /// A text of an object's.
    pub(super) fn text_of(&self, call: Call, object: *mut c_void) -> Result<String, Fault> {
        let found = self.call(call, Text { object, text: std::ptr::null(), length: 0 })?;
        Ok(text(found.text, found.length))
    }
}

fn text(start: *const c_char, length: usize) -> String {
    const LONGEST: usize = 1 << 16;
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the plugin gave start and length of a text that lives as long as its owner.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length.min(LONGEST)) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Initialises a plugin that has not been yet.
pub(super) fn initialise(plugin: Plugin) -> Result<(), Fault> {
    if plugin.has(Call::PluginInitialize) { plugin.call(Call::PluginInitialize, ()) } else { Ok(()) }
}

/// An object of a plugin's, destroyed with its last holder.
pub(super) struct Owned {
    pub(super) plugin: Plugin,
    pub(super) object: *mut c_void,
    destroy: Call,
    /// The object that must outlive it.
    _holds: Option<Arc<Self>>,
}

// SAFETY: PJRT's objects may be used from any thread.
unsafe impl Send for Owned {}
// SAFETY: PJRT allows calls for one object from several threads at once; it is destroyed by its last holder alone.
unsafe impl Sync for Owned {}

impl Owned {
    pub(super) fn new(plugin: Plugin, object: *mut c_void, destroy: Call, holds: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { plugin, object, destroy, _holds: holds })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.plugin.destroy(self.destroy, self.object);
    }
}
