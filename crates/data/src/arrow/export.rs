//! Tensors as Arrow's arrays. An exported array keeps what it points to until its consumer releases it, once. On the CPU it is the tensor's own memory, so
//! the app must not record writes to the tensor meanwhile; elsewhere it is a copy.

use std::ffi::{CString, c_void};
use std::ptr;

use cantus::engine::HostView;
use cantus::{DType, Error, Result, Tensor};

use super::{ArrowArray, ArrowSchema, FORMATS, MOST_NESTED};

/// Memory of an exported array.
enum Memory {
    Nothing,
    /// The tensor's own.
    Tensor {
        _kept: HostView,
    },
    Copy {
        _kept: Vec<u128>,
    },
}

/// The memory of an exported array, and its lists.
struct Owned {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    _memory: Memory,
}

/// The text of an exported type, and its lists.
struct Named {
    format: CString,
    children: Vec<*mut ArrowSchema>,
}

/// Returns a tensor as an Arrow array and its type: the tensor's own memory on the CPU, which the array keeps; a copy from other devices, and of
/// booleans. One axis is a column of numbers, more axes are fixed-size lists, no axis is one row.
///
/// The consumer takes an array to be constant: record no work that writes to the tensor while the array lives.
///
/// # Errors
/// [`Error::Dtype`] for bf16 and complex numbers, which Arrow lacks; else as [`Tensor::to_bytes_async`].
pub async fn export_async(tensor: &Tensor) -> Result<(ArrowArray, ArrowSchema)> {
    let format = format(tensor)?;
    let held = match tensor.dtype() {
        DType::Bool => None,
        _ => tensor.host_view_async().await?,
    };
    let (address, memory) = match held {
        Some(view) => (view.as_ptr().cast(), Memory::Tensor { _kept: view }),
        None => copied(tensor.dtype(), &tensor.to_bytes_async().await?),
    };
    Ok(assembled(tensor.shape(), format, address, memory))
}

/// [`export_async`], blocking.
///
/// ```
/// let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let (array, schema) = cantus_data::arrow::export(&engine.tensor(&[1.0_f32, 2.0])?)?;
/// // SAFETY: they are what `export` made.
/// let back = unsafe { cantus_data::arrow::array(array, &schema)? }.into_tensor(&engine)?;
/// assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// As the asynchronous form.
#[cfg(not(target_arch = "wasm32"))]
pub fn export(tensor: &Tensor) -> Result<(ArrowArray, ArrowSchema)> {
    let format = format(tensor)?;
    let held = match tensor.dtype() {
        DType::Bool => None,
        _ => tensor.host_view()?,
    };
    let (address, memory) = match held {
        Some(view) => (view.as_ptr().cast(), Memory::Tensor { _kept: view }),
        None => copied(tensor.dtype(), &tensor.to_bytes()?),
    };
    Ok(assembled(tensor.shape(), format, address, memory))
}

fn format(tensor: &Tensor) -> Result<&'static str> {
    let dtype = tensor.dtype();
    let refused = |reason: String| Error::dtype(format!("the tensor {}", tensor.label()), reason);
    if tensor.shape().len() > MOST_NESTED {
        return Err(refused(format!("it has more than {MOST_NESTED} axes, which become nested lists in Arrow")));
    }
    let known = FORMATS.iter().find(|(_, known)| *known == dtype).map(|(format, _)| *format);
    known.ok_or_else(|| {
        let remedy = match dtype {
            DType::Complex64 | DType::Complex128 => "take its real and its imaginary part",
            _ => "cast it to f32",
        };
        refused(format!("Arrow has no {dtype} ({remedy})"))
    })
}

/// A copy at an address for any element; of booleans as bits.
fn copied(dtype: DType, bytes: &[u8]) -> (*const c_void, Memory) {
    let packed;
    let bytes = if dtype == DType::Bool {
        let bits = |eight: &[u8]| eight.iter().rev().fold(0, |bits, &byte| (bits << 1) | u8::from(byte != 0));
        packed = bytes.chunks(8).map(bits).collect::<Vec<u8>>();
        &packed
    } else {
        bytes
    };
    let mut room = vec![0_u128; bytes.len().div_ceil(size_of::<u128>()).max(1)];
    if let Some(start) = bytemuck::cast_slice_mut(&mut room).get_mut(..bytes.len()) {
        start.copy_from_slice(bytes);
    }
    (room.as_ptr().cast(), Memory::Copy { _kept: room })
}

fn assembled(shape: &[usize], format: &str, address: *const c_void, memory: Memory) -> (ArrowArray, ArrowSchema) {
    let elements: usize = shape.iter().product();
    let mut array = owned(elements, vec![ptr::null(), address], Vec::new(), memory);
    let mut schema = named(format, Vec::new());
    for axis in (1..shape.len()).rev() {
        let rows = shape.iter().take(axis).product();
        let side = shape.get(axis).copied().unwrap_or(1);
        // Arrow's own name for the elements of lists.
        schema.name = c"item".as_ptr();
        array = owned(rows, vec![ptr::null()], vec![array], Memory::Nothing);
        schema = named(&format!("+w:{side}"), vec![schema]);
    }
    (array, schema)
}

/// A structure of columns without rows.
pub(super) fn nothing(columns: usize) -> ArrowArray {
    let column = || owned(0, vec![ptr::null(); 2], Vec::new(), Memory::Nothing);
    match columns {
        0 => column(),
        _ => owned(0, vec![ptr::null()], (0..columns).map(|_| column()).collect(), Memory::Nothing),
    }
}

fn owned(length: usize, buffers: Vec<*const c_void>, children: Vec<ArrowArray>, memory: Memory) -> ArrowArray {
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut owned = Box::new(Owned { buffers, children, _memory: memory });
    let mut array = ArrowArray::empty();
    array.length = length as i64;
    array.n_buffers = owned.buffers.len() as i64;
    array.n_children = owned.children.len() as i64;
    array.buffers = owned.buffers.as_mut_ptr();
    array.children = owned.children.as_mut_ptr();
    array.release = Some(release_array);
    array.private_data = Box::into_raw(owned).cast();
    array
}

fn named(format: &str, children: Vec<ArrowSchema>) -> ArrowSchema {
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let format = CString::new(format).unwrap_or_default();
    let mut named = Box::new(Named { format, children });
    let mut schema = ArrowSchema::empty();
    schema.format = named.format.as_ptr();
    schema.name = c"".as_ptr();
    schema.n_children = named.children.len() as i64;
    schema.children = named.children.as_mut_ptr();
    schema.release = Some(release_schema);
    schema.private_data = Box::into_raw(named).cast();
    schema
}

/// Called by whoever has the array, once: it clears itself, as the interface asks.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: `owned` made both, and a released array is not released again. A child that was moved out is marked as released.
    unsafe {
        let owned = Box::from_raw((*array).private_data.cast::<Owned>());
        for &child in &owned.children {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

/// As [`release_array`].
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: `named` made both, and a released schema is not released again. A child that was moved out is marked as released.
    unsafe {
        let named = Box::from_raw((*schema).private_data.cast::<Named>());
        for &child in &named.children {
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}
