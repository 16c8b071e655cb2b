//! Kernels that come as naga's modules, for devices whose programs hand over modules and no text (`cantus-hal`). They are amended and checked like those
//! from text. Checks that need the text are not made: `@align` within structures, uniformity, aliases, and text that naga refuses. Atomics may be
//! in memory that is only read, as naga allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resolved::Resolved;
use super::textures::Forms;
use super::wgsl::Parsed;
use super::{SamplerBinding, TextureBinding};
use crate::error::Result;
use crate::spmd::Bytecode;
use cantus_base::listed::Listed;
use naga::AddressSpace;

/// A module of compute entry points, amended and checked, before its overrides are applied.
pub struct Module {
    parsed: Arc<Parsed>,
    /// The binding that the variable of immediates has got.
    immediates: Option<Place>,
}

/// A binding, by its group and number.
pub type Place = (u32, u32);

/// A compute entry point with its overrides.
pub struct Entry {
    parsed: Arc<Parsed>,
    resolved: Resolved,
    immediates: Option<Place>,
    textures: Vec<TextureBinding>,
    samplers: Vec<SamplerBinding>,
}

/// A program for the CPU executor, and the bindings that nobody but the device sets.
pub struct Compiled {
    /// The program.
    pub program: Bytecode,
    /// The source of each binding of the program.
    pub sources: Vec<Source>,
}

/// The source of a binding's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The resource bound to that place: a buffer, or the texels of a texture.
    Bound(Place),
    /// The immediates, from their first byte on.
    Immediates,
    /// The words that describe the textures and samplers, in the order of [`Entry::textures`] and [`Entry::samplers`].
    Textures,
}

impl Module {
    /// Amends and checks a module. `text` is its source, for error messages; it may be empty. Entry points of other stages are dropped.
    ///
    /// # Errors
    /// [`Error::InvalidWgsl`](crate::error::Error::InvalidWgsl) says what is invalid or not supported.
    pub fn new(mut module: naga::Module, file: &str, text: &str) -> Result<Self> {
        module.entry_points.retain(|entry| entry.stage == naga::ShaderStage::Compute);
        let immediate = |module: &naga::Module| {
            let mut all = module.global_variables.iter();
            all.find(|(_, variable)| variable.space == AddressSpace::Immediate).map(|(handle, _)| handle)
        };
        let variable = immediate(&module);
        let parsed = Parsed::of_naga(file, text, module)?;
        let place = |handle: naga::Handle<naga::GlobalVariable>| {
            parsed.module.global_variables[handle].binding.map(|place| (place.group, place.binding))
        };
        let immediates = variable.and_then(place);
        Ok(Self { parsed: Arc::new(parsed), immediates })
    }

    /// Applies overrides, by name or `@id`, and chooses an entry point.
    ///
    /// # Errors
    /// [`Error::EntryPoint`](crate::error::Error::EntryPoint) if nothing has that name, [`Error::Override`](crate::error::Error::Override) where an
    /// override has no value.
    pub fn entry(&self, name: &str, overrides: BTreeMap<String, f64>) -> Result<Entry> {
        let resolved = Resolved::new(&self.parsed, Some(name), &overrides)?;
        let found = resolved.textures();
        let textures = found.textures.into_iter().map(|(binding, _)| binding).listed();
        let samplers = found.samplers.into_iter().map(|(binding, _)| binding).listed();
        let (parsed, immediates) = (self.parsed.clone(), self.immediates);
        Ok(Entry { parsed, resolved, immediates, textures, samplers })
    }
}

impl Entry {
    /// Returns the textures that it uses, by group and binding.
    #[must_use]
    pub fn textures(&self) -> &[TextureBinding] {
        &self.textures
    }

    /// Returns the samplers that it uses, by group and binding.
    #[must_use]
    pub fn samplers(&self) -> &[SamplerBinding] {
        &self.samplers
    }

    /// Returns whether it uses no texture and no sampler: then it has one program, that of [`Forms::default`].
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.textures.is_empty() && self.samplers.is_empty()
    }

    /// Returns the forms for which it is compiled to see whether it can be: nothing is bound yet.
    #[must_use]
    pub fn assumed_forms(&self) -> Forms {
        Forms::assumed(&self.textures, &self.samplers)
    }

    /// Compiles it for what its textures and samplers are bound to.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::error::Error::Unsupported) names what the executor does not run.
    pub fn compile(&self, forms: &Forms) -> Result<Compiled> {
        let program = if self.is_plain() {
            self.resolved.compile()?
        } else {
            let lowered = Arc::new(self.resolved.lowered(forms)?);
            Resolved::new(&lowered, None, &BTreeMap::new())?.compile()?
        };
        let known = |(group, binding)| {
            let mut all = self.parsed.module.global_variables.iter();
            all.any(|(_, variable)| variable.binding == Some(naga::ResourceBinding { group, binding }))
        };
        let sources = program.bindings().iter().map(|binding| match (binding.group, binding.binding) {
            place if self.immediates == Some(place) => Source::Immediates,
            place if known(place) => Source::Bound(place),
            // The one variable that lowering textures adds.
            _ => Source::Textures,
        });
        let sources = sources.listed();
        Ok(Compiled { program, sources })
    }
}

#[cfg(test)]
mod tests {
    use super::{Module, Source};
    use crate::error::Error;
    use crate::spmd::{Launch, Memory, execute};
    use crate::textures::Forms;
    use std::collections::BTreeMap;

    fn module(text: &str) -> Module {
        Module::new(naga::front::wgsl::parse_str(text).unwrap(), "test", "").unwrap()
    }

    /// A structure of immediates whose array has a layout that uniforms lack.
    #[test]
    fn immediates_and_overrides_arrive() {
        let text = "struct Steps { first: u32, by: array<u32, 3> }
            var<immediate> steps: Steps;
            override factor: u32 = 1;
            @group(0) @binding(3) var<storage, read_write> x: array<u32>;
            @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
                x[id.x] = factor * (steps.first + steps.by[id.x]);
            }
            @fragment fn shade() -> @location(0) vec4f { return vec4f(); }";
        let entry = module(text).entry("main", BTreeMap::from([("factor".to_owned(), 10.0)])).unwrap();
        let compiled = entry.compile(&Forms::default()).unwrap();
        let (mut x, mut immediates) = ([0_u32; 3], [100_u32, 1, 2, 3]);
        // SAFETY: both arrays outlive the launch, and nothing else looks at them until it is over.
        let [x_memory, immediates] = unsafe {
            [Memory::from_raw(x.as_mut_ptr().cast(), 12), Memory::from_raw(immediates.as_mut_ptr().cast(), 16)]
        };
        let memory = |source: &Source| if *source == Source::Immediates { immediates } else { x_memory };
        let memories: Vec<Memory<'_>> = compiled.sources.iter().map(memory).collect();
        assert_eq!(compiled.sources.iter().filter(|source| **source == Source::Bound((0, 3))).count(), 1);
        assert_eq!(memories.len(), 2);
        execute(&compiled.program, &Launch::new([3, 1, 1], &memories)).unwrap();
        assert_eq!(x, [1010, 1020, 1030]);
    }

    #[test]
    fn what_is_refused_is_said_without_a_text() {
        let text = "enable wgpu_binding_array;
            @group(0) @binding(0) var all: binding_array<texture_2d<f32>, 4>;
            @compute @workgroup_size(1) fn main() { _ = textureDimensions(all[0]); }";
        let parsed = naga::front::wgsl::parse_str(text).unwrap();
        let Err(Error::InvalidWgsl { report, .. }) = Module::new(parsed, "test", "") else { panic!("it was taken") };
        assert!(report.contains("the variable \"all\": binding_array"), "{report}");
        let Err(error) = module("@compute @workgroup_size(1) fn main() {}").entry("other", BTreeMap::new()) else {
            panic!("there is no such entry point")
        };
        assert!(matches!(error, Error::EntryPoint { .. }), "{error}");
    }
}
