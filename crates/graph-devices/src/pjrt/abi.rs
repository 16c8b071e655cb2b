//! PJRT's C ABI, by the published header: a table of functions that take one structure each, and the structures that are used here.
//!
//! A structure begins with its size and an extension. Newer versions of the interface only add members at the end, and a plugin refuses a
//! structure that is smaller than its own: each is given with room behind it, which is zero.

use std::ffi::{c_char, c_void};

use crate::tensor::DType;
use crate::values::FaultKind;

/// The version whose layout this is; the minor one only grows.
pub(super) const MAJOR: i32 = 0;

/// Devices of a client, at most.
pub(super) const MOST_DEVICES: usize = 1024;

pub(super) type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Functions of the oldest table that serves: up to the event behind a buffer.
pub(super) const COUNT: usize = 73;

#[repr(C)]
pub(super) struct Version {
    pub(super) struct_size: usize,
    pub(super) extension: *mut c_void,
    pub(super) major: i32,
    pub(super) minor: i32,
}

/// The table that a plugin gives.
#[repr(C)]
pub(super) struct Api {
    pub(super) struct_size: usize,
    pub(super) extension: *mut c_void,
    pub(super) version: Version,
    pub(super) functions: [Option<Function>; COUNT],
}

/// A function's place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    ErrorDestroy = 0,
    ErrorMessage = 1,
    ErrorGetCode = 2,
    PluginInitialize = 3,
    EventDestroy = 5,
    EventIsReady = 6,
    EventError = 7,
    EventAwait = 8,
    ClientCreate = 10,
    ClientDestroy = 11,
    ClientPlatformName = 12,
    ClientPlatformVersion = 14,
    ClientAddressableDevices = 16,
    ClientCompile = 20,
    BufferFromHost = 22,
    DescriptionId = 23,
    DescriptionKind = 26,
    DeviceDescription = 29,
    DeviceMemoryStats = 34,
    ExecutableDestroy = 50,
    Execute = 55,
    BufferDestroy = 58,
    BufferCopyToDevice = 69,
    BufferToHost = 70,
    BufferReadyEvent = 72,
}

/// The functions that every device needs from a plugin.
pub(super) const NEEDED: [Call; 21] = [
    Call::ErrorDestroy,
    Call::ErrorMessage,
    Call::ErrorGetCode,
    Call::EventDestroy,
    Call::EventIsReady,
    Call::EventError,
    Call::EventAwait,
    Call::ClientCreate,
    Call::ClientDestroy,
    Call::ClientPlatformName,
    Call::ClientPlatformVersion,
    Call::ClientAddressableDevices,
    Call::ClientCompile,
    Call::BufferFromHost,
    Call::DescriptionId,
    Call::DescriptionKind,
    Call::DeviceDescription,
    Call::ExecutableDestroy,
    Call::Execute,
    Call::BufferDestroy,
    Call::BufferToHost,
];

/// The argument of a function.
#[repr(C)]
pub(super) struct Args<T> {
    pub(super) struct_size: usize,
    pub(super) extension: *mut c_void,
    pub(super) body: T,
    room: [u64; 24],
}

impl<T> Args<T> {
    pub(super) fn new(body: T) -> Self {
        Self { struct_size: size_of::<Self>(), extension: std::ptr::null_mut(), body, room: [0; 24] }
    }
}

/// One pointer: what is destroyed, asked or made.
#[repr(C)]
pub(super) struct One {
    pub(super) object: *mut c_void,
}

/// A text of an object's.
#[repr(C)]
pub(super) struct Text {
    pub(super) object: *mut c_void,
    pub(super) text: *const c_char,
    pub(super) length: usize,
}

/// A number of an object's: an error's code, a description's id, whether an event is ready (in the first byte).
#[repr(C)]
pub(super) struct Number {
    pub(super) object: *mut c_void,
    pub(super) number: i32,
}

/// An object of an object's.
#[repr(C)]
pub(super) struct Pair {
    pub(super) object: *mut c_void,
    pub(super) other: *mut c_void,
}

/// A copy of a buffer on another device.
#[repr(C)]
pub(super) struct CopyToDevice {
    pub(super) buffer: *mut c_void,
    pub(super) device: *mut c_void,
    pub(super) copy: *mut c_void,
}

/// Objects of an object's.
#[repr(C)]
pub(super) struct List {
    pub(super) object: *mut c_void,
    pub(super) list: *const *mut c_void,
    pub(super) count: usize,
}

/// A setting: a bool, an integer or a text. An element of an array, so without room behind it.
#[repr(C)]
pub(super) struct NamedValue {
    pub(super) struct_size: usize,
    pub(super) extension: *mut c_void,
    pub(super) name: *const c_char,
    pub(super) name_length: usize,
    pub(super) kind: i32,
    pub(super) value: u64,
    pub(super) value_size: usize,
}

/// The kinds of settings that are integers and bools.
pub(super) const INTEGER: i32 = 1;
pub(super) const BOOL: i32 = 4;

/// The simulator's setting: how many devices it has.
pub(super) const DEVICES: &std::ffi::CStr = c"devices";

#[repr(C)]
pub(super) struct ClientCreate {
    pub(super) options: *const NamedValue,
    pub(super) option_count: usize,
    pub(super) callbacks: [*mut c_void; 4],
    pub(super) client: *mut c_void,
}

#[repr(C)]
pub(super) struct ProgramText {
    pub(super) code: *const c_char,
    pub(super) code_length: usize,
    pub(super) format: *const c_char,
    pub(super) format_length: usize,
}

#[repr(C)]
pub(super) struct Compile {
    pub(super) client: *mut c_void,
    pub(super) program: *const Args<ProgramText>,
    pub(super) options: *const c_char,
    pub(super) options_length: usize,
    pub(super) executable: *mut c_void,
}

#[repr(C)]
pub(super) struct BufferFromHost {
    pub(super) client: *mut c_void,
    pub(super) data: *const c_void,
    pub(super) kind: i32,
    pub(super) sides: *const i64,
    pub(super) side_count: usize,
    pub(super) strides: *const i64,
    pub(super) stride_count: usize,
    /// 0: the data is taken during the call.
    pub(super) semantics: i32,
    pub(super) device: *mut c_void,
    pub(super) memory: *mut c_void,
    pub(super) layout: *mut c_void,
    pub(super) done: *mut c_void,
    pub(super) buffer: *mut c_void,
}

#[repr(C)]
pub(super) struct ExecuteOptions {
    pub(super) callbacks: [*mut c_void; 2],
    pub(super) callback_counts: [usize; 2],
    pub(super) launch: i32,
    /// Inputs that stay as they are although the program would take their memory.
    pub(super) kept: *const i64,
    pub(super) kept_count: usize,
}

#[repr(C)]
pub(super) struct Execute {
    pub(super) executable: *mut c_void,
    pub(super) options: *const Args<ExecuteOptions>,
    /// A list of arguments for each device.
    pub(super) arguments: *const *const *mut c_void,
    pub(super) device_count: usize,
    pub(super) argument_count: usize,
    pub(super) outputs: *const *mut *mut c_void,
    pub(super) events: *mut *mut c_void,
    pub(super) device: *mut c_void,
}

/// The order of axes in memory, and tiles.
#[repr(C)]
pub(super) struct Layout {
    pub(super) struct_size: usize,
    pub(super) extension: *mut c_void,
    pub(super) tiled_size: usize,
    pub(super) tiled_extension: *mut c_void,
    pub(super) minor_to_major: *const i64,
    pub(super) minor_to_major_count: usize,
    pub(super) tiles: [usize; 3],
    /// 0: tiled.
    pub(super) kind: i32,
}

#[repr(C)]
pub(super) struct ToHost {
    pub(super) buffer: *mut c_void,
    pub(super) layout: *const Layout,
    pub(super) target: *mut c_void,
    pub(super) bytes: usize,
    pub(super) event: *mut c_void,
}

#[repr(C)]
#[derive(Default)]
pub(super) struct MemoryStats {
    pub(super) device: usize,
    pub(super) in_use: i64,
    pub(super) peak: [i64; 2],
    pub(super) allocations: [i64; 2],
    pub(super) largest: [i64; 2],
    pub(super) limit: i64,
    pub(super) limit_is_set: u8,
    pub(super) rest: [i64; 16],
}

/// A plugin's error.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) code: i32,
    pub(super) message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl crate::values::Fault for Fault {
    fn kind(&self) -> FaultKind {
        match self.code {
            UNIMPLEMENTED | INVALID_ARGUMENT => FaultKind::Missing,
            RESOURCE_EXHAUSTED => FaultKind::Memory,
            _ => FaultKind::Failed,
        }
    }
}

/// Codes of errors, as Abseil has them.
pub(super) const INVALID_ARGUMENT: i32 = 3;
pub(super) const RESOURCE_EXHAUSTED: i32 = 8;
pub(super) const UNIMPLEMENTED: i32 = 12;
pub(super) const INTERNAL: i32 = 13;

/// The number of a dtype.
pub(super) fn kind(dtype: DType) -> i32 {
    match dtype {
        DType::Bool => 1,
        DType::I8 => 2,
        DType::I16 => 3,
        DType::I32 => 4,
        DType::I64 => 5,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::U64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::BF16 => 13,
        DType::Complex64 => 14,
        DType::Complex128 => 15,
    }
}

/// `CompileOptionsProto` for one replica on a device: protobuf's wire format by hand.
pub(super) fn compile_options(device: i64) -> Vec<u8> {
    fn varint(mut number: u64, into: &mut Vec<u8>) {
        while number >= 0x80 {
            into.push(number as u8 | 0x80);
            number >>= 7;
        }
        into.push(number as u8);
    }
    fn number(field: u64, value: i64, into: &mut Vec<u8>) {
        varint(field << 3, into);
        varint(value.cast_unsigned(), into);
    }
    fn message(field: u64, inner: &[u8], into: &mut Vec<u8>) {
        varint(field << 3 | 2, into);
        varint(inner.len() as u64, into);
        into.extend(inner);
    }
    let (mut computation, mut assignment, mut build, mut options) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut ids = Vec::new();
    varint(device.cast_unsigned(), &mut ids);
    // Packed.
    message(1, &ids, &mut computation);
    number(1, 1, &mut assignment);
    number(2, 1, &mut assignment);
    message(3, &computation, &mut assignment);
    number(1, -1, &mut build);
    number(4, 1, &mut build);
    number(5, 1, &mut build);
    message(9, &assignment, &mut build);
    message(3, &build, &mut options);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the header's structures on 64-bit machines, without the room.
    #[test]
    fn structures_have_the_headers_sizes() {
        let body = |size: usize| size - 16 - 24 * 8;
        assert_eq!(std::mem::offset_of!(Api, functions), 40);
        assert_eq!(size_of::<Version>(), 24);
        assert_eq!(size_of::<NamedValue>(), 56);
        assert_eq!(body(size_of::<Args<ClientCreate>>()), 56);
        assert_eq!(body(size_of::<Args<Compile>>()), 40);
        assert_eq!(body(size_of::<Args<BufferFromHost>>()), 104);
        assert_eq!(body(size_of::<Args<Execute>>()), 64);
        assert_eq!(body(size_of::<Args<ExecuteOptions>>()), 56);
        assert_eq!(body(size_of::<Args<CopyToDevice>>()), 24);
        assert_eq!(body(size_of::<Args<ToHost>>()), 40);
        assert_eq!(size_of::<Layout>(), 80);
        assert_eq!(std::mem::offset_of!(MemoryStats, limit), 64);
    }

    #[test]
    fn options_are_protobuf() {
        let minus_one = [0xff; 9].iter().copied().chain([1]);
        let build: Vec<u8> = [0x08].into_iter().chain(minus_one).chain([0x20, 1, 0x28, 1, 0x4a, 9]).collect();
        let mut wanted = vec![0x1a, 26];
        wanted.extend(build);
        wanted.extend([0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 5]);
        assert_eq!(compile_options(5), wanted);
    }
}
