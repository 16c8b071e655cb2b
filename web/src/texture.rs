//! Textures: in from bytes, out as numbers or as a picture's pixels.

use cantus::kernel::SampleType;
use cantus::{
    AddressMode, CompareFunction, DType, FilterMode, Sampler, Texture, TextureDescriptor, TextureDimension,
    TextureFormat, half,
};
use js_sys::{
    Float32Array, Int8Array, Int16Array, Int32Array, Promise, Uint8Array, Uint8ClampedArray, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;

use crate::engine::RawEngine;
use crate::error::{invalid, thrown};
use crate::promise::promise;
use crate::tensor::{RawTensor, resized};

/// A texture of an engine, or a view of one.
#[wasm_bindgen]
pub struct RawTexture(pub(crate) Texture);

fn texture_promise(future: impl Future<Output = cantus::Result<Texture>> + 'static) -> Promise {
    promise(async move {
        match future.await {
            Ok(texture) => Ok(RawTexture(texture).into()),
            Err(error) => Err(thrown(&error)),
        }
    })
}

#[wasm_bindgen]
impl RawEngine {
    /// A texture of bytes: all levels, without padding; of zeros without bytes. `size` is width, height, and depth or layers; `dimension` is
    /// "1d", "2d" or "3d".
    pub fn texture(
        &self,
        format: &str,
        dimension: &str,
        size: Vec<f64>,
        levels: f64,
        samples: f64,
        bytes: Option<Vec<u8>>,
    ) -> Result<Promise, JsValue> {
        let format = choice("texture format", TextureFormat::from_name(format), format, || {
            TextureFormat::ALL.iter().map(|format| format.name()).collect()
        })?;
        let [width, height, depth] = match size.as_slice() {
            [width] => [*width, 1.0, 1.0],
            [width, height] => [*width, *height, 1.0],
            [width, height, depth] => [*width, *height, *depth],
            _ => return Err(invalid("the size of a texture", "it has one to three sides")),
        };
        let [width, height, depth] = [count(width)?, count(height)?, count(depth)?];
        let descriptor = match dimension {
            "1d" => TextureDescriptor::new_1d(format, width).with_layers(height.saturating_mul(depth)),
            "3d" => TextureDescriptor::new_3d(format, width, height, depth),
            _ => TextureDescriptor::new_2d(format, width, height).with_layers(depth),
        };
        let descriptor = descriptor.with_levels(count(levels)?).with_samples(count(samples)?);
        let engine = self.engine.clone();
        Ok(texture_promise(async move {
            match bytes {
                Some(bytes) => engine.texture_from_bytes_async(&descriptor, &bytes).await,
                None => engine.texture_async(&descriptor).await,
            }
        }))
    }
}

/// A whole number as WebGPU's unsigned ones.
fn count(number: f64) -> Result<u32, JsValue> {
    let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    if whole {
        Ok(number as u32)
    } else {
        Err(invalid(&format!("the count {number}"), "it takes whole numbers from 0"))
    }
}

/// The member of that name, or an error that lists the names.
fn choice<T>(
    what: &str,
    found: Option<T>,
    name: &str,
    names: impl FnOnce() -> Vec<&'static str>,
) -> Result<T, JsValue> {
    found.ok_or_else(|| invalid(&format!("the {what} \"{name}\""), &format!("it is not one of {}", names().join(", "))))
}

#[wasm_bindgen]
impl RawTexture {
    /// The format's name.
    #[wasm_bindgen(getter)]
    pub fn format(&self) -> String {
        self.0.format().name().to_owned()
    }

    /// Width, height, and depth or layers of the first level.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> Vec<u32> {
        self.0.size().to_vec()
    }

    /// The dimension: "1d", "2d" or "3d".
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> String {
        match self.0.descriptor().dimension {
            TextureDimension::D1 => "1d",
            TextureDimension::D2 => "2d",
            TextureDimension::D3 => "3d",
        }
        .to_owned()
    }

    /// Levels of the whole texture.
    #[wasm_bindgen(getter)]
    pub fn levels(&self) -> u32 {
        self.0.descriptor().levels
    }

    /// The device it is on.
    #[wasm_bindgen(getter)]
    pub fn device(&self) -> String {
        self.0.texels().device_name()
    }

    /// The texels of all levels, as words.
    pub fn texels(&self) -> RawTensor {
        RawTensor(self.0.texels().clone())
    }

    /// A view of one level.
    pub fn level(&self, level: f64) -> Result<Self, JsValue> {
        self.0.level(count(level)?).map(Self).map_err(|error| thrown(&error))
    }

    /// A view of layers.
    pub fn layers(&self, first: f64, number: f64) -> Result<Self, JsValue> {
        self.0.layers(count(first)?, count(number)?).map(Self).map_err(|error| thrown(&error))
    }

    /// The same image with all levels.
    #[wasm_bindgen(js_name = withAllLevels)]
    pub fn with_all_levels(&self) -> Promise {
        let texture = self.0.clone();
        texture_promise(async move { texture.with_all_levels_async().await })
    }

    /// The texels of the first level in the typed array of the channels' type (16-bit floats: their bits in a Uint16Array; channels that share
    /// bytes: words in a Uint32Array).
    pub fn read(&self) -> Promise {
        let texture = self.0.clone();
        promise(async move {
            let bytes = texture.to_bytes_async().await.map_err(|error| thrown(&error))?;
            Ok(match texture.channels() {
                Some(DType::U8) => Uint8Array::from(&*bytes).into(),
                Some(DType::I8) => Int8Array::from(&*words::<i8>(&bytes)).into(),
                Some(DType::U16 | DType::F16) => Uint16Array::from(&*words::<u16>(&bytes)).into(),
                Some(DType::I16) => Int16Array::from(&*words::<i16>(&bytes)).into(),
                Some(DType::I32) => Int32Array::from(&*words::<i32>(&bytes)).into(),
                Some(DType::F32) => Float32Array::from(&*words::<f32>(&bytes)).into(),
                _ => Uint32Array::from(&*words::<u32>(&bytes)).into(),
            })
        })
    }

    /// Overwrites the first level with bytes.
    pub fn write(&self, bytes: Vec<u8>) -> Promise {
        let texture = self.0.clone();
        promise(async move {
            texture.write_async(&bytes).await.map_err(|error| thrown(&error))?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Writes an image's texels as RGBA bytes: normalized integers and floats from 0 to 1, bytes as they are. One channel is grey.
    pub fn pixels(&self, pixels: Uint8ClampedArray) -> Promise {
        let texture = self.0.clone();
        promise(async move {
            let bytes = texture.to_bytes_async().await.map_err(|error| thrown(&error))?;
            let rgba = rgba(texture.format(), texture.channels(), bytes).ok_or_else(|| {
                invalid(
                    &format!("a picture of {}", texture.format()),
                    "its channels are not bytes, and not normalized integers or floats of their own",
                )
            })?;
            resized(u64::from(pixels.length()), &rgba, "the picture")?;
            pixels.copy_from(&rgba);
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn words<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// Texels as RGBA bytes; nothing for formats that are no colours.
fn rgba(format: TextureFormat, channels: Option<DType>, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let byte = |value: f32| (value * 255.0 + 0.5) as u8;
    let is_number = format.sample_type() == SampleType::Float;
    let parts: Vec<u8> = match channels? {
        DType::U8 => {
            if format.is_bgra() {
                bytes.chunks_exact_mut(4).for_each(|pixel| pixel.swap(0, 2));
            }
            bytes
        }
        DType::I8 if is_number => bytes.iter().map(|&part| byte(f32::from(part as i8) / 127.0)).collect(),
        DType::U16 if is_number => words::<u16>(&bytes).iter().map(|&part| byte(f32::from(part) / 65535.0)).collect(),
        DType::I16 if is_number => words::<i16>(&bytes).iter().map(|&part| byte(f32::from(part) / 32767.0)).collect(),
        DType::F32 => words::<f32>(&bytes).iter().map(|&part| byte(part)).collect(),
        DType::F16 => words::<u16>(&bytes).iter().map(|&part| byte(half::f16::from_bits(part).to_f32())).collect(),
        _ => return None,
    };
    Some(match format.channels() {
        1 => parts.iter().flat_map(|&grey| [grey, grey, grey, 255]).collect(),
        2 => parts.as_chunks::<2>().0.iter().flat_map(|&[red, green]| [red, green, 0, 255]).collect(),
        _ => parts,
    })
}

/// A sampler by WebGPU's names: address modes of u, v and w; filters of magnification, minification and levels; the least and the greatest level
/// of detail; the comparison.
pub(crate) fn sampler(
    address: &[String],
    filters: &[String],
    [lod_min_clamp, lod_max_clamp]: [f32; 2],
    compare: Option<&str>,
) -> Result<Sampler, JsValue> {
    fn named<T: Copy>(what: &str, name: &str, all: &'static [(&'static str, T)]) -> Result<T, JsValue> {
        let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        choice(what, found, name, || all.iter().map(|(known, _)| *known).collect())
    }
    let mut sampler = Sampler { lod_min_clamp, lod_max_clamp, ..Sampler::nearest() };
    for (mode, name) in sampler.address_mode.iter_mut().zip(address) {
        *mode = named("address mode", name, AddressMode::ALL)?;
    }
    let places = [&mut sampler.mag_filter, &mut sampler.min_filter, &mut sampler.mipmap_filter];
    for (place, name) in places.into_iter().zip(filters) {
        *place = named("filter", name, FilterMode::ALL)?;
    }
    sampler.compare = compare.map(|name| named("comparison", name, CompareFunction::ALL)).transpose()?;
    Ok(sampler)
}
