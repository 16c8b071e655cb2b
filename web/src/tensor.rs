//! Tensors: in from typed arrays, out into typed arrays, and the browser's own buffer behind them.

use cantus::{DType, Element, Error, Tensor};
use js_sys::{
    BigInt64Array, BigUint64Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Promise, Uint8Array,
    Uint8ClampedArray, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;

use crate::error::{invalid, thrown};
use crate::promise::promise;

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
        #[cfg(feature = "webgpu")]
        {
            self.0.engine().flush();
            let buffer = self.0.buffer()?;
            Some(cantus::backend::wgpu::raw_buffer(&*buffer)?.as_webgpu()?.clone().into())
        }
        #[cfg(not(feature = "webgpu"))]
        None
    }

    /// The contents as the typed array of its dtype (f16 and bf16: their bits in a Uint16Array; bool: bytes in a Uint8Array), after all work so far.
    pub fn read(&self) -> Promise {
        let tensor = self.0.clone();
        promise(async move {
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
                other => return Err(invalid(&format!("the dtype {other}"), "JavaScript has no typed array for it")),
            })
        })
    }

    /// Copies the contents into the bytes of an array of that dtype, after all work so far.
    #[wasm_bindgen(js_name = readInto)]
    pub fn read_into(&self, into: Uint8Array, dtype: String) -> Promise {
        let tensor = self.0.clone();
        promise(async move {
            let (length, wanted) = (u64::from(into.length()), tensor.byte_len());
            if dtype != tensor.dtype().name() || length != wanted {
                let reason =
                    format!("it has {length} bytes of {dtype}, the tensor {wanted} of {}", tensor.dtype().name());
                let what = "the array to read into";
                let is_own = dtype == tensor.dtype().name();
                return Err(thrown(&if is_own { Error::shape(what, reason) } else { Error::dtype(what, reason) }));
            }
            let bytes = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
            resized(u64::from(into.length()), &bytes, "the array to read into")?;
            into.copy_from(&bytes);
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Writes a tensor as the RGBA bytes of a picture, after all work so far. `kind` is "map" (one number a pixel through `colors`: the
    /// first for `low`, the last for `high`, the nearest of them beyond, the first for NaN; the range of what is finite where `high` is NaN),
    /// "rgba" (four floats from 0 to 1 a pixel) or "bytes" (as they are). Resolves with the range.
    pub fn pixels(&self, pixels: Uint8ClampedArray, kind: String, colors: Vec<u8>, low: f32, high: f32) -> Promise {
        let tensor = self.0.clone();
        promise(async move {
            let per_pixel = if kind == "rgba" { 4 } else { 1 };
            let given = u64::from(pixels.length()) * per_pixel;
            if given != tensor.byte_len() || (kind == "rgba" && tensor.dtype() != DType::F32) {
                let reason = format!(
                    "it has {given} bytes as {kind}, the tensor {} of {}",
                    tensor.byte_len(),
                    tensor.dtype().name()
                );
                return Err(thrown(&Error::shape("the picture", reason)));
            }
            let mut bytes = tensor.to_bytes_async().await.map_err(|error| thrown(&error))?;
            let mut range = [low, high];
            match kind.as_str() {
                "rgba" => {
                    for (from, value) in (0..bytes.len()).step_by(4).enumerate() {
                        let value = bytes.get(value..value + 4).and_then(|word| word.try_into().ok());
                        let value = f32::from_le_bytes(value.unwrap_or_default());
                        if let Some(byte) = bytes.get_mut(from) {
                            *byte = (value * 255.0 + 0.5) as u8;
                        }
                    }
                    bytes.truncate(bytes.len() / 4);
                }
                "bytes" => {}
                _ => range = shade(&mut bytes, tensor.dtype(), &colors, range)?,
            }
            resized(u64::from(pixels.length()), &bytes, "the picture")?;
            pixels.copy_from(&bytes);
            Ok(Float32Array::from(range.as_slice()).into())
        })
    }

    /// Overwrites a tensor with the bytes of an array of the given dtype.
    pub fn write(&self, bytes: Vec<u8>, dtype_name: &str) -> Result<Promise, JsValue> {
        let (tensor, dtype) = (self.0.clone(), dtype(dtype_name)?);
        Ok(promise(async move {
            let written = match dtype {
                DType::F32 => tensor.write_async(&bytemuck::pod_collect_to_vec::<u8, f32>(&bytes)).await,
                DType::U32 => tensor.write_async(&bytemuck::pod_collect_to_vec::<u8, u32>(&bytes)).await,
                DType::I32 => tensor.write_async(&bytemuck::pod_collect_to_vec::<u8, i32>(&bytes)).await,
                other => {
                    return Err(invalid(
                        &format!("an array of {}", other.name()),
                        "tensors of f32, u32 and i32 are written",
                    ));
                }
            };
            written.map_err(|error| thrown(&error))?;
            Ok(JsValue::UNDEFINED)
        }))
    }
}

/// Numbers to colours, in place. The range that was used.
fn shade(picture: &mut [u8], dtype: DType, colors: &[u8], [mut low, mut high]: [f32; 2]) -> Result<[f32; 2], JsValue> {
    let number: fn([u8; 4]) -> f32 = match dtype {
        DType::F32 => f32::from_le_bytes,
        DType::U32 => |bytes| u32::from_le_bytes(bytes) as f32,
        DType::I32 => |bytes| i32::from_le_bytes(bytes) as f32,
        other => return Err(invalid(&format!("a picture of {}", other.name()), "colours need f32, i32 or u32")),
    };
    let (colors, rest) = colors.as_chunks::<4>();
    let Some(last) = colors.len().checked_sub(1).filter(|_| rest.is_empty()) else {
        return Err(invalid("the colours", "they are not four bytes for each of one or more"));
    };
    let (pixels, _) = picture.as_chunks_mut::<4>();
    if high.is_nan() {
        (low, high) = (f32::INFINITY, f32::NEG_INFINITY);
        for pixel in pixels.iter() {
            let value = number(*pixel);
            if value.is_finite() {
                (low, high) = (low.min(value), high.max(value));
            }
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        } else if low == high {
            high = low + 1.0;
        }
    }
    let scale = colors.len() as f32 / (high - low);
    for pixel in pixels {
        // Less than nothing and NaN become 0.
        let place = ((number(*pixel) - low) * scale) as usize;
        if let Some(color) = colors.get(place.min(last)) {
            *pixel = *color;
        }
    }
    Ok([low, high])
}

/// Refuses an array that became longer or shorter while the device was waited for, as one over a resizable buffer may.
pub(crate) fn resized(length: u64, bytes: &[u8], what: &str) -> Result<(), JsValue> {
    if length == bytes.len() as u64 {
        return Ok(());
    }
    Err(invalid(what, &format!("it has {length} bytes now and had {} when it was given", bytes.len())))
}

async fn values<T: Element>(tensor: &Tensor) -> Result<Vec<T>, JsValue> {
    tensor.to_vec_async().await.map_err(|error| thrown(&error))
}

/// A dtype by its WGSL name.
pub(crate) fn dtype(name: &str) -> Result<DType, JsValue> {
    DType::ALL.iter().copied().find(|dtype| dtype.name() == name).ok_or_else(|| {
        invalid(
            &format!("the dtype \"{name}\""),
            "it is not one of f32, f16, bf16, f64, i32, u32, i16, u16, i8, u8, i64, u64, bool, complex64, complex128",
        )
    })
}
