//! The driver's library: its functions, looked up by name once. `platform` loads one table for each vendor. Functions return integers, and structures are
//! laid out by hand after the headers: a wrong field here is memory corruption, not an error. A library stays loaded until the process ends, because
//! drivers have threads of their own.

use cantus_base::listed::Listed;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use libloading::Library;

/// A result code; 0 is success.
pub(super) type Code = c_int;
/// An address in a device's memory.
pub(super) type Address = u64;
/// A handle that the driver gives: a context, stream, event, module or function.
pub(super) type Handle = *mut c_void;

/// Declares functions of the driver: their types here, their names per vendor.
macro_rules! functions {
    ($names:ident, $table:ident; $($role:ident: fn($($argument:ty),*);)*) => {
        /// The name of the function for each role.
        #[derive(Debug)]
        pub(crate) struct $names {
            $(pub(crate) $role: &'static str,)*
        }

        /// The functions.
        pub(super) struct $table {
            $(pub(super) $role: unsafe extern "C" fn($($argument),*) -> Code,)*
        }

        impl $table {
            /// Looks every function up; the name of one that is not there.
            pub(super) fn of(library: &'static Library, names: &$names) -> Result<Self, &'static str> {
                $(
                    // SAFETY: the type is the function's, as the vendor's header has it; the library stays loaded.
                    let $role = unsafe { crate::library::symbol::<unsafe extern "C" fn($($argument),*) -> Code>(library, names.$role) }
                        .ok_or(names.$role)?;
                )*
                Ok(Self { $($role,)* })
            }
        }
    };
}

functions! {
    Names, Table;
    init: fn(c_uint);
    version: fn(*mut c_int);
    device_count: fn(*mut c_int);
    device_get: fn(*mut c_int, c_int);
    device_name: fn(*mut c_char, c_int, c_int);
    device_memory: fn(*mut usize, c_int);
    device_attribute: fn(*mut c_int, c_int, c_int);
    context_retain: fn(*mut Handle, c_int);
    context_release: fn(c_int);
    stream_create: fn(*mut Handle, c_uint);
    stream_destroy: fn(Handle);
    event_create: fn(*mut Handle, c_uint);
    event_destroy: fn(Handle);
    event_record: fn(Handle, Handle);
    event_query: fn(Handle);
    event_wait: fn(Handle);
    event_elapsed: fn(*mut f32, Handle, Handle);
    stream_wait: fn(Handle, Handle, c_uint);
    synchronize: fn();
    memory_allocate: fn(*mut Address, usize);
    memory_free: fn(Address);
    memory_allocate_in_stream: fn(*mut Address, usize, Handle);
    memory_free_in_stream: fn(Address, Handle);
    host_allocate: fn(*mut *mut c_void, usize, c_uint);
    host_free: fn(*mut c_void);
    copy_in: fn(Address, *const c_void, usize, Handle);
    copy_out: fn(*mut c_void, Address, usize, Handle);
    copy_within: fn(Address, Address, usize, Handle);
    fill: fn(Address, u8, usize, Handle);
    module_load: fn(*mut Handle, *const c_void);
    module_unload: fn(Handle);
    module_function: fn(*mut Handle, Handle, *const c_char);
    function_attribute: fn(*mut c_int, c_int, Handle);
    launch: fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
}

functions! {
    GraphNames, GraphTable;
    capture_begin: fn(Handle, c_int);
    capture_end: fn(Handle, *mut Handle);
    graph_destroy: fn(Handle);
    instantiate: fn(*mut Handle, Handle, u64);
    launch: fn(Handle, Handle);
    destroy: fn(Handle);
}

functions! {
    UpdateNames, UpdateTable;
    capture_info: fn(Handle, *mut c_int, *mut u64, *mut Handle, *mut *const Handle, *mut usize);
    set_parameters: fn(Handle, Handle, *const NodeParameters);
}

/// CUDA's `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub(crate) struct NodeParameters {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) arguments: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    pub(super) kernel: Handle,
    pub(super) context: Handle,
}

functions! {
    ClusterNames, ClusterTable;
    set_attribute: fn(Handle, c_int, c_int);
    launch: fn(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
    active_clusters: fn(*mut c_int, Handle, *const LaunchConfig);
}

/// CUDA's `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: Handle,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) count: c_uint,
}

/// CUDA's `CUlaunchAttribute`: a number, and a value of 64 bytes that begins at byte 8.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    pub(super) id: c_int,
    pub(super) padding: c_int,
    pub(super) value: [c_uint; 16],
}

functions! {
    ProductNames, ProductTable;
    create: fn(*mut Handle);
    destroy: fn(Handle);
    product_create: fn(*mut Handle, c_int, c_int);
    product_destroy: fn(Handle);
    product_set: fn(Handle, c_int, *const c_void, usize);
    layout_create: fn(*mut Handle, c_int, u64, u64, i64);
    layout_destroy: fn(Handle);
    layout_set: fn(Handle, c_int, *const c_void, usize);
    preference_create: fn(*mut Handle);
    preference_destroy: fn(Handle);
    preference_set: fn(Handle, c_int, *const c_void, usize);
    heuristic: fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut c_void, *mut c_int);
    matmul: fn(
        Handle, Handle, *const c_void, *mut c_void, Handle, *mut c_void, Handle, *const c_void, *mut c_void, Handle,
        *mut c_void, Handle, *const c_void, *mut c_void, usize, Handle
    );
}

functions! {
    CollectiveNames, CollectiveTable;
    init_all: fn(*mut Handle, c_int, *const c_int);
    destroy: fn(Handle);
    begin: fn();
    end: fn();
    all_reduce: fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, Handle);
}

functions! {
    ContextNames, ContextTable;
    get: fn(*mut Handle);
    set: fn(Handle);
    copy_peer: fn(Address, Handle, Address, Handle, usize, Handle);
}

functions! {
    NumberNames, NumberTable;
    get: fn(*mut c_int);
    set: fn(c_int);
    copy_peer: fn(Address, c_int, Address, c_int, usize, Handle);
}

functions! {
    IdentityNames, IdentityTable;
    uuid: fn(*mut [u8; 16], c_int);
    pci: fn(*mut c_char, c_int, c_int);
}

functions! {
    ExternalNames, ExternalTable;
    import: fn(*mut Handle, *const ExternalMemory);
    map: fn(*mut Address, Handle, *const ExternalRange);
    destroy: fn(Handle);
}

/// CUDA's `CUDA_EXTERNAL_MEMORY_HANDLE_DESC`, and HIP's, of a file descriptor.
#[repr(C)]
pub(crate) struct ExternalMemory {
    pub(super) kind: c_int,
    pub(super) padding: c_int,
    pub(super) fd: c_int,
    pub(super) other_handles: [c_int; 3],
    pub(super) bytes: u64,
    pub(super) flags: c_uint,
    pub(super) reserved: [c_uint; 16],
}

/// CUDA's `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`, and HIP's.
#[repr(C)]
pub(crate) struct ExternalRange {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) flags: c_uint,
    pub(super) reserved: [c_uint; 16],
}

functions! {
    PropertiesNames, PropertiesTable;
    get: fn(*mut c_void, c_int);
}

/// Names of the functions that make a device current: by its context, or by its number.
#[derive(Debug)]
pub(crate) enum CurrentNames {
    /// CUDA's way.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "CUDA's way"))]
    Context(ContextNames),
    /// HIP's way.
    #[cfg_attr(not(feature = "hip"), expect(dead_code, reason = "HIP's way"))]
    Number(NumberNames),
}

/// The functions of [`CurrentNames`].
pub(super) enum CurrentTable {
    Context(ContextTable),
    Number(NumberTable),
}

/// The names of all of a driver's functions.
#[derive(Debug)]
pub(crate) struct FunctionNames {
    /// The functions that every driver has.
    pub(crate) plain: Names,
    /// Functions that make a device current.
    pub(crate) current: CurrentNames,
    /// Functions for graphs.
    pub(crate) graphs: GraphNames,
    /// Functions for graphs whose arguments change in place, if they are known to work.
    pub(crate) updates: Option<UpdateNames>,
    /// Functions for thread-block clusters, if there are any.
    pub(crate) clusters: Option<ClusterNames>,
    /// The functions that identify a device.
    pub(crate) identity: IdentityNames,
    /// Functions for memory that another API exports.
    pub(crate) external: ExternalNames,
    /// A function that fills a structure in which the architecture's name is somewhere, first choice first.
    pub(crate) properties: &'static [PropertiesNames],
}

/// The driver's functions.
pub(super) struct Functions {
    table: Table,
    pub(super) current: CurrentTable,
    /// Functions for graphs, which older drivers lack.
    pub(super) graphs: Option<GraphTable>,
    /// Functions for graphs whose arguments change in place.
    pub(super) updates: Option<UpdateTable>,
    /// Functions for thread-block clusters.
    pub(super) clusters: Option<ClusterTable>,
    pub(super) identity: Option<IdentityTable>,
    /// Functions for memory that another API exports.
    pub(super) external: Option<ExternalTable>,
    pub(super) properties: Option<PropertiesTable>,
}

impl std::ops::Deref for Functions {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl Functions {
    /// The functions of an opened library.
    pub(super) fn load(names: &FunctionNames, library: &'static Library) -> Result<Self, String> {
        let too_old = |name| format!("the driver is too old: it has no {name}");
        Ok(Self {
            table: Table::of(library, &names.plain).map_err(too_old)?,
            current: match &names.current {
                CurrentNames::Context(names) => {
                    CurrentTable::Context(ContextTable::of(library, names).map_err(too_old)?)
                }
                CurrentNames::Number(names) => CurrentTable::Number(NumberTable::of(library, names).map_err(too_old)?),
            },
            graphs: GraphTable::of(library, &names.graphs).ok(),
            updates: names.updates.as_ref().and_then(|names| UpdateTable::of(library, names).ok()),
            clusters: names.clusters.as_ref().and_then(|names| ClusterTable::of(library, names).ok()),
            identity: IdentityTable::of(library, &names.identity).ok(),
            external: ExternalTable::of(library, &names.external).ok(),
            properties: names.properties.iter().find_map(|names| PropertiesTable::of(library, names).ok()),
        })
    }
}

/// Opens the library that the variable names, or else the first that is there. It stays loaded as long as the process: a driver has threads
/// of its own, and does not bear to be unloaded under them.
pub(super) fn open(variable: &str, libraries: &[&str], remedy: &str) -> Result<&'static Library, String> {
    if let Some(paths) = std::env::var_os(variable).filter(|paths| !paths.is_empty()) {
        let path = std::env::split_paths(&paths).next().unwrap_or_default();
        return load(path.as_os_str())
            .map_err(|reason| format!("{variable}={} cannot be loaded: {reason} ({remedy})", path.display()));
    }
    let found = libraries.iter().find_map(|name| load(name.as_ref()).ok());
    let first = libraries.first().copied().unwrap_or("the driver's library");
    found.ok_or_else(|| format!("{first} is not installed ({remedy})"))
}

/// Opens all that are there, in order: those of the list that the variable names, or else those of these names.
pub(super) fn open_all(variable: &str, libraries: &[&str]) -> Vec<&'static Library> {
    match std::env::var_os(variable).filter(|paths| !paths.is_empty()) {
        Some(paths) => std::env::split_paths(&paths).filter_map(|path| load(path.as_os_str()).ok()).listed(),
        None => libraries.iter().filter_map(|name| load(name.as_ref()).ok()).listed(),
    }
}

/// Loads a library once in a process.
fn load(name: &OsStr) -> Result<&'static Library, String> {
    static LOADED: Mutex<BTreeMap<OsString, &'static Library>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(name) {
        return Ok(known);
    }
    // SAFETY: a vendor's library under its own name, or one that the user names.
    let library: &'static Library = Box::leak(Box::new(unsafe { crate::library::load(name.as_ref()) }?));
    loaded.insert(name.to_owned(), library);
    Ok(library)
}

/// The text of one of the driver's own names for an error code. CUDA and HIP give it in different ways, and the number says as much.
pub(super) fn meaning(code: Code) -> &'static str {
    match code {
        1 => "invalid value",
        2 => "out of memory",
        3 => "not initialised",
        4 => "the driver is shutting down",
        34 => "the driver is a stub",
        46 => "the device is unavailable",
        98 => "no function for this device",
        100 => "no device",
        101 => "invalid device",
        200 => "invalid image",
        201 => "invalid context",
        209 => "no code for this device",
        214 => "uncorrectable memory error",
        218 => "invalid code",
        222 => "the code was compiled by a newer compiler than the driver knows",
        300 => "invalid source",
        301 => "file not found",
        400 => "invalid handle",
        500 => "not found",
        600 => "not ready",
        700 => "illegal address",
        701 => "too many resources for a launch",
        702 => "the kernel ran into the system's time limit",
        709 => "the context is destroyed",
        710 => "an assertion failed",
        714 => "hardware stack error",
        715 => "illegal instruction",
        716 => "misaligned address",
        717 => "invalid address space",
        718 => "invalid program counter",
        719 => "the launch failed",
        720 => "the cooperative launch is too large",
        801 => "not supported",
        802 => "the system is not ready",
        803 => "the driver is older than the library",
        804 => "this device cannot run with that library",
        999 => "unknown error",
        _ => "see the vendor's list",
    }
}
