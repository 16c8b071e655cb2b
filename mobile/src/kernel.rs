//! Kernels: WGSL text in, what is known about it out.

use std::sync::Arc;

use cantus::kernel::StorageTextureAccess;

use crate::error::{Result, unwound};

/// A compute kernel: WGSL text, an entry point, and values for its override constants.
#[derive(uniffi::Object)]
pub struct Kernel {
    pub(crate) inner: cantus::Kernel,
}

/// One binding of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct BindingInfo {
    /// The variable's name, by which tensors, textures, samplers and uniforms are given.
    pub name: String,
    /// Its WGSL type.
    pub wgsl_type: String,
    /// A uniform, not storage, a texture or a sampler.
    pub uniform: bool,
    /// The kernel may write it.
    pub writable: bool,
}

/// The reflection of a kernel's chosen entry point.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct KernelInfo {
    /// The entry point.
    pub entry_point: String,
    /// Workgroup size in x, y, z.
    pub workgroup_size: Vec<u32>,
    /// The bindings that the entry point uses: buffers, then textures, then samplers.
    pub bindings: Vec<BindingInfo>,
}

#[uniffi::export]
impl Kernel {
    /// A kernel from WGSL text. With one compute entry point it is chosen; with several, call `entry_point`.
    ///
    /// # Errors
    /// `InvalidWgsl` with the place when the text does not parse or validate.
    #[uniffi::constructor]
    pub fn new(wgsl: String) -> Result<Arc<Self>> {
        unwound(|| Ok(Self::shared(cantus::Kernel::from_wgsl(&wgsl)?)))
    }

    /// The same kernel with an entry point chosen.
    ///
    /// # Errors
    /// `EntryPoint` when nothing has that name.
    pub fn entry_point(&self, name: String) -> Result<Arc<Self>> {
        unwound(|| Ok(Self::shared(self.inner.with_entry_point(&name)?)))
    }

    /// The same kernel with an override constant set; booleans are 0 and 1.
    ///
    /// # Errors
    /// `Override` when nothing has that name, or the value does not fit.
    pub fn set_override(&self, name: String, value: f64) -> Result<Arc<Self>> {
        unwound(|| Ok(Self::shared(self.inner.with_override(&name, value)?)))
    }

    /// Bindings and workgroup size of the chosen entry point.
    ///
    /// # Errors
    /// `EntryPoint` when none is chosen, `Override` when an override has no value.
    pub fn info(&self) -> Result<KernelInfo> {
        let reflection = unwound(|| Ok(self.inner.reflection()?))?;
        let bindings = reflection.bindings.iter().map(|binding| BindingInfo {
            name: binding.name.clone(),
            wgsl_type: binding.layout.to_string(),
            uniform: binding.space == cantus::kernel::AddressSpace::Uniform,
            writable: binding.access == cantus::kernel::Access::ReadWrite,
        });
        let textures = reflection.textures.iter().map(|texture| BindingInfo {
            name: texture.name.clone(),
            wgsl_type: texture.to_string(),
            uniform: false,
            writable: texture.storage.is_some_and(|(_, access)| access != StorageTextureAccess::Read),
        });
        let samplers = reflection.samplers.iter().map(|sampler| BindingInfo {
            name: sampler.name.clone(),
            wgsl_type: if sampler.comparison { "sampler_comparison" } else { "sampler" }.to_owned(),
            uniform: false,
            writable: false,
        });
        Ok(KernelInfo {
            entry_point: reflection.entry_point.clone(),
            workgroup_size: reflection.workgroup_size.to_vec(),
            bindings: bindings.chain(textures).chain(samplers).collect(),
        })
    }
}

impl Kernel {
    fn shared(inner: cantus::Kernel) -> Arc<Self> {
        Arc::new(Self { inner })
    }
}
