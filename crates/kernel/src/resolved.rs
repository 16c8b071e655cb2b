//! An entry point with its overrides in force: the module that devices compile. A kernel resolves each of its texts once and keeps the result; reflection,
//! demands, bytecode, translations and the form for textures are made of it. Where nothing is left open in a text, the module is the parsed one. Otherwise
//! naga makes another, without the overrides and what the entry point does not reach, and validates it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use naga::back::pipeline_constants::{PipelineConstantError, process_overrides};
use naga::valid::ModuleInfo;
use naga::{Handle, Module, ShaderStage, Type, TypeInner};

use super::front::Front;
use super::textures;
use super::wgsl::{Parsed, on_deep_stack, override_name, scalar_of_type};
use crate::error::{Error, OverrideError, Result};
use crate::reflection::{Access, AddressSpace, Binding, Layout, Member, Override, Reflection, Scalar};
use crate::spmd;
#[cfg(feature = "translate")]
use crate::translate;
use cantus_base::listed::{Listed, Ordered};

/// An entry point with its overrides in force.
#[doc(hidden)]
pub struct Resolved {
    parsed: Arc<Parsed>,
    overrides: BTreeMap<String, f64>,
    /// The module, if it is not the parsed one.
    own: Option<(Module, ModuleInfo)>,
    entry_point: usize,
}

impl Resolved {
    /// Applies the overrides and finds the entry point.
    #[doc(hidden)]
    pub fn new(parsed: &Arc<Parsed>, entry: Option<&str>, overrides: &BTreeMap<String, f64>) -> Result<Self> {
        let name = parsed.chosen(entry)?;
        let is_compute = |entry: &naga::EntryPoint| entry.stage == ShaderStage::Compute && entry.name == name;
        let own = if overrides.is_empty() && parsed.module.overrides.is_empty() && parsed.module.entry_points.len() <= 1
        {
            None
        } else {
            in_force(parsed, &name, overrides)?
        };
        if let Some(error) = without_value(parsed, &name, overrides) {
            return Err(error);
        }
        let module = own.as_ref().map_or(&parsed.module, |(module, _)| module);
        let Some(entry_point) = module.entry_points.iter().position(is_compute) else {
            return Err(Error::EntryPoint { wanted: Some(name), available: parsed.entry_points() });
        };
        Ok(Self { parsed: parsed.clone(), overrides: overrides.clone(), own, entry_point })
    }

    /// Returns the module; its overrides are in force.
    #[doc(hidden)]
    #[must_use]
    pub fn module(&self) -> &Module {
        self.own.as_ref().map_or(&self.parsed.module, |(module, _)| module)
    }

    /// Returns what naga's validator found out of the module.
    #[doc(hidden)]
    #[must_use]
    pub fn info(&self) -> &ModuleInfo {
        self.own.as_ref().map_or(&self.parsed.info, |(_, info)| info)
    }

    /// Returns the entry point's place in the module.
    #[doc(hidden)]
    #[must_use]
    pub fn entry_point(&self) -> usize {
        self.entry_point
    }

    /// Returns the entry point's name.
    #[doc(hidden)]
    #[must_use]
    pub fn name(&self) -> &str {
        self.module().entry_points.get(self.entry_point).map_or("", |entry| &entry.name)
    }

    /// The pairs of a texture and a sampler that it uses together, by their places in the reflection.
    pub(super) fn sampled(&self) -> Vec<(usize, usize)> {
        textures::sampled(&self.textures(), self.info(), self.entry_point)
    }

    /// The textures and samplers that it uses.
    pub(super) fn textures(&self) -> textures::Found {
        textures::find(self.module(), self.info(), self.entry_point)
    }

    /// The form with buffers in place of textures.
    pub(super) fn lowered(&self, forms: &textures::Forms) -> Result<Parsed> {
        let parsed = &self.parsed;
        on_deep_stack(&parsed.source.file, || {
            let refuse = |construct: String, span: naga::Span| Error::Unsupported {
                kernel: self.name().to_owned(),
                device: "kernels with textures".to_owned(),
                report: span.to_range().map(|span| parsed.report(span, &construct)).unwrap_or_default(),
                construct,
            };
            let module = textures::lowered(self.module(), self.info(), self.entry_point, forms)
                .map_err(|refusal| refuse(refusal.construct, refusal.span))?;
            parsed.rewritten(module).map_err(|error| {
                let text = format!("its rewriting failed (a defect: please report it): {}", error.emit_to_string(""));
                refuse(text, naga::Span::UNDEFINED)
            })
        })
    }

    /// Returns its demands on a driver and on a device.
    pub(super) fn demands(&self) -> super::Demands {
        super::Demands::of(self.module(), self.info(), self.entry_point)
    }

    pub(crate) fn reflect(&self) -> Result<Reflection> {
        let parsed = &self.parsed;
        let module = self.module();
        let entry_point = &module.entry_points[self.entry_point];
        let function_info = self.info().get_entry_point(self.entry_point);
        let mut bindings = Vec::new();
        let mut workgroup_bytes = 0_u32;
        for (handle, global) in module.global_variables.iter() {
            if function_info[handle].is_empty() {
                continue;
            }
            if global.space == naga::AddressSpace::WorkGroup {
                let size = module.types[global.ty].inner.size(module.to_ctx());
                workgroup_bytes = workgroup_bytes.saturating_add(size.div_ceil(16).saturating_mul(16));
            }
            let (Some(place), Some(space)) = (&global.binding, address_space(global.space)) else { continue };
            let writes = matches!(global.space, naga::AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE));
            bindings.push(Binding {
                name: global.name.clone().unwrap_or_else(|| format!("binding_{}_{}", place.group, place.binding)),
                group: place.group,
                binding: place.binding,
                space,
                access: if writes { Access::ReadWrite } else { Access::Read },
                layout: layout(parsed, module, global.ty)?,
            });
        }
        bindings.order_by_key(|binding| (binding.group, binding.binding));
        let found = self.textures();
        let shared = found.textures.iter().map(|(texture, _)| (texture.group, texture.binding, &texture.name));
        let shared = shared.chain(found.samplers.iter().map(|(own, _)| (own.group, own.binding, &own.name)));
        let mut places: Vec<(u32, u32, &String)> = shared.listed();
        places.extend(bindings.iter().map(|own| (own.group, own.binding, &own.name)));
        places.sort();
        if let Some([first, second]) =
            places.array_windows().find(|[first, second]| (first.0, first.1) == (second.0, second.1))
        {
            return Err(Error::InvalidWgsl {
                kernel: parsed.source.file.name.clone(),
                report: format!(
                    "the variables \"{}\" and \"{}\" share @group({}) @binding({})",
                    first.2, second.2, first.0, first.1
                ),
                place: None,
            });
        }
        Ok(Reflection {
            entry_point: entry_point.name.clone(),
            workgroup_size: parsed.written_size(&entry_point.name).unwrap_or(entry_point.workgroup_size),
            bindings,
            overrides: self.overrides(),
            features: parsed.features,
            workgroup_bytes,
            textures: found.textures.into_iter().map(|(texture, _)| texture).listed(),
            samplers: found.samplers.into_iter().map(|(sampler, _)| sampler).listed(),
        })
    }

    /// The overrides with their values, those that the entry point uses as the module has them.
    fn overrides(&self) -> Vec<Override> {
        let (parsed, resolved) = (&self.parsed.module, self.module());
        let default = |module: &Module, found: &naga::Override| {
            found.init.and_then(|init| match module.global_expressions[init] {
                naga::Expression::Literal(literal) => literal_value(literal),
                naga::Expression::ZeroValue(_) => Some(0.0),
                _ => None,
            })
        };
        // Sizes of arrays are overrides without a name.
        let named = parsed.overrides.iter().filter(|(_, found)| found.name.is_some());
        let found = named.map(|(_, found)| {
            let name = override_name(found);
            let computed = || resolved.overrides.iter().find(|(_, known)| override_name(known) == name);
            let value = self.overrides.get(&name).copied();
            let value = value.or_else(|| computed().and_then(|(_, found)| default(resolved, found)));
            let value = value.or_else(|| default(parsed, found));
            Override { name, scalar: scalar_of_type(parsed, found.ty).unwrap_or(Scalar::F32), value }
        });
        found.listed()
    }

    pub(crate) fn compile(&self) -> Result<spmd::Bytecode> {
        on_deep_stack(&self.parsed.source.file, || {
            spmd::compile(self.module(), self.info(), self.entry_point).map_err(|unsupported| Error::Unsupported {
                kernel: self.name().to_owned(),
                device: "the CPU executor".to_owned(),
                report: self.report(unsupported.span, &unsupported.construct),
                construct: unsupported.construct,
            })
        })
    }

    /// Translates the entry point.
    #[cfg(feature = "translate")]
    pub(crate) fn translate(
        &self,
        dialect: translate::Dialect,
        translate: impl FnOnce(&Self, &Reflection) -> Result<translate::Translation, translate::Unsupported> + Send,
    ) -> Result<translate::Translation> {
        on_deep_stack(&self.parsed.source.file, || {
            translate(self, &self.reflect()?).map_err(|unsupported| Error::Unsupported {
                kernel: self.name().to_owned(),
                device: dialect.name().to_owned(),
                report: self.report(unsupported.span, &unsupported.construct),
                construct: unsupported.construct,
            })
        })
    }

    /// The source with the place of a construct marked, if it has one.
    fn report(&self, span: Option<std::ops::Range<usize>>, construct: &str) -> String {
        span.map(|span| self.parsed.report(span, construct)).unwrap_or_default()
    }
}

/// The module with the overrides in force, if it is another one: naga makes and validates it.
fn in_force(parsed: &Parsed, name: &str, values: &BTreeMap<String, f64>) -> Result<Option<(Module, ModuleInfo)>> {
    let constants = values.iter().map(|(name, value)| (name.clone(), *value)).collect();
    // naga computes constants once more, and panics at some.
    let resolved = on_deep_stack(&parsed.source.file, || {
        let resolved = process_overrides(&parsed.module, &parsed.info, Some((ShaderStage::Compute, name)), &constants);
        match resolved.map_err(|error| override_error(parsed, error))? {
            (Cow::Owned(module), Cow::Owned(info)) => Ok(Some((module, info))),
            _ => Ok(None),
        }
    });
    match resolved {
        // It lacks functions, which our own evaluator of constants has.
        Err(error @ Error::InvalidWgsl { .. }) => match with_constants(parsed, values) {
            Some(Parsed { module, info, .. }) => Ok(Some((module, info))),
            None => Err(error),
        },
        resolved => resolved,
    }
}

/// A call that has no value for these overrides. naga computes what it can, and looks at no function's domain.
fn without_value(parsed: &Parsed, entry: &str, values: &BTreeMap<String, f64>) -> Option<Error> {
    if parsed.module.overrides.is_empty() {
        return None;
    }
    let text = text_with_constants(parsed, values)?;
    let (_, reason) = Front::read(&text)?.outside_domain(entry)?;
    Some(Error::InvalidWgsl {
        kernel: parsed.source.file.name.clone(),
        report: format!("with its overrides: {reason}"),
        place: None,
    })
}

/// The same text with constants in place of the overrides.
fn with_constants(parsed: &Parsed, values: &BTreeMap<String, f64>) -> Option<Parsed> {
    let text = text_with_constants(parsed, values)?;
    on_deep_stack(&parsed.source.file, || parsed.with_text(&text)).ok()
}

fn text_with_constants(parsed: &Parsed, values: &BTreeMap<String, f64>) -> Option<String> {
    if !parsed.is_plain {
        return None;
    }
    let known = parsed.module.overrides.iter().filter_map(|(_, known)| {
        let value = values.get(&override_name(known));
        let literal = value.map(|&value| literal(scalar_of_type(&parsed.module, known.ty)?, value));
        Some((known.name.clone()?, literal))
    });
    Front::read(&parsed.source.text)?.with_constants(&known.collect())
}

fn override_error(parsed: &Parsed, error: PipelineConstantError) -> Error {
    match error {
        PipelineConstantError::MissingValue(name) => Error::Override {
            name,
            fault: OverrideError::Unset("it has no default and no value was set (Kernel::with_override)".to_owned()),
        },
        PipelineConstantError::ValidationError(error) => parsed.source.invalid(&error),
        PipelineConstantError::NegativeWorkgroupSize => {
            let sizes = parsed.module.entry_points.iter().filter_map(|entry| entry.workgroup_size_overrides);
            let mut named = sizes.flatten().flatten().filter_map(|side| match parsed.module.global_expressions[side] {
                naga::Expression::Override(handle) => Some(override_name(&parsed.module.overrides[handle])),
                _ => None,
            });
            Error::Override {
                name: named.next().unwrap_or_else(|| "of @workgroup_size".to_owned()),
                fault: OverrideError::Value("it makes a side of @workgroup_size less than 1".to_owned()),
            }
        }
        other => Error::InvalidWgsl {
            kernel: parsed.source.file.name.clone(),
            report: format!("with its overrides: {other}"),
            place: None,
        },
    }
}

fn layout(parsed: &Parsed, module: &Module, handle: Handle<Type>) -> Result<Layout> {
    let ty = &module.types[handle];
    let refuse = || Error::InvalidWgsl {
        kernel: parsed.source.file.name.clone(),
        report: format!("the type {} cannot be bound to a buffer", ty.name.as_deref().unwrap_or("of a binding")),
        place: parsed.source.place(module.types.get_span(handle)),
    };
    let scalar_of = |scalar: naga::Scalar| Scalar::of(scalar).ok_or_else(refuse);
    Ok(match &ty.inner {
        TypeInner::Scalar(scalar) => Layout::Scalar(scalar_of(*scalar)?),
        TypeInner::Atomic(scalar) => Layout::Atomic(scalar_of(*scalar)?),
        TypeInner::Vector { size, scalar } => Layout::Vector(*size as u8, scalar_of(*scalar)?),
        TypeInner::Matrix { columns, rows, scalar } => {
            // A column is laid out like a vector of `rows`, aligned to 2 or 4 elements.
            let aligned = if *rows == naga::VectorSize::Bi { 2 } else { 4 };
            Layout::Matrix {
                columns: *columns as u8,
                rows: *rows as u8,
                scalar: scalar_of(*scalar)?,
                stride: aligned * u32::from(scalar.width),
            }
        }
        TypeInner::Array { base, size, stride } => Layout::Array {
            element: Box::new(layout(parsed, module, *base)?),
            count: match size {
                naga::ArraySize::Constant(count) => Some(count.get()),
                naga::ArraySize::Dynamic => None,
                naga::ArraySize::Pending(_) => return Err(refuse()),
            },
            stride: *stride,
        },
        TypeInner::Struct { members, span } => {
            let members = members.iter().map(|member| {
                Ok::<_, Error>(Member {
                    name: member.name.clone().unwrap_or_default(),
                    offset: member.offset,
                    layout: layout(parsed, module, member.ty)?,
                })
            });
            Layout::Struct { name: ty.name.clone().unwrap_or_default(), members: members.try_listed()?, size: *span }
        }
        _ => return Err(refuse()),
    })
}

/// A value in WGSL, with its type; nothing where its text has another value.
fn literal(scalar: Scalar, value: f64) -> Option<String> {
    Some(match scalar {
        Scalar::Bool => (value != 0.0).to_string(),
        Scalar::I32 => format!("i32({})", value as i64),
        Scalar::U32 => format!("u32({})", value as i64),
        Scalar::F32 => format!("f32({:e})", f64::from(value as f32)),
        Scalar::F16 => format!("f16({:e})", half::f16::from_f64(value).to_f64()),
        _ => return None,
    })
}

fn literal_value(literal: naga::Literal) -> Option<f64> {
    Some(match literal {
        naga::Literal::Bool(value) => f64::from(u8::from(value)),
        naga::Literal::I32(value) => f64::from(value),
        naga::Literal::U32(value) => f64::from(value),
        naga::Literal::F32(value) => f64::from(value),
        naga::Literal::F16(value) => value.to_f64(),
        naga::Literal::F64(value) => value,
        _ => return None,
    })
}

fn address_space(space: naga::AddressSpace) -> Option<AddressSpace> {
    match space {
        naga::AddressSpace::Uniform => Some(AddressSpace::Uniform),
        naga::AddressSpace::Storage { .. } => Some(AddressSpace::Storage),
        _ => None,
    }
}
