//! A plugin of our own, behind the same table as any other: it reads the StableHLO that it is given and computes it on the processor. For work
//! without the hardware, and for tests.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use super::abi::{
    self, Api, Args, BufferFromHost, COUNT, Call, ClientCreate, Compile, Execute, Fault, Function, List, MemoryStats,
    Number, One, Pair, Text, ToHost, Version,
};
use crate::graph::{Graph, Precision};
use crate::tensor::DType;

/// A client with its only device, which is its own description too.
struct Client {
    precision: Precision,
    devices: [*mut c_void; 1],
}

struct Device;

struct Executable {
    graph: Graph,
    precision: Precision,
}

struct Value {
    dtype: DType,
    bytes: Vec<u8>,
}

/// All work is done in the call: events have passed when they are made.
struct Event;

static DEVICE: Device = Device;

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
    // SAFETY: of the caller.
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
        // SAFETY: as above.
        let fault = unsafe { object::<Fault>(args.object) }?;
        (args.text, args.length) = (fault.message.as_ptr().cast(), fault.message.len());
        Ok(())
    }
    fn error_code(args: Number) {
        // SAFETY: as above.
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
        args.client = boxed(client(Precision::Full));
        Ok(())
    }
    fn client_create_bf16(args: ClientCreate) {
        args.client = boxed(client(Precision::Bf16));
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
        (args.list, args.count) = (client.devices.as_ptr(), 1);
        Ok(())
    }
    fn description(args: Pair) {
        args.other = args.object;
        Ok(())
    }
    fn description_id(args: Number) {
        args.number = 0;
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
        let graph = Graph::from_stablehlo(text).map_err(|error| fault(abi::UNIMPLEMENTED, error.to_string()))?;
        args.executable = boxed(Executable { graph, precision: client.precision });
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
        (args.buffer, args.done) = (boxed(Value { dtype, bytes }), boxed(Event));
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
            let values = list.iter().map(|value| object::<Value>(*value)).collect::<Result<Vec<_>, _>>()?;
            (executable, values)
        };
        let graph = &executable.graph;
        for (value, input) in values.iter().zip(graph.inputs()) {
            if value.dtype != graph.dtype(*input) {
                return Err(fault(abi::INVALID_ARGUMENT, format!("an argument is {}", value.dtype)));
            }
        }
        let inputs: Vec<Vec<u8>> = values.iter().map(|value| value.bytes.clone()).collect();
        let results = graph.simulate(&inputs, executable.precision);
        let results = results.map_err(|error| fault(abi::INVALID_ARGUMENT, error.to_string()))?;
        for (place, (bytes, output)) in results.into_iter().zip(graph.outputs()).enumerate() {
            let value = boxed(Value { dtype: graph.dtype(*output), bytes });
            // SAFETY: the caller gives a place for each result.
            unsafe { *(*args.outputs).add(place) = value };
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
    fn buffer_to_host(args: ToHost) {
        // SAFETY: values are boxed.
        let value = unsafe { object::<Value>(args.buffer) }?;
        if args.target.is_null() {
            args.bytes = value.bytes.len();
            return Ok(());
        }
        if args.bytes < value.bytes.len() {
            return Err(fault(abi::INVALID_ARGUMENT, format!("{} of {} bytes", args.bytes, value.bytes.len())));
        }
        // SAFETY: the caller gives room for as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(value.bytes.as_ptr(), args.target.cast(), value.bytes.len()) };
        args.event = boxed(Event);
        Ok(())
    }
    fn buffer_ready(args: Pair) {
        args.other = boxed(Event);
        Ok(())
    }
}

fn client(precision: Precision) -> Client {
    Client { precision, devices: [(&raw const DEVICE).cast_mut().cast()] }
}

struct Table(Api);

// SAFETY: the table is constant.
unsafe impl Sync for Table {}

const fn table(create: Function) -> Table {
    let mut functions: [Option<Function>; COUNT] = [None; COUNT];
    let rows: [(Call, Function); 24] = [
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
