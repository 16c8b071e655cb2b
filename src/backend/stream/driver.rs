//! One device of a driver: its context and stream, with every call checked.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use super::library::{self, Address, Code, Functions, Handle, meaning};
use super::vendor::Vendor;
use crate::backend::wait::Awaited;

/// The driver said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) message: String,
}

/// What follows from a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The device's memory is used up.
    OutOfMemory,
    /// The context is unusable from now on.
    Lost,
    /// This call alone failed.
    Call,
}

const SUCCESS: Code = 0;
const OUT_OF_MEMORY: Code = 2;
const NOT_READY: Code = 600;

/// Streams that do not wait for the default stream.
pub(super) const NON_BLOCKING: u32 = 1;
/// Waiting sleeps instead of spinning.
const BLOCKING: u32 = 1;
const NO_TIMING: u32 = 2;
/// The function attribute "most threads in a block".
const FUNCTION_THREADS: c_int = 0;

impl Fault {
    fn of(code: Code, call: &str) -> Self {
        let kind = match code {
            OUT_OF_MEMORY => FaultKind::OutOfMemory,
            // What the vendors' documents call sticky: every later call in the context fails.
            4 | 46 | 214 | 700 | 702 | 709 | 710 | 714..=719 => FaultKind::Lost,
            _ => FaultKind::Call,
        };
        Self { kind, message: format!("{call}: {} (error {code})", meaning(code)) }
    }
}

/// Turns a code into a result.
pub(super) fn check(code: Code, call: &str) -> Result<(), Fault> {
    if code == SUCCESS { Ok(()) } else { Err(Fault::of(code, call)) }
}

/// How a context is made current: CUDA takes the context, HIP the device's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend) enum Current {
    /// By the context.
    Context,
    /// By the device's number, where a context would be.
    #[cfg_attr(not(feature = "hip"), expect(dead_code, reason = "HIP's way"))]
    Number,
}

/// The driver, initialised.
pub(in crate::backend) struct Platform {
    pub(super) vendor: &'static Vendor,
    pub(super) functions: Functions,
    pub(super) version: i32,
}

impl Platform {
    /// Loads and initialises the driver, or says why not.
    pub(super) fn new(vendor: &'static Vendor) -> Result<Self, String> {
        let functions =
            Functions::load(vendor.library_variable, vendor.libraries, &vendor.functions, &vendor.graph_functions)?;
        let mut version = 0;
        // SAFETY: the pointer is valid; the driver allows this call before initialisation.
        check(unsafe { (functions.version)(&raw mut version) }, vendor.functions.version)
            .map_err(|fault| fault.message)?;
        let (oldest, words) = vendor.oldest_driver;
        if version < oldest {
            return Err(format!("the driver is too old: it is of version {version}, and {words} is needed"));
        }
        // SAFETY: no argument but the flags, which must be 0.
        let code = unsafe { (functions.init)(0) };
        if matches!(code, 100 | 101) {
            return Err("the driver is there, and has no device".to_owned());
        }
        check(code, vendor.functions.init).map_err(|fault| fault.message)?;
        Ok(Self { vendor, functions, version })
    }

    /// The number of devices.
    pub(super) fn count(&self) -> Result<i32, Fault> {
        let mut count = 0;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_count)(&raw mut count) };
        check(code, self.vendor.functions.device_count)?;
        Ok(count)
    }

    /// The driver's handle of a device.
    pub(super) fn device(&self, index: i32) -> Result<i32, Fault> {
        let mut device = 0;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_get)(&raw mut device, index) };
        check(code, self.vendor.functions.device_get)?;
        Ok(device)
    }

    /// A device's name.
    pub(super) fn name(&self, device: i32) -> Result<String, Fault> {
        let mut name = [0_u8; 256];
        // SAFETY: the driver writes at most so many bytes, the last of them 0.
        let code = unsafe { (self.functions.device_name)(name.as_mut_ptr().cast(), 255, device) };
        check(code, self.vendor.functions.device_name)?;
        let bytes: Vec<u8> = name.into_iter().take_while(|&byte| byte != 0).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A device's memory in bytes.
    pub(super) fn memory(&self, device: i32) -> Result<u64, Fault> {
        let mut bytes = 0_usize;
        // SAFETY: the pointer is valid.
        let code = unsafe { (self.functions.device_memory)(&raw mut bytes, device) };
        check(code, self.vendor.functions.device_memory)?;
        Ok(bytes as u64)
    }

    /// An attribute of a device; `None` when the driver does not know it.
    pub(super) fn attribute(&self, attribute: i32, device: i32) -> Option<i32> {
        let mut value = 0;
        // SAFETY: the pointer is valid; an unknown attribute is refused.
        let code = unsafe { (self.functions.device_attribute)(&raw mut value, attribute, device) };
        (code == SUCCESS).then_some(value)
    }
}

/// A stream of a device: its own, or one whose work is captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream(pub(super) Handle);

/// One opened device. Every call makes its context current on the calling thread first.
pub(in crate::backend) struct Driver {
    pub(super) platform: Arc<Platform>,
    device: i32,
    stream: Handle,
    /// What `context_set` takes.
    current: Handle,
    /// Memory is taken and given back in the stream's order.
    pools: bool,
}

// SAFETY: the handles are the driver's own names for its objects; the driver may be called from any thread (CUDA: "Driver API",
// HIP: "thread safety"), and what must not overlap is ordered by the device's lock.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

/// A point in the stream.
pub(super) struct Event {
    handle: Handle,
    driver: Arc<Driver>,
}

// SAFETY: as for `Driver`: a handle is a name, which any thread may use.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Awaited for Event {
    type Fault = Fault;

    fn passed(&self) -> Result<bool, Fault> {
        self.driver.make_current().and_then(|()| self.driver.passed(self))
    }

    fn block(&self) -> Result<(), Fault> {
        self.driver.make_current().and_then(|()| self.driver.wait(self))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.driver.make_current().is_ok() {
            // SAFETY: made by `Driver::event`, destroyed once. The driver keeps what the stream still needs.
            unsafe { (self.driver.functions().event_destroy)(self.handle) };
        }
    }
}

/// Loaded code with its one kernel.
pub(super) struct Module {
    handle: Handle,
    function: Handle,
    driver: Arc<Driver>,
}

// SAFETY: as for `Driver`.
unsafe impl Send for Module {}
// SAFETY: as for `Driver`.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // Launches of it may be in the stream.
        if self.driver.settle().is_ok() {
            // SAFETY: made by `Driver::load`, unloaded once, and the stream is past its launches.
            unsafe { (self.driver.functions().module_unload)(self.handle) };
        }
    }
}

/// Page-locked host memory.
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
        if self.driver.make_current().is_ok() {
            // SAFETY: made by `Driver::pinned`, freed once.
            unsafe { (self.driver.functions().host_free)(self.start.cast()) };
        }
    }
}

/// Device memory.
pub(super) struct Block {
    pub(super) address: Address,
    driver: Arc<Driver>,
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.driver.make_current().is_err() {
            return;
        }
        let functions = self.driver.functions();
        // SAFETY: made by `Driver::allocate` in the same way, freed once; in the stream's order, or after the device is idle.
        unsafe {
            if self.driver.pools {
                (functions.memory_free_in_stream)(self.address, self.driver.stream);
            } else {
                (functions.memory_free)(self.address);
            }
        }
    }
}

impl Driver {
    /// Opens a device.
    pub(super) fn open(platform: Arc<Platform>, device: i32, current: Current, pools: bool) -> Result<Self, Fault> {
        let (functions, names) = (&platform.functions, &platform.vendor.functions);
        let mut context: Handle = std::ptr::null_mut();
        // SAFETY: the pointer is valid and the device exists.
        check(unsafe { (functions.context_retain)(&raw mut context, device) }, names.context_retain)?;
        let current = match current {
            Current::Context => context,
            Current::Number => std::ptr::without_provenance_mut(usize::try_from(device).unwrap_or(0)),
        };
        let mut driver = Self { device, stream: std::ptr::null_mut(), current, pools, platform: platform.clone() };
        driver.make_current()?;
        let mut stream: Handle = std::ptr::null_mut();
        // SAFETY: the pointer is valid; a context is current.
        check(unsafe { (functions.stream_create)(&raw mut stream, NON_BLOCKING) }, names.stream_create)?;
        driver.stream = stream;
        Ok(driver)
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.platform.functions
    }

    fn names(&self) -> &'static library::Names {
        &self.platform.vendor.functions
    }

    /// The device's stream.
    pub(super) fn stream(&self) -> Stream {
        Stream(self.stream)
    }

    /// Makes the device's context current on this thread.
    pub(super) fn make_current(&self) -> Result<(), Fault> {
        // SAFETY: the context lives until `drop`.
        check(unsafe { (self.functions().context_set)(self.current) }, self.names().context_set)
    }

    /// Takes device memory; its contents are undefined.
    pub(super) fn allocate(self: &Arc<Self>, bytes: u64) -> Result<Block, Fault> {
        let too_large =
            || Fault { kind: FaultKind::OutOfMemory, message: format!("{bytes} bytes are more than can be addressed") };
        let size = usize::try_from(bytes).map_err(|_| too_large())?;
        self.make_current()?;
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

    /// Takes page-locked host memory.
    pub(super) fn pinned(self: &Arc<Self>, bytes: usize) -> Result<Pinned, Fault> {
        self.make_current()?;
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
        // SAFETY: the caller's promise.
        check(unsafe { (self.functions().copy_in)(target, source.cast(), bytes, self.stream) }, self.names().copy_in)
    }

    /// Queues a copy to page-locked memory.
    ///
    /// # Safety
    /// As for `copy_in`, and nothing else touches `target` until the stream has passed it.
    pub(super) unsafe fn copy_out(&self, target: *mut u8, source: Address, bytes: usize) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise. `current` is the context for CUDA and the device's number for HIP, as their functions take it.
        let code =
            unsafe { (self.functions().copy_peer)(target, self.current, source, from.current, bytes, self.stream) };
        check(code, self.names().copy_peer)
    }

    /// Queues the filling of memory with zeros.
    ///
    /// # Safety
    /// The range lies in memory of this device.
    pub(super) unsafe fn clear(&self, target: Address, bytes: usize) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        check(unsafe { (self.functions().fill)(target, 0, bytes, self.stream) }, self.names().fill)
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
        self.make_current()?;
        let event = self.event(false)?;
        self.record(&event)?;
        self.wait(&event)
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
        self.make_current()?;
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
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &mut [*mut c_void],
    ) -> Result<(), Fault> {
        let ([x, y, z], [u, v, w]) = (grid, block);
        // SAFETY: the caller's promise; the driver copies the arguments during the call.
        let code = unsafe {
            let none = std::ptr::null_mut();
            (self.functions().launch)(module.function, x, y, z, u, v, w, 0, stream.0, arguments.as_mut_ptr(), none)
        };
        check(code, self.names().launch)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.make_current().is_ok() && !self.stream.is_null() {
            // SAFETY: made in `open`, destroyed once; the driver finishes what is in it.
            unsafe { (self.functions().stream_destroy)(self.stream) };
        }
        // SAFETY: retained once in `open`.
        unsafe { (self.functions().context_release)(self.device) };
    }
}
