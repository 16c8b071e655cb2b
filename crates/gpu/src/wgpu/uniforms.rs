//! The uniform arena: one buffer that holds the uniform contents of every dispatch of a batch, reached by dynamic offsets and
//! written once per submission.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

/// A submission takes at most this many bytes of uniforms; a batch with more is split.
pub(super) const MAX_BYTES: u64 = 16 << 20;
const FIRST_BYTES: u64 = 64 << 10;

pub(super) struct UniformArena {
    buffer: Option<Arena>,
    /// The contents of the buffer when the submission starts.
    contents: Vec<u8>,
    /// Contents placed before, by hash: equal contents are stored once.
    placed: FxHashMap<u64, u32>,
    alignment: u64,
}

struct Arena {
    buffer: wgpu::Buffer,
    id: u64,
    bytes: u64,
}

impl UniformArena {
    pub(super) fn new(limits: &wgpu::Limits) -> Self {
        let alignment = u64::from(limits.min_uniform_buffer_offset_alignment.max(16));
        Self { buffer: None, contents: Vec::new(), placed: FxHashMap::default(), alignment }
    }

    /// Bytes that contents of this size take at most.
    pub(super) fn footprint(&self, bytes: u64) -> u64 {
        bytes.max(1).div_ceil(self.alignment) * self.alignment
    }

    /// Starts a submission that needs at most this many bytes. Returns the id of a buffer that was replaced.
    pub(super) fn begin(&mut self, device: &wgpu::Device, needed: u64, new_id: impl FnOnce() -> u64) -> Option<u64> {
        self.contents.clear();
        self.placed.clear();
        if needed == 0 || self.buffer.as_ref().is_some_and(|arena| arena.bytes >= needed) {
            return None;
        }
        let bytes = needed.max(FIRST_BYTES).next_power_of_two();
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("cantus uniforms"),
            size: bytes,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.buffer.replace(Arena { buffer, id: new_id(), bytes }).map(|old| old.id)
    }

    /// Puts contents into the arena, zero-filled to `bytes`; returns their offset.
    pub(super) fn place(&mut self, contents: &[u8], bytes: u64) -> u32 {
        let mut hasher = FxHasher::default();
        contents.hash(&mut hasher);
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&offset) = self.placed.get(&hash) {
            let start = offset as usize;
            if self.contents.get(start..start + contents.len()) == Some(contents) {
                return offset;
            }
        }
        let start = self.contents.len();
        // `begin` bounds the arena by MAX_BYTES or one oversized dispatch, so offsets fit.
        let offset = u32::try_from(start).unwrap_or(u32::MAX);
        self.contents.extend_from_slice(contents);
        let end = start as u64 + self.footprint(bytes.max(contents.len() as u64));
        self.contents.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
        self.placed.insert(hash, offset);
        offset
    }

    /// The buffer and its id.
    pub(super) fn buffer(&self) -> Option<(&wgpu::Buffer, u64)> {
        self.buffer.as_ref().map(|arena| (&arena.buffer, arena.id))
    }

    /// Queues the contents, ahead of the submission that follows.
    pub(super) fn write(&self, queue: &wgpu::Queue) {
        if let Some(arena) = &self.buffer
            && !self.contents.is_empty()
        {
            queue.write_buffer(&arena.buffer, 0, &self.contents);
        }
    }
}
