//! The plain C surface: what `include/cantus.h` declares. Handles, numbers and text; every call blocks, and none throws.

#![allow(unsafe_code, reason = "a C interface takes pointers")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::{ptr, slice};

use cantus::engine::{Extent, Value};

use crate::error::{CantusError, Result, unwound};
use crate::options::{EngineOptions, Fallback};
use crate::{tensor, texture};

/// An engine. Made by `cantus_engine_create`; tensors keep what they need of it.
pub struct CantusEngine(cantus::Engine);

/// A tensor. Made by `cantus_tensor_create` and by operations.
pub struct CantusTensor(cantus::Tensor);

/// A kernel. Made by `cantus_kernel_create`.
pub struct CantusKernel(cantus::Kernel);

/// An image. Made by `cantus_texture_create`.
pub struct CantusTexture(cantus::Texture);

/// The status of a call. Everything but `CANTUS_STATUS_OK` leaves a sentence for a person in `cantus_error_text`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusStatus {
    /// It worked.
    Ok = 0,
    /// The WGSL text does not parse or validate.
    InvalidWgsl = 1,
    /// No such entry point, or none was chosen among several.
    EntryPoint = 2,
    /// No such override constant, or a value that it cannot take.
    Override = 3,
    /// A binding is missing, unknown or does not fit.
    Binding = 4,
    /// An argument, setting, file or state is not acceptable.
    InvalidInput = 5,
    /// No device at hand has what the kernel uses.
    Unsupported = 6,
    /// The memory limit or the device's memory is used up.
    OutOfMemory = 7,
    /// No device could be opened.
    NoDevice = 8,
    /// A device reported an error.
    Device = 9,
    /// A device is gone: make a new engine.
    DeviceLost = 10,
    /// A tensor's contents were lost by an earlier failure.
    TensorLost = 11,
    /// The time limit passed.
    Timeout = 12,
    /// The work was cancelled.
    Cancelled = 13,
    /// Anything else; a fault of the library itself is among it.
    Other = 14,
    /// A dtype is wrong.
    Dtype = 15,
    /// A shape, an axis or a number of elements is wrong.
    Shape = 16,
    /// Something is larger than what holds it.
    Limit = 17,
    /// An index, a place or a range names nothing.
    Index = 18,
}

/// The element type of a tensor.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusDtype {
    /// IEEE half precision.
    F16 = 0,
    /// IEEE single precision.
    F32 = 1,
    /// IEEE double precision.
    F64 = 2,
    /// 32-bit two's complement.
    I32 = 3,
    /// 32-bit unsigned.
    U32 = 4,
    /// 64-bit two's complement.
    I64 = 5,
    /// 64-bit unsigned.
    U64 = 6,
}

/// Choices for `cantus_engine_create`. All zero means: what the configuration says, and else the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CantusOptions {
    /// Only this backend (`vulkan`, `wgpu`, `cpu`), or null.
    pub backend: *const c_char,
    /// Only the device of this index in its backend, counted from 1; 0 for any.
    pub device_number: u32,
    /// Prefer the device that draws less power.
    pub low_power: bool,
    /// Turn a device's failure into an error instead of going on with the next device.
    pub no_fallback: bool,
    /// Where to keep compiled pipelines and measurements, or null for the user's cache folder.
    pub cache_folder: *const c_char,
    /// Where `config.toml` is, if there is one, or null for the user's configuration folder.
    pub config_folder: *const c_char,
    /// Limit in bytes on what the engine holds on each device; 0 for none.
    pub memory_limit: u64,
    /// Time limit in milliseconds on a batch or a transfer; 0 for none.
    pub timeout_ms: u64,
}

/// The texels that a sampler takes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusFilter {
    /// Texels and levels around the position, weighted.
    Linear = 0,
    /// The nearest texel of the nearest level.
    Nearest = 1,
}

/// The texel that a sampler reads beyond the edge.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusAddress {
    /// The texel at the edge.
    ClampToEdge = 0,
    /// The image again.
    Repeat = 1,
    /// The image again, every second time mirrored.
    MirrorRepeat = 2,
}

/// A sampler. All zero: linear, clamped to the edge, as a kernel's sampler is that nothing is bound to.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CantusSampler {
    /// One of `CantusFilter`.
    pub filter: u32,
    /// One of `CantusAddress`, along all axes.
    pub address: u32,
}

/// A tensor, a texture or a sampler bound by name; the other two are null.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CantusBinding {
    /// The binding's name in the kernel.
    pub name: *const c_char,
    /// The tensor.
    pub tensor: *const CantusTensor,
    /// The texture.
    pub texture: *const CantusTexture,
    /// The sampler.
    pub sampler: *const CantusSampler,
}

/// The type of the numbers behind `CantusUniform.values`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusNumber {
    /// `int64_t`: fits any number type that can hold it.
    Int = 0,
    /// `double`: fits float types.
    Float = 1,
    /// Bytes of a whole uniform in WGSL's own layout; `path` is the binding's name.
    Bytes = 2,
}

/// A uniform's value, or a member's.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CantusUniform {
    /// The binding (`n`) or the member (`params.a`).
    pub path: *const c_char,
    /// The type of the numbers behind `values`, one of `CantusNumber`.
    pub kind: u32,
    /// The numbers: one, or several for a vector, matrix (by columns) or array.
    pub values: *const c_void,
    /// How many.
    pub count: usize,
}

/// The unit of a dispatch's three numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CantusUnit {
    /// At least this number of invocations, rounded up to whole workgroups.
    Invocations = 0,
    /// The number of workgroups.
    Workgroups = 1,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Text for C: what follows a zero byte is left out.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Runs a call's body; an error or a panic becomes a status with its text.
fn guarded(body: impl FnOnce() -> Result<()>) -> CantusStatus {
    match unwound(body) {
        Ok(()) => CantusStatus::Ok,
        Err(error) => {
            ERROR.with_borrow_mut(|kept| *kept = c_text(&error.to_string()));
            status(&error)
        }
    }
}

fn status(error: &CantusError) -> CantusStatus {
    match error {
        CantusError::InvalidWgsl { .. } => CantusStatus::InvalidWgsl,
        CantusError::EntryPoint { .. } => CantusStatus::EntryPoint,
        CantusError::Override { .. } => CantusStatus::Override,
        CantusError::Binding { .. } => CantusStatus::Binding,
        CantusError::Dtype { .. } => CantusStatus::Dtype,
        CantusError::Shape { .. } => CantusStatus::Shape,
        CantusError::Limit { .. } => CantusStatus::Limit,
        CantusError::Index { .. } => CantusStatus::Index,
        CantusError::InvalidInput { .. } => CantusStatus::InvalidInput,
        CantusError::Unsupported { .. } => CantusStatus::Unsupported,
        CantusError::OutOfMemory { .. } => CantusStatus::OutOfMemory,
        CantusError::NoDevice { .. } => CantusStatus::NoDevice,
        CantusError::Device { lost: false, .. } => CantusStatus::Device,
        CantusError::Device { lost: true, .. } => CantusStatus::DeviceLost,
        CantusError::TensorLost { .. } => CantusStatus::TensorLost,
        CantusError::Timeout { .. } => CantusStatus::Timeout,
        CantusError::Cancelled { .. } => CantusStatus::Cancelled,
        CantusError::Other { .. } => CantusStatus::Other,
    }
}

fn null(what: &str) -> CantusError {
    CantusError::input(format!("{what} is null"))
}

/// The thing behind a handle.
///
/// # Safety
/// `handle` is null, or was returned by this library and not destroyed.
unsafe fn behind<'a, T>(handle: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the handle is null or a living thing of this type (this function's contract).
    unsafe { handle.as_ref() }.ok_or_else(|| null(what))
}

/// Text from C; `None` for null.
///
/// # Safety
/// `text` is null or ends in a zero byte, and is not changed while the result lives.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, so it ends in a zero byte (this function's contract).
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| CantusError::input(format!("{what} is not UTF-8")))
}

/// Values from C; null is allowed for none.
///
/// # Safety
/// `values` is null, or points to `count` initialised values that are not changed while the result lives.
unsafe fn list<'a, T>(values: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if values.is_null() {
        return Err(null(what));
    }
    if !values.is_aligned() || count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(CantusError::shape(format!("{what} is not a list of {count} values")));
    }
    // SAFETY: not null, aligned, of a possible size, with `count` initialised values (this function's contract).
    Ok(unsafe { slice::from_raw_parts(values, count) })
}

/// Makes a thing and hands it to C; the place for it is null when that fails.
///
/// # Safety
/// `to` is null, or aligned and can be written.
unsafe fn hand_over<T>(to: *mut *mut T, make: impl FnOnce() -> Result<T>) -> CantusStatus {
    guarded(|| {
        // SAFETY: `to` is null, or aligned and can be written (this function's contract).
        let to = unsafe { to.as_mut() }.ok_or_else(|| null("the pointer to the result"))?;
        *to = ptr::null_mut();
        *to = Box::into_raw(Box::new(make()?));
        Ok(())
    })
}

/// Ends a thing.
///
/// # Safety
/// `handle` is null, or was returned by this library and is used no more.
unsafe fn end<T>(handle: *mut T) {
    if !handle.is_null() {
        // A destructor that panics must not reach C.
        let _ = guarded(|| {
            // SAFETY: it came from `Box::into_raw` in `hand_over`, and the caller gives it up.
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
}

/// The library's version, as in `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn cantus_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}

/// Returns the text of this thread's last failure. Valid until the next one that fails.
#[unsafe(no_mangle)]
pub extern "C" fn cantus_error_text() -> *const c_char {
    ERROR.with_borrow(|text| text.as_ptr())
}

/// Opens the best device, or the one that was asked for. `options` may be null.
///
/// # Safety
/// `options` is null or points to options whose text ends in zero bytes; `engine` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_engine_create(
    options: *const CantusOptions,
    engine: *mut *mut CantusEngine,
) -> CantusStatus {
    let make = || {
        let mut chosen = EngineOptions::default();
        // SAFETY: `options` is null or points to options (this function's contract).
        if let Some(options) = unsafe { options.as_ref() } {
            // SAFETY: each text is null or ends in a zero byte (this function's contract).
            let owned = |from, what| Ok::<_, CantusError>(unsafe { text(from, what) }?.map(str::to_owned));
            chosen.backend = owned(options.backend, "the backend's name")?;
            chosen.cache_folder = owned(options.cache_folder, "the cache folder")?;
            chosen.config_folder = owned(options.config_folder, "the configuration folder")?;
            chosen.device = options.device_number.checked_sub(1);
            chosen.low_power = options.low_power.then_some(true);
            chosen.fallback = options.no_fallback.then_some(Fallback::Never);
            chosen.memory_limit = Some(options.memory_limit).filter(|&bytes| bytes > 0);
            chosen.timeout_ms = Some(options.timeout_ms).filter(|&limit| limit > 0);
        }
        Ok(CantusEngine(chosen.builder()?.build()?))
    };
    // SAFETY: `engine` can be written (this function's contract).
    unsafe { hand_over(engine, make) }
}

/// Releases an engine; null is allowed. Its tensors stay valid.
///
/// # Safety
/// `engine` is null or an engine that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_engine_destroy(engine: *mut CantusEngine) {
    // SAFETY: `engine` is null or an engine that is used no more (this function's contract).
    unsafe { end(engine) };
}

/// Writes which device was chosen, and why, as text that ends in a zero byte: at most `capacity` bytes of it. Returns the size of the
/// whole text with its zero byte, or 0 on failure.
///
/// # Safety
/// `engine` is an engine; `to` is null with a capacity of 0, or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_engine_explain(engine: *const CantusEngine, to: *mut c_char, capacity: usize) -> usize {
    let mut size = 0;
    guarded(|| {
        // SAFETY: `engine` is an engine (this function's contract).
        let selection = unsafe { behind(engine, "the engine") }?.0.selected();
        let device = &selection.device;
        let text = c_text(&format!("{} {}: {}; {}", device.backend, device.index, device.name, selection.why));
        let bytes = text.as_bytes_with_nul();
        if capacity > 0 {
            if to.is_null() {
                return Err(null("the pointer to the text"));
            }
            let kept = bytes.len().min(capacity) - 1;
            // SAFETY: `to` has room for `capacity` bytes, of which `kept` and a zero are at most all; both are apart.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), kept);
                *to.add(kept) = 0;
            }
        }
        size = bytes.len();
        Ok(())
    });
    size
}

/// Waits until all work recorded so far has finished.
///
/// # Safety
/// `engine` is an engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_engine_finish(engine: *const CantusEngine) -> CantusStatus {
    // SAFETY: `engine` is an engine (this function's contract).
    guarded(|| Ok(unsafe { behind(engine, "the engine") }?.0.finish()?))
}

/// A tensor of `axes` sides, row-major, from `bytes` bytes of elements in the machine's order; of zeros when `data` is null.
///
/// # Safety
/// `engine` is an engine; `shape` points to `axes` sides; `data` is null or points to `bytes` bytes; `tensor` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_create(
    engine: *const CantusEngine,
    dtype: u32,
    shape: *const usize,
    axes: usize,
    data: *const c_void,
    bytes: usize,
    tensor: *mut *mut CantusTensor,
) -> CantusStatus {
    let make = || {
        // SAFETY: `engine` is an engine, `shape` has `axes` sides (this function's contract).
        let (engine, shape) = unsafe { (&behind(engine, "the engine")?.0, list(shape, axes, "the shape")?) };
        let dtype = dtype_of(dtype)?;
        let made = if data.is_null() {
            engine.zeros_of(dtype, shape)
        } else {
            // SAFETY: `data` has `bytes` bytes (this function's contract).
            engine.tensor_from_bytes(dtype, shape, unsafe { list(data.cast::<u8>(), bytes, "the data") }?)
        };
        Ok(CantusTensor(made?))
    };
    // SAFETY: `tensor` can be written (this function's contract).
    unsafe { hand_over(tensor, make) }
}

/// Releases a tensor; null is allowed.
///
/// # Safety
/// `tensor` is null or a tensor that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_destroy(tensor: *mut CantusTensor) {
    // SAFETY: `tensor` is null or a tensor that is used no more (this function's contract).
    unsafe { end(tensor) };
}

/// Writes the sides of a tensor, at most `capacity` of them, and returns how many there are; 0 for null.
///
/// # Safety
/// `tensor` is null or a tensor; `shape` has room for `capacity` sides.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_shape(tensor: *const CantusTensor, shape: *mut usize, capacity: usize) -> usize {
    // SAFETY: `tensor` is null or a tensor (this function's contract).
    let Some(tensor) = (unsafe { tensor.as_ref() }) else { return 0 };
    let sides = tensor.0.shape();
    if !shape.is_null() {
        // SAFETY: there is room for `capacity` sides, and the tensor's own are elsewhere.
        unsafe { ptr::copy_nonoverlapping(sides.as_ptr(), shape, sides.len().min(capacity)) };
    }
    sides.len()
}

/// The element type of a tensor, as one of `CantusDtype`; -1 for null.
///
/// # Safety
/// `tensor` is null or a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_dtype(tensor: *const CantusTensor) -> i32 {
    // SAFETY: `tensor` is null or a tensor (this function's contract).
    let Some(tensor) = (unsafe { tensor.as_ref() }) else { return -1 };
    dtype_number(tensor.0.dtype())
}

/// Size of a tensor's contents in bytes; 0 for null.
///
/// # Safety
/// `tensor` is null or a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_bytes(tensor: *const CantusTensor) -> u64 {
    // SAFETY: `tensor` is null or a tensor (this function's contract).
    unsafe { tensor.as_ref() }.map_or(0, |tensor| tensor.0.byte_len())
}

/// Copies a tensor's contents to `to`, after all work recorded so far. `bytes` is the size of the whole tensor.
///
/// # Safety
/// `tensor` is a tensor; `to` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_read(
    tensor: *const CantusTensor,
    to: *mut c_void,
    bytes: usize,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `tensor` is a tensor (this function's contract).
        let tensor = &unsafe { behind(tensor, "the tensor") }?.0;
        check_size(tensor, bytes)?;
        let contents = tensor.to_bytes()?;
        if to.is_null() && !contents.is_empty() {
            return Err(null("the pointer to the contents"));
        }
        if !contents.is_empty() {
            // SAFETY: there is room for `bytes` bytes, which is the length of the contents.
            unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), to.cast(), contents.len()) };
        }
        Ok(())
    })
}

/// Overwrites a tensor from `data`, after all work recorded so far. `bytes` is the size of the whole tensor.
///
/// # Safety
/// `tensor` is a tensor; `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_tensor_write(
    tensor: *const CantusTensor,
    data: *const c_void,
    bytes: usize,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `tensor` is a tensor, `data` has `bytes` bytes (this function's contract).
        let (tensor, data) = unsafe { (&behind(tensor, "the tensor")?.0, list(data.cast::<u8>(), bytes, "the data")?) };
        check_size(tensor, bytes)?;
        Ok(tensor::write_bytes(tensor, data)?)
    })
}

/// An image of a format by WebGPU's name (`rgba8unorm`), from `bytes` bytes row after row from the top; of zeros when `data` is null.
/// `row_pitch` is the distance in bytes from one row's first byte to the next one's, as a camera's buffer has it; 0 where rows have no
/// padding. The last row's padding may be left out.
///
/// # Safety
/// `engine` is an engine; `format` ends in a zero byte; `data` is null or points to `bytes` bytes; `texture` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_create(
    engine: *const CantusEngine,
    format: *const c_char,
    width: u32,
    height: u32,
    data: *const c_void,
    bytes: usize,
    row_pitch: usize,
    texture: *mut *mut CantusTexture,
) -> CantusStatus {
    let make = || {
        // SAFETY: `engine` is an engine, `format` ends in a zero byte (this function's contract).
        let (engine, format) = unsafe { (&behind(engine, "the engine")?.0, text(format, "the format")?) };
        let descriptor = texture::described(format.ok_or_else(|| null("the format"))?, width, height)?;
        if data.is_null() {
            return Ok(CantusTexture(engine.texture(&descriptor)?));
        }
        // SAFETY: `data` has `bytes` bytes (this function's contract).
        let data = unsafe { list(data.cast::<u8>(), bytes, "the data") }?;
        let texels = texture::unpadded(&descriptor, data, (row_pitch > 0).then_some(row_pitch))?;
        Ok(CantusTexture(engine.texture_from_bytes(&descriptor, texels.as_deref().unwrap_or(data))?))
    };
    // SAFETY: `texture` can be written (this function's contract).
    unsafe { hand_over(texture, make) }
}

/// The same image with all levels of detail, for samplers.
///
/// # Safety
/// `texture` is a texture; `levels` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_with_levels(
    texture: *const CantusTexture,
    levels: *mut *mut CantusTexture,
) -> CantusStatus {
    let make = || {
        // SAFETY: `texture` is a texture (this function's contract).
        Ok(CantusTexture(unsafe { behind(texture, "the texture") }?.0.with_all_levels()?))
    };
    // SAFETY: `levels` can be written (this function's contract).
    unsafe { hand_over(levels, make) }
}

/// Releases a texture; null is allowed.
///
/// # Safety
/// `texture` is null or a texture that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_destroy(texture: *mut CantusTexture) {
    // SAFETY: `texture` is null or a texture that is used no more (this function's contract).
    unsafe { end(texture) };
}

/// Size in bytes of a texture's largest level, without padding; 0 for null.
///
/// # Safety
/// `texture` is null or a texture.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_bytes(texture: *const CantusTexture) -> u64 {
    // SAFETY: `texture` is null or a texture (this function's contract).
    unsafe { texture.as_ref() }.map_or(0, |texture| image_of(&texture.0).byte_len())
}

/// Copies the largest level of a texture to `to`, row after row without padding, after all work recorded so far. `bytes` is what
/// `cantus_texture_bytes` says.
///
/// # Safety
/// `texture` is a texture; `to` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_read(
    texture: *const CantusTexture,
    to: *mut c_void,
    bytes: usize,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `texture` is a texture (this function's contract).
        let texture = &unsafe { behind(texture, "the texture") }?.0;
        let held = image_of(texture).byte_len();
        if held != bytes as u64 {
            return Err(CantusError::shape(format!("the texture has {held} bytes, the call says {bytes}")));
        }
        if to.is_null() {
            return Err(null("the pointer to the texels"));
        }
        let texels = texture.to_bytes()?;
        // SAFETY: there is room for `bytes` bytes, and at most as many are copied.
        unsafe { ptr::copy_nonoverlapping(texels.as_ptr(), to.cast(), texels.len().min(bytes)) };
        Ok(())
    })
}

/// Overwrites the largest level of a texture, after all work recorded so far: the next picture of a camera. `data`, `bytes` and
/// `row_pitch` are as for `cantus_texture_create`.
///
/// # Safety
/// `texture` is a texture; `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_texture_write(
    texture: *const CantusTexture,
    data: *const c_void,
    bytes: usize,
    row_pitch: usize,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `texture` is a texture, `data` has `bytes` bytes (this function's contract).
        let (texture, data) =
            unsafe { (&behind(texture, "the texture")?.0, list(data.cast::<u8>(), bytes, "the data")?) };
        let texels = texture::unpadded(texture.descriptor(), data, (row_pitch > 0).then_some(row_pitch))?;
        Ok(texture.write(texels.as_deref().unwrap_or(data))?)
    })
}

/// A kernel from WGSL text. `entry_point` may be null when there is one.
///
/// # Safety
/// Both texts end in zero bytes; `kernel` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_kernel_create(
    wgsl: *const c_char,
    entry_point: *const c_char,
    kernel: *mut *mut CantusKernel,
) -> CantusStatus {
    let make = || {
        // SAFETY: `wgsl` and `entry_point` end in a zero byte (this function's contract).
        let (wgsl, entry) = unsafe { (text(wgsl, "the WGSL text")?, text(entry_point, "the entry point's name")?) };
        let parsed = cantus::Kernel::from_wgsl(wgsl.ok_or_else(|| null("the WGSL text"))?)?;
        Ok(CantusKernel(match entry {
            Some(name) => parsed.with_entry_point(name)?,
            None => parsed,
        }))
    };
    // SAFETY: `kernel` can be written (this function's contract).
    unsafe { hand_over(kernel, make) }
}

/// Sets an override constant by name; booleans are 0 and 1.
///
/// # Safety
/// `kernel` is a kernel that no other thread uses; `name` ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_kernel_set_override(
    kernel: *mut CantusKernel,
    name: *const c_char,
    value: f64,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `kernel` is a kernel that no other thread uses (this function's contract).
        let kernel = unsafe { kernel.as_mut() }.ok_or_else(|| null("the kernel"))?;
        // SAFETY: `name` ends in a zero byte (this function's contract).
        let name = unsafe { text(name, "the override's name") }?.ok_or_else(|| null("the override's name"))?;
        kernel.0 = kernel.0.with_override(name, value)?;
        Ok(())
    })
}

/// Releases a kernel; null is allowed.
///
/// # Safety
/// `kernel` is null or a kernel that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_kernel_destroy(kernel: *mut CantusKernel) {
    // SAFETY: `kernel` is null or a kernel that is used no more (this function's contract).
    unsafe { end(kernel) };
}

/// Checks a dispatch, compiles where needed, and records it. It is submitted when its results are read, when the batch is full, or by
/// `cantus_engine_finish`. `unit` is one of `CantusUnit`, and says what `x`, `y` and `z` count.
///
/// # Safety
/// `engine` and `kernel` are such; `bindings` and `uniforms` point to as many as their counts say, whose text ends in zero bytes. What is
/// bound is null or such; a uniform has `count` values of its kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_dispatch(
    engine: *const CantusEngine,
    kernel: *const CantusKernel,
    bindings: *const CantusBinding,
    binding_count: usize,
    uniforms: *const CantusUniform,
    uniform_count: usize,
    unit: u32,
    x: u64,
    y: u64,
    z: u64,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `engine` is an engine, `kernel` a kernel (this function's contract).
        let (engine, kernel) = unsafe { (behind(engine, "the engine")?, behind(kernel, "the kernel")?) };
        let mut dispatch = engine.0.dispatch(&kernel.0);
        let mut names = Vec::new();
        // SAFETY: `bindings` points to `binding_count` of them (this function's contract).
        for binding in unsafe { list(bindings, binding_count, "the bindings") }? {
            // SAFETY: the name ends in a zero byte (this function's contract).
            let name = unsafe { text(binding.name, "a binding's name") }?.ok_or_else(|| null("a binding's name"))?;
            // SAFETY: each of the three is null or a living thing of its type (this function's contract).
            dispatch = match unsafe { (binding.tensor.as_ref(), binding.texture.as_ref(), binding.sampler.as_ref()) } {
                (Some(tensor), None, None) => dispatch.bind(name, &tensor.0),
                (None, Some(texture), None) => dispatch.bind(name, &texture.0),
                (None, None, Some(sampler)) => dispatch.bind(name, sampler_of(*sampler)?),
                (None, None, None) => return Err(null("a bound tensor")),
                _ => return Err(CantusError::input(format!("several things are bound to {name}"))),
            };
            names.push(name);
        }
        for sampler in &kernel.0.reflection()?.samplers {
            if !names.contains(&sampler.name.as_str()) {
                dispatch = dispatch.bind(&sampler.name, sampler.usual());
            }
        }
        // SAFETY: `uniforms` points to `uniform_count` of them (this function's contract).
        for uniform in unsafe { list(uniforms, uniform_count, "the uniforms") }? {
            // SAFETY: the path ends in a zero byte (this function's contract).
            let path = unsafe { text(uniform.path, "a uniform's path") }?.ok_or_else(|| null("a uniform's path"))?;
            let (values, count) = (uniform.values, uniform.count);
            // SAFETY: there are `count` numbers of this kind (this function's contract).
            dispatch = unsafe {
                match uniform.kind {
                    k if k == CantusNumber::Int as u32 => {
                        dispatch.set(path, numbers(list::<i64>(values.cast(), count, path)?))
                    }
                    k if k == CantusNumber::Float as u32 => {
                        dispatch.set(path, numbers(list::<f64>(values.cast(), count, path)?))
                    }
                    k if k == CantusNumber::Bytes as u32 => dispatch.set_bytes(path, list(values.cast(), count, path)?),
                    other => {
                        return Err(CantusError::input(format!("the uniform {path} has the unknown kind {other}")));
                    }
                }
            };
        }
        let extent = Extent::from([x, y, z]);
        let dispatch = match unit {
            u if u == CantusUnit::Invocations as u32 => dispatch.invocations(extent),
            u if u == CantusUnit::Workgroups as u32 => dispatch.workgroups(extent),
            other => return Err(CantusError::input(format!("the dispatch has the unknown unit {other}"))),
        };
        Ok(dispatch.run()?)
    })
}

/// The damped spiral wave: an f32 tensor of `height` rows and `width` columns.
///
/// # Safety
/// `engine` is an engine; `field` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_field(
    engine: *const CantusEngine,
    width: usize,
    height: usize,
    hertz: f64,
    time: f64,
    field: *mut *mut CantusTensor,
) -> CantusStatus {
    let make = || {
        // SAFETY: `engine` is an engine (this function's contract).
        let engine = &unsafe { behind(engine, "the engine") }?.0;
        let frequency = cantus::ops::field::Frequency::Hertz(hertz);
        let params = cantus::ops::field::FieldParams::new(width, height).frequency(frequency).time(time);
        Ok(CantusTensor(cantus::ops::field::field(engine, &params)?))
    };
    // SAFETY: `field` can be written (this function's contract).
    unsafe { hand_over(field, make) }
}

/// The golden-ratio spiral: an f32 tensor of `height` rows and `width` columns.
///
/// # Safety
/// `engine` is an engine; `pattern` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_phi_pattern(
    engine: *const CantusEngine,
    width: usize,
    height: usize,
    pattern: *mut *mut CantusTensor,
) -> CantusStatus {
    let make = || {
        // SAFETY: `engine` is an engine (this function's contract).
        let engine = &unsafe { behind(engine, "the engine") }?.0;
        Ok(CantusTensor(cantus::ops::field::phi_pattern(engine, width, height)?))
    };
    // SAFETY: `pattern` can be written (this function's contract).
    unsafe { hand_over(pattern, make) }
}

/// How strongly the values of a field agree with their upper and left neighbours, from 0 to 1.
///
/// # Safety
/// `engine` is an engine, `field` a tensor; `coherence` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cantus_coherence(
    engine: *const CantusEngine,
    field: *const CantusTensor,
    coherence: *mut f32,
) -> CantusStatus {
    guarded(|| {
        // SAFETY: `engine` is an engine, `field` a tensor (this function's contract).
        let (engine, field) = unsafe { (&behind(engine, "the engine")?.0, &behind(field, "the field")?.0) };
        // SAFETY: `coherence` can be written (this function's contract).
        let to = unsafe { coherence.as_mut() }.ok_or_else(|| null("the pointer to the result"))?;
        *to = cantus::ops::coherence(engine, field)?;
        Ok(())
    })
}

fn check_size(tensor: &cantus::Tensor, bytes: usize) -> Result<()> {
    if tensor.byte_len() == bytes as u64 {
        return Ok(());
    }
    let text = format!("the tensor {} has {} bytes, the call says {bytes}", tensor.label(), tensor.byte_len());
    Err(CantusError::input(text))
}

/// The largest level of a texture, by itself.
fn image_of(texture: &cantus::Texture) -> cantus::TextureDescriptor {
    texture.descriptor().with_levels(1)
}

fn sampler_of(CantusSampler { filter, address }: CantusSampler) -> Result<cantus::Sampler> {
    let filtered = match filter {
        f if f == CantusFilter::Linear as u32 => cantus::Sampler::linear(),
        f if f == CantusFilter::Nearest as u32 => cantus::Sampler::nearest(),
        other => return Err(CantusError::input(format!("a sampler has the unknown filter {other}"))),
    };
    Ok(filtered.address(match address {
        a if a == CantusAddress::ClampToEdge as u32 => cantus::AddressMode::ClampToEdge,
        a if a == CantusAddress::Repeat as u32 => cantus::AddressMode::Repeat,
        a if a == CantusAddress::MirrorRepeat as u32 => cantus::AddressMode::MirrorRepeat,
        other => return Err(CantusError::input(format!("a sampler has the unknown address mode {other}"))),
    }))
}

/// One number is a scalar, several are a vector, matrix or array.
fn numbers<T: Copy>(values: &[T]) -> Value
where
    Value: From<T> + for<'a> From<&'a [T]>,
{
    match values {
        [one] => Value::from(*one),
        many => Value::from(many),
    }
}

const DTYPES: [(CantusDtype, cantus::DType); 7] = [
    (CantusDtype::F16, cantus::DType::F16),
    (CantusDtype::F32, cantus::DType::F32),
    (CantusDtype::F64, cantus::DType::F64),
    (CantusDtype::I32, cantus::DType::I32),
    (CantusDtype::U32, cantus::DType::U32),
    (CantusDtype::I64, cantus::DType::I64),
    (CantusDtype::U64, cantus::DType::U64),
];

fn dtype_of(number: u32) -> Result<cantus::DType> {
    let known = DTYPES.iter().find(|(known, _)| *known as u32 == number);
    known.map(|(_, dtype)| *dtype).ok_or_else(|| CantusError::input(format!("there is no dtype {number}")))
}

fn dtype_number(dtype: cantus::DType) -> i32 {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or(-1, |(number, _)| *number as i32)
}
