//! Kernels of the user's own.

use cantus::Tensor;
use cantus::engine::Extent;
use cantus::kernel::{Layout, Scalar, StorageTextureAccess};
use cantus::link::Linker;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{detached, exception};
use crate::wait::{note_kernel, wait};

/// A kernel from WGSL text.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Kernel {
    kernel: cantus::Kernel,
}

impl Kernel {
    #[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "what a kernel takes")]
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        engine: &cantus::Engine,
        tensors: &[(&str, Tensor)],
        (textures, samplers): (&[(&str, cantus::Texture)], &[(&str, cantus::Sampler)]),
        numbers: &[(String, Vec<f64>)],
        invocations: Option<[u32; 3]>,
        workgroups: Option<[u32; 3]>,
    ) -> PyResult<()> {
        let mut dispatch = engine.dispatch(&self.kernel);
        for (name, tensor) in tensors {
            dispatch = dispatch.bind(name, tensor);
        }
        for (name, texture) in textures {
            dispatch = dispatch.bind(name, texture);
        }
        for (name, sampler) in samplers {
            dispatch = dispatch.bind(name, sampler);
        }
        for (path, values) in numbers {
            dispatch = match values[..] {
                [value] => dispatch.set(path, value),
                _ => dispatch.set(path, values.as_slice()),
            };
        }
        if let Some(count) = invocations {
            dispatch = dispatch.invocations(Extent::from(count));
        }
        if let Some(count) = workgroups {
            dispatch = dispatch.workgroups(Extent::from(count));
        }
        wait(py, engine, dispatch.run_async())
    }
}

/// A member of a structure, down to numbers: the names on the way, the offset, the scalar, and lengths with their distances in bytes.
type Leaf = (Vec<String>, u32, &'static str, Vec<(u32, u32)>);

/// The distance of structures, and their members.
fn structure(layout: &Layout) -> Option<(u32, Vec<Leaf>)> {
    let (element, stride) = match layout {
        Layout::Array { element, stride, .. } => (&**element, *stride),
        Layout::Struct { size, .. } => (layout, *size),
        _ => return None,
    };
    if !matches!(element, Layout::Struct { .. }) || element.is_runtime_sized() {
        return None;
    }
    let mut leaves = Vec::new();
    members(element, &(Vec::new(), 0, Vec::new()), &mut leaves);
    Some((stride, leaves))
}

/// Lists what a part of a structure holds: `at` are the names, the offset and the lengths on the way to it.
fn members(layout: &Layout, at: &(Vec<String>, u32, Vec<(u32, u32)>), leaves: &mut Vec<Leaf>) {
    let (names, offset, sides) = at;
    let mut leaf = |scalar: &Scalar, more: &[(u32, u32)]| {
        leaves.push((names.clone(), *offset, scalar.name(), [sides, more].concat()));
    };
    match layout {
        Layout::Scalar(scalar) | Layout::Atomic(scalar) => leaf(scalar, &[]),
        Layout::Vector(size, scalar) => leaf(scalar, &[(u32::from(*size), scalar.bytes())]),
        Layout::Matrix { columns, rows, scalar, stride } => {
            leaf(scalar, &[(u32::from(*columns), *stride), (u32::from(*rows), scalar.bytes())]);
        }
        Layout::Array { element, count, stride } => {
            let sides = [&sides[..], &[(count.unwrap_or(1), *stride)]].concat();
            members(element, &(names.clone(), *offset, sides), leaves);
        }
        Layout::Struct { members: inner, .. } => {
            for member in inner {
                let names = [&names[..], std::slice::from_ref(&member.name)].concat();
                members(&member.layout, &(names, offset + member.offset, sides.clone()), leaves);
            }
        }
    }
}

#[pymethods]
impl Kernel {
    #[new]
    #[pyo3(signature = (text, entry_point=None, overrides=Vec::new(), path=None, features=Vec::new()))]
    fn new(
        py: Python<'_>,
        text: &str,
        entry_point: Option<&str>,
        overrides: Vec<(String, f64)>,
        path: Option<std::path::PathBuf>,
        features: Vec<String>,
    ) -> PyResult<Self> {
        let kernel = detached(py, || {
            let linker = features.iter().fold(Linker::new(), |linker, feature| linker.feature(feature, true));
            let mut kernel = match path {
                Some(path) => cantus::Kernel::linked_file(&linker, path)?,
                None if features.is_empty() => cantus::Kernel::from_wgsl(text)?,
                None => cantus::Kernel::linked(&linker, "wgsl", text)?,
            };
            if let Some(name) = entry_point {
                kernel = kernel.with_entry_point(name)?;
            }
            for (name, value) in overrides {
                kernel = kernel.with_override(&name, value)?;
            }
            kernel.reflection()?;
            Ok(kernel)
        });
        note_kernel();
        Ok(Self { kernel: kernel? })
    }

    /// Returns the WGSL that runs, with what it imports.
    fn wgsl(&self) -> String {
        self.kernel.wgsl().to_owned()
    }

    /// Returns the kernel's reflection: entry point, workgroup size, bindings (name, group, binding, space, access, layout),
    /// textures (name, group, binding, what is read, format, access, type, dimension), samplers (name, group, binding, comparison) and overrides.
    fn reflection<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reflection = self.kernel.reflection().map_err(exception)?;
        let known = PyDict::new(py);
        known.set_item("entry_point", &reflection.entry_point)?;
        known.set_item("workgroup_size", reflection.workgroup_size)?;
        let bindings: Vec<_> = reflection
            .bindings
            .iter()
            .map(|binding| {
                let space = format!("{:?}", binding.space).to_lowercase();
                let writes = binding.access == cantus::kernel::Access::ReadWrite;
                (&binding.name, binding.group, binding.binding, space, writes, binding.layout.to_string())
            })
            .collect();
        known.set_item("bindings", bindings)?;
        let structures = PyDict::new(py);
        for binding in &reflection.bindings {
            if let Some(structure) = structure(&binding.layout) {
                structures.set_item(&binding.name, structure)?;
            }
        }
        known.set_item("structures", structures)?;
        let textures: Vec<_> = reflection
            .textures
            .iter()
            .map(|texture| {
                let format = texture.storage.map(|(format, _)| format.name());
                let writes = texture.storage.is_some_and(|(_, access)| access != StorageTextureAccess::Read);
                let reads = texture.sample_type.to_string();
                let dimension = texture.dimension.name().replace('_', "-");
                (&texture.name, texture.group, texture.binding, reads, format, writes, texture.to_string(), dimension)
            })
            .collect();
        known.set_item("textures", textures)?;
        let samplers: Vec<_> = reflection
            .samplers
            .iter()
            .map(|sampler| (&sampler.name, sampler.group, sampler.binding, sampler.comparison))
            .collect();
        known.set_item("samplers", samplers)?;
        let overrides: Vec<_> =
            reflection.overrides.iter().map(|known| (&known.name, known.scalar.name(), known.value)).collect();
        known.set_item("overrides", overrides)?;
        Ok(known)
    }
}
