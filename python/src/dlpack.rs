//! DLPack: arrays of other libraries in place, and ours in theirs. The structures are those of DLPack 1.1; `dlpack.h` says what each field is.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use cantus::DType;
use cantus::engine::{DriverView, HostView};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

const PLAIN: &CStr = c"dltensor";
const USED_PLAIN: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// `kDLCPU`
const CPU: i32 = 1;
/// `kDLCUDAHost`, `kDLROCMHost`: memory of the host's too.
const PINNED: [i32; 2] = [3, 11];
/// `kDLCUDA`, `kDLROCM`, by the backend's name.
const DRIVERS: [(&str, i32); 2] = [("cuda", 2), ("hip", 10)];
/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// Memory to export, kept as long as this is.
pub(crate) enum View {
    Host(HostView),
    Driver(DriverView),
    /// Of an array without elements.
    Nothing,
}

/// DLPack's type of a backend's devices, where they share memory with other libraries.
pub(crate) fn driver_type(backend: &str) -> Option<i32> {
    DRIVERS.iter().find(|(name, _)| *name == backend).map(|&(_, code)| code)
}

/// The memory that an exported structure points to.
struct Exported {
    view: View,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// Type code and bits.
fn code(dtype: DType) -> (u8, u8) {
    let bits = 8 * dtype.bytes() as u8;
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => (0, bits),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (1, bits),
        DType::BF16 => (4, bits),
        DType::Complex64 | DType::Complex128 => (5, bits),
        DType::Bool => (6, bits),
        _ => (2, bits),
    }
}

fn dtype_of(code_and_bits: (u8, u8)) -> Option<DType> {
    DType::ALL.iter().copied().find(|&dtype| code(dtype) == code_and_bits)
}

fn tensor(exported: &mut Exported, dtype: DType, device_type: i32) -> DlTensor {
    let (code, bits) = code(dtype);
    let (data, device_id) = match &exported.view {
        View::Host(view) => (view.as_ptr().cast_mut().cast(), 0),
        View::Driver(view) => (view.address() as *mut c_void, view.device()),
        View::Nothing => (std::ptr::null_mut(), 0),
    };
    DlTensor {
        data,
        device_type,
        device_id,
        ndim: exported.shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: exported.shape.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

unsafe extern "C" fn free(of: *mut Managed) {
    // SAFETY: made by `exported` from these boxes, and freed once, by whoever has the capsule's content.
    unsafe {
        let managed = Box::from_raw(of);
        drop(Box::from_raw(managed.context.cast::<Exported>()));
    }
}

unsafe extern "C" fn free_versioned(of: *mut ManagedVersioned) {
    // SAFETY: made by `exported` from these boxes, and freed once, by whoever has the capsule's content.
    unsafe {
        let managed = Box::from_raw(of);
        drop(Box::from_raw(managed.context.cast::<Exported>()));
    }
}

/// A capsule that nobody took: its content is freed. Whoever takes it renames it.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python with the capsule, whose name says what it holds.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            free(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            free_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule over an array's memory, read-only where the protocol can say so.
pub(crate) fn exported<'py>(
    py: Python<'py>,
    shape: &[usize],
    dtype: DType,
    view: View,
    device_type: Option<i32>,
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
    let mut strides = vec![1_i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut context = Box::new(Exported { view, shape, strides });
    let tensor = tensor(&mut context, dtype, device_type.unwrap_or(CPU));
    let context = Box::into_raw(context).cast::<c_void>();
    let (content, name): (*mut c_void, _) = if versioned {
        let managed =
            ManagedVersioned { major: 1, minor: 0, context, deleter: Some(free_versioned), flags: READ_ONLY, tensor };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
    } else {
        (Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(free) })).cast(), PLAIN)
    };
    // SAFETY: the name is static, and `forget` frees the content.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(content, name.as_ptr(), Some(forget))) }
}

/// Another library's array, until it is dropped.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Foreign {
    content: NonNull<c_void>,
    versioned: bool,
}

// SAFETY: the structure is only dropped, and its deleter may be called from any thread that holds the interpreter's lock.
unsafe impl Send for Foreign {}
// SAFETY: `&Foreign` gives out nothing.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the capsule's content was taken over, so nobody else frees it.
        unsafe {
            if self.versioned {
                let managed = self.content.cast::<ManagedVersioned>();
                if let Some(deleter) = managed.as_ref().deleter {
                    deleter(managed.as_ptr());
                }
            } else {
                let managed = self.content.cast::<Managed>();
                if let Some(deleter) = managed.as_ref().deleter {
                    deleter(managed.as_ptr());
                }
            }
        }
    }
}

/// dtype, shape, strides in elements (None: contiguous), address, DLPack's device where it is not the host, and what keeps the memory.
pub(crate) type Imported = (&'static str, Vec<i64>, Option<Vec<i64>>, usize, Option<(i32, i32)>, Foreign);

/// Takes a capsule's content over.
pub(crate) fn imported(capsule: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let pointer = capsule.as_ptr();
    // SAFETY: the checks of the name say what the capsule holds.
    let (content, versioned) = unsafe {
        if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) == 1 {
            (ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()), true)
        } else if ffi::PyCapsule_IsValid(pointer, PLAIN.as_ptr()) == 1 {
            (ffi::PyCapsule_GetPointer(pointer, PLAIN.as_ptr()), false)
        } else {
            return Err(PyTypeError::new_err("this is not a DLPack capsule, or it was used before"));
        }
    };
    let content = NonNull::new(content).ok_or_else(|| PyBufferError::new_err("the capsule is empty"))?;
    // SAFETY: the content is what the name says, and lives until its deleter is called.
    let tensor = unsafe {
        if versioned {
            let managed = content.cast::<ManagedVersioned>();
            if managed.as_ref().major != 1 {
                return Err(PyBufferError::new_err(format!("DLPack {} is not supported", managed.as_ref().major)));
            }
            &(*managed.as_ptr()).tensor
        } else {
            &(*content.cast::<Managed>().as_ptr()).tensor
        }
    };
    let on_host = tensor.device_type == CPU || PINNED.contains(&tensor.device_type);
    if !on_host && !DRIVERS.iter().any(|&(_, code)| code == tensor.device_type) {
        return Err(PyBufferError::new_err(
            "the array is not in memory of the host, CUDA or ROCm (move it to the CPU first)",
        ));
    }
    let device = (!on_host).then_some((tensor.device_type, tensor.device_id));
    let dtype = dtype_of((tensor.code, tensor.bits)).filter(|_| tensor.lanes == 1);
    let dtype = dtype.ok_or_else(|| {
        PyBufferError::new_err(format!("DLPack's type {} of {} bits has no dtype here", tensor.code, tensor.bits))
    })?;
    let count = usize::try_from(tensor.ndim).ok().filter(|&count| count == 0 || !tensor.shape.is_null());
    let count = count.ok_or_else(|| PyBufferError::new_err("the array has no shape"))?;
    // SAFETY: DLPack's shape has `ndim` numbers, and so have its strides where they are there.
    let list = |from: *const i64| unsafe {
        if count == 0 || from.is_null() { Vec::new() } else { std::slice::from_raw_parts(from, count).to_vec() }
    };
    let shape = list(tensor.shape);
    let strides = (!tensor.strides.is_null()).then(|| list(tensor.strides));
    if tensor.data.is_null() && !shape.contains(&0) {
        return Err(PyBufferError::new_err("the array has no memory"));
    }
    let offset = usize::try_from(tensor.byte_offset).ok();
    let address = offset.and_then(|offset| (tensor.data as usize).checked_add(offset));
    let address = address.ok_or_else(|| PyBufferError::new_err("the array's offset exceeds its memory"))?;
    let used = if versioned { USED_VERSIONED } else { USED_PLAIN };
    // SAFETY: the capsule is valid; the name is static.
    if unsafe { ffi::PyCapsule_SetName(pointer, used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok((dtype.name(), shape, strides, address, device, Foreign { content, versioned }))
}
