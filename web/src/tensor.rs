//! Tensors: in from typed arrays, out into typed arrays, and the browser's own buffer behind them.

use cantus::{DType, Element, Tensor};
use js_sys::{
    BigInt64Array, BigUint64Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Promise, Uint8Array,
    Uint8ClampedArray, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{invalid, thrown};

/// A tensor of an engine.
#[wasm_bindgen]
pub struct RawTensor(pub(crate) Tensor);

#[wasm_bindgen]
impl RawTensor {
    /// Lengths of the axes.
    #[wasm_bindgen(getter)]
    pub fn shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    /// Element type by its WGSL name.
    #[wasm_bindgen(getter)]
    pub fn dtype(&self) -> String {
        self.0.dtype().name().to_owned()
    }

    /// The device it is on.
    #[wasm_bindgen(getter)]
    pub fn device(&self) -> String {
        self.0.device_name()
    }

    /// The browser's `GPUBuffer`, or `undefined` where the tensor is not on WebGPU. What writes the tensor is submitted first.
    #[wasm_bindgen(getter, js_name = gpuBuffer)]
    pub fn gpu_buffer(&self) -> Option<JsValue> {
        self.0.engine().flush();
        let buffer = self.0.buffer()?;
        Some(cantus::backend::wgpu::raw_buffer(&*buffer)?.as_webgpu()?.clone().into())
    }

    /// The contents as the typed array of its dtype (f16 and bf16: their bits in a Uint16Array; bool: bytes in a Uint8Array), after all work so far.
    pub fn read(&self) -> Promise {
        let tensor = self.0.clone();
        future_to_promise(async move {
            Ok(match tensor.dtype() {
                DType::F32 => Float32Array::from(&*values::<f32>(&tensor).await?).into(),
                DType::F64 => Float64Array::from(&*values::<f64>(&tensor).await?).into(),
                DType::I32 => Int32Array::from(&*values::<i32>(&tensor).await?).into(),
                DType::U32 => Uint32Array::from(&*values::<u32>(&tensor).await?).into(),
                DType::I64 => BigInt64Array::from(&*values::<i64>(&tensor).await?).into(),
                DType::U64 => BigUint64Array::from(&*values::<u64>(&tensor).await?).into(),
                DType::I8 => Int8Array::from(&*values::<i8>(&tensor).await?).into(),
                DType::U8 | DType::Bool => {
                    let bytes = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
                    Uint8Array::from(&*bytes).into()
                }
                DType::I16 => Int16Array::from(&*values::<i16>(&tensor).await?).into(),
                DType::U16 => Uint16Array::from(&*values::<u16>(&tensor).await?).into(),
                DType::F16 | DType::BF16 => {
                    let bytes = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
                    let halves: Vec<u16> = bytemuck::pod_collect_to_vec(&bytes);
                    Uint16Array::from(&*halves).into()
                }
                other => return Err(invalid(&format!("the dtype {other}"), "JavaScript has no array of it here")),
            })
        })
    }

    /// Copies the contents into the bytes of an array of that dtype, after all work so far.
    #[wasm_bindgen(js_name = readInto)]
    pub fn read_into(&self, into: Uint8Array, dtype: String) -> Promise {
        let tensor = self.0.clone();
        future_to_promise(async move {
            let (length, wanted) = (u64::from(into.length()), tensor.byte_len());
            if dtype != tensor.dtype().name() || length != wanted {
                let reason =
                    format!("it has {length} bytes of {dtype}, the tensor {wanted} of {}", tensor.dtype().name());
                return Err(invalid("the array to read into", &reason));
            }
            let bytes = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
            into.copy_from(&bytes);
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Colours a float32 tensor, after all work so far, into the RGBA bytes of a picture: the first of `colors` for `low`, the last for
    /// `high`, the nearest of them beyond, the first for NaN.
    pub fn shade(&self, pixels: Uint8ClampedArray, colors: Vec<u8>, low: f32, high: f32) -> Promise {
        let tensor = self.0.clone();
        future_to_promise(async move {
            let (length, wanted) = (u64::from(pixels.length()), tensor.byte_len());
            if tensor.dtype() != DType::F32 || length != wanted {
                let reason = format!("it has {length} bytes for {} values of {}", tensor.len(), tensor.dtype().name());
                return Err(invalid("the pixels", &reason));
            }
            let (colors, rest) = colors.as_chunks::<4>();
            let Some(last) = colors.len().checked_sub(1).filter(|_| rest.is_empty()) else {
                return Err(invalid("the colours", "they are not four bytes for each of one or more"));
            };
            let scale = colors.len() as f32 / (high - low);
            let mut picture = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
            for pixel in picture.as_chunks_mut::<4>().0 {
                // Less than nothing and NaN become 0.
                let place = ((f32::from_le_bytes(*pixel) - low) * scale) as usize;
                if let Some(color) = colors.get(place.min(last)) {
                    *pixel = *color;
                }
            }
            pixels.copy_from(&picture);
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Overwrites a float32 tensor.
    pub fn write(&self, values: Vec<f32>) -> Promise {
        let tensor = self.0.clone();
        future_to_promise(async move {
            tensor.write_async(&values).await.map_err(|error| thrown(&error))?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

async fn values<T: Element>(tensor: &Tensor) -> Result<Vec<T>, JsValue> {
    tensor.to_vec_async().await.map_err(|error| thrown(&error))
}

/// A dtype by its WGSL name.
pub(crate) fn dtype(name: &str) -> Result<DType, JsValue> {
    DType::ALL.iter().copied().find(|dtype| dtype.name() == name).ok_or_else(|| {
        invalid(
            &format!("the dtype \"{name}\""),
            "it is none of f32, f16, bf16, f64, i32, u32, i16, u16, i8, u8, i64, u64, bool, complex64, complex128",
        )
    })
}
