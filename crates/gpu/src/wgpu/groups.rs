//! Bind-group layouts, bind groups and samplers, made once and kept: bounded, and forgotten when a buffer dies.

use cantus_base::listed::Listed;
use rustc_hash::FxHashMap;

/// More bind groups than this are not kept.
const MAX_GROUPS: usize = 4096;

/// One entry of a layout, as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LayoutEntry {
    pub(super) binding: u32,
    pub(super) kind: EntryKind,
    pub(super) dynamic: bool,
    pub(super) min_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EntryKind {
    Uniform,
    Read,
    ReadWrite,
    /// A texture or a sampler.
    Other(wgpu::BindingType),
}

/// A layout and its identity.
#[derive(Debug, Clone)]
pub(super) struct GroupLayout {
    pub(super) id: u64,
    pub(super) raw: wgpu::BindGroupLayout,
}

#[derive(Default)]
pub(super) struct GroupCache {
    layouts: FxHashMap<Vec<LayoutEntry>, GroupLayout>,
    groups: FxHashMap<Box<[u64]>, wgpu::BindGroup>,
    next: u64,
}

/// One resource of a bind group. Its id, offset and size are its part of the key.
pub(super) struct Range<'a> {
    pub(super) binding: u32,
    pub(super) resource: Resource<'a>,
    pub(super) id: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

pub(super) enum Resource<'a> {
    Buffer(&'a wgpu::Buffer),
    View(&'a wgpu::TextureView),
    Sampler(&'a wgpu::Sampler),
}

impl GroupCache {
    /// The layout with these entries.
    pub(super) fn layout(&mut self, device: &wgpu::Device, entries: &[LayoutEntry]) -> GroupLayout {
        if let Some(known) = self.layouts.get(entries) {
            return known.clone();
        }
        let raw_entries: Vec<_> = entries.iter().map(raw_entry).listed();
        let raw = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("cantus layout"),
            entries: &raw_entries,
        });
        self.next += 1;
        let layout = GroupLayout { id: self.next, raw };
        self.layouts.insert(entries.to_vec(), layout.clone());
        layout
    }

    /// The bind group over these ranges. `key` is the layout's id, then id, offset and size of each range.
    pub(super) fn group<'a, I: Iterator<Item = Range<'a>>>(
        &mut self,
        device: &wgpu::Device,
        layout: &GroupLayout,
        key: &[u64],
        ranges: impl FnOnce() -> I,
        label: &str,
    ) -> &wgpu::BindGroup {
        if !self.groups.contains_key(key) {
            let entries: Vec<_> = ranges().map(raw_range).listed();
            let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(label),
                layout: &layout.raw,
                entries: &entries,
            });
            if self.groups.len() >= MAX_GROUPS {
                self.groups.clear();
            }
            return self.groups.entry(key.into()).or_insert(group);
        }
        &self.groups[key]
    }

    /// Forgets every bind group over one of these buffers, so that their memory is given back.
    pub(super) fn forget(&mut self, buffers: &[u64]) {
        if !buffers.is_empty() {
            self.groups.retain(|key, _| !key[1..].chunks_exact(3).any(|range| buffers.contains(&range[0])));
        }
    }

    /// Forgets everything: after a failure, in case something kept here is not valid.
    pub(super) fn clear(&mut self) {
        self.layouts.clear();
        self.groups.clear();
    }
}

fn raw_entry(entry: &LayoutEntry) -> wgpu::BindGroupLayoutEntry {
    let buffer = |ty| wgpu::BindingType::Buffer {
        ty,
        has_dynamic_offset: entry.dynamic,
        min_binding_size: wgpu::BufferSize::new(entry.min_bytes),
    };
    let ty = match entry.kind {
        EntryKind::Uniform => buffer(wgpu::BufferBindingType::Uniform),
        EntryKind::Read => buffer(wgpu::BufferBindingType::Storage { read_only: true }),
        EntryKind::ReadWrite => buffer(wgpu::BufferBindingType::Storage { read_only: false }),
        EntryKind::Other(ty) => ty,
    };
    wgpu::BindGroupLayoutEntry { binding: entry.binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

fn raw_range(range: Range<'_>) -> wgpu::BindGroupEntry<'_> {
    let resource = match range.resource {
        Resource::Buffer(buffer) => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset: range.offset,
            size: wgpu::BufferSize::new(range.bytes),
        }),
        Resource::View(view) => wgpu::BindingResource::TextureView(view),
        Resource::Sampler(sampler) => wgpu::BindingResource::Sampler(sampler),
    };
    wgpu::BindGroupEntry { binding: range.binding, resource }
}
