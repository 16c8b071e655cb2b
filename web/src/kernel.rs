//! Kernels from WGSL text, and their reflection as plain JavaScript objects.

use cantus::Kernel;
use cantus::kernel::{Access, AddressSpace, Binding, Layout, SampleType, StorageTextureAccess, TextureBinding};
use cantus::link::Linker;
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::thrown;

/// A parsed kernel.
#[wasm_bindgen]
pub struct RawKernel(pub(crate) Kernel);

#[wasm_bindgen]
impl RawKernel {
    /// Parses and validates WGSL text. `modules` are paths and texts in turn, which it may import from.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, modules: Vec<String>) -> Result<Self, JsValue> {
        let kernel = if modules.is_empty() {
            Kernel::from_wgsl(text)
        } else {
            let (pairs, _) = modules.as_chunks::<2>();
            let linker = pairs.iter().fold(Linker::new(), |linker, [path, text]| linker.module(path, path, text));
            Kernel::linked(&linker, "wgsl", text)
        };
        kernel.map(Self).map_err(|error| thrown(&error))
    }

    /// The compute entry points.
    #[wasm_bindgen(js_name = entryPoints)]
    pub fn entry_points(&self) -> Result<Vec<String>, JsValue> {
        self.0.entry_points().map_err(|error| thrown(&error))
    }

    /// The same kernel at another entry point.
    #[wasm_bindgen(js_name = entryPoint)]
    pub fn entry_point(&self, name: &str) -> Result<Self, JsValue> {
        self.0.with_entry_point(name).map(Self).map_err(|error| thrown(&error))
    }

    /// The same kernel with an override constant set.
    #[wasm_bindgen(js_name = setOverride)]
    pub fn set_override(&self, name: &str, value: f64) -> Result<Self, JsValue> {
        self.0.with_override(name, value).map(Self).map_err(|error| thrown(&error))
    }

    /// Entry point, workgroup size, bindings, textures, samplers, overrides and needed features of the chosen entry point.
    pub fn reflection(&self) -> Result<Object, JsValue> {
        let reflection = self.0.reflection().map_err(|error| thrown(&error))?;
        let overrides = reflection.overrides.iter().map(|found| {
            object([
                ("name", found.name.as_str().into()),
                ("type", found.scalar.name().into()),
                ("value", found.value.map_or(JsValue::NULL, JsValue::from)),
            ])
        });
        let samplers = reflection.samplers.iter().map(|sampler| {
            object([
                ("name", sampler.name.as_str().into()),
                ("group", sampler.group.into()),
                ("binding", sampler.binding.into()),
                ("comparison", sampler.comparison.into()),
            ])
        });
        let features = reflection.features.named().into_iter().filter(|(_, needed)| *needed);
        Ok(object([
            ("entryPoint", reflection.entry_point.as_str().into()),
            (
                "workgroupSize",
                reflection.workgroup_size.iter().map(|&side| JsValue::from(side)).collect::<Array>().into(),
            ),
            ("bindings", reflection.bindings.iter().map(binding).collect::<Array>().into()),
            ("textures", reflection.textures.iter().map(texture).collect::<Array>().into()),
            ("samplers", samplers.collect::<Array>().into()),
            ("overrides", overrides.collect::<Array>().into()),
            ("features", features.map(|(name, _)| JsValue::from(name)).collect::<Array>().into()),
        ]))
    }

    /// The same kernel with a limit on the rounds of each invocation's loops.
    #[wasm_bindgen(js_name = withLoopLimit)]
    pub fn with_loop_limit(&self, rounds: u32) -> Result<RawLimit, JsValue> {
        let limit = self.0.with_loop_limit(rounds).map_err(|error| thrown(&error))?;
        Ok(RawLimit { kernel: limit.kernel, lines: limit.loops.iter().map(|place| place.line).collect() })
    }

    /// An estimate of the operations of one invocation.
    #[wasm_bindgen(getter)]
    pub fn operations(&self) -> Result<f64, JsValue> {
        self.0.operations().map(|operations| operations as f64).map_err(|error| thrown(&error))
    }

    /// Checks that the CPU executor runs it; an error says what it refuses, and where.
    #[wasm_bindgen(js_name = checkCpu)]
    pub fn check_cpu(&self) -> Result<(), JsValue> {
        self.0.program().map(|_| ()).map_err(|error| thrown(&error))
    }
}

/// A kernel whose loops end.
#[wasm_bindgen]
pub struct RawLimit {
    kernel: Kernel,
    lines: Vec<u32>,
}

#[wasm_bindgen]
impl RawLimit {
    /// The kernel; with the binding `cantus_stopped` where there are lines.
    #[wasm_bindgen(getter)]
    pub fn kernel(&self) -> RawKernel {
        RawKernel(self.kernel.clone())
    }

    /// The lines of the loops that are counted.
    #[wasm_bindgen(getter)]
    pub fn lines(&self) -> Vec<u32> {
        self.lines.clone()
    }
}

fn binding(binding: &Binding) -> Object {
    let uniform = binding.space == AddressSpace::Uniform;
    let mut members = Vec::new();
    if uniform {
        leaves(&binding.layout, &binding.name, &mut members);
    }
    // A storage binding is filled with elements of one type; where members differ, with 32-bit words.
    let scalar = binding.layout.scalar().map_or("u32", |scalar| scalar.name());
    object([
        ("name", binding.name.as_str().into()),
        ("group", binding.group.into()),
        ("binding", binding.binding.into()),
        ("space", if uniform { "uniform" } else { "storage" }.into()),
        ("access", if binding.access == Access::ReadWrite { "read_write" } else { "read" }.into()),
        ("type", binding.layout.to_string().into()),
        ("scalar", scalar.into()),
        ("minBytes", (binding.layout.min_bytes() as f64).into()),
        ("runtimeSized", binding.layout.is_runtime_sized().into()),
        ("members", members.into_iter().collect::<Array>().into()),
    ])
}

fn texture(texture: &TextureBinding) -> Object {
    let access = match texture.storage {
        None | Some((_, StorageTextureAccess::Read)) => "read",
        Some((_, StorageTextureAccess::Write)) => "write",
        Some((_, StorageTextureAccess::ReadWrite)) => "read_write",
    };
    let sample_type = match texture.sample_type {
        SampleType::Float => "float",
        SampleType::Sint => "sint",
        SampleType::Uint => "uint",
        SampleType::Depth => "depth",
    };
    object([
        ("name", texture.name.as_str().into()),
        ("group", texture.group.into()),
        ("binding", texture.binding.into()),
        ("type", texture.to_string().into()),
        ("dimension", texture.dimension.name().replace('_', "-").into()),
        ("sampleType", sample_type.into()),
        ("multisampled", texture.multisampled.into()),
        ("access", access.into()),
        ("format", texture.storage.map_or(JsValue::NULL, |(format, _)| format.name().into())),
    ])
}

/// The members of a uniform that can be set by name, structures taken apart.
fn leaves(layout: &Layout, path: &str, into: &mut Vec<Object>) {
    if let Layout::Struct { members, .. } = layout {
        for member in members {
            leaves(&member.layout, &format!("{path}.{}", member.name), into);
        }
        return;
    }
    into.push(object([
        ("path", path.into()),
        ("type", layout.to_string().into()),
        ("count", count(layout).into()),
        ("integer", layout.scalar().is_some_and(|scalar| !matches!(scalar.name(), "f16" | "f32" | "f64")).into()),
    ]));
}

/// Numbers in a value of that layout.
fn count(layout: &Layout) -> u32 {
    match layout {
        Layout::Scalar(_) | Layout::Atomic(_) => 1,
        Layout::Vector(size, _) => u32::from(*size),
        Layout::Matrix { columns, rows, .. } => u32::from(*columns) * u32::from(*rows),
        Layout::Array { element, count: number, .. } => number.unwrap_or(0).saturating_mul(count(element)),
        Layout::Struct { members, .. } => members.iter().map(|member| count(&member.layout)).sum(),
    }
}

fn object<const N: usize>(entries: [(&str, JsValue); N]) -> Object {
    let object = Object::new();
    for (name, value) in entries {
        // A fresh object: setting cannot fail.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object
}
