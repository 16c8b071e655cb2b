//! Bind groups and their layouts. A dispatch looks its resources up by the numbers of the bindings, and adds the dynamic offsets then: one group may be set
//! with several.

use std::collections::BTreeMap;
use std::sync::Arc;

use wgpu_hal::DeviceError;
use wgpu_types as wgt;

use crate::buffer::{Bound, Buffer};
use crate::texture::{Sampler, TextureView};
use crate::unused::AccelerationStructure;

/// A layout of bind groups: the types of its bindings, by their numbers.
#[derive(Debug, Clone)]
pub struct BindGroupLayout {
    types: Arc<BTreeMap<u32, wgt::BindingType>>,
}

/// A layout of pipelines. wgpu-core compares pipelines with it; kernels need nothing of it.
#[derive(Debug)]
pub struct PipelineLayout;

/// A bind group.
#[derive(Debug, Clone)]
pub struct BindGroup {
    pub(crate) group: Arc<Group>,
}

/// The resources of a bind group, by the numbers of the bindings.
#[derive(Debug)]
pub(crate) struct Group {
    resources: BTreeMap<u32, Resource>,
    /// The bindings with dynamic offsets, in the order of these.
    dynamic: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(crate) enum Resource {
    Buffer(Bound),
    Texture(TextureView),
    Sampler(Sampler),
}

impl BindGroupLayout {
    pub(crate) fn new(desc: &wgpu_hal::BindGroupLayoutDescriptor<'_>) -> Self {
        Self { types: Arc::new(desc.entries.iter().map(|entry| (entry.binding, entry.ty)).collect()) }
    }
}

/// The description of a bind group.
pub(crate) type Descriptor<'a> =
    wgpu_hal::BindGroupDescriptor<'a, BindGroupLayout, Buffer, Sampler, TextureView, AccelerationStructure>;

impl BindGroup {
    /// Arrays of bindings and external textures take features that are not offered.
    pub(crate) fn new(desc: &Descriptor<'_>) -> Result<Self, DeviceError> {
        let types = &desc.layout.types;
        let mut resources = BTreeMap::new();
        for entry in desc.entries {
            let at = entry.resource_index as usize;
            let resource = match types.get(&entry.binding) {
                Some(wgt::BindingType::Buffer { .. }) => desc.buffers.get(at).and_then(Bound::of).map(Resource::Buffer),
                Some(wgt::BindingType::Sampler(_)) => {
                    desc.samplers.get(at).map(|&sampler| Resource::Sampler(sampler.clone()))
                }
                Some(wgt::BindingType::Texture { .. } | wgt::BindingType::StorageTexture { .. }) => {
                    desc.textures.get(at).map(|texture| Resource::Texture(texture.view.clone()))
                }
                _ => None,
            };
            resources.insert(entry.binding, resource.ok_or(DeviceError::Unexpected)?);
        }
        let is_dynamic =
            |ty: &wgt::BindingType| matches!(ty, wgt::BindingType::Buffer { has_dynamic_offset: true, .. });
        let dynamic = types.iter().filter(|(_, ty)| is_dynamic(ty)).map(|(binding, _)| *binding).collect();
        Ok(Self { group: Arc::new(Group { resources, dynamic }) })
    }
}

impl Group {
    /// Returns what is bound to a number, with its dynamic offset.
    pub(crate) fn resource(&self, binding: u32, offsets: &[u32]) -> Option<Resource> {
        let mut resource = self.resources.get(&binding)?.clone();
        if let Resource::Buffer(bound) = &mut resource {
            let place = self.dynamic.iter().position(|known| *known == binding);
            bound.offset += place.and_then(|place| offsets.get(place)).map_or(0, |offset| u64::from(*offset));
        }
        Some(resource)
    }
}
