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

use std::sync::Arc;

use num_complex::Complex;

use super::expr::node::Typed;
use super::expr::operation::{Call, Operation};
use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::expr::evaluate::compute;
use crate::tensor::DType;

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
    /// Of a tensor's bytes.
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
                return Err(Error::InvalidInput {
                    what: format!("an operation of the host's on {dtype}"),
                    reason: "it is for numbers of 32 bits and more (cast first)".to_owned(),
                });
            }
        })
    }

    /// As a tensor's bytes, in a dtype of this kind of numbers.
    fn bytes(&self, dtype: DType) -> Vec<u8> {
        fn all<T: bytemuck::Pod>(values: impl Iterator<Item = T>) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(values.size_hint().0 * size_of::<T>());
            for value in values {
                bytes.extend_from_slice(bytemuck::bytes_of(&value));
            }
            bytes
        }
        match (self, dtype) {
            (Self::Reals(values), DType::F32) => all(values.iter().map(|&value| value as f32)),
            (Self::Reals(values), DType::Bool) => values.iter().map(|&value| u8::from(value != 0.0)).collect(),
            (Self::Reals(values), _) => bytemuck::cast_slice(values).to_vec(),
            (Self::Complexes(values), DType::Complex64) => {
                all(values.iter().map(|value| [value.re as f32, value.im as f32]))
            }
            (Self::Complexes(values), _) => bytemuck::cast_slice(values).to_vec(),
            (Self::Signed(values), DType::I32) => all(values.iter().map(|&value| value as i32)),
            (Self::Signed(values), _) => bytemuck::cast_slice(values).to_vec(),
            (Self::Unsigned(values), DType::U32) => all(values.iter().map(|&value| value as u32)),
            (Self::Unsigned(values), _) => bytemuck::cast_slice(values).to_vec(),
        }
    }

    /// As complex numbers.
    fn complexes(self) -> Vec<C> {
        match self {
            Self::Complexes(values) => values,
            Self::Reals(values) => values.into_iter().map(C::from).collect(),
            Self::Signed(values) => values.into_iter().map(|value| C::from(value as f64)).collect(),
            Self::Unsigned(values) => values.into_iter().map(|value| C::from(value as f64)).collect(),
        }
    }
}

/// An operation of the host's.
struct Host<F> {
    inputs: Vec<Arc<Typed>>,
    compute: F,
}

impl<F: Fn(Vec<Values>) -> Values + Send + Sync + 'static> Operation for Host<F> {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        self.inputs.iter().collect()
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let mut values = Vec::with_capacity(self.inputs.len());
            for input in &self.inputs {
                let tensor = compute(call.engine, input).await?;
                values.push(Values::read(&tensor.to_bytes_async().await?, input.dtype)?);
            }
            let bytes = (self.compute)(values).bytes(call.of.dtype);
            let result = call.engine.tensor_from_bytes_async(call.of.dtype, &call.of.shape, &bytes).await?;
            call.followed(result).await
        })
    }
}

/// Records an operation of the host's: from the elements of its inputs, row-major, those of its result.
fn recorded(
    inputs: Vec<Arc<Typed>>,
    shape: Vec<usize>,
    dtype: DType,
    compute: impl Fn(Vec<Values>) -> Values + Send + Sync + 'static,
) -> Arc<Typed> {
    if shape.contains(&0) {
        return Typed::filled(0.0, &shape, dtype);
    }
    Typed::deferred(Host { inputs, compute }, shape, dtype)
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
