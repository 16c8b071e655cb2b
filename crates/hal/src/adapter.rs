//! The adapter: what the executor does, in wgpu's features, limits and formats. Each feature that is offered works: libraries turn on all they see.
//! wgpu-core asks it what to allow, and libraries switch on what they see, so nothing is offered that does not work. Limits are the executor's and not a
//! GPU's. Formats without storage or sampling are simply absent.

use std::sync::Arc;
use std::time::Instant;

use cantus_base::texture::{ChannelType, Packing, TextureFormat};
use cantus_spmd::{MAX_BINDING_BYTES, SUBGROUP_SIZE};
use wgpu_hal::{self as hal, Alignments, DeviceError, TextureFormatCapabilities as Capabilities};
use wgpu_types::{self as wgt, DownlevelFlags, Features};

use crate::{Api, Device, Options, Queue, Surface, texture};

/// Bytes of immediates, at most.
pub(crate) const MAX_IMMEDIATE_BYTES: u32 = 256;

/// The processor.
#[derive(Debug)]
pub struct Adapter {
    options: Arc<Options>,
}

fn features() -> Features {
    Features::SHADER_F16
        | Features::SHADER_F64
        | Features::SHADER_I16
        | Features::SHADER_INT64
        | Features::SHADER_INT64_ATOMIC_MIN_MAX
        | Features::SHADER_INT64_ATOMIC_ALL_OPS
        | Features::SHADER_FLOAT32_ATOMIC
        | Features::SUBGROUP
        | Features::SUBGROUP_BARRIER
        | Features::IMMEDIATES
        | Features::TIMESTAMP_QUERY
        | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
        | Features::TIMESTAMP_QUERY_INSIDE_PASSES
        | Features::MAPPABLE_PRIMARY_BUFFERS
        | Features::CLEAR_TEXTURE
        | Features::TEXTURE_FORMAT_16BIT_NORM
        | Features::TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES
        | Features::BGRA8UNORM_STORAGE
        | Features::FLOAT32_FILTERABLE
}

fn limits() -> wgt::Limits {
    wgt::Limits {
        max_texture_dimension_1d: 16384,
        max_texture_dimension_2d: 16384,
        max_texture_array_layers: 2048,
        max_bind_groups: 8,
        max_dynamic_uniform_buffers_per_pipeline_layout: 64,
        max_dynamic_storage_buffers_per_pipeline_layout: 64,
        max_sampled_textures_per_shader_stage: 128,
        max_samplers_per_shader_stage: 64,
        max_storage_buffers_per_shader_stage: 128,
        max_storage_textures_per_shader_stage: 64,
        max_uniform_buffers_per_shader_stage: 64,
        max_uniform_buffer_binding_size: 1 << 30,
        max_storage_buffer_binding_size: MAX_BINDING_BYTES / 4 * 4,
        max_buffer_size: 1 << 40,
        min_uniform_buffer_offset_alignment: 32,
        min_storage_buffer_offset_alignment: 32,
        max_compute_workgroup_storage_size: 64 << 10,
        max_compute_invocations_per_workgroup: 1024,
        max_compute_workgroup_size_x: 1024,
        max_compute_workgroup_size_y: 1024,
        max_compute_workgroup_size_z: 1024,
        max_immediate_size: MAX_IMMEDIATE_BYTES,
        ..wgt::Limits::defaults()
    }
}

impl Adapter {
    /// Returns it with what it offers.
    pub(crate) fn exposed(backend: wgt::Backend, options: Arc<Options>) -> hal::ExposedAdapter<Api> {
        let info = wgt::AdapterInfo {
            name: "Cantus on the CPU".to_owned(),
            driver: "cantus-hal".to_owned(),
            driver_info: format!("{}, {}", env!("CARGO_PKG_VERSION"), cantus_spmd::instruction_set()),
            subgroup_min_size: SUBGROUP_SIZE,
            subgroup_max_size: SUBGROUP_SIZE,
            ..wgt::AdapterInfo::new(wgt::DeviceType::Cpu, backend)
        };
        let alignments = Alignments {
            buffer_copy_offset: wgt::BufferSize::MIN,
            buffer_copy_pitch: wgt::BufferSize::MIN,
            uniform_bounds_check_alignment: wgt::BufferSize::MIN,
            raw_tlas_instance_size: 0,
            ray_tracing_scratch_buffer_alignment: 1,
            ray_tracing_pipeline_group_data_size: 1,
            ray_tracing_pipeline_group_data_alignment: 1,
            ray_tracing_pipeline_data_offset_alignment: 1,
        };
        // Of WebGPU's formats some are missing, as `texture_format_capabilities` says. All else here is about drawing, or holds.
        let flags = DownlevelFlags::compliant() - DownlevelFlags::WEBGPU_TEXTURE_FORMAT_SUPPORT;
        let downlevel = wgt::DownlevelCapabilities { flags, shader_model: wgt::ShaderModel::Sm5, ..Default::default() };
        let cooperative_matrix_properties = Vec::new();
        let limits = if options.default_limits { wgt::Limits::defaults() } else { limits() };
        let capabilities = hal::Capabilities { limits, alignments, downlevel, cooperative_matrix_properties };
        hal::ExposedAdapter { adapter: Self { options }, info, features: features(), capabilities }
    }
}

/// The uses that kernels and copies have for a format.
fn capabilities(format: TextureFormat) -> Capabilities {
    let mut all = Capabilities::SAMPLED | Capabilities::COPY_SRC | Capabilities::COPY_DST;
    let is_float = !matches!(format.channel_type(), ChannelType::Uint | ChannelType::Sint);
    all.set(Capabilities::SAMPLED_LINEAR, is_float && format != TextureFormat::Depth32Float);
    if format.is_depth() {
        return all | Capabilities::DEPTH_STENCIL_ATTACHMENT | Capabilities::MULTISAMPLE_X4;
    }
    if format.packing() == Packing::Rgb9e5 {
        return all;
    }
    all |= Capabilities::COLOR_ATTACHMENT | Capabilities::MULTISAMPLE_X4;
    if !format.is_srgb() {
        all |= Capabilities::STORAGE_READ_ONLY | Capabilities::STORAGE_WRITE_ONLY | Capabilities::STORAGE_READ_WRITE;
    }
    all
}

impl hal::Adapter for Adapter {
    type A = Api;

    unsafe fn open(
        &self,
        _features: Features,
        _limits: &wgt::Limits,
        _memory_hints: &wgt::MemoryHints,
    ) -> Result<hal::OpenDevice<Api>, DeviceError> {
        let lost = Arc::default();
        let queue = Queue::new(Arc::clone(&lost), Instant::now(), self.options.clone())?;
        Ok(hal::OpenDevice { device: Device { lost }, queue })
    }

    unsafe fn texture_format_capabilities(&self, format: wgt::TextureFormat) -> Capabilities {
        // wgpu-core refuses copies that would show a buffer the bits of `depth24plus`, which are a float's here.
        texture::format(format).map_or(Capabilities::empty(), capabilities)
    }

    unsafe fn surface_capabilities(&self, _surface: &Surface) -> Option<hal::SurfaceCapabilities> {
        None
    }

    unsafe fn get_presentation_timestamp(&self) -> wgt::PresentationTimestamp {
        wgt::PresentationTimestamp::INVALID_TIMESTAMP
    }

    // Commands run one after the other: none needs a barrier.

    fn get_ordered_buffer_usages(&self) -> wgt::BufferUses {
        wgt::BufferUses::INCLUSIVE | wgt::BufferUses::MAP_WRITE
    }

    fn get_ordered_texture_usages(&self) -> wgt::TextureUses {
        wgt::TextureUses::INCLUSIVE | wgt::TextureUses::COLOR_TARGET | wgt::TextureUses::DEPTH_STENCIL_WRITE
    }
}
