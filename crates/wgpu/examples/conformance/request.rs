//! Requests, and how their parts are read.

use std::fmt::Debug;

use serde_json::Value;

/// An error is a request that makes no sense.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A request, or a part of one.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub head: &'a Value,
    pub bytes: &'a [u8],
}

impl<'a> Request<'a> {
    pub fn number(&self, name: &str) -> Outcome<u64> {
        Ok(self.maybe(name).ok_or_else(|| format!("{name} is no number"))?)
    }

    pub fn maybe(&self, name: &str) -> Option<u64> {
        self.head[name].as_u64()
    }

    pub fn word(&self, name: &str) -> Outcome<u32> {
        Ok(u32::try_from(self.number(name)?)?)
    }

    pub fn maybe_word(&self, name: &str) -> Option<u32> {
        self.maybe(name).and_then(|number| u32::try_from(number).ok())
    }

    pub fn float(&self, name: &str) -> Option<f32> {
        self.head[name].as_f64().map(|number| number as f32)
    }

    pub fn is(&self, name: &str) -> bool {
        self.head[name].as_bool().unwrap_or(false)
    }

    pub fn text(&self, name: &str) -> Outcome<&'a str> {
        Ok(self.head[name].as_str().ok_or_else(|| format!("{name} is no text"))?)
    }

    pub fn label(&self) -> Option<&'a str> {
        self.head["label"].as_str()
    }

    pub fn list(&self, name: &str) -> &'a [Value] {
        self.head[name].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn parts(&self, name: &str) -> impl Iterator<Item = Request<'a>> + use<'a> {
        self.list(name).iter().map(|head| Request { head, bytes: &[] })
    }

    pub fn part(&self, name: &str) -> Request<'a> {
        Request { head: &self.head[name], bytes: &[] }
    }

    /// A part that may be absent.
    pub fn maybe_part(&self, name: &str) -> Option<Request<'a>> {
        (!self.head[name].is_null()).then(|| self.part(name))
    }

    pub fn extent(&self, name: &str) -> wgpu::Extent3d {
        let [width, height, depth_or_array_layers] = self.triple(name, 1);
        wgpu::Extent3d { width, height, depth_or_array_layers }
    }

    pub fn triple(&self, name: &str, rest: u32) -> [u32; 3] {
        let all = self.list(name);
        [0, 1, 2].map(|place| all.get(place).and_then(Value::as_u64).map_or(rest, |number| number as u32))
    }

    /// Finds one of wgpu's names. WebGPU's differ from them in hyphens and capitals.
    pub fn named<T: Debug + Copy>(&self, name: &str, all: &[T]) -> Outcome<T> {
        Ok(self.maybe_named(name, all).ok_or_else(|| format!("{name} is {}", self.head[name]))?)
    }

    pub fn maybe_named<T: Debug + Copy>(&self, name: &str, all: &[T]) -> Option<T> {
        find(&self.head[name], all)
    }

    pub fn all_named<T: Debug + Copy>(&self, name: &str, all: &[T]) -> Vec<T> {
        self.list(name).iter().filter_map(|name| find(name, all)).collect()
    }
}

fn find<T: Debug + Copy>(name: &Value, all: &[T]) -> Option<T> {
    let wanted = name.as_str()?.replace('-', "");
    all.iter().copied().find(|known| format!("{known:?}").eq_ignore_ascii_case(&wanted))
}

pub const FORMATS: [wgpu::TextureFormat; 40] = {
    use wgpu::TextureFormat::*;
    [
        R8Unorm,
        R8Snorm,
        R8Uint,
        R8Sint,
        R16Uint,
        R16Sint,
        R16Float,
        Rg8Unorm,
        Rg8Snorm,
        Rg8Uint,
        Rg8Sint,
        R32Uint,
        R32Sint,
        R32Float,
        Rg16Uint,
        Rg16Sint,
        Rg16Float,
        Rgba8Unorm,
        Rgba8UnormSrgb,
        Rgba8Snorm,
        Rgba8Uint,
        Rgba8Sint,
        Bgra8Unorm,
        Bgra8UnormSrgb,
        Rgb9e5Ufloat,
        Rgb10a2Uint,
        Rgb10a2Unorm,
        Rg11b10Ufloat,
        Rg32Uint,
        Rg32Sint,
        Rg32Float,
        Rgba16Uint,
        Rgba16Sint,
        Rgba16Float,
        Rgba32Uint,
        Rgba32Sint,
        Rgba32Float,
        Depth16Unorm,
        Depth24Plus,
        Depth32Float,
    ]
};
pub const DIMENSIONS: [wgpu::TextureDimension; 3] =
    [wgpu::TextureDimension::D1, wgpu::TextureDimension::D2, wgpu::TextureDimension::D3];
pub const ADDRESSES: [wgpu::AddressMode; 3] =
    [wgpu::AddressMode::ClampToEdge, wgpu::AddressMode::Repeat, wgpu::AddressMode::MirrorRepeat];
pub const COMPARISONS: [wgpu::CompareFunction; 8] = {
    use wgpu::CompareFunction::*;
    [Never, Less, Equal, LessEqual, Greater, NotEqual, GreaterEqual, Always]
};
pub const ACCESSES: [wgpu::StorageTextureAccess; 3] = {
    use wgpu::StorageTextureAccess::*;
    [ReadOnly, WriteOnly, ReadWrite]
};
