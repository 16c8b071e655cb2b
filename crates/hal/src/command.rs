//! Commands, and the run of them. The encoder records them, and the queue's thread runs them; each holds what it uses, so the program may drop that.
//! `encoder` makes commands and `queue` runs them, possibly after the program dropped everything that they name: a command holds it all. wgpu-core has
//! checked ranges before; what slips through is an error and loses the device.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cantus_base::texture::Sampler as Modes;
use cantus_kernel::module::{Compiled, Source};
use cantus_kernel::textures::{Forms, TextureForm};
use cantus_spmd::{Beyond, Launch, Limits, Memory as Lent, OutOfRange, execute};
use wgpu_hal::{BufferCopy, BufferTextureCopy, MAX_BIND_GROUPS, TextureCopy};

use crate::Options;
use crate::bind::{Group, Resource};
use crate::buffer::Bound;
use crate::memory::Memory;
use crate::pipeline::Kernel;
use crate::query::QuerySet;
use crate::texture::{Texels, TextureView};

/// A command, with all that it takes: it outlives the objects that it was recorded from.
#[derive(Debug)]
pub(crate) enum Command {
    Clear { buffer: Arc<Memory>, range: Range<u64> },
    Copy { source: Arc<Memory>, target: Arc<Memory>, regions: Vec<BufferCopy> },
    CopyTexture { source: Arc<Texels>, target: Arc<Texels>, regions: Vec<TextureCopy> },
    ReadTexture { texture: Arc<Texels>, buffer: Arc<Memory>, regions: Vec<BufferTextureCopy> },
    WriteTexture { texture: Arc<Texels>, buffer: Arc<Memory>, regions: Vec<BufferTextureCopy> },
    Fill { view: TextureView, texel: [u32; 4], slice: Option<u32> },
    Dispatch(Box<Dispatch>),
    Timestamp { set: QuerySet, index: u32 },
    ResetQueries { set: QuerySet, range: Range<u32> },
    CopyQueries { set: QuerySet, range: Range<u32>, buffer: Arc<Memory>, offset: u64, stride: u64 },
}

/// A bind group that is set, and its dynamic offsets.
pub(crate) type Set = Option<(Arc<Group>, Arc<[u32]>)>;

/// A dispatch of a kernel.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) groups: [Set; MAX_BIND_GROUPS],
    /// From their first byte on, and zeros behind.
    pub(crate) immediates: Arc<[u64]>,
    pub(crate) workgroups: Workgroups,
}

/// The numbers of workgroups along x, y and z.
#[derive(Debug)]
pub(crate) enum Workgroups {
    Direct([u32; 3]),
    Indirect { buffer: Arc<Memory>, offset: u64 },
}

/// The surroundings in which commands run.
#[derive(Debug)]
pub(crate) struct Run {
    /// When time began.
    pub(crate) start: Instant,
    pub(crate) options: Arc<Options>,
}

/// Reports a range that wgpu-core should have refused.
const OUTSIDE: &str = "a range is outside of its memory (a defect: please report it)";

impl Command {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The reason why it did not run.
    pub(crate) fn run(&self, run: &Run) -> Result<(), String> {
        let done = match self {
            Self::Clear { buffer, range } => buffer.clear(range.clone()),
            Self::Copy { source, target, regions } => regions
                .iter()
                .try_for_each(|region| target.copy(region.dst_offset, source, region.src_offset, region.size.get())),
            Self::CopyTexture { source, target, regions } => {
                regions.iter().try_for_each(|region| target.copy(source, region))
            }
            Self::ReadTexture { texture, buffer, regions } => {
                regions.iter().try_for_each(|region| texture.copy_bytes(buffer, region, true))
            }
            Self::WriteTexture { texture, buffer, regions } => {
                regions.iter().try_for_each(|region| texture.copy_bytes(buffer, region, false))
            }
            Self::Fill { view, texel, slice } => view.fill(texel, *slice),
            Self::Dispatch(dispatch) => {
                return dispatch
                    .run(&run.options)
                    .map_err(|reason| format!("the kernel {}: {reason}", dispatch.kernel.label));
            }
            Self::Timestamp { set, index } => {
                // None is zero, which stands for a query that was not written.
                let now = u64::try_from(run.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                set.set(*index, now.max(1))
            }
            Self::ResetQueries { set, range } => set.reset(range),
            Self::CopyQueries { set, range, buffer, offset, stride } => set.copy(range, buffer, *offset, *stride),
        };
        done.ok_or_else(|| OUTSIDE.to_owned())
    }
}

impl Dispatch {
    fn run(&self, options: &Options) -> Result<(), String> {
        let workgroups = match &self.workgroups {
            Workgroups::Direct(workgroups) => *workgroups,
            Workgroups::Indirect { buffer, offset } => {
                bytemuck::cast::<[u8; 12], [u32; 3]>(buffer.read(*offset).ok_or(OUTSIDE)?)
            }
        };
        if workgroups.contains(&0) {
            return Ok(());
        }
        let Textures { forms, words } = self.textures()?;
        let program = self.kernel.program(&forms)?;
        self.launch(&program, workgroups, &words, options)
    }

    /// The resource of a binding.
    fn resource(&self, (group, binding): (u32, u32)) -> Result<Resource, String> {
        let set = self.groups.get(group as usize).and_then(Option::as_ref);
        let resource = set.and_then(|(group, offsets)| group.resource(binding, offsets));
        resource.ok_or_else(|| format!("nothing is bound to @group({group}) @binding({binding})"))
    }

    /// Describes the textures and samplers that are bound.
    fn textures(&self) -> Result<Textures, String> {
        let wrong = |name: &str| format!("\"{name}\" is bound to a resource of another kind");
        let mut described = Textures::default();
        let mut earlier: Vec<Arc<Texels>> = Vec::new();
        for texture in self.kernel.entry.textures() {
            let Resource::Texture(view) = self.resource((texture.group, texture.binding))? else {
                return Err(wrong(&texture.name));
            };
            let shares = earlier.iter().position(|known| Arc::ptr_eq(known, &view.texels));
            view.describe(&mut described.words);
            described.forms.textures.push(TextureForm {
                format: view.format,
                has_levels: view.levels > 1,
                samples: view.texels.descriptor.samples,
                shares: shares.and_then(|place| u32::try_from(place).ok()),
                own: None,
            });
            earlier.push(view.texels);
        }
        for sampler in self.kernel.entry.samplers() {
            let Resource::Sampler(bound) = self.resource((sampler.group, sampler.binding))? else {
                return Err(wrong(&sampler.name));
            };
            let [modes, least, most] = Modes::to_words(&bound.sampler);
            described.forms.samplers.push(modes);
            described.words.extend([least, most, 0, 0]);
        }
        Ok(described)
    }

    fn launch(
        &self,
        compiled: &Compiled,
        workgroups: [u32; 3],
        words: &[u32],
        options: &Options,
    ) -> Result<(), String> {
        let mut held = Vec::with_capacity(compiled.sources.len());
        for source in &compiled.sources {
            held.push(match source {
                Source::Bound(place) => self.resource(*place)?,
                Source::Immediates => own(bytemuck::cast_slice(&self.immediates))?,
                Source::Textures => own(bytemuck::cast_slice(words))?,
            });
        }
        let memories = held.iter().map(|resource| match resource {
            Resource::Buffer(Bound { memory, offset, bytes }) => memory.lend(*offset..*offset + *bytes),
            Resource::Texture(view) => view.texels.memory.lend(0..view.texels.memory.bytes()),
            Resource::Sampler(_) => None,
        });
        let memories: Option<Vec<Lent<'_>>> = memories.collect();
        let memories = memories.ok_or(OUTSIDE)?;
        let beyond = options.check_stores.then(Beyond::default);
        let deadline = options.time_limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut launch = Launch::new(workgroups, &memories);
        launch.limits = Limits { deadline, beyond: beyond.as_ref(), ..Limits::default() };
        launch.order = options.order;
        execute(&compiled.program, &launch).map_err(|stopped| stopped.to_string())?;
        beyond.and_then(|beyond| beyond.found()).map_or(Ok(()), |found| Err(out_of_range(compiled, found)))
    }
}

/// Says where stores were out of range: how many, and one of the first.
fn out_of_range(compiled: &Compiled, (stores, first): (u64, OutOfRange)) -> String {
    let OutOfRange { binding, place, length, .. } = first;
    let name = binding.and_then(|place| compiled.program.bindings().get(place)).map(|binding| binding.name.as_str());
    let of = name.map_or_else(|| "an array of the kernel's own".to_owned(), |name| format!("\"{name}\""));
    format!("{stores} stores are out of range: one is at {place} of {of}, which has {length} places")
}

/// Memory with these bytes, for a binding that only the device sets.
fn own(bytes: &[u8]) -> Result<Resource, String> {
    let length = bytes.len() as u64;
    let memory = Arc::new(Memory::new(length).map_err(|error| error.to_string())?);
    memory.write(0, bytes).ok_or(OUTSIDE)?;
    Ok(Resource::Buffer(Bound { memory, offset: 0, bytes: length }))
}

/// The form of the program for bound textures and samplers, and the words that it reads about them.
#[derive(Default)]
struct Textures {
    forms: Forms,
    words: Vec<u32>,
}
