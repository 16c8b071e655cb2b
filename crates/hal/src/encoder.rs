//! The command encoder: it records commands. What draws or traces rays takes a pipeline that cannot exist, so it records nothing. wgpu-core drives it in
//! the order that it has validated. Barriers and states need nothing, since commands run one after the other. A render pass only clears its attachments:
//! without a pipeline nothing can be drawn.

use std::ops::Range;
use std::sync::Arc;

use wgpu_hal::{self as hal, AttachmentOps, DeviceError, MAX_BIND_GROUPS};
use wgpu_types as wgt;

use crate::adapter::MAX_IMMEDIATE_BYTES;
use crate::command::{Command, Dispatch, Set, Workgroups};
use crate::pipeline::Kernel;
use crate::texel;
use crate::unused::{AccelerationStructure, RayTracingPipeline, RenderPipeline};
use crate::{Api, BindGroup, Buffer, ComputePipeline, PipelineLayout, QuerySet, Texture, TextureView};

/// Words of immediates, in pairs.
const IMMEDIATES: usize = MAX_IMMEDIATE_BYTES as usize / 8;

/// A command encoder.
#[derive(Debug)]
pub struct CommandEncoder {
    commands: Vec<Command>,
    kernel: Option<Arc<Kernel>>,
    groups: [Set; MAX_BIND_GROUPS],
    immediates: [u64; IMMEDIATES],
    /// The set and the number of the timestamp at the end of the pass.
    at_end: Option<(QuerySet, u32)>,
}

/// Recorded commands.
#[derive(Debug)]
pub struct CommandBuffer {
    pub(crate) commands: Arc<Vec<Command>>,
}

impl CommandEncoder {
    pub(crate) fn new() -> Self {
        Self {
            commands: Vec::new(),
            kernel: None,
            groups: Default::default(),
            immediates: [0; IMMEDIATES],
            at_end: None,
        }
    }

    /// Forgets what a pass has set.
    fn begin_pass(&mut self, timestamps: Option<&hal::PassTimestampWrites<'_, QuerySet>>) {
        self.kernel = None;
        self.groups = Default::default();
        self.immediates = [0; IMMEDIATES];
        self.at_end = None;
        if let Some(writes) = timestamps {
            if let Some(index) = writes.beginning_of_pass_write_index {
                self.commands.push(Command::Timestamp { set: writes.query_set.clone(), index });
            }
            self.at_end = writes.end_of_pass_write_index.map(|index| (writes.query_set.clone(), index));
        }
    }

    fn end_pass(&mut self) {
        if let Some((set, index)) = self.at_end.take() {
            self.commands.push(Command::Timestamp { set, index });
        }
    }

    fn dispatch(&mut self, workgroups: Workgroups) {
        // wgpu-core has seen that a pipeline is set.
        let Some(kernel) = self.kernel.clone() else { return };
        let immediates = Arc::new(self.immediates);
        let dispatch = Dispatch { kernel, groups: self.groups.clone(), immediates, workgroups };
        self.commands.push(Command::Dispatch(Box::new(dispatch)));
    }

    /// Clears a part of an attachment.
    fn clear(&mut self, view: &TextureView, ops: AttachmentOps, colour: [f64; 4], slice: Option<u32>) {
        // What may hold anything holds zeros, so that results do not vary.
        let colour = if ops.contains(AttachmentOps::LOAD_CLEAR) { colour } else { [0.0; 4] };
        let is_cleared = ops.intersects(AttachmentOps::LOAD_CLEAR | AttachmentOps::LOAD_DONT_CARE);
        if is_cleared && !ops.contains(AttachmentOps::LOAD) {
            let texel = texel::encode(view.format, colour);
            self.commands.push(Command::Fill { view: view.clone(), texel, slice });
        }
    }
}

impl hal::CommandEncoder for CommandEncoder {
    type A = Api;

    unsafe fn begin_encoding(&mut self, _label: hal::Label<'_>) -> Result<(), DeviceError> {
        self.commands.clear();
        Ok(())
    }

    unsafe fn discard_encoding(&mut self) {
        self.commands.clear();
    }

    unsafe fn end_encoding(&mut self) -> Result<CommandBuffer, DeviceError> {
        Ok(CommandBuffer { commands: Arc::new(std::mem::take(&mut self.commands)) })
    }

    unsafe fn reset_all<I>(&mut self, _command_buffers: I)
    where
        I: Iterator<Item = CommandBuffer>,
    {
    }

    // Commands run one after the other: no barrier is needed.

    unsafe fn transition_buffers<'a, T>(&mut self, _barriers: T)
    where
        T: Iterator<Item = hal::BufferBarrier<'a, Buffer>>,
    {
    }

    unsafe fn transition_textures<'a, T>(&mut self, _barriers: T)
    where
        T: Iterator<Item = hal::TextureBarrier<'a, Texture>>,
    {
    }

    unsafe fn clear_buffer(&mut self, buffer: &Buffer, range: hal::MemoryRange) {
        self.commands.push(Command::Clear { buffer: buffer.memory.clone(), range });
    }

    unsafe fn copy_buffer_to_buffer<T>(&mut self, src: &Buffer, dst: &Buffer, regions: T)
    where
        T: Iterator<Item = hal::BufferCopy>,
    {
        let (source, target) = (src.memory.clone(), dst.memory.clone());
        self.commands.push(Command::Copy { source, target, regions: regions.collect() });
    }

    unsafe fn copy_texture_to_texture<T>(&mut self, src: &Texture, _: wgt::TextureUses, dst: &Texture, regions: T)
    where
        T: Iterator<Item = hal::TextureCopy>,
    {
        let (source, target) = (src.texels.clone(), dst.texels.clone());
        self.commands.push(Command::CopyTexture { source, target, regions: regions.collect() });
    }

    unsafe fn copy_buffer_to_texture<T>(&mut self, src: &Buffer, dst: &Texture, regions: T)
    where
        T: Iterator<Item = hal::BufferTextureCopy>,
    {
        let (texture, buffer) = (dst.texels.clone(), src.memory.clone());
        self.commands.push(Command::WriteTexture { texture, buffer, regions: regions.collect() });
    }

    unsafe fn copy_texture_to_buffer<T>(&mut self, src: &Texture, _: wgt::TextureUses, dst: &Buffer, regions: T)
    where
        T: Iterator<Item = hal::BufferTextureCopy>,
    {
        let (texture, buffer) = (src.texels.clone(), dst.memory.clone());
        self.commands.push(Command::ReadTexture { texture, buffer, regions: regions.collect() });
    }

    unsafe fn copy_acceleration_structure_to_acceleration_structure(
        &mut self,
        src: &AccelerationStructure,
        _dst: &AccelerationStructure,
        _copy: wgt::AccelerationStructureCopy,
    ) {
        match *src {}
    }

    unsafe fn set_bind_group(&mut self, _: &PipelineLayout, index: u32, group: &BindGroup, offsets: &[u32]) {
        if let Some(set) = self.groups.get_mut(index as usize) {
            *set = Some((group.group.clone(), offsets.into()));
        }
    }

    unsafe fn set_immediates(&mut self, _layout: &PipelineLayout, offset_bytes: u32, data: &[u32]) {
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut self.immediates);
        for (word, value) in words.iter_mut().skip(offset_bytes as usize / 4).zip(data) {
            *word = *value;
        }
    }

    unsafe fn insert_debug_marker(&mut self, _label: &str) {}
    unsafe fn begin_debug_marker(&mut self, _group_label: &str) {}
    unsafe fn end_debug_marker(&mut self) {}

    // Nothing is drawn: the other queries stay zero.

    unsafe fn begin_query(&mut self, _set: &QuerySet, _index: u32) {}
    unsafe fn end_query(&mut self, _set: &QuerySet, _index: u32) {}

    unsafe fn write_timestamp(&mut self, set: &QuerySet, index: u32) {
        self.commands.push(Command::Timestamp { set: set.clone(), index });
    }

    unsafe fn reset_queries(&mut self, set: &QuerySet, range: Range<u32>) {
        self.commands.push(Command::ResetQueries { set: set.clone(), range });
    }

    unsafe fn copy_query_results(
        &mut self,
        set: &QuerySet,
        range: Range<u32>,
        buffer: &Buffer,
        offset: wgt::BufferAddress,
        stride: wgt::BufferSize,
    ) {
        let (set, buffer) = (set.clone(), buffer.memory.clone());
        self.commands.push(Command::CopyQueries { set, range, buffer, offset, stride: stride.get() });
    }

    // A render pass clears its attachments, and nothing else can be in it.

    unsafe fn begin_render_pass(
        &mut self,
        desc: &hal::RenderPassDescriptor<'_, QuerySet, TextureView>,
    ) -> Result<(), DeviceError> {
        self.begin_pass(desc.timestamp_writes.as_ref());
        for attachment in desc.color_attachments.iter().flatten() {
            let wgt::Color { r, g, b, a } = attachment.clear_value;
            self.clear(attachment.target.view, attachment.ops, [r, g, b, a], attachment.depth_slice);
        }
        if let Some(attachment) = &desc.depth_stencil_attachment {
            let depth = f64::from(attachment.clear_value.0);
            self.clear(attachment.target.view, attachment.depth_ops, [depth; 4], None);
        }
        Ok(())
    }

    unsafe fn end_render_pass(&mut self) {
        self.end_pass();
    }

    unsafe fn set_render_pipeline(&mut self, pipeline: &RenderPipeline) {
        match *pipeline {}
    }

    unsafe fn set_index_buffer<'a>(&mut self, _: hal::BufferBinding<'a, Buffer>, _: wgt::IndexFormat) {}
    unsafe fn set_vertex_buffer<'a>(&mut self, _index: u32, _binding: hal::BufferBinding<'a, Buffer>) {}
    unsafe fn set_viewport(&mut self, _rect: &hal::Rect<f32>, _depth_range: Range<f32>) {}
    unsafe fn set_scissor_rect(&mut self, _rect: &hal::Rect<u32>) {}
    unsafe fn set_stencil_reference(&mut self, _value: u32) {}
    unsafe fn set_blend_constants(&mut self, _color: &[f32; 4]) {}
    unsafe fn draw(&mut self, _: u32, _: u32, _: u32, _: u32) {}
    unsafe fn draw_indexed(&mut self, _: u32, _: u32, _: i32, _: u32, _: u32) {}
    unsafe fn draw_indirect(&mut self, _: &Buffer, _: wgt::BufferAddress, _: u32) {}
    unsafe fn draw_indexed_indirect(&mut self, _: &Buffer, _: wgt::BufferAddress, _: u32) {}
    unsafe fn draw_indirect_count(&mut self, _: &Buffer, _: u64, _: &Buffer, _: u64, _: u32) {}
    unsafe fn draw_indexed_indirect_count(&mut self, _: &Buffer, _: u64, _: &Buffer, _: u64, _: u32) {}
    unsafe fn draw_mesh_tasks(&mut self, _: u32, _: u32, _: u32) {}
    unsafe fn draw_mesh_tasks_indirect(&mut self, _: &Buffer, _: wgt::BufferAddress, _: u32) {}
    unsafe fn draw_mesh_tasks_indirect_count(&mut self, _: &Buffer, _: u64, _: &Buffer, _: u64, _: u32) {}

    unsafe fn begin_compute_pass(&mut self, desc: &hal::ComputePassDescriptor<'_, QuerySet>) {
        self.begin_pass(desc.timestamp_writes.as_ref());
    }

    unsafe fn end_compute_pass(&mut self) {
        self.end_pass();
    }

    unsafe fn set_compute_pipeline(&mut self, pipeline: &ComputePipeline) {
        self.kernel = Some(pipeline.kernel.clone());
    }

    unsafe fn dispatch_workgroups(&mut self, count: [u32; 3]) {
        self.dispatch(Workgroups::Direct(count));
    }

    unsafe fn dispatch_workgroups_indirect(&mut self, buffer: &Buffer, offset: wgt::BufferAddress) {
        self.dispatch(Workgroups::Indirect { buffer: buffer.memory.clone(), offset });
    }

    unsafe fn begin_ray_tracing_pass(&mut self, _desc: &hal::RayTracingPassDescriptor<'_>) {}
    unsafe fn end_ray_tracing_pass(&mut self) {}

    unsafe fn set_ray_tracing_pipeline(&mut self, pipeline: &RayTracingPipeline) {
        match *pipeline {}
    }

    unsafe fn trace_rays<'a>(
        &mut self,
        _count: [u32; 3],
        _ray_generation: hal::PipelineGroupData<'a, Buffer>,
        _miss: hal::PipelineGroupData<'a, Buffer>,
        _intersection: hal::PipelineGroupData<'a, Buffer>,
    ) {
    }

    unsafe fn build_acceleration_structures<'a, T>(&mut self, _descriptor_count: u32, _descriptors: T)
    where
        Self::A: 'a,
        T: IntoIterator<Item = hal::BuildAccelerationStructureDescriptor<'a, Buffer, AccelerationStructure>>,
    {
    }

    unsafe fn place_acceleration_structure_barrier(&mut self, _barrier: hal::AccelerationStructureBarrier) {}

    unsafe fn read_acceleration_structure_compact_size(&mut self, structure: &AccelerationStructure, _: &Buffer) {
        match *structure {}
    }

    unsafe fn set_acceleration_structure_dependencies(
        _command_buffers: &[&CommandBuffer],
        _dependencies: &[&AccelerationStructure],
    ) {
    }
}
