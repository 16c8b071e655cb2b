//! One device of a driver: its context and stream, with every call checked. Everything of this backend that calls the driver goes through it, after
//! `Driver::enter` has made the device current on the thread. Objects are dropped only when the stream is past their uses: `shared` sees to that, not this
//! file. Errors that end a context are told apart (`FaultKind`).

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use super::library::{self, Address, Code, CurrentTable, Functions, Handle, LaunchAttribute, LaunchConfig};
use super::platform::{Current, Entered, Fault, FaultKind, Platform, SUCCESS, check};
use crate::wait::Awaited;

const NOT_READY: Code = 600;
/// Streams that do not wait for the default stream.
pub(super) const NON_BLOCKING: u32 = 1;
/// Waiting sleeps instead of spinning.
const BLOCKING: u32 = 1;
const NO_TIMING: u32 = 2;
/// The function attribute "most threads in a block".
const FUNCTION_THREADS: c_int = 0;
/// The function attribute "most shared memory that a launch asks for".
const FUNCTION_SHARED: c_int = 8;
/// The function attribute "clusters beyond what every device promises".
const FUNCTION_LARGE_CLUSTERS: c_int = 14;
/// The launch attribute "blocks of a cluster".
const LAUNCH_CLUSTER: c_int = 4;

/// The kind "file descriptor of another API's memory", and the flag "an allocation of its own".
const OPAQUE_FD: c_int = 1;
const DEDICATED: u32 = 1;

/// The number of blocks, and of threads in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaunchShape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Blocks of a cluster; 0 for none.
    pub(super) cluster: u32,
    /// Bytes of shared memory beyond what the code says.
    pub(super) shared_bytes: u32,
}

/// A stream of a device: its own, or one whose work is captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream(pub(super) Handle);

/// One opened device. Whoever calls the driver has entered it.
pub(crate) struct Driver {
    pub(super) platform: Arc<Platform>,
    device: i32,
    stream: Handle,
    current: Current,
    /// Memory is taken and given back in the stream's order.
    pools: bool,
}

// SAFETY: the handles are the driver's own names for its objects; the driver may be called from any thread (CUDA: "Driver API",
// HIP: "thread safety"), and what must not overlap is ordered by the device's lock.
unsafe impl Send for Driver {}
// SAFETY: every method takes `&self`, and the driver may be called from several threads at once.
unsafe impl Sync for Driver {}

/// A point in the stream.
pub(super) struct Event {
    handle: Handle,
    driver: Arc<Driver>,
}

// SAFETY: a handle is a name, which any thread may use (see `Driver`).
unsafe impl Send for Event {}
// SAFETY: the driver may be asked about one event from several threads at once.
unsafe impl Sync for Event {}

impl Awaited for Event {
    type Fault = Fault;

    // Neither driver takes a limit.
    const ENDS: bool = false;

    fn passed(&self) -> Result<bool, Fault> {
        let _current = self.driver.enter()?;
        self.driver.passed(self)
    }

    fn block(&self) -> Result<(), Fault> {
        let _current = self.driver.enter()?;
        self.driver.wait(self)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.driver.enter() {
            // SAFETY: made by `Driver::event`, destroyed once. The driver keeps what the stream still needs.
            unsafe { (self.driver.functions().event_destroy)(self.handle) };
        }
    }
}

/// Loaded code with its one kernel. Dropped only when the stream is past its launches.
pub(super) struct Module {
    handle: Handle,
    function: Handle,
    driver: Arc<Driver>,
}

// SAFETY: a handle is a name, which any thread may use (see `Driver`).
unsafe impl Send for Module {}
// SAFETY: `&Module` gives out only a handle; loaded code does not change.
unsafe impl Sync for Module {}

impl Module {
    /// The kernel.
    pub(super) fn function(&self) -> Handle {
        self.function
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_current) = self.driver.enter() {
            // SAFETY: made by `Driver::load`, unloaded once. It is kept until the stream is past its launches.
            unsafe { (self.driver.functions().module_unload)(self.handle) };
        }
    }
}

/// Page-locked host memory. Dropped only when the stream is past its copies.
pub(super) struct Pinned {
    start: *mut u8,
    bytes: usize,
    driver: Arc<Driver>,
}

// SAFETY: plain memory that it owns alone.
unsafe impl Send for Pinned {}
// SAFETY: `&Pinned` gives out only a raw pointer.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Ok(_current) = self.driver.enter() {
            // SAFETY: made by `Driver::pinned`, freed once.
            unsafe { (self.driver.functions().host_free)(self.start.cast()) };
        }
    }
}

/// Device memory. Without memory in the stream's order it is dropped only when the stream is past its uses.
pub(super) struct Block {
    pub(super) address: Address,
    driver: Arc<Driver>,
}

impl Drop for Block {
    fn drop(&mut self) {
        let Ok(_current) = self.driver.enter() else { return };
        let functions = self.driver.functions();
        // SAFETY: made by `Driver::allocate` in the same way, freed once; in the stream's order, or after its uses.
        unsafe {
            if self.driver.pools {
                (functions.memory_free_in_stream)(self.address, self.driver.stream);
            } else {
                (functions.memory_free)(self.address);
            }
        }
    }
}

/// Memory that another API exported, mapped. Dropped only when the stream is past its uses.
pub(super) struct External {
    handle: Handle,
    /// 0 until it is mapped.
    pub(super) address: Address,
    driver: Arc<Driver>,
}

// SAFETY: a handle is a name, which any thread may use (see `Driver`).
unsafe impl Send for External {}
// SAFETY: `&External` gives out only an address of the device's.
unsafe impl Sync for External {}

impl Drop for External {
    fn drop(&mut self) {
        let functions = self.driver.functions();
        let (Ok(_current), Some(table)) = (self.driver.enter(), &functions.external) else { return };
        // SAFETY: both made by `Driver::import`, freed once, after the uses.
        unsafe {
            if self.address != 0 {
                (functions.memory_free)(self.address);
            }
            (table.destroy)(self.handle);
        }
    }
}

/// A graph, ready to start. Dropped only when the stream is past its starts.
pub(super) struct Graph {
    handle: Handle,
    driver: Arc<Driver>,
}

// SAFETY: a handle is a name, which any thread may use (see `Driver`).
unsafe impl Send for Graph {}
// SAFETY: starts and changes of one graph are ordered by the device's lock.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Ok(_current), Some(table)) = (self.driver.enter(), &self.driver.functions().graphs) {
            // SAFETY: made by `capture`, destroyed once, and the stream is past it.
            unsafe { (table.destroy)(self.handle) };
        }
    }
}

impl Graph {
    /// Wraps a handle that the driver created, and owns it.
    pub(super) fn new(handle: Handle, driver: &Arc<Driver>) -> Self {
        Self { handle, driver: driver.clone() }
    }

    /// Puts it into the stream once more.
    pub(super) fn start(&self) -> Result<(), Fault> {
        let functions = self.driver.functions();
        let names = &self.driver.platform.vendor.functions.graphs;
        let Some(table) = &functions.graphs else { return Ok(()) };
        // SAFETY: the graph is whole, and what it refers to lives in its recording.
        check(unsafe { (table.launch)(self.handle, self.driver.stream().0) }, names.launch)
    }
}

impl Graph {
    /// Gives a launch other arguments, for starts from now on.
    ///
    /// # Safety
    /// As for [`Driver::launch`]; the node is the launch's, of the capture that the graph was made from.
    pub(super) unsafe fn set_arguments(
        &self,
        node: Handle,
        (function, shape): (Handle, &LaunchShape),
        arguments: &mut [*mut c_void],
    ) -> Result<(), Fault> {
        let functions = &self.driver.platform.vendor.functions;
        let Some((table, names)) = self.driver.functions().updates.as_ref().zip(functions.updates.as_ref()) else {
            return Ok(());
        };
        let parameters = library::NodeParameters {
            function,
            grid: shape.grid,
            block: shape.block,
            shared_bytes: shape.shared_bytes,
            arguments: arguments.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        };
        // SAFETY: the node is of this graph's capture, and `arguments` has a value for each parameter (this function's contract); the
        // driver copies the values during the call.
        check(unsafe { (table.set_parameters)(self.handle, node, &raw const parameters) }, names.set_parameters)
    }
}

impl Driver {
    /// The node that was captured last; `None` where the driver does not tell.
    pub(super) fn captured_node(&self, stream: Stream) -> Option<Handle> {
        let table = self.functions().updates.as_ref()?;
        let (mut status, mut id, mut graph, mut count) = (0, 0, std::ptr::null_mut(), 0);
        let mut nodes: *const Handle = std::ptr::null();
        // SAFETY: the pointers are valid; the stream is one that is captured.
        let code = unsafe {
            let (status, id, graph) = (&raw mut status, &raw mut id, &raw mut graph);
            (table.capture_info)(stream.0, status, id, graph, &raw mut nodes, &raw mut count)
        };
        // SAFETY: the driver's list holds so many, and lives until the next call for this stream.
        (code == 0 && count == 1 && !nodes.is_null()).then(|| unsafe { *nodes })
    }

    /// Opens a device.
    pub(super) fn open(platform: Arc<Platform>, device: i32, pools: bool) -> Result<Self, Fault> {
        let (functions, names) = (&platform.functions, &platform.vendor.functions.plain);
        let mut context: Handle = std::ptr::null_mut();
        // SAFETY: the pointer is valid and the device exists.
        check(unsafe { (functions.context_retain)(&raw mut context, device) }, names.context_retain)?;
        let current = match functions.current {
            CurrentTable::Context(_) => Current::Context(context),
            CurrentTable::Number(_) => Current::Number(device),
        };
        let mut driver = Self { device, stream: std::ptr::null_mut(), current, pools, platform: platform.clone() };
        let mut stream: Handle = std::ptr::null_mut();
        let code = {
            let _current = driver.enter()?;
            // SAFETY: the pointer is valid; a context is current.
            unsafe { (functions.stream_create)(&raw mut stream, NON_BLOCKING) }
        };
        check(code, names.stream_create)?;
        driver.stream = stream;
        Ok(driver)
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.platform.functions
    }

    fn names(&self) -> &'static library::Names {
        &self.platform.vendor.functions.plain
    }

    /// Memory is taken and given back in the stream's order.
    pub(super) fn has_pools(&self) -> bool {
        self.pools
    }

    /// The device's stream.
    pub(super) fn stream(&self) -> Stream {
        Stream(self.stream)
    }

    /// Makes the device current on this thread, until the result goes.
    pub(super) fn enter(&self) -> Result<Entered<'_>, Fault> {
        let platform = &*self.platform;
        let before = platform.current()?;
        if before == self.current {
            return Ok(Entered { platform, before: None });
        }
        platform.make_current(self.current)?;
        Ok(Entered { platform, before: Some(before) })
    }

    /// Takes device memory; its contents are undefined.
    pub(super) fn allocate(self: &Arc<Self>, bytes: u64) -> Result<Block, Fault> {
        let too_large =
            || Fault { kind: FaultKind::OutOfMemory, message: format!("{bytes} bytes are more than can be addressed") };
        let size = usize::try_from(bytes).map_err(|_| too_large())?;
        let _current = self.enter()?;
        let mut address: Address = 0;
        if self.pools {
            // SAFETY: the pointer is valid; the stream is this device's.
            let code = unsafe { (self.functions().memory_allocate_in_stream)(&raw mut address, size, self.stream) };
            check(code, self.names().memory_allocate_in_stream)?;
        } else {
            // SAFETY: the pointer is valid.
            let code = unsafe { (self.functions().memory_allocate)(&raw mut address, size) };
            check(code, self.names().memory_allocate)?;
        }
        Ok(Block { address, driver: self.clone() })
    }

    /// Maps memory that another API exported as a file descriptor, which the driver takes: it is closed here where the driver does not.
    ///
    /// # Safety
    /// The descriptor is an opaque one of a dedicated allocation of `bytes` bytes on this device, and nobody else's.
    pub(super) unsafe fn import(self: &Arc<Self>, fd: c_int, bytes: u64) -> Result<External, Fault> {
        let names = &self.platform.vendor.functions.external;
        let mut handle: Handle = std::ptr::null_mut();
        let mut import = |table: &library::ExternalTable| {
            let _current = self.enter()?;
            let (padding, other_handles, reserved) = (0, [0; 3], [0; 16]);
            let (kind, flags) = (OPAQUE_FD, DEDICATED);
            let memory = library::ExternalMemory { kind, padding, fd, other_handles, bytes, flags, reserved };
            // SAFETY: the pointers are valid, and `fd` is of a dedicated allocation of `bytes` bytes (this function's contract).
            check(unsafe { (table.import)(&raw mut handle, &raw const memory) }, names.import)
        };
        let missing = || Fault { kind: FaultKind::Call, message: format!("the driver has no {}", names.import) };
        let table = self.functions().external.as_ref().ok_or_else(missing);
        let table = match table.and_then(|table| import(table).map(|()| table)) {
            Ok(table) => table,
            Err(fault) => {
                // SAFETY: the descriptor is nobody else's (this function's contract), and the driver did not take it.
                #[cfg(unix)]
                drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) });
                return Err(fault);
            }
        };
        let mut external = External { handle, address: 0, driver: self.clone() };
        let _current = self.enter()?;
        let range = library::ExternalRange { offset: 0, bytes, flags: 0, reserved: [0; 16] };
        // SAFETY: the pointers are valid, the memory is imported and holds so many bytes.
        check(unsafe { (table.map)(&raw mut external.address, handle, &raw const range) }, names.map)?;
        Ok(external)
    }

    /// Takes page-locked host memory.
    pub(super) fn pinned(self: &Arc<Self>, bytes: usize) -> Result<Pinned, Fault> {
        let _current = self.enter()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions().host_allocate)(&raw mut start, bytes, 0) };
        check(code, self.names().host_allocate)?;
        Ok(Pinned { start: start.cast(), bytes, driver: self.clone() })
    }

    /// Queues a copy from page-locked memory. The caller keeps `source` unchanged until the stream has passed it.
    ///
    /// # Safety
    /// `source` is valid for `bytes` bytes until then, and `target` lies with as many bytes in memory of this device.
    pub(super) unsafe fn copy_in(&self, target: Address, source: *const u8, bytes: usize) -> Result<(), Fault> {
        // SAFETY: `source` and `target` hold `bytes` bytes, and `source` stays until the stream has passed it (this function's contract).
        check(unsafe { (self.functions().copy_in)(target, source.cast(), bytes, self.stream) }, self.names().copy_in)
    }

    /// Queues a copy to page-locked memory.
    ///
    /// # Safety
    /// As for `copy_in`, and nothing else touches `target` until the stream has passed it.
    pub(super) unsafe fn copy_out(&self, target: *mut u8, source: Address, bytes: usize) -> Result<(), Fault> {
        // SAFETY: both hold `bytes` bytes, and `target` is untouched until the stream has passed it (this function's contract).
        check(unsafe { (self.functions().copy_out)(target.cast(), source, bytes, self.stream) }, self.names().copy_out)
    }

    /// Queues a copy within the device.
    ///
    /// # Safety
    /// Both ranges lie in memory of this device and do not overlap.
    pub(super) unsafe fn copy_within(
        &self,
        stream: Stream,
        target: Address,
        source: Address,
        bytes: usize,
    ) -> Result<(), Fault> {
        // SAFETY: both ranges lie in this device's memory and do not overlap (this function's contract).
        check(unsafe { (self.functions().copy_within)(target, source, bytes, stream.0) }, self.names().copy_within)
    }

    /// Queues a copy from another device of the same vendor, in this device's stream.
    ///
    /// # Safety
    /// `target` lies in this device's memory and `source` in the other's, each with `bytes` bytes; the other device's work on it is done.
    pub(super) unsafe fn copy_peer(
        &self,
        target: Address,
        from: &Self,
        source: Address,
        bytes: usize,
    ) -> Result<(), Fault> {
        let code = match (&self.functions().current, self.current, from.current) {
            // SAFETY: both ranges lie in the memory of their devices, and nothing else works on them (this function's contract).
            (CurrentTable::Context(table), Current::Context(to), Current::Context(from)) => unsafe {
                (table.copy_peer)(target, to, source, from, bytes, self.stream)
            },
            // SAFETY: both ranges lie in the memory of their devices, and nothing else works on them (this function's contract).
            (CurrentTable::Number(table), Current::Number(to), Current::Number(from)) => unsafe {
                (table.copy_peer)(target, to, source, from, bytes, self.stream)
            },
            // Devices of one vendor have one way.
            _ => return Err(Fault { kind: FaultKind::Call, message: "the devices are of two vendors".to_owned() }),
        };
        check(code, "copying between devices")
    }

    /// Queues the filling of memory with zeros.
    ///
    /// # Safety
    /// The range lies in memory of this device.
    pub(super) unsafe fn clear(&self, stream: Stream, target: Address, bytes: usize) -> Result<(), Fault> {
        // SAFETY: `bytes` bytes from `target` on lie in this device's memory (this function's contract).
        check(unsafe { (self.functions().fill)(target, 0, bytes, stream.0) }, self.names().fill)
    }

    /// Makes an event; `timed` ones cost a little more.
    pub(super) fn event(self: &Arc<Self>, timed: bool) -> Result<Event, Fault> {
        let mut handle: Handle = std::ptr::null_mut();
        let flags = if timed { BLOCKING } else { BLOCKING | NO_TIMING };
        // SAFETY: the pointer is valid; a context is current.
        check(unsafe { (self.functions().event_create)(&raw mut handle, flags) }, self.names().event_create)?;
        Ok(Event { handle, driver: self.clone() })
    }

    /// Marks where the stream is now.
    pub(super) fn record(&self, event: &Event) -> Result<(), Fault> {
        // SAFETY: both are this device's.
        check(unsafe { (self.functions().event_record)(event.handle, self.stream) }, self.names().event_record)
    }

    /// Has the stream passed the event?
    pub(super) fn passed(&self, event: &Event) -> Result<bool, Fault> {
        // SAFETY: the event is this device's.
        match unsafe { (self.functions().event_query)(event.handle) } {
            NOT_READY => Ok(false),
            code => check(code, self.names().event_query).map(|()| true),
        }
    }

    /// Sleeps until the stream has passed the event.
    pub(super) fn wait(&self, event: &Event) -> Result<(), Fault> {
        // SAFETY: the event is this device's.
        check(unsafe { (self.functions().event_wait)(event.handle) }, self.names().event_wait)
    }

    /// Sleeps until the stream is where it is now.
    pub(super) fn settle(self: &Arc<Self>) -> Result<(), Fault> {
        let _current = self.enter()?;
        let event = self.event(false)?;
        self.record(&event)?;
        self.wait(&event)
    }

    /// Lets one stream of this device wait for what is in another now.
    pub(super) fn wait_across(self: &Arc<Self>, waiting: Stream, other: Stream) -> Result<(), Fault> {
        let event = self.event(false)?;
        // SAFETY: the event is this device's; the caller's streams live. The driver keeps what they need of the event.
        let recorded = unsafe { (self.functions().event_record)(event.handle, other.0) };
        check(recorded, self.names().event_record)?;
        // SAFETY: the event is this device's; the caller's streams live. The driver keeps what the waiting stream needs of the event.
        check(unsafe { (self.functions().stream_wait)(waiting.0, event.handle, 0) }, self.names().stream_wait)
    }

    /// Sleeps until all streams of the device are where they are now.
    pub(super) fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: a context is current.
        check(unsafe { (self.functions().synchronize)() }, self.names().synchronize)
    }

    /// The driver's number of the device.
    pub(super) fn ordinal(&self) -> i32 {
        self.device
    }

    /// Milliseconds between two timed events that have passed.
    pub(super) fn elapsed(&self, start: &Event, end: &Event) -> Result<f32, Fault> {
        let mut milliseconds = 0.0;
        // SAFETY: the pointer is valid; both events are this device's.
        let code = unsafe { (self.functions().event_elapsed)(&raw mut milliseconds, start.handle, end.handle) };
        check(code, self.names().event_elapsed)?;
        Ok(milliseconds)
    }

    /// Loads code and finds its kernel.
    pub(super) fn load(self: &Arc<Self>, image: &[u8], entry: &str) -> Result<Module, Fault> {
        let invalid = || Fault { kind: FaultKind::Call, message: "the kernel's name holds a zero byte".to_owned() };
        let name = CString::new(entry).map_err(|_| invalid())?;
        // PTX is text that must end in a zero byte; to other code it does no harm.
        let mut image = image.to_vec();
        image.push(0);
        let _current = self.enter()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the image lives during the call; the driver checks it.
        let code = unsafe { (self.functions().module_load)(&raw mut handle, image.as_ptr().cast()) };
        check(code, self.names().module_load)?;
        let mut module = Module { handle, function: std::ptr::null_mut(), driver: self.clone() };
        // SAFETY: the pointers are valid, the module is loaded.
        let code = unsafe { (self.functions().module_function)(&raw mut module.function, handle, name.as_ptr()) };
        check(code, self.names().module_function)?;
        Ok(module)
    }

    /// The most threads that a block of this kernel may have, as its registers allow.
    pub(super) fn most_threads(&self, module: &Module) -> Option<u32> {
        let _current = self.enter().ok()?;
        let mut value = 0;
        // SAFETY: the pointer is valid, the function is loaded.
        let code = unsafe { (self.functions().function_attribute)(&raw mut value, FUNCTION_THREADS, module.function) };
        (code == SUCCESS).then(|| u32::try_from(value).ok()).flatten()
    }

    /// Queues a launch.
    ///
    /// # Safety
    /// `arguments` points at one value for each of the kernel's parameters, of its size; addresses among them are valid for what the
    /// kernel does with them until the stream has passed it.
    pub(super) unsafe fn launch(
        &self,
        stream: Stream,
        module: &Module,
        shape: &LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Fault> {
        let ([x, y, z], [u, v, w]) = (shape.grid, shape.block);
        if let Some((table, names)) = self.clusters().filter(|_| shape.cluster > 0) {
            let attribute = cluster_attribute(shape.cluster);
            let config = launch_config(shape, &attribute, stream);
            // SAFETY: the attribute lives during the call; `arguments` has a value for each parameter, with valid addresses (this
            // function's contract).
            let code = unsafe {
                (table.launch)(&raw const config, module.function, arguments.as_mut_ptr(), std::ptr::null_mut())
            };
            return check(code, names.launch);
        }
        // SAFETY: `arguments` has a value for each parameter, with valid addresses (this function's contract); the driver copies them
        // during the call.
        let code = unsafe {
            let none = std::ptr::null_mut();
            let shared = shape.shared_bytes;
            (self.functions().launch)(module.function, x, y, z, u, v, w, shared, stream.0, arguments.as_mut_ptr(), none)
        };
        check(code, self.names().launch)
    }
}

impl Driver {
    /// The functions for clusters, with their names.
    fn clusters(&self) -> Option<(&library::ClusterTable, &'static library::ClusterNames)> {
        self.functions().clusters.as_ref().zip(self.platform.vendor.functions.clusters.as_ref())
    }

    /// Lets launches of a kernel ask for that much shared memory, and for large clusters.
    pub(super) fn allow_clusters(&self, module: &Module, shared_bytes: u32) -> Result<(), Fault> {
        let Some((table, names)) = self.clusters() else { return Ok(()) };
        let _current = self.enter()?;
        let bytes = c_int::try_from(shared_bytes).unwrap_or(c_int::MAX);
        for (attribute, value) in [(FUNCTION_SHARED, bytes), (FUNCTION_LARGE_CLUSTERS, 1)] {
            // SAFETY: the function is loaded.
            check(unsafe { (table.set_attribute)(module.function, attribute, value) }, names.set_attribute)?;
        }
        Ok(())
    }

    /// Returns the number of clusters of such a launch that run at the same time; 0 if none does.
    pub(super) fn active_clusters(&self, module: &Module, shape: &LaunchShape) -> Result<i32, Fault> {
        let Some((table, names)) = self.clusters() else { return Ok(0) };
        let _current = self.enter()?;
        let attribute = cluster_attribute(shape.cluster);
        let config = launch_config(shape, &attribute, Stream(std::ptr::null_mut()));
        let mut count = 0;
        // SAFETY: the pointers are valid, the function is loaded.
        let code = unsafe { (table.active_clusters)(&raw mut count, module.function, &raw const config) };
        check(code, names.active_clusters)?;
        Ok(count)
    }
}

fn cluster_attribute(blocks: u32) -> LaunchAttribute {
    let mut value = [0; 16];
    value[..3].copy_from_slice(&[blocks, 1, 1]);
    LaunchAttribute { id: LAUNCH_CLUSTER, padding: 0, value }
}

fn launch_config(shape: &LaunchShape, attribute: &LaunchAttribute, stream: Stream) -> LaunchConfig {
    LaunchConfig {
        grid: shape.grid,
        block: shape.block,
        shared_bytes: shape.shared_bytes,
        stream: stream.0,
        attributes: attribute,
        count: 1,
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.stream.is_null()
            && let Ok(_current) = self.enter()
        {
            // SAFETY: made in `open`, destroyed once; the driver finishes what is in it.
            unsafe { (self.functions().stream_destroy)(self.stream) };
        }
        // SAFETY: retained once in `open`.
        unsafe { (self.functions().context_release)(self.device) };
    }
}
