//! An app's textures, on a device that shares the app's wgpu device. Kernels are bound to them as they are.
//!
//! Such a texture's tensor is no memory of the engine's: it carries the place, the state and the label, and only this module and dispatches know it.
//! Where a kernel cannot be bound to the texture, it runs on a copy of the texels, and what it writes is copied back.

#[cfg(feature = "wgpu")]
use crate::backend::BoxFuture;
use std::sync::{Arc, LazyLock};

#[cfg(feature = "wgpu")]
use super::TextureDescriptor;
use super::{Texture, View};
use crate::backend::{Buffer, Command, Contents, ROW_ALIGNMENT, TextureAccess, TextureView, Textures};
use crate::engine::event::EventKind;
use crate::engine::relocate::{contended, relocate};
use crate::engine::slot::{Effect, Size};
use crate::engine::tensor::Tensor;
use crate::engine::tracker::Place;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, TextureBinding};
use crate::tensor::DType;

/// Texels of a level between rows with padding, as a device copies them, and words of their own.
const TEXELS: &str = "
struct Level { width: u32, rows: u32, pitch: u32, bytes: u32, padded: u32, packed: u32 }
@group(0) @binding(0) var<uniform> level: Level;
@group(0) @binding(1) var<storage> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(64) fn texels_of_rows(@builtin(global_invocation_id) id: vec3u) {
    let words = level.width * max(level.bytes / 4, 1u);
    if id.x >= words || id.y >= level.rows {
        return;
    }
    let row = level.padded + id.y * level.pitch;
    let place = level.packed + id.y * words + id.x;
    if level.bytes >= 4 {
        result[place] = source[row + id.x];
    } else {
        let byte = id.x * level.bytes;
        result[place] = extractBits(source[row + byte / 4], byte % 4 * 8, level.bytes * 8);
    }
}

@compute @workgroup_size(64) fn rows_of_texels(@builtin(global_invocation_id) id: vec3u) {
    let words = level.width * max(level.bytes / 4, 1u);
    let each = max(4 / level.bytes, 1u);
    if id.x * each >= words || id.y >= level.rows {
        return;
    }
    var word = 0u;
    for (var i = 0u; i < each && id.x * each + i < words; i++) {
        word |= source[level.packed + id.y * words + id.x * each + i] << ((i * level.bytes * 8) % 32);
    }
    result[level.padded + id.y * level.pitch + id.x] = word;
}
";

static KERNELS: LazyLock<Result<[Kernel; 2]>> = LazyLock::new(|| {
    let both = Kernel::from_named_wgsl("texels.wgsl", TEXELS)?;
    Ok([both.with_entry_point("texels_of_rows")?, both.with_entry_point("rows_of_texels")?])
});

impl From<View> for TextureView {
    fn from(View { level, levels, layer, layers }: View) -> Self {
        Self { level, levels, layer, layers }
    }
}

fn word(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::limit("a copy of a texture", "it has more than 2^32 words"))
}

impl Texture {
    /// The place of an app's texture, and its buffer on the device.
    fn own_place(&self) -> Result<(Place, Arc<dyn Buffer>)> {
        let place = self.texels.live_place()?;
        match place.buffer.clone() {
            Some(buffer) => Ok((place, buffer)),
            None => Err(self.unusable("it is empty".to_owned())),
        }
    }

    fn unusable(&self, reason: String) -> Error {
        Error::invalid(self.texels.label().to_owned(), reason)
    }

    fn own<T>(&self, ask: impl FnOnce(&dyn Textures, &dyn Buffer) -> T) -> Result<T> {
        let (place, buffer) = self.own_place()?;
        match place.slot.device().textures() {
            Some(textures) => Ok(ask(textures, &*buffer)),
            None => Err(self.unusable("its device does not know it (a defect: please report it)".to_owned())),
        }
    }

    /// How a variable is bound to it; `filters`: a sampler filters it. The inner error is the binding's.
    pub(super) fn access(&self, binding: &TextureBinding, filters: bool) -> Result<Result<TextureAccess, String>> {
        self.own(|textures, buffer| textures.access(buffer, self.view.into(), binding, filters))
    }

    /// The view for a variable.
    pub(in crate::engine) fn bound_view(&self, binding: &TextureBinding) -> Result<Arc<dyn Buffer>> {
        self.own(|textures, buffer| textures.view(buffer, self.view.into(), binding))?
    }

    /// Checks that its texels can be copied.
    pub(super) fn check_copy(&self, writes: bool) -> Result<()> {
        self.own(|textures, buffer| textures.check_copy(buffer, writes))?
    }

    /// The tensor that carries place and state.
    pub(in crate::engine) fn own_tensor(&self) -> &Tensor {
        &self.texels
    }

    /// Notes that a kernel runs on copies.
    pub(super) fn note_copied(&self, kernel: &str, reason: &str) {
        let shared = &self.texels.inner.engine;
        let message = format!("{kernel} runs on a copy of the app's {}: {reason}", self.texels.label());
        shared.events.push(EventKind::FellBack, self.texels.place().slot.name(), &message);
    }

    /// A tensor for it on its device.
    async fn beside(&self, words: u64) -> Result<Tensor> {
        let (place, _) = self.own_place()?;
        let size = usize::try_from(words).unwrap_or(usize::MAX);
        let label = format!("the texels of the {}", self.texels.label()).into();
        let made = self.engine().create(place.slot.clone(), DType::U32, &[size], Contents::Overwritten, label).await?;
        if Arc::ptr_eq(&made.place().slot, &place.slot) {
            return Ok(made);
        }
        Err(Error::OutOfMemory {
            device: place.slot.name().to_string(),
            what: format!("a copy of the {}", self.texels.label()),
            bytes: made.byte_len(),
        })
    }

    /// Records a copy between it and rows with padding.
    fn record_copy(&self, rows: &Tensor, writes: bool) -> Result<()> {
        let shared = &self.texels.inner.engine;
        shared.spoil_trace();
        let _still = shared.moves.hold();
        let (place, own) = self.own_place()?;
        let Place { slot, buffer: Some(buffer), state, .. } = rows.live_place()? else { return Ok(()) };
        if !Arc::ptr_eq(&slot, &place.slot) {
            return Err(contended(rows.label()));
        }
        let bytes = rows.byte_len();
        let (source, target, from, to) =
            if writes { (buffer, own, state, place.state.clone()) } else { (own, buffer, place.state.clone(), state) };
        let command = Command::Copy { source, source_offset: 0, target, target_offset: 0, bytes };
        let effect = Effect { reads: vec![from], writes: vec![to] };
        for tensor in [&self.texels, rows] {
            shared.note_used(tensor);
        }
        let written = if writes { &self.texels } else { rows };
        written.inner.tracker.note_written();
        shared.record(&place.slot, command, effect, Size::default());
        Ok(())
    }

    /// Records what turns rows with padding into texels of words, or the reverse.
    async fn rearrange(&self, source: &Tensor, result: &Tensor, pads: bool) -> Result<()> {
        let [texels_of_rows, rows_of_texels] = KERNELS.as_ref().map_err(Clone::clone)?;
        let kernel = if pads { rows_of_texels } else { texels_of_rows };
        let descriptor = &self.descriptor;
        let (bytes, engine) = (descriptor.format.bytes(), self.engine());
        for level in 0..descriptor.levels {
            let (pitch, rows) = descriptor.padded_rows(level, ROW_ALIGNMENT);
            let [width, ..] = descriptor.level_size(level);
            let dispatch = engine.dispatch(kernel).bind("source", source).bind("result", result).fresh();
            let dispatch = dispatch.set("level.width", width).set("level.rows", word(rows)?);
            let dispatch = dispatch.set("level.pitch", word(pitch)?).set("level.bytes", bytes);
            let dispatch = dispatch.set("level.padded", word(descriptor.padded_offset(level, ROW_ALIGNMENT))?);
            let dispatch = dispatch.set("level.packed", word(descriptor.level_offset(level))?);
            let words = u64::from(width) * u64::from(descriptor.format.words());
            Box::pin(dispatch.invocations([words, rows, 1]).run_async()).await?;
        }
        Ok(())
    }

    /// Its texels as words in a tensor of its own, as they are after all work recorded so far.
    pub(super) async fn copied(&self) -> Result<Tensor> {
        self.check_copy(false)?;
        let rows = self.beside(self.descriptor.padded_offset(self.descriptor.levels, ROW_ALIGNMENT)).await?;
        self.record_copy(&rows, false)?;
        let words = self.beside(self.descriptor.level_offset(self.descriptor.levels)).await?;
        self.rearrange(&rows, &words, false).await?;
        Ok(words)
    }

    /// Overwrites its texels with those of [`Texture::copied`]'s form.
    pub(super) async fn overwrite(&self, words: &Tensor) -> Result<()> {
        self.check_copy(true)?;
        let rows = self.beside(self.descriptor.padded_offset(self.descriptor.levels, ROW_ALIGNMENT)).await?;
        self.rearrange(words, &rows, true).await?;
        // They may have followed a kernel to another device.
        let (place, _) = self.own_place()?;
        relocate(&self.texels.inner.engine, &rows, &place.slot).await?;
        self.record_copy(&rows, true)
    }
}

#[cfg(feature = "wgpu")]
impl crate::engine::Engine {
    /// Makes an app's texture known to an engine that shares the app's wgpu device ([`Engine::from_wgpu`]). Kernels sample it by the device's samplers and
    /// store into it: nothing is copied, and the app may draw from what a kernel stored.
    ///
    /// Work takes effect in the order of submissions to the queue. Submit what fills the texture before the dispatch that reads it, and call
    /// [`Engine::flush`] before you submit what reads a kernel's result.
    ///
    /// A texture that is read needs the usage `TEXTURE_BINDING`, a storage texture `STORAGE_BINDING`. [`Texture::to_bytes`](super::Texture::to_bytes)
    /// and [`Texture::copied_texels`](super::Texture::copied_texels) copy, which takes `COPY_SRC`. A kernel that asks for more than the device offers (a filter of
    /// `r32float` without `FLOAT32_FILTERABLE`, `read_write` of `rgba8unorm`) runs on a copy of the texels, an event of
    /// [`EventKind::FellBack`](crate::engine::EventKind); the copy takes `COPY_SRC`, and `COPY_DST` if the kernel writes.
    ///
    /// ```no_run
    /// # fn example(device: wgpu::Device, queue: wgpu::Queue, photo: &wgpu::Texture, shown: &wgpu::Texture, draw: wgpu::CommandBuffer) -> cantus::Result<()> {
    /// let engine = cantus::Engine::from_wgpu(device, queue.clone());
    /// let (photo, shown) = (engine.texture_from_wgpu(photo)?, engine.texture_from_wgpu(shown)?);
    /// let kernel = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var photo: texture_2d<f32>;
    ///     @group(0) @binding(1) var smp: sampler;
    ///     @group(0) @binding(2) var shown: texture_storage_2d<rgba8unorm, write>;
    ///     @compute @workgroup_size(8, 8)
    ///     fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///         let uv = (vec2f(id.xy) + 0.5) / vec2f(textureDimensions(shown));
    ///         textureStore(shown, id.xy, textureSampleLevel(photo, smp, uv, 0.0));
    ///     }
    /// ")?;
    /// engine.dispatch(&kernel)
    ///     .bind("photo", &photo).bind("smp", cantus::Sampler::linear()).bind("shown", &shown)
    ///     .invocations([shown.size()[0], shown.size()[1]])
    ///     .run()?;
    /// engine.flush();
    /// queue.submit([draw]); // reads `shown`
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when the engine shares no wgpu device or the texture is another device's, and for formats that are compressed, of video, or
    /// have a stencil or 24 bits of depth; [`Error::Shape`] beyond the limits of [`TextureDescriptor`]; [`Error::DeviceLost`]. A texture of another
    /// `wgpu::Instance` cannot be told from the engine's, and must not be given.
    pub fn texture_from_wgpu_async<'a>(&'a self, texture: &'a wgpu::Texture) -> BoxFuture<'a, Result<Texture>> {
        Box::pin(async move {
            use super::TextureDimension;
            use crate::backend::wgpu::{import_texture, texture_format};
            let size = texture.size();
            let dimension = match texture.dimension() {
                wgpu::TextureDimension::D1 => TextureDimension::D1,
                wgpu::TextureDimension::D2 => TextureDimension::D2,
                wgpu::TextureDimension::D3 => TextureDimension::D3,
            };
            let format = texture_format(texture.format());
            let descriptor = format.map(|format| TextureDescriptor {
                dimension,
                size: [size.width, size.height, size.depth_or_array_layers],
                levels: texture.mip_level_count(),
                samples: texture.sample_count(),
                format,
            });
            let name = format.map_or("", cantus_base::texture::TextureFormat::name);
            let label: Arc<str> = format!("texture {} x {} {name}", size.width, size.height).into();
            let shared = self.shared();
            let mut refusal = None;
            for slot in shared.open_slots() {
                match import_texture(&**slot.device(), texture.clone(), &label).await {
                    Ok(buffer) => {
                        let Some(descriptor) = descriptor else { break };
                        // How many samples there are matters to the device alone.
                        descriptor.with_samples(1).check()?;
                        shared.spoil_trace();
                        let words = usize::try_from(descriptor.level_offset(descriptor.levels)).unwrap_or(usize::MAX);
                        let state = crate::engine::memory_state::MemoryState::new(&label);
                        let place = Place { slot, buffer: Some(buffer), state, released: None };
                        let tensor = Tensor::assemble(shared.clone(), label, &[words], DType::U32, place);
                        tensor.inner.tracker.note_shared();
                        return Ok(Texture { is_own: true, ..Texture::of(tensor, descriptor) });
                    }
                    Err(error) => refusal = refusal.or(Some(error)),
                }
            }
            Err(refusal.unwrap_or_else(|| Error::state("the wgpu texture", "the engine has no device")))
        })
    }

    /// [`Engine::texture_from_wgpu_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn texture_from_wgpu(&self, texture: &wgpu::Texture) -> Result<Texture> {
        crate::engine::blocking::block_on(self.texture_from_wgpu_async(texture))
    }
}
