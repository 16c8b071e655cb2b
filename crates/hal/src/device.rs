//! The device: it makes what commands use. wgpu-core calls it with checked descriptors. Objects are counted references, so destroying does nothing. A
//! pipeline is compiled here and refused here with a sentence; render pipelines cannot exist.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wgpu_hal::{self as hal, DeviceError, PipelineCacheError, PipelineError, ShaderError};
use wgpu_types as wgt;

use crate::memory::Memory;
use crate::unused::{AccelerationStructure, PipelineCache, RayTracingPipeline, RenderPipeline};
use crate::{
    Api, BindGroup, BindGroupLayout, Buffer, CommandBuffer, CommandEncoder, ComputePipeline, Fence, PipelineLayout,
    QuerySet, Queue, Sampler, ShaderModule, Surface, Texture, TextureView, bind, pipeline,
};

/// The processor, opened.
#[derive(Debug)]
pub struct Device {
    pub(crate) lost: Arc<AtomicBool>,
}

/// Why nothing is drawn.
const NO_DRAWING: &str =
    "the CPU device of Cantus runs compute pipelines only: take another adapter for render pipelines";

impl Device {
    fn live<T>(&self, value: T) -> Result<T, DeviceError> {
        if self.lost.load(Ordering::Acquire) { Err(DeviceError::Lost) } else { Ok(value) }
    }
}

// What belongs to an object goes when it is dropped: nothing is left to destroy.
impl hal::Device for Device {
    type A = Api;

    unsafe fn create_buffer(&self, desc: &hal::BufferDescriptor<'_>) -> Result<Buffer, DeviceError> {
        Ok(Buffer { memory: Arc::new(Memory::new(desc.size)?) })
    }

    unsafe fn destroy_buffer(&self, _buffer: Buffer) {}
    unsafe fn add_raw_buffer(&self, _buffer: &Buffer) {}

    unsafe fn map_buffer(&self, buffer: &Buffer, range: hal::MemoryRange) -> Result<hal::BufferMapping, DeviceError> {
        let (ptr, _) = buffer.memory.range(range).ok_or(DeviceError::Unexpected)?;
        Ok(hal::BufferMapping { ptr, is_coherent: true })
    }

    unsafe fn unmap_buffer(&self, _buffer: &Buffer) {}

    unsafe fn flush_mapped_ranges<I>(&self, _buffer: &Buffer, _ranges: I)
    where
        I: Iterator<Item = hal::MemoryRange>,
    {
    }

    unsafe fn invalidate_mapped_ranges<I>(&self, _buffer: &Buffer, _ranges: I)
    where
        I: Iterator<Item = hal::MemoryRange>,
    {
    }

    unsafe fn create_texture(&self, desc: &hal::TextureDescriptor<'_>) -> Result<Texture, DeviceError> {
        Texture::new(desc)
    }

    unsafe fn destroy_texture(&self, _texture: Texture) {}
    unsafe fn add_raw_texture(&self, _texture: &Texture) {}

    unsafe fn create_texture_view(
        &self,
        texture: &Texture,
        desc: &hal::TextureViewDescriptor<'_>,
    ) -> Result<TextureView, DeviceError> {
        TextureView::new(texture, desc)
    }

    unsafe fn destroy_texture_view(&self, _view: TextureView) {}

    unsafe fn create_sampler(&self, desc: &hal::SamplerDescriptor<'_>) -> Result<Sampler, DeviceError> {
        Ok(Sampler::new(desc))
    }

    unsafe fn destroy_sampler(&self, _sampler: Sampler) {}

    unsafe fn create_command_encoder(
        &self,
        _desc: &hal::CommandEncoderDescriptor<'_, Queue>,
    ) -> Result<CommandEncoder, DeviceError> {
        Ok(CommandEncoder::new())
    }

    unsafe fn create_bind_group_layout(
        &self,
        desc: &hal::BindGroupLayoutDescriptor<'_>,
    ) -> Result<BindGroupLayout, DeviceError> {
        Ok(BindGroupLayout::new(desc))
    }

    unsafe fn destroy_bind_group_layout(&self, _layout: BindGroupLayout) {}

    unsafe fn create_pipeline_layout(
        &self,
        _desc: &hal::PipelineLayoutDescriptor<'_, BindGroupLayout>,
    ) -> Result<PipelineLayout, DeviceError> {
        Ok(PipelineLayout)
    }

    unsafe fn destroy_pipeline_layout(&self, _layout: PipelineLayout) {}

    unsafe fn create_bind_group(&self, desc: &bind::Descriptor<'_>) -> Result<BindGroup, DeviceError> {
        BindGroup::new(desc)
    }

    unsafe fn destroy_bind_group(&self, _group: BindGroup) {}

    unsafe fn create_shader_module(
        &self,
        _desc: &hal::ShaderModuleDescriptor<'_>,
        shader: hal::ShaderInput<'_>,
    ) -> Result<ShaderModule, ShaderError> {
        Ok(ShaderModule::new(shader))
    }

    unsafe fn destroy_shader_module(&self, _module: ShaderModule) {}

    unsafe fn create_render_pipeline(
        &self,
        _desc: &hal::RenderPipelineDescriptor<'_, PipelineLayout, ShaderModule, PipelineCache>,
    ) -> Result<RenderPipeline, PipelineError> {
        Err(PipelineError::Linkage(wgt::ShaderStages::VERTEX, NO_DRAWING.to_owned()))
    }

    unsafe fn destroy_render_pipeline(&self, pipeline: RenderPipeline) {
        match pipeline {}
    }

    unsafe fn create_compute_pipeline(
        &self,
        desc: &pipeline::Descriptor<'_>,
    ) -> Result<ComputePipeline, PipelineError> {
        ComputePipeline::new(desc)
    }

    unsafe fn destroy_compute_pipeline(&self, _pipeline: ComputePipeline) {}

    unsafe fn create_ray_tracing_pipeline(
        &self,
        _desc: &hal::RayTracingPipelineDescriptor<'_, PipelineLayout, ShaderModule, PipelineCache>,
    ) -> Result<RayTracingPipeline, PipelineError> {
        Err(PipelineError::Linkage(wgt::ShaderStages::empty(), NO_DRAWING.to_owned()))
    }

    unsafe fn destroy_ray_tracing_pipeline(&self, pipeline: RayTracingPipeline) {
        match pipeline {}
    }

    unsafe fn get_raytracing_pipeline_group_data(
        &self,
        pipeline: &RayTracingPipeline,
        _groups: Range<u32>,
    ) -> Result<Vec<u8>, DeviceError> {
        match *pipeline {}
    }

    unsafe fn create_pipeline_cache(
        &self,
        _desc: &hal::PipelineCacheDescriptor<'_>,
    ) -> Result<PipelineCache, PipelineCacheError> {
        Err(PipelineCacheError::Device(DeviceError::Unexpected))
    }

    unsafe fn destroy_pipeline_cache(&self, cache: PipelineCache) {
        match cache {}
    }

    unsafe fn create_query_set(&self, desc: &wgt::QuerySetDescriptor<hal::Label<'_>>) -> Result<QuerySet, DeviceError> {
        Ok(QuerySet::new(desc.count))
    }

    unsafe fn destroy_query_set(&self, _set: QuerySet) {}

    unsafe fn create_fence(&self) -> Result<Fence, DeviceError> {
        Ok(Fence::new())
    }

    unsafe fn destroy_fence(&self, _fence: Fence) {}

    unsafe fn get_fence_value(&self, fence: &Fence) -> Result<hal::FenceValue, DeviceError> {
        self.live(fence.value())
    }

    unsafe fn wait(
        &self,
        fence: &Fence,
        value: hal::FenceValue,
        timeout: Option<Duration>,
    ) -> Result<bool, DeviceError> {
        self.live(fence.wait(value, timeout))
    }

    unsafe fn start_graphics_debugger_capture(&self) -> bool {
        false
    }

    unsafe fn stop_graphics_debugger_capture(&self) {}

    unsafe fn create_acceleration_structure(
        &self,
        _desc: &hal::AccelerationStructureDescriptor<'_>,
    ) -> Result<AccelerationStructure, DeviceError> {
        Err(DeviceError::Unexpected)
    }

    unsafe fn get_acceleration_structure_build_sizes(
        &self,
        _desc: &hal::GetAccelerationStructureBuildSizesDescriptor<'_, Buffer>,
    ) -> hal::AccelerationStructureBuildSizes {
        hal::AccelerationStructureBuildSizes::default()
    }

    unsafe fn get_acceleration_structure_device_address(
        &self,
        structure: &AccelerationStructure,
    ) -> wgt::BufferAddress {
        match *structure {}
    }

    unsafe fn destroy_acceleration_structure(&self, structure: AccelerationStructure) {
        match structure {}
    }

    fn tlas_instance_to_bytes(&self, _instance: hal::TlasInstance) -> Vec<u8> {
        Vec::new()
    }

    fn get_internal_counters(&self) -> wgt::HalCounters {
        wgt::HalCounters::default()
    }

    fn check_if_oom(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl hal::Queue for Queue {
    type A = Api;

    unsafe fn submit(
        &self,
        command_buffers: &[&CommandBuffer],
        _surface_textures: &[&crate::unused::SurfaceTexture],
        (fence, value): (&Fence, hal::FenceValue),
    ) -> Result<(), DeviceError> {
        let commands = command_buffers.iter().map(|buffer| buffer.commands.clone()).collect();
        Self::submit(self, commands, fence, value)
    }

    unsafe fn present(
        &self,
        _surface: &Surface,
        texture: crate::unused::SurfaceTexture,
    ) -> Result<(), hal::SurfaceError> {
        match texture {}
    }

    unsafe fn wait_for_idle(&self) -> Result<(), DeviceError> {
        self.wait()
    }

    /// Timestamps are nanoseconds.
    unsafe fn get_timestamp_period(&self) -> f32 {
        1.0
    }
}
