//! naga's part: a text becomes a `Parsed`, the module with its validation, before an entry point is chosen. `parse` runs the front end and naga; `checked`
//! amends and validates. The work is done on a thread with a deep stack, and a panic of naga becomes an error that names a declaration.

use naga::valid::ModuleInfo;
use naga::{Handle, Module, Type, TypeInner};

use super::amend;
use super::atomics;
use super::bounds::{self, Excess};
use super::capabilities;
use super::front::{self, Attributes, File, Front, Source};
use super::limit;
use super::textures;
use crate::deep_stack::{self, Failure};
use crate::error::{Error, OverrideError, Result, SourcePlace};
use crate::reflection::{Features, MAX_TYPE_DEPTH, Scalar};
use cantus_base::listed::Listed;

/// A parsed and validated module, before overrides are applied.
#[doc(hidden)]
pub struct Parsed {
    pub(super) source: Source,
    #[doc(hidden)]
    pub module: Module,
    pub(crate) info: ModuleInfo,
    pub(super) features: Features,
    /// The sizes of workgroups that were laid out in a row, as written, by entry point.
    flattened: Vec<(String, [u32; 3])>,
    /// The module is what the text says, and no other form of it.
    pub(super) is_plain: bool,
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
        let info = capabilities::validate_kernel(&module).map_err(|error| source.invalid(&error))?;
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
        let features = capabilities::features(&module, &info);
        Ok(Self { source, module, info, features, flattened: Vec::new(), is_plain: false })
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
            self.rewritten(module).map_err(|error| {
                refuse(format!("its rewriting failed (a defect: please report it): {error:?}"), naga::Span::UNDEFINED)
            })
        })
    }

    /// The form with a module that was made of this one.
    pub(super) fn rewritten(&self, module: Module) -> std::result::Result<Self, capabilities::Invalid> {
        let info = capabilities::validate_kernel(&module)?;
        let (source, flattened) = (self.source.clone(), self.flattened.clone());
        Ok(Self { features: capabilities::features(&module, &info), source, module, info, flattened, is_plain: false })
    }

    /// The form whose loops end after a number of rounds, and the places of the loops that are counted; `None` if there are none.
    pub(super) fn limited(&self, rounds: u32) -> Result<Option<(Self, Vec<SourcePlace>)>> {
        on_deep_stack(&self.source.file, || {
            let Some(limit::Limited { module, loops }) = limit::rewrite(&self.module, rounds) else { return Ok(None) };
            let limited = self.rewritten(module).map_err(|error| self.source.invalid(&error))?;
            let unknown = SourcePlace { line: 0, column: 0, offset: 0, length: 0 };
            let places = loops.into_iter().map(|span| self.source.place(span).unwrap_or(unknown)).listed();
            Ok(Some((limited, places)))
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
            Ok(self.rewritten(module).ok().map(|tabled| (tabled, tables)))
        })
        .ok()?
    }

    pub(crate) fn entry_points(&self) -> Vec<String> {
        let compute = self.module.entry_points.iter().filter(|entry| entry.stage == naga::ShaderStage::Compute);
        compute.map(|entry| entry.name.clone()).listed()
    }

    pub(super) fn chosen(&self, entry: Option<&str>) -> Result<String> {
        let available = self.entry_points();
        match entry {
            Some(name) if available.iter().any(|known| known == name) => Ok(name.to_owned()),
            None if available.len() == 1 => Ok(available.into_iter().next().unwrap_or_default()),
            wanted => Err(Error::EntryPoint { wanted: wanted.map(str::to_owned), available }),
        }
    }

    pub(crate) fn check_override(&self, name: &str, value: f64) -> Result<()> {
        let error = |fault: OverrideError| Error::Override { name: name.to_owned(), fault };
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
            return Err(error(OverrideError::Unknown(format!("the kernel has no such override (it has: {list})"))));
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
            let reason = format!("it is a {kind}: give a number, or true or false for a bool");
            return Err(error(OverrideError::Value(reason)));
        }
        Err(error(OverrideError::Value(format!("{} is not a value of {kind}", shown(value)))))
    }

    /// The size of an entry point's workgroup as the text has it, if it was laid out in a row.
    pub(super) fn written_size(&self, entry: &str) -> Option<[u32; 3]> {
        self.flattened.iter().find(|(name, _)| name == entry).map(|(_, size)| *size)
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

#[doc(hidden)]
pub fn scalar_of_type(module: &Module, handle: Handle<Type>) -> Option<Scalar> {
    module.types[handle].inner.scalar().and_then(Scalar::of)
}
