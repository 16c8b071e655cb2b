//! Operations that the host computes, for dtypes that no kernel takes: functions of float64, orders of 64-bit numbers, factorisations of float64
//! and complex matrices. What they read is brought to the host, and their result back to the device; they are recorded and computed as
//! any other operation.

mod elementwise;
#[cfg(all(feature = "linalg", not(target_arch = "wasm32")))]
mod factors;
mod fourier;
mod matrix;
mod order;
mod product;

use std::hash::Hash;
use std::sync::Arc;

use num_complex::Complex;

use super::expr::deferred::Deferred;
use super::expr::digest::Digest;
use super::expr::node::Typed;
use super::expr::operation::{Call, Operation};
use super::expr::shape::product;
use crate::backend::BoxFuture;
use crate::backend::native::{Function, NativeOperation, Stop};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

pub(super) use elementwise::{ByHost, binary, unary};
pub(super) use fourier::transformed;
pub(super) use matrix::{Factorisation, factorised};
pub(super) use order::{argsort, is_wide, searchsorted};
pub(super) use product::matmul;

/// Complex numbers in double precision.
type C = Complex<f64>;

/// Elements as they are read and written here.
#[derive(Clone)]
pub(super) enum Values {
    Reals(Vec<f64>),
    Complexes(Vec<C>),
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
}

impl Values {
    /// Reads the values of a tensor from its bytes.
    fn read(bytes: &[u8], dtype: DType) -> Result<Self> {
        fn cast<T: bytemuck::Pod>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
            bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
        }
        Ok(match dtype {
            DType::F64 => Self::Reals(cast(bytes).collect()),
            DType::F32 => Self::Reals(cast::<f32>(bytes).map(f64::from).collect()),
            DType::Complex128 => Self::Complexes(cast::<[f64; 2]>(bytes).map(|[re, im]| C::new(re, im)).collect()),
            DType::Complex64 => {
                Self::Complexes(cast::<[f32; 2]>(bytes).map(|[re, im]| C::new(re.into(), im.into())).collect())
            }
            DType::I64 => Self::Signed(cast(bytes).collect()),
            DType::U64 => Self::Unsigned(cast(bytes).collect()),
            DType::I32 => Self::Signed(cast::<i32>(bytes).map(i64::from).collect()),
            DType::U32 => Self::Unsigned(cast::<u32>(bytes).map(u64::from).collect()),
            _ => {
                return Err(Error::dtype(
                    format!("an operation of the host's on {dtype}"),
                    "it needs numbers of at least 32 bits (cast first)",
                ));
            }
        })
    }

    /// Writes them as a tensor's bytes, in a dtype of this kind of numbers.
    fn write(&self, dtype: DType, bytes: &mut [u8]) {
        fn all<T: bytemuck::Pod>(values: impl Iterator<Item = T>, bytes: &mut [u8]) {
            for (to, value) in bytes.chunks_exact_mut(size_of::<T>()).zip(values) {
                to.copy_from_slice(bytemuck::bytes_of(&value));
            }
        }
        match (self, dtype) {
            (Self::Reals(values), DType::F32) => all(values.iter().map(|&value| value as f32), bytes),
            (Self::Reals(values), DType::Bool) => all(values.iter().map(|&value| u8::from(value != 0.0)), bytes),
            (Self::Reals(values), _) => all(values.iter().copied(), bytes),
            (Self::Complexes(values), DType::Complex64) => {
                all(values.iter().map(|value| [value.re as f32, value.im as f32]), bytes);
            }
            (Self::Complexes(values), _) => all(values.iter().copied(), bytes),
            (Self::Signed(values), DType::I32) => all(values.iter().map(|&value| value as i32), bytes),
            (Self::Signed(values), _) => all(values.iter().copied(), bytes),
            (Self::Unsigned(values), DType::U32) => all(values.iter().map(|&value| value as u32), bytes),
            (Self::Unsigned(values), _) => all(values.iter().copied(), bytes),
        }
    }

    /// Converts the values to complex numbers.
    fn complexes(self) -> Vec<C> {
        match self {
            Self::Complexes(values) => values,
            Self::Reals(values) => values.into_iter().map(C::from).collect(),
            Self::Signed(values) => values.into_iter().map(|value| C::from(value as f64)).collect(),
            Self::Unsigned(values) => values.into_iter().map(|value| C::from(value as f64)).collect(),
        }
    }
}

/// Computes the elements of a result from those of the inputs, row-major. What it returns once it is told to stop is never read.
type Compute = dyn Fn(Vec<Values>, &Stop<'_>) -> Values + Send + Sync;

/// An operation of the host's.
struct Host {
    name: &'static str,
    inputs: Vec<Arc<Typed>>,
    /// All that the function depends on.
    key: Vec<usize>,
    compute: Arc<Compute>,
}

impl Host {
    /// The same over the bytes of tensors, for a device that computes in the host's memory.
    fn function(&self, of: &Deferred) -> NativeOperation {
        let sizes = self.inputs.iter().map(|input| input.count() * input.dtype.bytes());
        let sizes = sizes.chain([product(&of.shape) * of.dtype.bytes()]).listed();
        let dtypes = self.inputs.iter().map(|input| input.dtype).listed();
        let (compute, parameters) = (self.compute.clone(), (self.name, self.key.clone(), dtypes, of.dtype));
        let function = Function::new(parameters, sizes, move |(_, _, dtypes, dtype), inputs, result, stop| {
            let values = inputs.iter().zip(dtypes).map(|(bytes, &dtype)| Values::read(bytes, dtype)).try_listed();
            compute(values.map_err(|error| error.to_string())?, stop).write(*dtype, result);
            Ok(())
        });
        NativeOperation::Function(function)
    }
}

impl Operation for Host {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        self.inputs.iter().collect()
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.name, &self.key, self.inputs.len()).hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let ("matmul", [a, b]) = (self.name, &self.inputs[..])
                && let Some(found) = product::native(call, a, b).await?
            {
                return call.followed(found).await;
            }
            if let ("function", [x]) = (self.name, &self.inputs[..])
                && let Some(found) = elementwise::native(call, &self.key, x).await?
            {
                return call.followed(found).await;
            }
            let mut tensors = Vec::with_capacity(self.inputs.len());
            for input in &self.inputs {
                tensors.push(call.compute(input).await?);
            }
            let like = (call.of.dtype, &*call.of.shape);
            let all = tensors.iter().listed();
            if let Some(result) = call.engine.native_async(self.function(call.of), &all, like, self.name).await? {
                return call.followed(result).await;
            }
            let mut values = Vec::with_capacity(self.inputs.len());
            for tensor in &tensors {
                values.push(Values::read(&tensor.to_bytes_async().await?, tensor.dtype())?);
            }
            let mut bytes = vec![0; product(&call.of.shape) * call.of.dtype.bytes()];
            aside(self.compute.clone(), values).await?.write(call.of.dtype, &mut bytes);
            let result = call.engine.tensor_from_bytes_async(call.of.dtype, &call.of.shape, &bytes).await?;
            call.followed(result).await
        })
    }
}

/// Computes on a thread of its own: who waits for it may be asked to go on before it ends.
#[cfg(not(target_arch = "wasm32"))]
async fn aside(compute: Arc<Compute>, values: Vec<Values>) -> Result<Values> {
    let failed = |reason: String| Error::invalid("an operation of the host's", reason);
    let (done, found) = futures_channel::oneshot::channel();
    let dropped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = dropped.clone();
    let work = move || {
        let stop = || seen.load(std::sync::atomic::Ordering::Relaxed);
        let _ = done.send(compute(values, &stop));
    };
    let _thread = cantus_base::threads::spawn("cantus-host".to_owned(), Box::new(work))
        .map_err(|error| failed(format!("its thread could not be started: {error}")))?;
    let _drops = Dropped(dropped);
    found.await.map_err(|_| failed("its thread ended without a result".to_owned()))
}

/// Tells the thread when nobody waits for it any more.
#[cfg(not(target_arch = "wasm32"))]
struct Dropped(Arc<std::sync::atomic::AtomicBool>);

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// On the web there is no thread to wait beside.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::unused_async, reason = "as the other form")]
async fn aside(compute: Arc<Compute>, values: Vec<Values>) -> Result<Values> {
    Ok(compute(values, &|| false))
}

/// Records an operation of the host's: from the elements of its inputs, row-major, those of its result. The name and the key say all that the
/// function depends on.
fn recorded(
    (name, key): (&'static str, Vec<usize>),
    inputs: Vec<Arc<Typed>>,
    shape: Vec<usize>,
    dtype: DType,
    compute: impl Fn(Vec<Values>, &Stop<'_>) -> Values + Send + Sync + 'static,
) -> Arc<Typed> {
    if shape.contains(&0) {
        return Typed::filled(0.0, &shape, dtype);
    }
    Typed::deferred(Host { name, inputs, key, compute: Arc::new(compute) }, shape, dtype)
}

/// Returns whether the host computes factorisations and transforms of a dtype.
pub(super) fn is_double(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::Complex64 | DType::Complex128)
}

/// The dtype of a dtype's parts.
pub(super) fn part_of(dtype: DType) -> DType {
    match dtype {
        DType::Complex64 => DType::F32,
        DType::Complex128 => DType::F64,
        real => real,
    }
}
