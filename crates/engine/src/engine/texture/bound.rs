//! Textures and samplers bound to a kernel: what fits, the form of the kernel for them, and copies of an app's textures. `dispatch` calls `textured` for
//! kernels with textures or samplers and continues with the kernel that it returns. The form depends on formats and modes but not on sizes, so images of
//! other sizes compile nothing. Two variables with the same texels share a buffer; the same texels read and written are refused.

use std::sync::Arc;

use super::Texture;
use crate::backend::{TextureAccess, TextureView};
use crate::engine::Tensor;
use crate::engine::dispatch::Setting;
use crate::error::{BindingError, Error, Result};
use crate::kernel::textures::{Forms, TextureForm};
use crate::kernel::{Kernel, Reflection};
use cantus_base::listed::Listed;
use cantus_base::texture::{Sampler, SamplerBinding, StorageTextureAccess, TextureBinding};

/// A resource for a kernel's variable: a tensor, a texture or a sampler.
#[derive(Debug)]
#[non_exhaustive]
pub enum Resource<'a> {
    /// A tensor for a buffer binding.
    Tensor(&'a Tensor),
    /// A texture for a texture binding.
    Texture(Texture),
    /// A sampler for a sampler binding.
    Sampler(Sampler),
}

impl<'a> From<&'a Tensor> for Resource<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<&Texture> for Resource<'_> {
    fn from(texture: &Texture) -> Self {
        Self::Texture(texture.clone())
    }
}

impl From<Texture> for Resource<'_> {
    fn from(texture: Texture) -> Self {
        Self::Texture(texture)
    }
}

impl From<Sampler> for Resource<'_> {
    fn from(sampler: Sampler) -> Self {
        Self::Sampler(sampler)
    }
}

impl From<&Sampler> for Resource<'_> {
    fn from(sampler: &Sampler) -> Self {
        Self::Sampler(*sampler)
    }
}

/// A kernel for what its textures are bound to.
pub(in crate::engine) struct Textured {
    pub(in crate::engine) kernel: Kernel,
    /// The tensors of the textures, by the place among the settings of the one that is bound to them.
    pub(in crate::engine) texels: Vec<(usize, Tensor)>,
    pub(in crate::engine) sizes: Vec<u8>,
    /// The app's textures that the kernel is bound to by copies.
    copied: Vec<Copied>,
    /// An app's texture is bound as it is.
    pub(in crate::engine) has_own: bool,
}

/// An app's texture in whose place a copy is bound.
struct Copied {
    /// The place of its setting.
    at: usize,
    texture: Texture,
    writes: bool,
    reason: String,
    binding: String,
}

impl Textured {
    /// Copies the texels of the app's textures that cannot be bound as they are. Returns those to be copied back, with their words.
    pub(in crate::engine) async fn copy(&mut self) -> Result<Vec<(Texture, Tensor)>> {
        let mut written = Vec::new();
        let kernel = self.kernel.name().to_owned();
        for Copied { at, texture, writes, reason, binding } in std::mem::take(&mut self.copied) {
            match texture.check_copy(writes) {
                Err(Error::InvalidInput { reason: lacking, .. }) => {
                    let reason = format!("{reason}; a copy in its place: {lacking}");
                    return Err(Error::Binding { kernel, binding, fault: reason.into() });
                }
                checked => checked?,
            }
            texture.note_copied(&kernel, &reason);
            let words = texture.copied().await?;
            self.texels.push((at, words.clone()));
            if writes {
                written.push((texture, words));
            }
        }
        Ok(written)
    }
}

/// Copies back what a kernel has written to copies.
pub(in crate::engine) async fn copy_back(written: Vec<(Texture, Tensor)>) -> Result<()> {
    for (texture, words) in written {
        texture.overwrite(&words).await?;
    }
    Ok(())
}

/// A texture variable and what is bound to it.
struct Binding<'a> {
    binding: &'a TextureBinding,
    /// The place of its setting.
    at: usize,
    texture: &'a Texture,
    writes: bool,
    /// How an app's texture is bound; `None` for texels of the engine's.
    own: Option<TextureAccess>,
}

impl Binding<'_> {
    /// Returns whether an app's texture is bound as it is.
    fn is_own(&self) -> bool {
        matches!(self.own, Some(TextureAccess::Own { .. }))
    }

    fn has_texels_of(&self, other: &Texture) -> bool {
        Arc::ptr_eq(&self.texture.texels.inner, &other.texels.inner)
    }
}

/// The form of a kernel for its settings. `copies`: why an app's textures are bound by copies, if all are.
pub(in crate::engine) fn textured(
    kernel: &Kernel,
    reflection: &Reflection,
    settings: &[(&str, Setting<'_>)],
    copies: Option<&str>,
) -> Result<Textured> {
    let given = Given { reflection, settings };
    let samplers = given.samplers()?;
    let mut bound = given.textures()?;
    let has_any_own = bound.iter().any(|bound| bound.texture.is_own);
    let pairs: &[(usize, usize)] = if has_any_own { kernel.sampled()? } else { &[] };
    if has_any_own {
        given.choose(&mut bound, copies, |texture| {
            pairs
                .iter()
                .any(|&(other, sampler)| other == texture && samplers.get(sampler).is_some_and(Sampler::filters))
        })?;
    }
    let mut described = Described::default();
    for (place, texture) in bound.iter().enumerate() {
        described.add_texture(texture, &bound[..place]);
    }
    for (place, sampler) in samplers.iter().enumerate() {
        let mut used = pairs.iter().filter(|(_, sampler)| *sampler == place).peekable();
        let is_own = |texture: usize| bound.get(texture).is_some_and(Binding::is_own);
        let is_native = used.peek().is_some() && used.all(|(texture, _)| is_own(*texture));
        described.add_sampler(sampler, is_native);
    }
    let Described { forms, words, texels, copied } = described;
    let kernel = kernel.textured_form(&forms)?;
    let has_own = bound.iter().any(Binding::is_own);
    Ok(Textured { kernel, texels, sizes: bytemuck::cast_slice(&words).to_vec(), copied, has_own })
}

/// A kernel's variables and what they are given.
struct Given<'a> {
    reflection: &'a Reflection,
    settings: &'a [(&'a str, Setting<'a>)],
}

impl<'a> Given<'a> {
    fn fault(&self, binding: &str, fault: impl Into<BindingError>) -> Error {
        let kernel = self.reflection.entry_point.clone();
        Error::Binding { kernel, binding: binding.to_owned(), fault: fault.into() }
    }

    /// Returns the one setting of a variable, and its place.
    fn setting(&self, name: &str, kind: &dyn std::fmt::Display) -> Result<(usize, &'a Setting<'a>)> {
        let mut all = self.settings.iter().enumerate().filter(|(_, (known, _))| *known == name);
        match (all.next(), all.next()) {
            (Some((at, (_, setting))), None) => Ok((at, setting)),
            (None, _) => Err(self.fault(name, BindingError::Unbound(format!("nothing was bound; it is a {kind}")))),
            _ => Err(self.fault(name, "it is bound twice".to_owned())),
        }
    }

    /// Returns the samplers, in the reflection's order.
    fn samplers(&self) -> Result<Vec<Sampler>> {
        let mut samplers = Vec::with_capacity(self.reflection.samplers.len());
        for SamplerBinding { name, comparison, .. } in &self.reflection.samplers {
            let kind = if *comparison { "sampler_comparison" } else { "sampler" };
            let (_, Setting::Sampler(sampler)) = self.setting(name, &kind)? else {
                return Err(self.fault(name, format!("it is a {kind}: bind a Sampler to it")));
            };
            match (comparison, sampler.compare) {
                (true, None) => {
                    return Err(self.fault(name, "it is a sampler_comparison: set Sampler::compare".to_owned()));
                }
                (false, Some(_)) => return Err(self.fault(name, "it is a sampler without a comparison".to_owned())),
                _ => {}
            }
            let (least, most) = (sampler.lod_min_clamp, sampler.lod_max_clamp);
            if !(least >= 0.0 && least <= most) {
                return Err(self.fault(name, format!("its levels of detail are clamped to {least} to {most}")));
            }
            samplers.push(*sampler);
        }
        Ok(samplers)
    }

    /// Returns the textures, in the reflection's order: each fits its variable, and none is read where another is written.
    fn textures(&self) -> Result<Vec<Binding<'a>>> {
        let mut bound: Vec<Binding<'a>> = Vec::with_capacity(self.reflection.textures.len());
        for binding in &self.reflection.textures {
            let (at, Setting::Texture(texture)) = self.setting(&binding.name, binding)? else {
                return Err(self.fault(&binding.name, format!("it is a {binding}: bind a texture to it")));
            };
            if let Some(reason) = texture.misfit(binding) {
                return Err(self.fault(&binding.name, reason));
            }
            let writes = !matches!(binding.storage, None | Some((_, StorageTextureAccess::Read)));
            let view = TextureView::from(texture.view);
            let met = bound.iter().find(|other| {
                other.has_texels_of(texture)
                    && (writes || other.writes)
                    && view.meets(&TextureView::from(other.texture.view))
            });
            if let Some(other) = met {
                return Err(self.fault(
                    &binding.name,
                    format!(
                        "the same texels are bound to \"{}\", and one of the two is written (bind other levels or layers)",
                        other.binding.name
                    ),
                ));
            }
            bound.push(Binding { binding, at, texture, writes, own: None });
        }
        Ok(bound)
    }

    /// Decides for each of the app's textures whether it is bound as it is. One that is copied for one variable is for all.
    fn choose(&self, bound: &mut [Binding<'_>], copies: Option<&str>, filters: impl Fn(usize) -> bool) -> Result<()> {
        for (place, bound) in bound.iter_mut().enumerate().filter(|(_, bound)| bound.texture.is_own) {
            let access = bound.texture.access(bound.binding, filters(place))?;
            let access = access.map_err(|reason| self.fault(&bound.binding.name, reason))?;
            bound.own = Some(copies.map_or(access, |reason| TextureAccess::Copied(reason.to_owned())));
        }
        let reasons: Vec<(Tensor, String)> = bound
            .iter()
            .filter_map(|bound| match &bound.own {
                Some(TextureAccess::Copied(reason)) => Some((bound.texture.texels.clone(), reason.clone())),
                _ => None,
            })
            .listed();
        for bound in bound.iter_mut().filter(|bound| bound.own.is_some()) {
            let same = reasons.iter().find(|(texels, _)| Arc::ptr_eq(&texels.inner, &bound.texture.texels.inner));
            if let Some((_, reason)) = same {
                bound.own = Some(TextureAccess::Copied(reason.clone()));
            }
        }
        Ok(())
    }
}

/// Textures and samplers as the form of a kernel has them.
#[derive(Default)]
struct Described {
    forms: Forms,
    /// Of the buffer of sizes.
    words: Vec<u32>,
    texels: Vec<(usize, Tensor)>,
    copied: Vec<Copied>,
}

impl Described {
    /// Adds a texture. One of the same texels as an earlier one shares its buffer.
    fn add_texture(&mut self, added: &Binding<'_>, earlier: &[Binding<'_>]) {
        let Binding { binding, at, texture, writes, own } = added;
        texture.describe(&mut self.words);
        if let Some(TextureAccess::Own { filterable }) = own {
            self.forms.textures.push(TextureForm::own(*filterable));
            return;
        }
        let mut earlier = earlier.iter().enumerate();
        let shares = earlier.find(|(_, other)| !other.is_own() && other.has_texels_of(texture));
        let shares = shares.and_then(|(other, first)| Some((u32::try_from(other).ok()?, first.at)));
        match (own, shares) {
            (Some(TextureAccess::Copied(reason)), None) => self.copied.push(Copied {
                at: *at,
                texture: (*texture).clone(),
                writes: *writes,
                reason: reason.clone(),
                binding: binding.name.clone(),
            }),
            (_, Some((_, first))) => {
                self.copied.iter_mut().filter(|copied| copied.at == first).for_each(|copied| copied.writes |= *writes);
            }
            (_, None) => self.texels.push((*at, texture.texels.clone())),
        }
        self.forms.textures.push(TextureForm {
            format: texture.descriptor.format,
            has_levels: texture.view.levels > 1,
            samples: texture.descriptor.samples,
            shares: shares.map(|(other, _)| other),
            own: None,
        });
    }

    /// Adds a sampler; `is_native`: the device's own samples all of its textures.
    fn add_sampler(&mut self, sampler: &Sampler, is_native: bool) {
        // What the device's own sampler does is no part of the form, except that it filters or compares.
        let form = match (is_native, sampler.compare, sampler.filters()) {
            (false, ..) => *sampler,
            (true, Some(_), _) => Sampler::nearest().compare(cantus_base::texture::CompareFunction::LessEqual),
            (true, None, true) => Sampler::linear(),
            (true, None, false) => Sampler::nearest(),
        };
        let [modes, ..] = form.to_words();
        let [_, least, most] = sampler.to_words();
        self.forms.samplers.push(modes);
        self.words.extend([least, most, 0, 0]);
    }
}
