//! naga's part: parse, validate, reflect, and hand the module to the executor's compiler. `Kernel` holds a `Parsed` and asks it for everything. `parse`
//! runs the front end and naga; `checked` amends and validates; `resolve` applies overrides, anew at each call. The work is done on a thread with a deep
//! stack, and a panic of naga becomes an error that names a declaration.

use std::borrow::Cow;
use std::collections::BTreeMap;

use naga::back::pipeline_constants::{PipelineConstantError, process_overrides};
use naga::valid::{Capabilities, ModuleInfo, SubgroupOperationSet, ValidationFlags, Validator};
use naga::{Handle, Module, Type, TypeInner};

use super::amend;
use super::atomics;
use super::bounds::{self, Excess};
use super::front::{self, Attributes, File, Front, Source};
use super::limit;
use super::textures;
use crate::deep_stack::{self, Failure};
use crate::error::{Error, Result, SourcePlace};
use crate::reflection::{
    Access, AddressSpace, Binding, Features, Layout, MAX_TYPE_DEPTH, Member, Override, Reflection, Scalar,
};
use crate::spmd;
use cantus_base::listed::{Listed, Ordered};

/// A parsed and validated module, before overrides are applied.
#[doc(hidden)]
pub struct Parsed {
    pub(super) source: Source,
    #[doc(hidden)]
    pub module: Module,
    pub(crate) info: ModuleInfo,
    features: Features,
    /// The sizes of workgroups that were laid out in a row, as written, by entry point.
    flattened: Vec<(String, [u32; 3])>,
    /// The module is what the text says, and no other form of it.
    is_plain: bool,
}

/// An entry point with its overrides in force.
#[doc(hidden)]
pub struct Resolved<'a> {
    #[doc(hidden)]
    pub module: Cow<'a, Module>,
    #[doc(hidden)]
    pub info: Cow<'a, ModuleInfo>,
    #[doc(hidden)]
    pub entry_point: usize,
}

/// Notes that a feature is needed.
type Note = fn(&mut Features);

/// The optional capabilities, each with the feature it stands for.
const OPTIONAL: [(Capabilities, Note); 8] = [
    (Capabilities::SHADER_FLOAT16, |features| features.f16 = true),
    (Capabilities::SHADER_INT64, |features| features.int64 = true),
    (Capabilities::FLOAT64, |features| features.float64 = true),
    (Capabilities::SHADER_INT16, |features| features.int16 = true),
    (Capabilities::SUBGROUP.union(Capabilities::SUBGROUP_BARRIER), |features| features.subgroups = true),
    (Capabilities::SHADER_INT64_ATOMIC_MIN_MAX.union(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS), |features| {
        features.int64_atomics = true;
    }),
    (Capabilities::SHADER_FLOAT32_ATOMIC, |features| features.float32_atomics = true),
    (Capabilities::COOPERATIVE_MATRIX, |features| features.cooperative_matrix = true),
];

fn all_capabilities() -> Capabilities {
    let always = Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::CUBE_ARRAY_TEXTURES
        | Capabilities::STORAGE_TEXTURE_16BIT_NORM_FORMATS
        | Capabilities::TEXTURE_EXTERNAL
        // Of render stages beside the kernel.
        | Capabilities::MULTISAMPLED_SHADING
        | Capabilities::CLIP_DISTANCES
        | Capabilities::DUAL_SOURCE_BLENDING;
    OPTIONAL.iter().fold(always, |all, (capability, _)| all | *capability)
}

#[doc(hidden)]
pub fn validator(capabilities: Capabilities) -> Validator {
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::all()).subgroup_operations(SubgroupOperationSet::all());
    validator
}

/// Bytes of a text in which the declaration is searched that an error is about.
const MAX_SEARCHED: usize = 64 << 10;

impl Parsed {
    pub(crate) fn new(file: &File, text: &str) -> Result<Self> {
        match deep_stack::run("cantus-wgsl", || Self::parse(file, text, &|warning| tracing::warn!("{warning}"))) {
            Ok(Err(Error::InvalidWgsl { report, place: None, .. })) => Err(Self::placed(file, report, text)),
            Ok(outcome) => outcome,
            Err(Failure::Panic(_)) => Err(Self::blamed(file, text)),
            Err(failure @ Failure::NoThread(_)) => Err(failed(file, &failure)),
        }
    }

    /// The error for a text at which naga panics, with the first declaration without which it doesn't.
    fn blamed(file: &File, text: &str) -> Error {
        let panics =
            |part: &str| deep_stack::run("cantus-wgsl", || Self::parse(file, part, &|_| ()).map(|_| ())).is_err();
        Self::marked(file, FAILED, text, &panics).unwrap_or_else(|| Error::InvalidWgsl {
            kernel: file.name.clone(),
            report: FAILED.to_owned(),
            place: None,
        })
    }

    /// An error without a place, with the first declaration without which the text hasn't got it.
    fn placed(file: &File, report: String, text: &str) -> Error {
        let message = report.strip_prefix("error: ").unwrap_or(&report).trim_end();
        let fails = |part: &str| {
            let outcome = deep_stack::run("cantus-wgsl", || Self::parse(file, part, &|_| ()).map(|_| ()));
            matches!(outcome, Ok(Err(Error::InvalidWgsl { place: None, .. })))
        };
        let small = text.len() <= MAX_SEARCHED;
        let marked = small.then(|| Self::marked(file, message, text, &fails)).flatten();
        marked.unwrap_or(Error::InvalidWgsl { kernel: file.name.clone(), report, place: None })
    }

    /// A message with the head of the first declaration with which a text fails.
    fn marked(file: &File, message: &str, text: &str, fails: &(dyn Fn(&str) -> bool + Sync)) -> Option<Error> {
        let span = deep_stack::run("cantus-wgsl", || {
            let front = Front::read(text)?;
            let ends = front.ends();
            let until =
                |count: usize| count.checked_sub(1).and_then(|last| ends.get(last)).map_or(0, |&end| end as usize);
            let (mut sound, mut broken) = (0, ends.len());
            while sound + 1 < broken {
                let middle = usize::midpoint(sound, broken);
                if fails(text.get(..until(middle)).unwrap_or_default()) {
                    broken = middle;
                } else {
                    sound = middle;
                }
            }
            let declaration = without_comments(text.get(until(sound)..until(broken))?);
            let start = until(broken) - declaration.len();
            let head = declaration.split('{').next()?.trim_end();
            Some(naga::Span::new(u32::try_from(start).ok()?, u32::try_from(start + head.len()).ok()?))
        });
        let span = span.ok().flatten().filter(|span| span.to_range().is_some_and(|range| !range.is_empty()))?;
        let source = Source::plain(file, text);
        let report = source.report(message.to_owned(), span, "at this declaration".to_owned());
        Some(Error::InvalidWgsl { kernel: file.name.clone(), report, place: source.place(span) })
    }

    pub(super) fn parse(file: &File, text: &str, warn: &dyn Fn(&str)) -> Result<Self> {
        let plain = || Source::plain(file, text);
        // What is left of bitcasts is judged after the rewriting.
        if let Err(fault) = bounds::check(text)
            && fault.kind != Excess::HalfBitcast
        {
            return Err(beyond(&plain(), &fault));
        }
        let Some(front) = Front::read(text) else {
            if front::may_have_attributes(text) {
                let reason = "its @align and @size cannot be checked: the text cannot be followed".to_owned();
                return Err(Error::InvalidWgsl { kernel: file.name.clone(), report: reason, place: None });
            }
            let parsed = Self::of_source(plain(), &Attributes::new())?;
            if front::may_be_collective(text) {
                let reason =
                    "its barriers and subgroup operations cannot be checked: the text cannot be followed".to_owned();
                return Err(Error::InvalidWgsl { kernel: file.name.clone(), report: reason, place: None });
            }
            return Ok(parsed);
        };
        if let Some((span, reason)) = front.excess().or_else(|| front.refusal()) {
            let source = plain();
            let report = source.report(reason, span, "here".to_owned());
            return Err(Error::InvalidWgsl { kernel: file.name.clone(), report, place: source.place(span) });
        }
        let Some(attributes) = front.attributes() else {
            let reason = "an @align or a @size that is no constant number known here: write the number".to_owned();
            return Err(Error::InvalidWgsl { kernel: file.name.clone(), report: reason, place: None });
        };
        // A text that naga takes keeps its bytes, except for what naga gets wrong.
        // Where it panics, the text is rewritten as if it had been refused.
        let corrected = front.corrected(file).unwrap_or_else(plain);
        let parsed = match deep_stack::run("cantus-wgsl", || Self::of_source(corrected, &attributes)) {
            Ok(Ok(parsed)) => parsed,
            refused => match (front.rewritten(file), refused) {
                (Some(source), _) => {
                    let parsed = Self::of_source(source, &attributes)?;
                    Self { flattened: front.flattened(), ..parsed }
                }
                (None, Ok(refused)) => refused?,
                (None, Err(Failure::Panic(text))) => std::panic::resume_unwind(Box::new(text)),
                (None, Err(failure)) => return Err(failed(file, &failure)),
            },
        };
        let (fault, reported) = front.uniformity();
        for fault in reported {
            warn(plain().fault(fault).0.trim_end());
        }
        if let Some(fault) = fault {
            let (report, place) = plain().fault(fault);
            return Err(Error::InvalidWgsl { kernel: file.name.clone(), report, place });
        }
        Ok(Self { is_plain: true, ..parsed })
    }

    fn of_source(source: Source, attributes: &Attributes) -> Result<Self> {
        bounds::check(source.for_naga()).map_err(|fault| beyond(&source, &fault))?;
        let module = naga::front::wgsl::parse_str(source.for_naga()).map_err(|error| source.parse_error(&error))?;
        Self::checked(source, module, Some(attributes))
    }

    /// A module that came as one, on a deep stack. The text is for messages alone, and may be empty.
    pub(super) fn of_naga(file: &str, text: &str, module: Module) -> Result<Self> {
        on_deep_stack(file, || Self::checked(Source::plain(&File::named(file), text), module, None))
    }

    /// Amends naga's module and checks it. `attributes` are the text's, if the module is what the text says.
    fn checked(source: Source, mut module: Module, attributes: Option<&Attributes>) -> Result<Self> {
        let invalid = |report: String, span: Option<naga::Span>| Error::InvalidWgsl {
            kernel: source.file.name.clone(),
            report,
            place: span.and_then(|span| source.place(span)),
        };
        if let Some((span, reason)) = textures::refusal(&module) {
            return Err(invalid(source.report(reason, span, "here".to_owned()), Some(span)));
        }
        // Before functions are copied for their arguments: those that nothing calls are left out then.
        let misused = attributes.and_then(|_| atomics::misused(&module, source.for_naga()));
        if let Some((span, reason)) = misused {
            return Err(invalid(source.report(reason.to_owned(), span, "here".to_owned()), Some(span)));
        }
        if let Some((span, reason)) = amend::arguments::mismatch(&module) {
            return Err(invalid(source.report(reason, span, "here".to_owned()), Some(span)));
        }
        amend::amend(&mut module, attributes.unwrap_or(&Attributes::new())).map_err(|reason| invalid(reason, None))?;
        if let Some(span) = large_type(&module) {
            let report = format!(
                "a type of more than {MAX_TYPE_DEPTH} structures and arrays within each other, or of more than {MAX_TYPE_PARTS} \
                 members (make it simpler)"
            );
            return Err(invalid(report, Some(span)));
        }
        let info = validator(all_capabilities()).validate(&module).map_err(|error| source.invalid(&error))?;
        // Programs on wgpu share structures with atomics between kernels that write them and kernels that only read: naga takes both.
        if let Some((span, reason)) = attributes.and_then(|_| atomics::constant(&module)) {
            return Err(invalid(source.report(reason.to_owned(), span, "here".to_owned()), Some(span)));
        }
        if let Some((span, reason)) = large_variable(&module) {
            return Err(invalid(source.report(reason, span, "too large".to_owned()), Some(span)));
        }
        if let Some(span) = half_bitcast(&module, &info) {
            let report = source.report(Excess::HalfBitcast.to_string(), span, "to or from f16".to_owned());
            return Err(invalid(report, Some(span)));
        }
        Ok(Self::of_module(source, module, info))
    }

    fn of_module(source: Source, module: Module, info: ModuleInfo) -> Self {
        let mut features = Features::default();
        let none = OPTIONAL.iter().fold(all_capabilities(), |all, (capability, _)| all - *capability);
        let needs_any = validator(none).validate(&module).is_err();
        for (capability, note) in OPTIONAL {
            if needs_any && validator(all_capabilities() - capability).validate(&module).is_err() {
                note(&mut features);
            }
        }
        // naga asks for the capability where a type is kept, and keeps none that is only loaded.
        features.cooperative_matrix |= has_matrices(&module);
        Self { source, module, info, features, flattened: Vec::new(), is_plain: false }
    }

    /// The form whose arithmetic has the same bits on every device.
    pub(super) fn reproducible(&self) -> Result<Self> {
        on_deep_stack(&self.source.file, || {
            let refuse = |construct: String, span: naga::Span| Error::Unsupported {
                kernel: self.source.file.name.clone(),
                device: "reproducible mode".to_owned(),
                report: span.to_range().map(|span| self.report(span, &construct)).unwrap_or_default(),
                construct,
            };
            let module = super::reproducible::rewrite(&self.module, &self.info)
                .map_err(|refusal| refuse(refusal.construct, refusal.span))?;
            let info = validator(all_capabilities()).validate(&module).map_err(|error| {
                refuse(format!("its rewriting failed (a defect: please report it): {error:?}"), naga::Span::UNDEFINED)
            })?;
            Ok(Self::of_module(self.source.clone(), module, info))
        })
    }

    /// The pairs of a texture and a sampler that an entry point uses together, by their places in the reflection.
    pub(super) fn sampled(
        &self,
        entry: Option<&str>,
        overrides: &BTreeMap<String, f64>,
    ) -> Result<Vec<(usize, usize)>> {
        let Resolved { module, info, entry_point } = self.resolve(entry, overrides)?;
        Ok(textures::sampled(&textures::find(&module, &info, entry_point), &info, entry_point))
    }

    /// The form of an entry point with buffers in place of textures.
    pub(super) fn lowered(
        &self,
        entry: Option<&str>,
        overrides: &BTreeMap<String, f64>,
        forms: &textures::Forms,
    ) -> Result<Self> {
        on_deep_stack(&self.source.file, || {
            let resolved = self.resolve(entry, overrides)?;
            let name = &resolved.module.entry_points[resolved.entry_point].name;
            let refuse = |construct: String, span: naga::Span| Error::Unsupported {
                kernel: name.clone(),
                device: "kernels with textures".to_owned(),
                report: span.to_range().map(|span| self.report(span, &construct)).unwrap_or_default(),
                construct,
            };
            let module = textures::lowered(&resolved.module, &resolved.info, resolved.entry_point, forms)
                .map_err(|refusal| refuse(refusal.construct, refusal.span))?;
            let info = validator(all_capabilities()).validate(&module).map_err(|error| {
                let text = format!("its rewriting failed (a defect: please report it): {}", error.emit_to_string(""));
                refuse(text, naga::Span::UNDEFINED)
            })?;
            let flattened = self.flattened.clone();
            Ok(Self { flattened, ..Self::of_module(self.source.clone(), module, info) })
        })
    }

    /// The form whose loops end after a number of rounds, and the places of the loops that are counted.
    pub(super) fn limited(&self, rounds: u32) -> Result<(Self, Vec<SourcePlace>)> {
        on_deep_stack(&self.source.file, || {
            let limit::Limited { module, loops } = limit::rewrite(&self.module, rounds);
            let info = validator(all_capabilities()).validate(&module).map_err(|error| self.source.invalid(&error))?;
            let unknown = SourcePlace { line: 0, column: 0, offset: 0, length: 0 };
            let places = loops.into_iter().map(|span| self.source.place(span).unwrap_or(unknown)).listed();
            let flattened = self.flattened.clone();
            Ok((Self { flattened, ..Self::of_module(self.source.clone(), module, info) }, places))
        })
    }

    /// The form whose large tables lie in buffers, and what these hold.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn tabled(&self, most: u64) -> Option<(Self, amend::tables::Tables)> {
        on_deep_stack(&self.source.file, || {
            let Some(amend::tables::Moved { module, tables }) = amend::tables::moved(&self.module, most) else {
                return Ok(None);
            };
            // What does not validate stays as it was.
            let Ok(info) = validator(all_capabilities()).validate(&module) else { return Ok(None) };
            let flattened = self.flattened.clone();
            Ok(Some((Self { flattened, ..Self::of_module(self.source.clone(), module, info) }, tables)))
        })
        .ok()?
    }

    pub(crate) fn entry_points(&self) -> Vec<String> {
        let compute = self.module.entry_points.iter().filter(|entry| entry.stage == naga::ShaderStage::Compute);
        compute.map(|entry| entry.name.clone()).listed()
    }

    fn chosen(&self, entry: Option<&str>) -> Result<String> {
        let available = self.entry_points();
        match entry {
            Some(name) if available.iter().any(|known| known == name) => Ok(name.to_owned()),
            None if available.len() == 1 => Ok(available.into_iter().next().unwrap_or_default()),
            wanted => Err(Error::EntryPoint { wanted: wanted.map(str::to_owned), available }),
        }
    }

    pub(crate) fn check_override(&self, name: &str, value: f64) -> Result<()> {
        let fault = |reason: String| Error::Override { name: name.to_owned(), reason };
        let id = name.parse::<u16>().ok();
        let found = self.module.overrides.iter().find(|(_, candidate)| match candidate.id {
            Some(_) => candidate.id == id && override_name(candidate) == name,
            None => candidate.name.as_deref() == Some(name),
        });
        let Some((_, found)) = found else {
            // Lengths of arrays are overrides without a name.
            let known = self.module.overrides.iter().filter_map(|(_, known)| match (known.id, &known.name) {
                (Some(id), Some(name)) => Some(format!("{id} ({name})")),
                (None, None) => None,
                _ => Some(override_name(known)),
            });
            let known: Vec<String> = known.listed();
            let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(fault(format!("the kernel has no such override (it has: {list})")));
        };
        let scalar = scalar_of_type(&self.module, found.ty);
        let integral = value.fract() == 0.0;
        let fits = match scalar {
            Some(Scalar::Bool) => value == 0.0 || value == 1.0,
            Some(Scalar::I32) => integral && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value),
            Some(Scalar::U32) => integral && (0.0..=f64::from(u32::MAX)).contains(&value),
            Some(Scalar::F16) => value.abs() <= 65504.0,
            Some(Scalar::F32) => value.abs() <= f64::from(f32::MAX),
            _ => value.is_finite(),
        };
        if fits {
            return Ok(());
        }
        let kind = scalar.map_or("its type", Scalar::name);
        if value.is_nan() {
            return Err(fault(format!("it is a {kind}: give a number, or true or false for a bool")));
        }
        Err(fault(format!("{} is not a value of {kind}", shown(value))))
    }

    /// Applies the overrides and finds the entry point.
    #[doc(hidden)]
    pub fn resolve(&self, entry: Option<&str>, overrides: &BTreeMap<String, f64>) -> Result<Resolved<'_>> {
        let name = self.chosen(entry)?;
        let constants = overrides.iter().map(|(name, value)| (name.clone(), *value)).collect();
        let stage = naga::ShaderStage::Compute;
        // naga computes constants once more, and panics at some.
        let resolved = on_deep_stack(&self.source.file, || {
            process_overrides(&self.module, &self.info, Some((stage, &name)), &constants)
                .map_err(|error| self.override_error(error))
        });
        let (module, info) = match resolved {
            // It lacks functions, which our own evaluator of constants has.
            Err(error @ Error::InvalidWgsl { .. }) => match self.with_constants(overrides) {
                Some(Self { module, info, .. }) => (Cow::Owned(module), Cow::Owned(info)),
                None => return Err(error),
            },
            resolved => resolved?,
        };
        if let Some(error) = self.without_value(&name, overrides) {
            return Err(error);
        }
        let entry_point = module
            .entry_points
            .iter()
            .position(|entry| entry.stage == stage && entry.name == name)
            .ok_or_else(|| Error::EntryPoint { wanted: Some(name), available: self.entry_points() })?;
        Ok(Resolved { module, info, entry_point })
    }

    /// A call that has no value for these overrides. naga computes what it can, and looks at no function's domain.
    fn without_value(&self, entry: &str, values: &BTreeMap<String, f64>) -> Option<Error> {
        if self.module.overrides.is_empty() {
            return None;
        }
        let text = self.text_with_constants(values)?;
        let (_, reason) = Front::read(&text)?.outside_domain(entry)?;
        Some(Error::InvalidWgsl {
            kernel: self.source.file.name.clone(),
            report: format!("with its overrides: {reason}"),
            place: None,
        })
    }

    /// The same text with constants in place of the overrides.
    fn with_constants(&self, values: &BTreeMap<String, f64>) -> Option<Self> {
        let text = self.text_with_constants(values)?;
        on_deep_stack(&self.source.file, || self.with_text(&text)).ok()
    }

    fn text_with_constants(&self, values: &BTreeMap<String, f64>) -> Option<String> {
        if !self.is_plain {
            return None;
        }
        let known = self.module.overrides.iter().filter_map(|(_, known)| {
            let value = values.get(&override_name(known));
            let literal = value.map(|&value| literal(scalar_of_type(&self.module, known.ty)?, value));
            Some((known.name.clone()?, literal))
        });
        Front::read(&self.source.text)?.with_constants(&known.collect())
    }

    /// Returns the text that naga read.
    #[doc(hidden)]
    pub fn text(&self) -> &str {
        self.source.for_naga()
    }

    /// Parses another text in place of this one, on this stack.
    #[doc(hidden)]
    pub fn with_text(&self, text: &str) -> Result<Self> {
        Self::parse(&File::named(&self.source.file), text, &|_| ())
    }

    /// Returns its demands on a driver and on a device.
    pub(super) fn demands(&self, entry: Option<&str>, overrides: &BTreeMap<String, f64>) -> Result<super::Demands> {
        let Resolved { module, info, entry_point } = self.resolve(entry, overrides)?;
        Ok(super::Demands::of(&module, &info, entry_point))
    }

    fn override_error(&self, error: PipelineConstantError) -> Error {
        match error {
            PipelineConstantError::MissingValue(name) => Error::Override {
                name,
                reason: "it has no default and no value was set (Kernel::with_override)".to_owned(),
            },
            PipelineConstantError::ValidationError(error) => self.source.invalid(&error),
            PipelineConstantError::NegativeWorkgroupSize => {
                let sizes = self.module.entry_points.iter().filter_map(|entry| entry.workgroup_size_overrides);
                let mut named =
                    sizes.flatten().flatten().filter_map(|side| match self.module.global_expressions[side] {
                        naga::Expression::Override(handle) => Some(override_name(&self.module.overrides[handle])),
                        _ => None,
                    });
                Error::Override {
                    name: named.next().unwrap_or_else(|| "of @workgroup_size".to_owned()),
                    reason: "it makes a side of @workgroup_size less than 1".to_owned(),
                }
            }
            other => Error::InvalidWgsl {
                kernel: self.source.file.name.clone(),
                report: format!("with its overrides: {other}"),
                place: None,
            },
        }
    }

    pub(crate) fn reflect(&self, entry: Option<&str>, overrides: &BTreeMap<String, f64>) -> Result<Reflection> {
        let resolved = self.resolve(entry, overrides)?;
        let module = &*resolved.module;
        let entry_point = &module.entry_points[resolved.entry_point];
        let function_info = resolved.info.get_entry_point(resolved.entry_point);
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
                layout: self.layout(module, global.ty)?,
            });
        }
        bindings.order_by_key(|binding| (binding.group, binding.binding));
        let found = textures::find(module, &resolved.info, resolved.entry_point);
        let shared = found.textures.iter().map(|(texture, _)| (texture.group, texture.binding, &texture.name));
        let shared = shared.chain(found.samplers.iter().map(|(own, _)| (own.group, own.binding, &own.name)));
        let mut places: Vec<(u32, u32, &String)> = shared.listed();
        places.extend(bindings.iter().map(|own| (own.group, own.binding, &own.name)));
        places.sort();
        if let Some([first, second]) =
            places.array_windows().find(|[first, second]| (first.0, first.1) == (second.0, second.1))
        {
            return Err(Error::InvalidWgsl {
                kernel: self.source.file.name.clone(),
                report: format!(
                    "the variables \"{}\" and \"{}\" share @group({}) @binding({})",
                    first.2, second.2, first.0, first.1
                ),
                place: None,
            });
        }
        Ok(Reflection {
            entry_point: entry_point.name.clone(),
            workgroup_size: self.written_size(&entry_point.name).unwrap_or(entry_point.workgroup_size),
            bindings,
            overrides: self.overrides(overrides, module),
            features: self.features,
            workgroup_bytes,
            textures: found.textures.into_iter().map(|(texture, _)| texture).listed(),
            samplers: found.samplers.into_iter().map(|(sampler, _)| sampler).listed(),
        })
    }

    fn written_size(&self, entry: &str) -> Option<[u32; 3]> {
        self.flattened.iter().find(|(name, _)| name == entry).map(|(_, size)| *size)
    }

    /// The overrides with their values, those that the entry point uses as `resolved` has them.
    fn overrides(&self, set: &BTreeMap<String, f64>, resolved: &Module) -> Vec<Override> {
        let default = |module: &Module, found: &naga::Override| {
            found.init.and_then(|init| match module.global_expressions[init] {
                naga::Expression::Literal(literal) => literal_value(literal),
                naga::Expression::ZeroValue(_) => Some(0.0),
                _ => None,
            })
        };
        // Sizes of arrays are overrides without a name.
        let named = self.module.overrides.iter().filter(|(_, found)| found.name.is_some());
        let found = named.map(|(_, found)| {
            let name = override_name(found);
            let computed = || resolved.overrides.iter().find(|(_, known)| override_name(known) == name);
            let value = set.get(&name).copied();
            let value = value.or_else(|| computed().and_then(|(_, found)| default(resolved, found)));
            let value = value.or_else(|| default(&self.module, found));
            Override { name, scalar: scalar_of_type(&self.module, found.ty).unwrap_or(Scalar::F32), value }
        });
        found.listed()
    }

    fn layout(&self, module: &Module, handle: Handle<Type>) -> Result<Layout> {
        let ty = &module.types[handle];
        let refuse = || Error::InvalidWgsl {
            kernel: self.source.file.name.clone(),
            report: format!("the type {} cannot be bound to a buffer", ty.name.as_deref().unwrap_or("of a binding")),
            place: self.source.place(module.types.get_span(handle)),
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
                element: Box::new(self.layout(module, *base)?),
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
                        layout: self.layout(module, member.ty)?,
                    })
                });
                Layout::Struct {
                    name: ty.name.clone().unwrap_or_default(),
                    members: members.try_listed()?,
                    size: *span,
                }
            }
            _ => return Err(refuse()),
        })
    }

    pub(crate) fn compile(&self, entry: Option<&str>, overrides: &BTreeMap<String, f64>) -> Result<spmd::Bytecode> {
        on_deep_stack(&self.source.file, || {
            let resolved = self.resolve(entry, overrides)?;
            spmd::compile(&resolved.module, &resolved.info, resolved.entry_point).map_err(|unsupported| {
                Error::Unsupported {
                    kernel: resolved.module.entry_points[resolved.entry_point].name.clone(),
                    device: "the CPU executor".to_owned(),
                    construct: unsupported.construct.clone(),
                    report: unsupported.span.map(|span| self.report(span, &unsupported.construct)).unwrap_or_default(),
                }
            })
        })
    }

    #[cfg(feature = "translate")]
    pub(crate) fn translate(
        &self,
        entry: Option<&str>,
        overrides: &BTreeMap<String, f64>,
        dialect: crate::translate::Dialect,
        options: &crate::translate::Options,
    ) -> Result<crate::translate::Translation> {
        self.translated(entry, overrides, dialect, |resolved, reflection| {
            let at = resolved.entry_point;
            crate::translate::translate(&resolved.module, &resolved.info, at, reflection, dialect, options)
        })
    }

    /// Translates an entry point.
    #[cfg(feature = "translate")]
    pub(crate) fn translated(
        &self,
        entry: Option<&str>,
        overrides: &BTreeMap<String, f64>,
        dialect: crate::translate::Dialect,
        translate: impl FnOnce(
            &Resolved<'_>,
            &Reflection,
        ) -> std::result::Result<crate::translate::Translation, crate::translate::Unsupported>
        + Send,
    ) -> Result<crate::translate::Translation> {
        on_deep_stack(&self.source.file, || {
            let resolved = self.resolve(entry, overrides)?;
            let reflection = self.reflect(entry, overrides)?;
            translate(&resolved, &reflection).map_err(|unsupported| Error::Unsupported {
                kernel: reflection.entry_point.clone(),
                device: dialect.name().to_owned(),
                construct: unsupported.construct.clone(),
                report: unsupported.span.map(|span| self.report(span, &unsupported.construct)).unwrap_or_default(),
            })
        })
    }

    /// Returns the source with a span marked, in naga's form.
    #[doc(hidden)]
    pub fn report(&self, span: std::ops::Range<usize>, label: &str) -> String {
        let span = naga::Span::new(u32::try_from(span.start).unwrap_or(0), u32::try_from(span.end).unwrap_or(0));
        self.source.report("not supported on this device".to_owned(), span, label.to_owned())
    }
}

/// A text without the comments and spaces that it begins with.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let comment = match rest.get(..2) {
            Some("//") => rest.split_once('\n'),
            Some("/*") => rest.split_once("*/"),
            _ => None,
        };
        match comment {
            Some((_, behind)) => rest = behind.trim_start(),
            None => return rest,
        }
    }
}

/// A number as a person writes it: a large one without its zeros.
pub(super) fn shown(number: f64) -> String {
    if number.abs() < 1e16 { number.to_string() } else { format!("{number:e}") }
}

/// An error for what is beyond a bound.
fn beyond(source: &Source, fault: &bounds::Fault) -> Error {
    let number = |place: usize| u32::try_from(place).unwrap_or(0);
    let span = naga::Span::new(number(fault.span.start), number(fault.span.end));
    let report = source.report(fault.kind.to_string(), span, "here".to_owned());
    Error::InvalidWgsl { kernel: source.file.name.clone(), report, place: source.place(span) }
}

/// Members of a structure, and of the structures in it.
const MAX_TYPE_PARTS: usize = 4096;

/// The first type that nests too deeply or has too many parts. Types come after those that they are made of.
fn large_type(module: &Module) -> Option<naga::Span> {
    let mut known: Vec<(usize, usize)> = Vec::with_capacity(module.types.len());
    for (handle, ty) in module.types.iter() {
        let of = |part: Handle<Type>| known.get(part.index()).copied().unwrap_or((0, 1));
        let (depth, parts) = match &ty.inner {
            TypeInner::Array { base, .. } => (1 + of(*base).0, of(*base).1),
            TypeInner::Struct { members, .. } => {
                let deepest = members.iter().map(|member| of(member.ty).0).max().unwrap_or(0);
                (1 + deepest, members.iter().fold(1_usize, |sum, member| sum.saturating_add(of(member.ty).1)))
            }
            _ => (0, 1),
        };
        if depth > MAX_TYPE_DEPTH || parts > MAX_TYPE_PARTS {
            return Some(module.types.get_span(handle));
        }
        known.push((depth, parts));
    }
    None
}

/// Bytes of all private variables, and of the variables of a function: what the CPU executor has, and no driver hangs over.
const MAX_PRIVATE_BYTES: u32 = 256 << 10;
/// Bytes of all workgroup variables.
const MAX_WORKGROUP_BYTES: u32 = 4 << 20;

/// The first variable that, with those of its kind before it, is larger than any device bears.
fn large_variable(module: &Module) -> Option<(naga::Span, String)> {
    let size = |ty: Handle<Type>| module.types[ty].inner.size(module.to_ctx());
    let reason = |name: Option<&String>, kind: &str, most: u32| {
        let name = name.map_or("?", String::as_str);
        format!("`{name}`: the {kind} have more than {most} bytes together (use a storage buffer)")
    };
    let (mut private, mut workgroup) = (0_u32, 0_u32);
    for (handle, global) in module.global_variables.iter() {
        // Its size is an override's, which may have another value: devices compare it with what they have.
        if matches!(module.types[global.ty].inner, TypeInner::Array { size: naga::ArraySize::Pending(_), .. }) {
            continue;
        }
        let (sum, most, kind) = match global.space {
            naga::AddressSpace::Private => (&mut private, MAX_PRIVATE_BYTES, "private variables"),
            naga::AddressSpace::WorkGroup => (&mut workgroup, MAX_WORKGROUP_BYTES, "workgroup variables"),
            _ => continue,
        };
        *sum = sum.saturating_add(size(global.ty));
        if *sum > most {
            return Some((module.global_variables.get_span(handle), reason(global.name.as_ref(), kind, most)));
        }
    }
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    module.functions.iter().map(|(_, function)| function).chain(entries).find_map(|function| {
        let mut sum = 0_u32;
        function.local_variables.iter().find_map(|(handle, variable)| {
            sum = sum.saturating_add(size(variable.ty));
            let text = || reason(variable.name.as_ref(), "variables of this function", MAX_PRIVATE_BYTES);
            (sum > MAX_PRIVATE_BYTES).then(|| (function.local_variables.get_span(handle), text()))
        })
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

/// Returns whether cooperative matrices are loaded or multiplied.
fn has_matrices(module: &Module) -> bool {
    use naga::Expression::{CooperativeLoad, CooperativeMultiplyAdd};
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    module.functions.iter().map(|(_, function)| function).chain(entries).any(|function| {
        let mut all = function.expressions.iter();
        all.any(|(_, expression)| matches!(expression, CooperativeLoad { .. } | CooperativeMultiplyAdd { .. }))
    })
}

/// The first bitcast whose operand is made of f16: naga 30 keeps the operand's number of components and width, so that `bitcast<u32>` of a
/// `vec2<f16>` is silently computed wrong.
fn half_bitcast(module: &Module, info: &ModuleInfo) -> Option<naga::Span> {
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
    let entries = module.entry_points.iter().enumerate().map(|(i, entry)| (&entry.function, info.get_entry_point(i)));
    for (function, info) in functions.chain(entries) {
        for (handle, expression) in function.expressions.iter() {
            let naga::Expression::As { expr, kind, convert: None } = *expression else { continue };
            let operand = info[expr].ty.inner_with(&module.types).scalar();
            if operand.is_some_and(|scalar| scalar == naga::Scalar::F16 && kind != naga::ScalarKind::Float) {
                return Some(function.expressions.get_span(handle));
            }
        }
    }
    None
}

/// naga recurses over nested source. A failure of that is an error of the text.
#[doc(hidden)]
pub fn on_deep_stack<T: Send>(file: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    deep_stack::run("cantus-wgsl", work).unwrap_or_else(|failure| Err(failed(file, &failure)))
}

const FAILED: &str = "the WGSL front end failed on this text (a defect: please report the kernel)";

fn failed(file: &str, failure: &Failure) -> Error {
    let report = match failure {
        Failure::NoThread(error) => format!("no thread could be started to parse it: {error}"),
        Failure::Panic(_) => FAILED.to_owned(),
    };
    Error::InvalidWgsl { kernel: file.to_owned(), report, place: None }
}

#[doc(hidden)]
pub fn override_name(found: &naga::Override) -> String {
    match (found.id, &found.name) {
        (Some(id), _) => id.to_string(),
        (None, Some(name)) => name.clone(),
        (None, None) => String::new(),
    }
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

#[doc(hidden)]
pub fn scalar_of_type(module: &Module, handle: Handle<Type>) -> Option<Scalar> {
    module.types[handle].inner.scalar().and_then(Scalar::of)
}
