//! A kernel as SPIR-V, MSL, HLSL, GLSL or plain WGSL, by naga's writers. For reading, and for programs that bring their own API; no device
//! of Cantus takes its code from here.

use std::collections::BTreeMap;

use naga::ShaderStage;
use naga::back::{glsl, hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};

use super::{Kernel, Scalar, spirv};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

/// A language that naga writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// SPIR-V 1.3, little-endian binary: `@group` is the descriptor set.
    Spirv,
    /// Metal Shading Language 2.4. Buffers take the slots 0, 1, … in the order of the reflection's bindings; the sizes of runtime-sized
    /// arrays come in the slot behind them.
    Msl,
    /// HLSL for shader model 6.6. Registers count up in the order of the reflection's bindings.
    Hlsl,
    /// GLSL ES 3.1 (4.50 for kernels that need more), with the bindings in the order of the reflection's.
    Glsl,
    /// WGSL with the override constants in force.
    Wgsl,
}

impl Language {
    fn name(self) -> &'static str {
        match self {
            Self::Spirv => "SPIR-V",
            Self::Msl => "MSL",
            Self::Hlsl => "HLSL",
            Self::Glsl => "GLSL",
            Self::Wgsl => "WGSL",
        }
    }
}

/// Accesses out of range stay within their binding, as they do on Cantus's devices.
const BOUNDS: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Restrict,
    buffer: BoundsCheckPolicy::Restrict,
    image_load: BoundsCheckPolicy::Restrict,
    binding_array: BoundsCheckPolicy::Restrict,
};

/// Metal has matrices of 8 x 8 alone, HLSL and GLSL have none.
const COOPERATIVE: &str = "cooperative matrices, which SPIR-V, CUDA, HIP and C have";

impl Kernel {
    /// The chosen entry point in another language, overrides in force, accesses guarded, loops bounded and workgroup memory zeroed where
    /// the language does not do so by itself.
    ///
    /// # Errors
    /// As [`Kernel::reflection`], and [`Error::Unsupported`] when the language cannot express the kernel, and for cooperative matrices in all but
    /// SPIR-V and WGSL.
    pub fn write(&self, language: Language) -> Result<Vec<u8>> {
        let entry = self.reflection()?.entry_point.clone();
        let places: BTreeMap<(u32, u32), usize> =
            self.reflection()?.bindings.iter().enumerate().map(|(i, b)| ((b.group, b.binding), i)).mapped();
        let wide_floats = self.reflection()?.features.float64;
        let has_matrices = self.reflection()?.features.cooperative_matrix;
        let resolved = self.resolved()?;
        super::wgsl::on_deep_stack(self.file(), || {
            let mut module = resolved.module().clone();
            let by_all = matches!(language, Language::Msl | Language::Hlsl | Language::Glsl);
            let is_zeroed =
                by_all && super::amend::zeroed::settle(&mut module, resolved.info(), resolved.entry_point());
            super::amend::sizes::settle(&mut module);
            if language != Language::Wgsl {
                super::amend::shifts::settle(&mut module);
            }
            if language == Language::Glsl {
                super::amend::guards::settle(&mut module);
            }
            let chosen = module.entry_points.swap_remove(resolved.entry_point());
            module.entry_points = vec![chosen];
            naga::compact::compact(&mut module, naga::compact::KeepUnused::No);
            let fault = |message: String| Error::Unsupported {
                kernel: entry.clone(),
                device: language.name().to_owned(),
                construct: message,
                report: String::new(),
            };
            let info = super::capabilities::validate(&module).map_err(|error| fault(error.emit_to_string("")))?;
            let job = Job { module: &module, info: &info, entry: &entry, places: &places, is_zeroed };
            if has_matrices && !matches!(language, Language::Spirv | Language::Wgsl) {
                return Err(fault(COOPERATIVE.to_owned()));
            }
            match language {
                Language::Spirv => {
                    let mut words = job.spirv().map_err(|error| fault(error.to_string()))?;
                    if has_matrices {
                        words = spirv::share(&words).map_err(|construct| fault(construct.to_owned()))?;
                    }
                    Ok(words.into_iter().flat_map(u32::to_le_bytes).listed())
                }
                // The writer panics.
                Language::Msl if wide_floats => Err(fault("MSL has no f64".to_owned())),
                Language::Msl => job.msl().map_err(|error| fault(error.to_string())),
                Language::Hlsl if job.floats_to_short_integers() => {
                    Err(fault("a float becomes a 16-bit integer, for which there is no guarded conversion".to_owned()))
                }
                Language::Hlsl => job.hlsl().map_err(|error| {
                    fault(match error {
                        hlsl::Error::UnsupportedScalar(scalar) => has_no(language, scalar),
                        other => other.to_string(),
                    })
                }),
                Language::Glsl => {
                    super::amend::check_glsl(&module).map_err(fault)?;
                    job.glsl().map_err(|error| {
                        fault(match error {
                            glsl::Error::UnsupportedScalar(scalar) => has_no(language, scalar),
                            glsl::Error::MissingFeatures(features) => {
                                let names =
                                    features.iter_names().map(|(name, _)| name.to_lowercase().replace('_', " "));
                                format!("GLSL lacks {}", names.listed().join(", "))
                            }
                            other => other.to_string(),
                        })
                    })
                }
                Language::Wgsl => super::amend::wgsl(&module, &info).map(String::into_bytes).map_err(fault),
            }
        })
    }
}

/// Returns the message that a language lacks a type, by WGSL's name.
fn has_no(language: Language, scalar: naga::Scalar) -> String {
    let name =
        Scalar::of(scalar).map_or_else(|| format!("number of {} bytes", scalar.width), |known| known.name().to_owned());
    format!("{} has no {name}", language.name())
}

struct Job<'a> {
    module: &'a naga::Module,
    info: &'a naga::valid::ModuleInfo,
    entry: &'a str,
    /// Group and binding to the place in the reflection.
    places: &'a BTreeMap<(u32, u32), usize>,
    /// The module sets its workgroup memory to zero itself.
    is_zeroed: bool,
}

impl Job<'_> {
    fn resources(&self) -> impl Iterator<Item = (naga::ResourceBinding, u8)> {
        self.places.iter().map(|(&(group, binding), &place)| {
            (naga::ResourceBinding { group, binding }, u8::try_from(place).unwrap_or(u8::MAX))
        })
    }

    /// Returns whether floats are converted to 16-bit integers: naga's writer of HLSL panics there.
    fn floats_to_short_integers(&self) -> bool {
        let short = |function: &naga::Function, info: &naga::valid::FunctionInfo| {
            function.expressions.iter().any(|(_, expression)| match *expression {
                naga::Expression::As {
                    expr,
                    kind: naga::ScalarKind::Sint | naga::ScalarKind::Uint,
                    convert: Some(2),
                } => info[expr].ty.inner_with(&self.module.types).scalar_kind() == Some(naga::ScalarKind::Float),
                _ => false,
            })
        };
        self.module.functions.iter().any(|(handle, function)| short(function, &self.info[handle]))
            || self
                .module
                .entry_points
                .iter()
                .enumerate()
                .any(|(place, entry)| short(&entry.function, self.info.get_entry_point(place)))
    }

    fn spirv(&self) -> std::result::Result<Vec<u32>, spv::Error> {
        let options = spv::Options {
            lang_version: (1, 3),
            flags: spv::WriterFlags::empty(),
            bounds_check_policies: BOUNDS,
            ..spv::Options::default()
        };
        let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: self.entry.to_owned() };
        spv::write_vec(self.module, self.info, &options, Some(&pipeline))
    }

    fn msl(&self) -> std::result::Result<Vec<u8>, msl::Error> {
        let mut resources = msl::EntryPointResources::default();
        for (binding, slot) in self.resources() {
            let mutable = self.module.global_variables.iter().any(|(_, global)| {
                global.binding == Some(binding)
                    && matches!(global.space, naga::AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE))
            });
            let target = msl::BindTarget { buffer: Some(slot), mutable, ..msl::BindTarget::default() };
            resources.resources.insert(binding, target);
        }
        resources.sizes_buffer = u8::try_from(self.places.len()).ok();
        let options = msl::Options {
            lang_version: (2, 4),
            per_entry_point_map: std::iter::once((self.entry.to_owned(), resources)).mapped(),
            fake_missing_bindings: false,
            bounds_check_policies: BOUNDS,
            zero_initialize_workgroup_memory: !self.is_zeroed,
            ..msl::Options::default()
        };
        let pipeline = msl::PipelineOptions {
            entry_point: Some((ShaderStage::Compute, self.entry.to_owned())),
            ..msl::PipelineOptions::default()
        };
        let (text, info) = msl::write_string(self.module, self.info, &options, &pipeline)?;
        // The writer notes what it could not write for an entry point beside the text.
        for outcome in info.entry_point_names {
            outcome.map_err(|error| msl::Error::GenericValidation(error.to_string()))?;
        }
        Ok(text.into_bytes())
    }

    fn hlsl(&self) -> std::result::Result<Vec<u8>, hlsl::Error> {
        let mut options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_6,
            fake_missing_bindings: false,
            zero_initialize_workgroup_memory: !self.is_zeroed,
            ..hlsl::Options::default()
        };
        for (binding, register) in self.resources() {
            let target = hlsl::BindTarget { register: register.into(), ..hlsl::BindTarget::default() };
            options.binding_map.insert(binding, target);
        }
        let pipeline = hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, self.entry.to_owned())) };
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &pipeline).write(self.module, self.info, None)?;
        Ok(text.into_bytes())
    }

    fn glsl(&self) -> std::result::Result<Vec<u8>, glsl::Error> {
        let desktop = || self.glsl_version(glsl::Version::Desktop(450));
        if self.has_float_atomics() {
            desktop()
        } else {
            self.glsl_version(glsl::Version::new_gles(310)).or_else(|_| desktop())
        }
    }

    fn has_float_atomics(&self) -> bool {
        let is_float = |scalar: &naga::Scalar| scalar.kind == naga::ScalarKind::Float;
        self.module.types.iter().any(|(_, ty)| matches!(&ty.inner, naga::TypeInner::Atomic(scalar) if is_float(scalar)))
    }

    /// Extensions that the text needs and naga does not ask for.
    fn lacking_extensions(&self, text: &str) -> Vec<&'static str> {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let wanted = [
            (has(&["int16_t", "i16vec", "u16vec"]), "GL_EXT_shader_explicit_arithmetic_types_int16"),
            (has(&["int16_t", "i16vec", "u16vec"]), "GL_EXT_shader_16bit_storage"),
            (has(&["gl_Subgroup", "gl_NumSubgroups"]), "GL_KHR_shader_subgroup_basic"),
            (self.has_float_atomics(), "GL_EXT_shader_atomic_float"),
        ];
        let lacking = wanted.into_iter().filter(|(needed, name)| *needed && !text.contains(name));
        lacking.map(|(_, name)| name).listed()
    }

    fn glsl_version(&self, version: glsl::Version) -> std::result::Result<Vec<u8>, glsl::Error> {
        let options = glsl::Options {
            version,
            writer_flags: glsl::WriterFlags::empty(),
            binding_map: self.resources().mapped(),
            zero_initialize_workgroup_memory: !self.is_zeroed,
        };
        let pipeline = glsl::PipelineOptions {
            shader_stage: ShaderStage::Compute,
            entry_point: self.entry.to_owned(),
            multiview: None,
        };
        let mut text = String::new();
        glsl::Writer::new(&mut text, self.module, self.info, &options, &pipeline, BOUNDS)?.write()?;
        // Behind the line of the version.
        if let Some(at) = text.find('\n') {
            for name in self.lacking_extensions(&text) {
                text.insert_str(at + 1, &format!("#extension {name} : require\n"));
            }
        }
        Ok(text.into_bytes())
    }
}
