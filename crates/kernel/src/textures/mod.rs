//! Textures and samplers: what a kernel has of them, and the form of a kernel that has none.
//!
//! # What comes in
//! A validated module with one entry point, and the `Forms` of what a dispatch binds: format, one level or several, samples, which earlier texture has the
//! same texels, and the modes of samplers. `crates/engine/src/engine/texture` describes what is bound; sizes are not part of a form.
//!
//! # Stages
//! 1. **Find** (`find`, `sampled`): the textures and samplers that the entry point uses, and which are used together. `refusal` names what no compute
//!    kernel of core WGSL has.
//! 2. **Lower** (`lowered`). Each texture becomes a buffer of texels, each sampler goes, and one hidden uniform, `cantus_textures`, has all sizes, offsets
//!    of levels, and clamps.
//! 3. **Rewrite bodies** (`body`), statement by statement. A builtin becomes a call into `shaders/lib/texture.wgsl`, whose functions are copied into the
//!    module for the literals of the call: format, shape, modes.
//! 4. **Fold** (`fold`). Branches of the copies on these literals are decided, so a load of `rgba8unorm` is an index, a load and an unpack.
//!
//! # What holds
//! - Writers and devices never see a texture, except an app's own (`TextureForm::own`): its variable and the builtins on it remain, and so does a sampler
//!   that is used with it. Only the wgpu backend gets such forms.
//! - Each texel has words of its own, so kernels that write neighbouring texels never share a word.
//! - A form is bounded: `MOST_COPIES` copies of functions, `DEEPEST` calls within each other.
//!
//! # What is surprising
//! - Textures with the same texels share a buffer, because a buffer that is written may not be bound twice.
//! - A sampler that is used with an app's own texture and with another one is both: a sampler, and literals.
//! - The library's functions take pointers to storage, which naga's validator refuses. They are copied with the buffer in the pointer's place.
//!
//! # An example
//! `textureLoad(image, id.xy, 0)` with `image` of `rgba8unorm`. The call gives the copied function the literals of the format and of one level, the vectors
//! of `cantus_textures` that describe the image, and the coordinates. Its `switch` over formats is decided: what remains compares with the sizes, computes
//! a place, loads a word and unpacks it.

mod body;
mod fold;

use std::collections::HashMap;
use std::sync::LazyLock;

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, Arena, ArraySize, Expression, Function, GlobalVariable, Handle, ImageClass, ImageDimension, Literal,
    Module, ResourceBinding, SampleLevel, Scalar, ScalarKind, ShaderStage, Span, Statement, StorageAccess,
    StorageFormat, Type, TypeInner, VectorSize,
};

use body::Body;
use cantus_base::listed::Listed;
use cantus_base::texture::{
    ChannelType, Packing, SampleType, SamplerBinding, StorageTextureAccess, TextureBinding, TextureFormat,
    ViewDimension,
};

/// Vectors of a texture in the uniform (its sizes, and the offsets of 16 levels), and of a sampler.
pub(super) const TEXTURE_SLOTS: u32 = 5;
pub(super) const SAMPLER_SLOTS: u32 = 1;
/// Copies of functions that are made for their textures and literals, at most.
const MOST_COPIES: usize = 4096;
/// Calls within each other, at most.
const DEEPEST: u32 = 200;

/// The facts about a bound texture for which a kernel is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct TextureForm {
    pub format: TextureFormat,
    /// True if it has more than one level.
    pub has_levels: bool,
    pub samples: u32,
    /// The earlier texture of the kernel whose buffer it shares.
    pub shares: Option<u32>,
    /// `Some` for a texture of the device's own API, which remains one; whether it is filterable.
    pub own: Option<bool>,
}

impl TextureForm {
    /// Returns the form of every texture of the device's own API: the driver knows the rest.
    #[must_use]
    pub fn own(filterable: bool) -> Self {
        Self { format: TextureFormat::Rgba8Unorm, has_levels: false, samples: 1, shares: None, own: Some(filterable) }
    }
}

/// The facts about all bound resources, in the reflection's order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct Forms {
    pub textures: Vec<TextureForm>,
    /// The modes of the samplers.
    pub samplers: Vec<u32>,
}

impl Forms {
    /// Returns the forms assumed for a kernel that is bound to nothing.
    pub(super) fn assumed(textures: &[TextureBinding], samplers: &[SamplerBinding]) -> Self {
        let texture = |binding: &TextureBinding| TextureForm {
            format: match (&binding.storage, binding.sample_type) {
                (Some((format, _)), _) => *format,
                (None, SampleType::Float) => TextureFormat::Rgba8Unorm,
                (None, SampleType::Uint) => TextureFormat::Rgba8Uint,
                (None, SampleType::Sint) => TextureFormat::Rgba8Sint,
                (None, SampleType::Depth) => TextureFormat::Depth32Float,
            },
            has_levels: false,
            samples: if binding.multisampled { 4 } else { 1 },
            shares: None,
            own: None,
        };
        Self {
            textures: textures.iter().map(texture).listed(),
            samplers: samplers.iter().map(|binding| binding.usual().to_words()[0]).listed(),
        }
    }
}

/// A format, as the library takes it.
fn code(format: TextureFormat) -> u32 {
    let channel = match format.channel_type() {
        ChannelType::Unorm => 0,
        ChannelType::Snorm => 1,
        ChannelType::Uint => 2,
        ChannelType::Sint => 3,
        ChannelType::Float => 4,
    };
    let (kind, bytes) = match format.packing() {
        Packing::Channels(bits) => (channel, bits.trailing_zeros().saturating_sub(3)),
        Packing::Rgb10a2 if channel == 2 => (8, 0),
        Packing::Rgb10a2 => (5, 0),
        Packing::Rg11b10 => (6, 0),
        Packing::Rgb9e5 => (7, 0),
    };
    kind | bytes << 4
        | format.channels() << 6
        | u32::from(format.is_bgra()) << 9
        | u32::from(format.is_srgb()) << 10
        | format.words() << 11
}

/// Why a kernel's textures cannot be run, and where.
pub(super) struct Refusal {
    pub(super) construct: String,
    pub(super) span: Span,
}

type Outcome<T> = Result<T, Refusal>;

fn refuse<T>(construct: impl Into<String>, span: Span) -> Outcome<T> {
    Err(Refusal { construct: construct.into(), span })
}

/// Finds the constructs that no compute kernel of core WGSL has: other handles, and samples whose level of detail comes from
/// neighbouring pixels.
pub(super) fn refusal(module: &Module) -> Option<(Span, String)> {
    let implicit = computing(module).into_iter().find_map(|function| {
        let mut all = function.expressions.iter();
        let found = all.find(|(_, expression)| {
            matches!(expression, Expression::ImageSample { level: SampleLevel::Auto | SampleLevel::Bias(_), .. })
        });
        found.map(|(handle, _)| function.expressions.get_span(handle))
    });
    if let Some(span) = implicit {
        let reason = "a level of detail from neighbouring pixels, which a compute kernel does not have: use textureSampleLevel or \
                      textureSampleCompareLevel";
        return Some((span, reason.to_owned()));
    }
    module.global_variables.iter().find_map(|(handle, global)| {
        if global.space != AddressSpace::Handle {
            return None;
        }
        let reason = match &module.types[global.ty].inner {
            TypeInner::Image { class: ImageClass::Storage { format: StorageFormat::R64Uint, .. }, .. } => {
                "r64uint is no format of WGSL: use rg32uint"
            }
            TypeInner::Image { .. } | TypeInner::Sampler { .. } => return None,
            TypeInner::BindingArray { .. } => "binding_array is no type of WGSL: use a texture with layers",
            _ => "it is no buffer, texture or sampler",
        };
        let name = global.name.as_deref().unwrap_or("?");
        Some((module.global_variables.get_span(handle), format!("the variable \"{name}\": {reason}")))
    })
}

/// The compute entry points, and the functions that they reach: a file may have render stages beside them.
fn computing(module: &Module) -> Vec<&Function> {
    let mut functions: Vec<&Function> = Vec::new();
    let mut is_known = vec![false; module.functions.len()];
    let entries = module.entry_points.iter().filter(|entry| entry.stage == ShaderStage::Compute);
    let mut open: Vec<&Function> = entries.map(|entry| &entry.function).listed();
    while let Some(function) = open.pop() {
        functions.push(function);
        let mut blocks = vec![&function.body];
        while let Some(block) = blocks.pop() {
            for statement in block.iter() {
                if let Statement::Call { function, .. } = statement
                    && !std::mem::replace(&mut is_known[function.index()], true)
                {
                    open.push(&module.functions[*function]);
                }
                blocks.extend(crate::flow::blocks(statement));
            }
        }
    }
    functions
}

/// The textures and samplers that an entry point uses, by group and binding, with their variables.
pub(super) struct Found {
    pub(super) textures: Vec<(TextureBinding, Handle<GlobalVariable>)>,
    pub(super) samplers: Vec<(SamplerBinding, Handle<GlobalVariable>)>,
}

pub(super) fn find(module: &Module, info: &ModuleInfo, entry_point: usize) -> Found {
    let used = info.get_entry_point(entry_point);
    let mut found = Found { textures: Vec::new(), samplers: Vec::new() };
    for (handle, global) in module.global_variables.iter() {
        let Some(place) = global.binding.filter(|_| !used[handle].is_empty()) else { continue };
        let name = global.name.clone().unwrap_or_else(|| format!("binding_{}_{}", place.group, place.binding));
        let (group, binding) = (place.group, place.binding);
        match module.types[global.ty].inner {
            TypeInner::Image { dim, arrayed, class } => {
                let dimension = match (dim, arrayed) {
                    (ImageDimension::D1, _) => ViewDimension::D1,
                    (ImageDimension::D2, false) => ViewDimension::D2,
                    (ImageDimension::D2, true) => ViewDimension::D2Array,
                    (ImageDimension::D3, _) => ViewDimension::D3,
                    (ImageDimension::Cube, false) => ViewDimension::Cube,
                    (ImageDimension::Cube, true) => ViewDimension::CubeArray,
                };
                let (sample_type, multisampled, storage) = match class {
                    ImageClass::Sampled { kind: ScalarKind::Sint, multi } => (SampleType::Sint, multi, None),
                    ImageClass::Sampled { kind: ScalarKind::Uint, multi } => (SampleType::Uint, multi, None),
                    ImageClass::Sampled { multi, .. } => (SampleType::Float, multi, None),
                    ImageClass::Depth { multi } => (SampleType::Depth, multi, None),
                    ImageClass::Storage { format, access } => {
                        let Some(format) = storage_format(format) else { continue };
                        let access = match (access.contains(StorageAccess::LOAD), access.contains(StorageAccess::STORE))
                        {
                            (true, true) => StorageTextureAccess::ReadWrite,
                            (true, false) => StorageTextureAccess::Read,
                            _ => StorageTextureAccess::Write,
                        };
                        (format.sample_type(), false, Some((format, access)))
                    }
                    // A frame of a video, as the image that it shows.
                    ImageClass::External => (SampleType::Float, false, None),
                };
                let texture = TextureBinding { name, group, binding, dimension, sample_type, multisampled, storage };
                found.textures.push((texture, handle));
            }
            TypeInner::Sampler { comparison } => {
                found.samplers.push((SamplerBinding { name, group, binding, comparison }, handle));
            }
            _ => {}
        }
    }
    found.textures.sort_by_key(|(texture, _)| (texture.group, texture.binding));
    found.samplers.sort_by_key(|(sampler, _)| (sampler.group, sampler.binding));
    found
}

/// The pairs of a texture and a sampler with which an entry point samples it, by their places in [`find`]'s lists.
pub(super) fn sampled(found: &Found, info: &ModuleInfo, entry_point: usize) -> Vec<(usize, usize)> {
    let pairs = info.get_entry_point(entry_point).sampling_set.iter().filter_map(|pair| {
        let texture = found.textures.iter().position(|(_, variable)| *variable == pair.image)?;
        let sampler = found.samplers.iter().position(|(_, variable)| *variable == pair.sampler)?;
        Some((texture, sampler))
    });
    pairs.listed()
}

/// The format of naga's: the names are the same.
fn storage_format(format: StorageFormat) -> Option<TextureFormat> {
    TextureFormat::from_name(&format!("{format:?}").to_lowercase())
}

/// Functions that take the place of builtins. Its functions take pointers to storage, which naga's validator refuses: they are copied with
/// the buffer in the pointer's place.
struct Library {
    module: Module,
    names: HashMap<String, Handle<Function>>,
}

/// `None` if the text were invalid, which a test rules out.
static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(|| {
    let module = naga::front::wgsl::parse_str(cantus_shaders::TEXTURE).ok()?;
    let names = module.functions.iter().filter_map(|(handle, function)| Some((function.name.clone()?, handle)));
    let names = names.collect();
    Some(Library { module, names })
});

/// The origin of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Kernel,
    Library,
}

/// The form of an argument in a copy of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bound {
    Texture(usize),
    Sampler(usize),
    /// A literal, by its kind and bits.
    Literal(u8, u64),
}

/// A function, and what its arguments are bound to in a copy.
type Copied = (Origin, Handle<Function>, Vec<Option<Bound>>);

/// A texture of the kernel, as its copies of functions see it.
struct Texture {
    variable: Handle<GlobalVariable>,
    buffer: Handle<GlobalVariable>,
    binding: TextureBinding,
    slot: u32,
    format: u32,
    shape: u32,
    /// It remains a texture.
    is_own: bool,
}

/// A sampler of the kernel. Its variable remains where a texture that does is sampled with it.
struct KernelSampler {
    variable: Handle<GlobalVariable>,
    slot: u32,
    modes: u32,
}

struct Work<'a> {
    old: &'a Module,
    info: &'a ModuleInfo,
    library: &'a Library,
    new: Module,
    textures: Vec<Texture>,
    samplers: Vec<KernelSampler>,
    /// The hidden uniform.
    sizes: Handle<GlobalVariable>,
    done: HashMap<Copied, Handle<Function>>,
    depth: u32,
}

/// The module with one entry point and buffers in place of textures, except those of the device's own API.
pub(super) fn lowered(module: &Module, info: &ModuleInfo, entry_point: usize, forms: &Forms) -> Outcome<Module> {
    let Some(library) = &*LIBRARY else {
        return refuse("the library of textures cannot be read (a defect: please report it)", Span::UNDEFINED);
    };
    let found = find(module, info, entry_point);
    if found.textures.len() != forms.textures.len() || found.samplers.len() != forms.samplers.len() {
        return refuse("its textures are not those that are bound (a defect: please report it)", Span::UNDEFINED);
    }
    let pairs = sampled(&found, info, entry_point);
    let mut new = module.clone();
    new.functions = Arena::new();
    let word = scalar_type(&mut new, Scalar::U32);
    let inner = TypeInner::Array { base: word, size: ArraySize::Dynamic, stride: 4 };
    let words = new.types.insert(Type { name: None, inner }, Span::UNDEFINED);
    let textures = textures(&mut new, found.textures, forms, [word, words]);
    let mut slot = TEXTURE_SLOTS * textures.len() as u32;
    let mut samplers = Vec::new();
    for (place, ((_, variable), &modes)) in found.samplers.into_iter().zip(&forms.samplers).enumerate() {
        let is_own = |&(texture, sampler): &(usize, usize)| {
            sampler == place && forms.textures.get(texture).is_some_and(|form| form.own.is_some())
        };
        if !pairs.iter().any(is_own) {
            retire(&mut new, variable, word);
        }
        samplers.push(KernelSampler { variable, slot, modes });
        slot += SAMPLER_SLOTS;
    }
    let Some(count) = std::num::NonZeroU32::new(slot) else { return Ok(module.clone()) };
    let sizes = sizes(module, &mut new, count);
    let Some(mut entry) = module.entry_points.get(entry_point).cloned() else {
        return refuse("it has no entry point", Span::UNDEFINED);
    };
    new.entry_points.clear();
    let mut work = Work { old: module, info, library, new, textures, samplers, sizes, done: HashMap::new(), depth: 0 };
    let function = &module.entry_points[entry_point].function;
    entry.function = Body::rewrite(&mut work, Origin::Kernel, function, Some(info.get_entry_point(entry_point)), &[])?;
    let mut new = work.new;
    new.entry_points.push(entry);
    naga::compact::compact(&mut new, naga::compact::KeepUnused::No);
    Ok(new)
}

/// The textures as buffers of words. The variable of a texture becomes its buffer; what shares one becomes unused.
fn textures(
    new: &mut Module,
    found: Vec<(TextureBinding, Handle<GlobalVariable>)>,
    forms: &Forms,
    [word, words]: [Handle<Type>; 2],
) -> Vec<Texture> {
    let mut textures: Vec<Texture> = Vec::new();
    for ((slot, (binding, variable)), form) in (0..).step_by(TEXTURE_SLOTS as usize).zip(found).zip(&forms.textures) {
        if form.own.is_some() {
            textures.push(Texture { variable, buffer: variable, binding, slot, format: 0, shape: 0, is_own: true });
            continue;
        }
        let stores = !matches!(binding.storage, None | Some((_, StorageTextureAccess::Read)));
        let access = if stores { StorageAccess::LOAD | StorageAccess::STORE } else { StorageAccess::LOAD };
        let buffer = form.shares.and_then(|at| textures.get(at as usize)).map_or(variable, |other| other.buffer);
        let global = new.global_variables.get_mut(buffer);
        let before = match global.space {
            AddressSpace::Storage { access } => access,
            _ => StorageAccess::empty(),
        };
        global.space = AddressSpace::Storage { access: before | access };
        global.ty = words;
        if buffer != variable {
            retire(new, variable, word);
        }
        let (format, shape) = (code(form.format), shape(&binding, form));
        textures.push(Texture { variable, buffer, binding, slot, format, shape, is_own: false });
    }
    textures
}

/// A texture's dimensions, levels and samples in one word.
fn shape(binding: &TextureBinding, form: &TextureForm) -> u32 {
    let dimension = match binding.dimension {
        ViewDimension::D1 => 1,
        ViewDimension::D3 => 3,
        _ => 2,
    };
    let is_cube = matches!(binding.dimension, ViewDimension::Cube | ViewDimension::CubeArray);
    let has_third = !matches!(binding.dimension, ViewDimension::D1 | ViewDimension::D2);
    dimension
        | u32::from(form.has_levels) << 2
        | u32::from(is_cube) << 3
        | u32::from(has_third) << 4
        | form.samples << 5
}

/// Adds the hidden uniform of that many vectors, at a binding that the old module leaves free.
fn sizes(old: &Module, new: &mut Module, count: std::num::NonZeroU32) -> Handle<GlobalVariable> {
    let quad = Type { name: None, inner: vector_of(VectorSize::Quad, Scalar::U32) };
    let base = new.types.insert(quad, Span::UNDEFINED);
    let inner = TypeInner::Array { base, size: ArraySize::Constant(count), stride: 16 };
    let ty = new.types.insert(Type { name: None, inner }, Span::UNDEFINED);
    let taken: Vec<u32> = old
        .global_variables
        .iter()
        .filter_map(|(_, variable)| variable.binding)
        .filter(|binding| binding.group == 0)
        .map(|binding| binding.binding)
        .listed();
    let binding = (0..=u32::MAX).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    let sizes = GlobalVariable {
        name: Some(super::Kernel::TEXTURES.to_owned()),
        space: AddressSpace::Uniform,
        binding: Some(ResourceBinding { group: 0, binding }),
        ty,
        init: None,
        memory_decorations: naga::MemoryDecorations::empty(),
    };
    new.global_variables.append(sizes, Span::UNDEFINED)
}

/// A variable that nothing uses any more.
fn retire(module: &mut Module, variable: Handle<GlobalVariable>, ty: Handle<Type>) {
    let global = module.global_variables.get_mut(variable);
    (global.space, global.ty, global.binding) = (AddressSpace::Private, ty, None);
}

fn scalar_type(module: &mut Module, scalar: Scalar) -> Handle<Type> {
    module.types.insert(Type { name: None, inner: TypeInner::Scalar(scalar) }, Span::UNDEFINED)
}

fn vector_of(size: VectorSize, scalar: Scalar) -> TypeInner {
    TypeInner::Vector { size, scalar }
}

impl<'a> Work<'a> {
    /// The copy of a function for what its arguments are bound to.
    fn function(
        &mut self,
        origin: Origin,
        function: Handle<Function>,
        bound: Vec<Option<Bound>>,
        span: Span,
    ) -> Outcome<Handle<Function>> {
        let key = (origin, function, bound);
        if let Some(&known) = self.done.get(&key) {
            return Ok(known);
        }
        if self.done.len() >= MOST_COPIES || self.depth >= DEEPEST {
            return refuse("too many functions take textures as arguments, each with others", span);
        }
        self.depth += 1;
        let (text, place, info) = match origin {
            Origin::Kernel => {
                let info = &self.info[function];
                (&self.old.functions[function], self.old.functions.get_span(function), Some(info))
            }
            Origin::Library => (&self.library.module.functions[function], Span::UNDEFINED, None),
        };
        let mut new = Body::rewrite(self, origin, text, info, &key.2)?;
        self.depth -= 1;
        if origin == Origin::Library {
            new.name = new.name.map(|name| format!("cantus_{name}"));
        }
        let handle = self.new.functions.append(new, place);
        self.done.insert(key, handle);
        Ok(handle)
    }

    /// A type of the new module for one of a function's module.
    fn ty(&mut self, origin: Origin, ty: Handle<Type>) -> Handle<Type> {
        match origin {
            Origin::Kernel => ty,
            // The library's functions have scalars and vectors alone.
            Origin::Library => self.new.types.insert(self.library.module.types[ty].clone(), Span::UNDEFINED),
        }
    }
}

impl Bound {
    fn of(literal: Literal) -> Option<Self> {
        Some(match literal {
            Literal::U32(value) => Self::Literal(0, value.into()),
            Literal::I32(value) => Self::Literal(1, u64::from(value.cast_unsigned())),
            Literal::Bool(value) => Self::Literal(2, value.into()),
            Literal::F32(value) => Self::Literal(3, value.to_bits().into()),
            _ => return None,
        })
    }

    fn literal(self) -> Option<Literal> {
        let Self::Literal(kind, bits) = self else { return None };
        let word = u32::try_from(bits).ok()?;
        Some(match kind {
            0 => Literal::U32(word),
            1 => Literal::I32(word.cast_signed()),
            2 => Literal::Bool(word != 0),
            _ => Literal::F32(f32::from_bits(word)),
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_library_is_valid() {
        assert!(super::LIBRARY.is_some());
    }

    /// The executor knows texels by how the library computes them: a change there must not undo it.
    #[test]
    fn the_executor_finds_texels() {
        for (format, ty, steps) in [
            ("rgba8unorm", "f32", &["Texel", "Unorm8(0)", "Unorm8(3)", "ToUnorm8(0)", "ToUnorm8(3)"][..]),
            ("rgba16float", "f32", &["Texel"]),
            ("r32float", "f32", &["Texel"]),
            ("rgba8uint", "u32", &["Texel"]),
        ] {
            for size in ["64", "16, 16"] {
                let text = format!(
                    "@group(0) @binding(0) var image: texture_storage_2d<{format}, read>;
                    @group(0) @binding(1) var result: texture_storage_2d<{format}, write>;
                    @compute @workgroup_size({size}) fn main(@builtin(global_invocation_id) id: vec3u) {{
                        textureStore(result, id.xy, vec4<{ty}>(2) * textureLoad(image, vec2i(id.xy) - 1));
                    }}"
                );
                let kernel = crate::Kernel::from_wgsl(&text).unwrap();
                let reflection = kernel.reflection().unwrap();
                let forms = super::Forms::assumed(&reflection.textures, &reflection.samplers);
                let kernel = kernel.textured_form(&forms).unwrap();
                let listing = kernel.program().unwrap().listing();
                for step in steps {
                    assert!(listing.contains(step), "{format}, {size}: no {step} in\n{listing}");
                }
            }
        }
    }
}
