//! Tensors of candle on the CPU, in Cantus and back.
//!
//! ```sh
//! cargo run -p cantus-candle
//! ```
//!
//! Into Cantus nothing is copied where candle's elements begin at a multiple of 16 bytes and take a multiple of 4: the tensor lies in candle's memory and
//! keeps it. Back there is one copy, because candle's storage is a `Vec`. On another device than the CPU, Cantus copies to it and from it.

use std::error::Error;
use std::ptr::NonNull;

use candle_core::{CpuStorage, Device, Storage};
use cantus::backend::HostMemory;
use cantus::half::{bf16, f16};
use cantus::{DType, Engine, Tensor};

/// A tensor over a tensor of candle's. As long as it lives, nobody may write to candle's (`Var::set`, `slice_set`, operations in place), and no kernel
/// that writes may bind it.
fn from_candle(engine: &Engine, tensor: &candle_core::Tensor) -> Result<Tensor, Box<dyn Error>> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Err("the tensor is not on the CPU: to_device(&Device::Cpu)".into());
    };
    let (dtype, start) = match storage {
        CpuStorage::U8(values) => (DType::U8, values.as_ptr().cast::<u8>()),
        CpuStorage::U32(values) => (DType::U32, values.as_ptr().cast()),
        CpuStorage::I16(values) => (DType::I16, values.as_ptr().cast()),
        CpuStorage::I32(values) => (DType::I32, values.as_ptr().cast()),
        CpuStorage::I64(values) => (DType::I64, values.as_ptr().cast()),
        CpuStorage::BF16(values) => (DType::BF16, values.as_ptr().cast()),
        CpuStorage::F16(values) => (DType::F16, values.as_ptr().cast()),
        CpuStorage::F32(values) => (DType::F32, values.as_ptr().cast()),
        CpuStorage::F64(values) => (DType::F64, values.as_ptr().cast()),
        _ => return Err("Cantus has no numbers of 8 bits or fewer with a point: to_dtype(F16)".into()),
    };
    let (shape, bytes) = (layout.dims().to_vec(), layout.shape().elem_count() * dtype.bytes());
    if bytes == 0 {
        return Ok(engine.tensor_from_bytes(dtype, &shape, &[])?);
    }
    let start =
        NonNull::new(start.wrapping_add(layout.start_offset() * dtype.bytes()).cast_mut()).ok_or("no memory")?;
    let kept = tensor.clone();
    // SAFETY: contiguous from the layout's offset on; the clone keeps the storage, which nobody writes to, as said above.
    let memory = unsafe { HostMemory::new(start, bytes as u64, kept) };
    Ok(engine.tensor_from_host_memory(dtype, &shape, memory)?)
}

/// A tensor of candle's with the contents of a tensor.
fn to_candle(tensor: &Tensor) -> Result<candle_core::Tensor, Box<dyn Error>> {
    fn made<T: cantus::Element + candle_core::WithDType>(
        tensor: &Tensor,
    ) -> Result<candle_core::Tensor, Box<dyn Error>> {
        Ok(candle_core::Tensor::from_vec(tensor.to_vec::<T>()?, tensor.shape(), &Device::Cpu)?)
    }
    match tensor.dtype() {
        DType::U8 => made::<u8>(tensor),
        DType::U32 => made::<u32>(tensor),
        DType::I16 => made::<i16>(tensor),
        DType::I32 => made::<i32>(tensor),
        DType::I64 => made::<i64>(tensor),
        DType::BF16 => made::<bf16>(tensor),
        DType::F16 => made::<f16>(tensor),
        DType::F32 => made::<f32>(tensor),
        DType::F64 => made::<f64>(tensor),
        other => Err(format!("candle has no {other}: cast it").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().backend("cpu").build()?;

    // In: the memory is the same.
    let weights = candle_core::Tensor::rand(-1.0_f32, 1.0, (64, 64), &Device::Cpu)?;
    let shared = from_candle(&engine, &weights)?;
    let (begin, address) = (address(&weights)?, shared.host_view()?.ok_or("the tensor is not on the CPU")?.as_ptr());
    assert!(address == begin || begin as usize % 16 != 0, "a copy was made of memory that is aligned");
    // A view with an offset.
    let lower = from_candle(&engine, &weights.narrow(0, 32, 32)?)?;

    // Candle's tensors go first; their memory stays for those that share it.
    let expected = weights.matmul(&weights)?;
    let halved = weights.narrow(0, 32, 32)?.t()?.contiguous()?;
    drop(weights);

    // Out: by one copy.
    let product = to_candle(&shared.matmul(&shared).eval()?)?;
    let difference = (&product - &expected)?.abs()?.max_all()?.to_scalar::<f32>()?;
    let turned = to_candle(&from_candle(&engine, &halved.t()?)?)?;
    let view = (&turned - &to_candle(&lower)?)?.abs()?.max_all()?.to_scalar::<f32>()?;

    // Every dtype that both have, there and back, and none of the elements changes.
    use candle_core::DType as D;
    let counted = candle_core::Tensor::arange(0_u32, 64, &Device::Cpu)?.reshape((4, 16))?;
    for dtype in [D::U8, D::U32, D::I16, D::I32, D::I64, D::BF16, D::F16, D::F32, D::F64] {
        let given = counted.to_dtype(dtype)?;
        let back = to_candle(&from_candle(&engine, &given)?)?;
        assert_eq!((back.dtype(), back.dims()), (dtype, given.dims()));
        assert_eq!(back.to_dtype(D::U32)?.to_vec2::<u32>()?, counted.to_vec2::<u32>()?);
    }
    println!("a product of candle's weights differs from candle's own by {difference:.1e}, a view by {view}");
    std::process::exit(i32::from(difference > 1e-4 || view > 0.0));
}

fn address(tensor: &candle_core::Tensor) -> Result<*const u8, Box<dyn Error>> {
    match &*tensor.storage_and_layout().0 {
        Storage::Cpu(CpuStorage::F32(values)) => Ok(values.as_ptr().cast()),
        _ => Err("no f32 on the CPU".into()),
    }
}
