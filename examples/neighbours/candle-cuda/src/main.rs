//! Tensors of candle on an NVIDIA GPU, in Cantus and back. It takes the CUDA toolkit (nvcc), so CI does not build it. Built with CUDA 13.0, it ran on an
//! H100.
//!
//! candle owns its memory by `Arc` and takes only slices that it owns, so there is one copy on the card in either direction. The streams wait for each other,
//! and the host for nothing.

use std::error::Error;

use candle_core::cuda_backend::CudaDType;
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, Device, Storage};
use cantus::{Element, Engine, Tensor};
use cantus_cudarc::cudarc::driver::DeviceRepr;

fn from_candle<T: Element + CudaDType + DeviceRepr>(
    engine: &Engine,
    tensor: &candle_core::Tensor,
) -> Result<Tensor, Box<dyn Error>> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { return Err("the tensor is not on CUDA".into()) };
    let elements = layout.start_offset()..layout.start_offset() + layout.shape().elem_count();
    let own = storage.device.cuda_stream().clone_dtod(&storage.as_cuda_slice::<T>()?.slice(elements))?;
    Ok(cantus_cudarc::tensor(engine, own, layout.dims())?)
}

fn to_candle<T: Element + CudaDType + DeviceRepr>(
    tensor: &Tensor,
    device: &CudaDevice,
) -> Result<candle_core::Tensor, Box<dyn Error>> {
    let stream = device.cuda_stream();
    let own = stream.clone_dtod(&*cantus_cudarc::lend::<T>(tensor, &stream)?)?;
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(own, device.clone()));
    Ok(candle_core::Tensor::from_storage(storage, tensor.shape(), BackpropOp::none(), false))
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::new_cuda(0)?;
    let card = device.as_cuda_device()?;
    let engine = cantus_cudarc::engine(card.cuda_stream().context())?;
    let weights = candle_core::Tensor::rand(-1.0_f32, 1.0, (64, 64), &device)?;
    let shared = from_candle::<f32>(&engine, &weights)?;
    let product = to_candle::<f32>(&shared.matmul(&shared).eval()?, card)?;
    let difference = (&product - &weights.matmul(&weights)?)?.abs()?.max_all()?.to_scalar::<f32>()?;
    println!("a product of candle's weights differs from candle's own by {difference:.1e}");
    std::process::exit(i32::from(difference > 1e-3));
}
