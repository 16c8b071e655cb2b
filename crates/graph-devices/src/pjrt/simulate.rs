//! A plugin of our own, behind the same table as any other: it reads the StableHLO that it is given and computes it on the processor. For work
//! without the hardware, and for tests.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::abi::{
    self, Api, Args, BufferFromHost, COUNT, Call, ClientCreate, Compile, CopyToDevice, Execute, Fault, Function, List,
    MemoryStats, NamedValue, Number, One, Pair, Text, ToHost, Version,
};
use crate::graph::{Graph, Precision};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A client with its devices, each of which is its own description too.
struct Client {
    precision: Precision,
    /// Their numbers begin here: a number is no place.
    devices: Vec<*mut c_void>,
}

struct Device {
    number: i32,
}

/// Devices where the setting for it does not say how many.
const USUAL: usize = 3;
/// The first device's number: a device's number is not its place.
const FIRST: i32 = 40;

impl Client {
    fn new(precision: Precision, devices: usize) -> Self {
        let device = |place| boxed(Device { number: FIRST + place });
        let most = i32::try_from(devices.min(abi::MOST_DEVICES)).unwrap_or(0);
        Self { precision, devices: (0..most).map(device).listed() }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for device in &self.devices {
            // SAFETY: devices are boxed, and belong to their client.
            drop(unsafe { Box::from_raw(device.cast::<Device>()) });
        }
    }
}

struct Executable {
    graph: Graph,
    precision: Precision,
    /// The input whose memory the result takes.
    reused: Option<usize>,
    /// The number of its device.
    device: i32,
}

struct Value {
    dtype: DType,
    /// `None` when a result took them.
    bytes: Mutex<Option<Vec<u8>>>,
    /// The number of its device.
    device: i32,
}

impl Value {
    fn new(dtype: DType, bytes: Vec<u8>, device: i32) -> Self {
        Self { dtype, bytes: Mutex::new(Some(bytes)), device }
    }

    fn bytes(&self) -> Result<Vec<u8>, Fault> {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        bytes.ok_or_else(|| fault(abi::INVALID_ARGUMENT, "a value was donated"))
    }
}

/// All work is done in the call: events have passed when they are made.
struct Event;

fn fault(code: i32, message: impl Into<String>) -> Fault {
    Fault { code, message: message.into() }
}

fn boxed<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

/// An object of ours.
///
/// # Safety
/// `object` is null or was made by [`boxed`] of that type, and is alive.
unsafe fn object<'a, T>(object: *const c_void) -> Result<&'a T, Fault> {
    // SAFETY: `object` is null or a living object of that type (this function's contract).
    unsafe { object.cast::<T>().as_ref() }.ok_or_else(|| fault(abi::INVALID_ARGUMENT, "an object is null"))
}

/// Runs a function's body over its argument; what goes wrong becomes an error of the interface.
fn entered<T>(args: *mut c_void, body: impl FnOnce(&mut T) -> Result<(), Fault>) -> *mut c_void {
    let smallest = size_of::<Args<T>>() - 24 * 8;
    // SAFETY: callers give an argument of the function's type, which begins with its size.
    let args = unsafe { args.cast::<Args<T>>().as_mut() };
    let result = match args {
        Some(args) if args.struct_size >= smallest => catch_unwind(AssertUnwindSafe(|| body(&mut args.body)))
            .unwrap_or_else(|_| Err(fault(abi::INTERNAL, "the simulator panicked (this is a fault of the library)"))),
        _ => Err(fault(abi::INVALID_ARGUMENT, "an argument is too small")),
    };
    result.map_or_else(boxed, |()| null_mut())
}

macro_rules! functions {
    ($(fn $name:ident($args:ident: $type:ty) $body:block)*) => {$(
        unsafe extern "C" fn $name(args: *mut c_void) -> *mut c_void {
            entered::<$type>(args, |$args| $body)
        }
    )*};
}

functions! {
    fn error_destroy(args: One) {
        if !args.object.is_null() {
            // SAFETY: errors are boxed faults.
            drop(unsafe { Box::from_raw(args.object.cast::<Fault>()) });
        }
        Ok(())
    }
    fn error_message(args: Text) {
        // SAFETY: errors are boxed faults.
        let fault = unsafe { object::<Fault>(args.object) }?;
        (args.text, args.length) = (fault.message.as_ptr().cast(), fault.message.len());
        Ok(())
    }
    fn error_code(args: Number) {
        // SAFETY: errors are boxed faults.
        args.number = unsafe { object::<Fault>(args.object) }?.code;
        Ok(())
    }
    fn initialize(_args: ()) {
        Ok(())
    }
    fn event_destroy(args: One) {
        if !args.object.is_null() {
            // SAFETY: events are boxed.
            drop(unsafe { Box::from_raw(args.object.cast::<Event>()) });
        }
        Ok(())
    }
    fn event_ready(args: Number) {
        args.number = 1;
        Ok(())
    }
    fn event_passed(_args: One) {
        Ok(())
    }
    fn client_create(args: ClientCreate) {
        args.client = boxed(Client::new(Precision::Full, asked_devices(args)));
        Ok(())
    }
    fn client_create_bf16(args: ClientCreate) {
        args.client = boxed(Client::new(Precision::Bf16, asked_devices(args)));
        Ok(())
    }
    fn client_destroy(args: One) {
        // SAFETY: clients are boxed.
        drop(unsafe { Box::from_raw(args.object.cast::<Client>()) });
        Ok(())
    }
    fn platform(args: Text) {
        const NAME: &str = "simulate";
        (args.text, args.length) = (NAME.as_ptr().cast(), NAME.len());
        Ok(())
    }
    fn platform_version(args: Text) {
        const NAME: &str = env!("CARGO_PKG_VERSION");
        (args.text, args.length) = (NAME.as_ptr().cast(), NAME.len());
        Ok(())
    }
    fn devices(args: List) {
        // SAFETY: clients are boxed.
        let client = unsafe { object::<Client>(args.object) }?;
        (args.list, args.count) = (client.devices.as_ptr(), client.devices.len());
        Ok(())
    }
    fn description(args: Pair) {
        args.other = args.object;
        Ok(())
    }
    fn description_id(args: Number) {
        // SAFETY: devices are boxed.
        args.number = unsafe { object::<Device>(args.object) }?.number;
        Ok(())
    }
    fn description_kind(args: Text) {
        const NAME: &str = "Simulated tiles of 32 x 32";
        (args.text, args.length) = (NAME.as_ptr().cast(), NAME.len());
        Ok(())
    }
    fn memory_stats(_args: MemoryStats) {
        Err(fault(abi::UNIMPLEMENTED, "the simulator has the processor's memory"))
    }
    fn compile(args: Compile) {
        // SAFETY: clients are boxed; the program lives during the call.
        let (client, program) = unsafe { (object::<Client>(args.client)?, args.program.as_ref()) };
        let program = &program.ok_or_else(|| fault(abi::INVALID_ARGUMENT, "no program"))?.body;
        // SAFETY: start and length are of one text, which lives during the call.
        let text = unsafe { std::slice::from_raw_parts(program.code.cast::<u8>(), program.code_length) };
        let text = std::str::from_utf8(text).map_err(|error| fault(abi::INVALID_ARGUMENT, error.to_string()))?;
        let reused = crate::graph::reused_input(text);
        let graph = Graph::from_stablehlo(text).map_err(|error| fault(abi::UNIMPLEMENTED, error.to_string()))?;
        // SAFETY: start and length are of one text, which lives during the call; devices are boxed.
        let (device, devices) = unsafe {
            let options = std::slice::from_raw_parts(args.options.cast::<u8>(), args.options_length);
            let devices = client.devices.iter().map(|device| Ok(object::<Device>(*device)?.number));
            (assigned(options), devices.try_listed()?)
        };
        let device = device.and_then(|number| i32::try_from(number).ok()).filter(|number| devices.contains(number));
        let device = device.ok_or_else(|| fault(abi::INVALID_ARGUMENT, "the program is assigned to no device of the client"))?;
        args.executable = boxed(Executable { graph, precision: client.precision, reused, device });
        Ok(())
    }
    fn executable_destroy(args: One) {
        // SAFETY: executables are boxed.
        drop(unsafe { Box::from_raw(args.object.cast::<Executable>()) });
        Ok(())
    }
    fn buffer_from_host(args: BufferFromHost) {
        let dtype = DType::ALL.iter().copied().find(|dtype| abi::kind(*dtype) == args.kind);
        let dtype = dtype.ok_or_else(|| fault(abi::UNIMPLEMENTED, format!("elements of kind {}", args.kind)))?;
        let sides: &[i64] = match args.side_count {
            0 => &[],
            // SAFETY: the caller gives as many sides.
            count => unsafe { std::slice::from_raw_parts(args.sides, count) },
        };
        let count: i64 = sides.iter().product();
        let bytes = usize::try_from(count).unwrap_or(0) * dtype.bytes();
        // SAFETY: the caller gives as many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(args.data.cast::<u8>(), bytes) }.to_vec();
        // SAFETY: devices are boxed.
        let device = unsafe { object::<Device>(args.device) }?.number;
        (args.buffer, args.done) = (boxed(Value::new(dtype, bytes, device)), boxed(Event));
        Ok(())
    }
    fn execute(args: Execute) {
        // SAFETY: executables are boxed, and so are the values of the list, of which there are as many as the caller says.
        let (executable, values) = unsafe {
            let executable = object::<Executable>(args.executable)?;
            let list: &[*mut c_void] = match args.argument_count {
                0 => &[],
                count => std::slice::from_raw_parts(*args.arguments, count),
            };
            let values = list.iter().map(|value| object::<Value>(*value)).try_listed()?;
            (executable, values)
        };
        let graph = &executable.graph;
        for (value, input) in values.iter().zip(graph.inputs()) {
            if value.dtype != graph.dtype(*input) {
                return Err(fault(abi::INVALID_ARGUMENT, format!("an argument is {}", value.dtype)));
            }
            if value.device != executable.device {
                return Err(fault(abi::INVALID_ARGUMENT, "an argument is on another device"));
            }
        }
        let inputs = values.iter().map(|value| value.bytes()).collect::<Result<Vec<Vec<u8>>, Fault>>()?;
        let results = graph.simulate(&inputs, executable.precision);
        let results = results.map_err(|error| fault(abi::INVALID_ARGUMENT, error.to_string()))?;
        for (place, (bytes, output)) in results.into_iter().zip(graph.outputs()).enumerate() {
            let value = boxed(Value::new(graph.dtype(*output), bytes, executable.device));
            // SAFETY: the caller gives a place for each result.
            unsafe { *(*args.outputs).add(place) = value };
        }
        // SAFETY: options live during the call.
        let options = unsafe { args.options.as_ref() };
        let kept: &[i64] = match options.map_or(0, |options| options.body.kept_count) {
            0 => &[],
            // SAFETY: the caller gives as many numbers.
            count => unsafe { std::slice::from_raw_parts(options.map_or(std::ptr::null(), |options| options.body.kept), count) },
        };
        let taken = executable.reused.filter(|input| !kept.contains(&(*input as i64)));
        if let Some(value) = taken.and_then(|input| values.get(input)) {
            *value.bytes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        if !args.events.is_null() {
            // SAFETY: the caller gives a place for each device's event.
            unsafe { *args.events = boxed(Event) };
        }
        Ok(())
    }
    fn buffer_destroy(args: One) {
        // SAFETY: values are boxed.
        drop(unsafe { Box::from_raw(args.object.cast::<Value>()) });
        Ok(())
    }
    fn buffer_copy_to_device(args: CopyToDevice) {
        // SAFETY: values and devices are boxed.
        let (value, device) = unsafe { (object::<Value>(args.buffer)?, object::<Device>(args.device)?) };
        if value.device == device.number {
            return Err(fault(abi::INVALID_ARGUMENT, "a value is on that device"));
        }
        args.copy = boxed(Value::new(value.dtype, value.bytes()?, device.number));
        Ok(())
    }
    fn buffer_to_host(args: ToHost) {
        // SAFETY: values are boxed.
        let bytes = unsafe { object::<Value>(args.buffer) }?.bytes()?;
        if args.target.is_null() {
            args.bytes = bytes.len();
            return Ok(());
        }
        if args.bytes < bytes.len() {
            return Err(fault(abi::INVALID_ARGUMENT, format!("{} of {} bytes", args.bytes, bytes.len())));
        }
        // SAFETY: the caller gives room for as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), args.target.cast(), bytes.len()) };
        args.event = boxed(Event);
        Ok(())
    }
    fn buffer_ready(args: Pair) {
        args.other = boxed(Event);
        Ok(())
    }
}

/// Returns the number of devices that a client's settings ask for.
fn asked_devices(args: &ClientCreate) -> usize {
    let settings: &[NamedValue] = match args.option_count {
        0 => &[],
        // SAFETY: the caller gives as many settings.
        count => unsafe { std::slice::from_raw_parts(args.options, count) },
    };
    let is_ours = |setting: &&NamedValue| {
        // SAFETY: start and length are of one text.
        let name = unsafe { std::slice::from_raw_parts(setting.name.cast::<u8>(), setting.name_length) };
        name == abi::DEVICES.to_bytes() && setting.kind == abi::INTEGER
    };
    settings.iter().find(is_ours).map_or(USUAL, |setting| usize::try_from(setting.value).unwrap_or(0))
}

/// The one device that `CompileOptionsProto` assigns a program to, if it says so.
fn assigned(options: &[u8]) -> Option<u64> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first()?;
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
    /// The message in that field, the first of its number.
    fn message(mut bytes: &[u8], field: u64) -> Option<&[u8]> {
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let number = varint(&mut bytes)?;
            if key & 7 == 2 {
                let (inner, rest) = bytes.split_at_checked(usize::try_from(number).ok()?)?;
                if key >> 3 == field {
                    return Some(inner);
                }
                bytes = rest;
            }
        }
        None
    }
    // Of the options those of the build, there the assignment, the computation's devices, the numbers.
    let mut numbers = [3, 9, 3, 1].into_iter().try_fold(options, message)?;
    let number = varint(&mut numbers)?;
    numbers.is_empty().then_some(number)
}

struct Table(Api);

// SAFETY: the table is constant.
unsafe impl Sync for Table {}

const fn table(create: Function) -> Table {
    let mut functions: [Option<Function>; COUNT] = [None; COUNT];
    let rows: [(Call, Function); 25] = [
        (Call::ErrorDestroy, error_destroy),
        (Call::ErrorMessage, error_message),
        (Call::ErrorGetCode, error_code),
        (Call::PluginInitialize, initialize),
        (Call::EventDestroy, event_destroy),
        (Call::EventIsReady, event_ready),
        (Call::EventError, event_passed),
        (Call::EventAwait, event_passed),
        (Call::ClientCreate, create),
        (Call::ClientDestroy, client_destroy),
        (Call::ClientPlatformName, platform),
        (Call::ClientPlatformVersion, platform_version),
        (Call::ClientAddressableDevices, devices),
        (Call::ClientCompile, compile),
        (Call::BufferFromHost, buffer_from_host),
        (Call::DescriptionId, description_id),
        (Call::DescriptionKind, description_kind),
        (Call::DeviceDescription, description),
        (Call::DeviceMemoryStats, memory_stats),
        (Call::ExecutableDestroy, executable_destroy),
        (Call::Execute, execute),
        (Call::BufferDestroy, buffer_destroy),
        (Call::BufferCopyToDevice, buffer_copy_to_device),
        (Call::BufferToHost, buffer_to_host),
        (Call::BufferReadyEvent, buffer_ready),
    ];
    let mut row = 0;
    while row < rows.len() {
        functions[rows[row].0 as usize] = Some(rows[row].1);
        row += 1;
    }
    let version = Version { struct_size: size_of::<Version>(), extension: null_mut(), major: abi::MAJOR, minor: 33 };
    Table(Api { struct_size: size_of::<Api>(), extension: null_mut(), version, functions })
}

/// The table of the simulator.
pub(super) fn api(precision: Precision) -> *const Api {
    static FULL: Table = table(client_create);
    static BF16: Table = table(client_create_bf16);
    match precision {
        Precision::Bf16 => &raw const BF16.0,
        Precision::Full => &raw const FULL.0,
    }
}
