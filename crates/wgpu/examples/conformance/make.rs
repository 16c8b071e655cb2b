//! Makes objects of descriptors.

use crate::Objects;
use crate::request::{ACCESSES, ADDRESSES, COMPARISONS, DIMENSIONS, FORMATS, Outcome, Request};

impl Objects {
    /// Makes an object of a request that is named for it.
    pub fn make(&mut self, request: &Request<'_>) -> Outcome<()> {
        let (id, label) = (request.number("id")?, request.label());
        match request.text("do")? {
            "buffer" => {
                let usage = wgpu::BufferUsages::from_bits_retain(request.word("usage")?);
                let (size, mapped_at_creation) = (request.number("size")?, request.is("mapped"));
                let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
                let buffer = self.device(request)?.device.create_buffer(&descriptor);
                self.buffers.insert(id, buffer);
            }
            "texture" => {
                let view_formats = request.all_named("viewFormats", &FORMATS);
                let texture = self.device(request)?.device.create_texture(&texture(request, &view_formats)?);
                self.textures.insert(id, texture);
            }
            "view" => {
                let texture = self.textures.get(&request.number("texture")?).ok_or("no such texture")?;
                let view = texture.create_view(&view(request)?);
                self.views.insert(id, view);
            }
            "sampler" => {
                let sampler = self.device(request)?.device.create_sampler(&sampler(request));
                self.samplers.insert(id, sampler);
            }
            "group layout" => {
                let entries = request.parts("entries").map(|entry| layout_entry(&entry));
                let entries = entries.collect::<Outcome<Vec<_>>>()?;
                let descriptor = wgpu::BindGroupLayoutDescriptor { label, entries: &entries };
                let layout = self.device(request)?.device.create_bind_group_layout(&descriptor);
                self.group_layouts.insert(id, layout);
            }
            "layout" => {
                let groups = request.list("groups").iter();
                let groups: Vec<_> = groups.map(|id| self.group_layouts.get(&id.as_u64()?)).collect();
                let descriptor =
                    wgpu::PipelineLayoutDescriptor { label, bind_group_layouts: &groups, immediate_size: 0 };
                let layout = self.device(request)?.device.create_pipeline_layout(&descriptor);
                self.layouts.insert(id, layout);
            }
            "group" => {
                let group = self.group(request)?;
                self.groups.insert(id, group);
            }
            "module" => {
                let source = wgpu::ShaderSource::Wgsl(request.text("code")?.into());
                let descriptor = wgpu::ShaderModuleDescriptor { label, source };
                let module = self.device(request)?.device.create_shader_module(descriptor);
                self.modules.insert(id, module);
            }
            "pipeline" => {
                let pipeline = self.pipeline(request)?;
                self.pipelines.insert(id, pipeline);
            }
            "group layout of a pipeline" => {
                let pipeline = self.pipelines.get(&request.number("pipeline")?).ok_or("no such pipeline")?;
                let layout = pipeline.get_bind_group_layout(request.word("index")?);
                self.group_layouts.insert(id, layout);
            }
            "queries" => {
                let ty = if request.text("type")? == "occlusion" {
                    wgpu::QueryType::Occlusion
                } else {
                    wgpu::QueryType::Timestamp
                };
                let descriptor = wgpu::QuerySetDescriptor { label, ty, count: request.word("count")? };
                let queries = self.device(request)?.device.create_query_set(&descriptor);
                self.queries.insert(id, queries);
            }
            other => return Err(format!("\"{other}\" is nothing to do").into()),
        }
        Ok(())
    }

    fn pipeline(&self, request: &Request<'_>) -> Outcome<wgpu::ComputePipeline> {
        let constants: Vec<(&str, f64)> = request.head["constants"].as_object().map_or_else(Vec::new, |all| {
            all.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?))).collect()
        });
        let descriptor = wgpu::ComputePipelineDescriptor {
            label: request.label(),
            layout: request.maybe("layout").and_then(|id| self.layouts.get(&id)),
            module: self.modules.get(&request.number("module")?).ok_or("no such module")?,
            entry_point: request.head["entry"].as_str(),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        };
        Ok(self.device(request)?.device.create_compute_pipeline(&descriptor))
    }

    fn group(&self, request: &Request<'_>) -> Outcome<wgpu::BindGroup> {
        let mut entries = Vec::new();
        for entry in request.parts("entries") {
            let resource = if let Some(id) = entry.maybe("buffer") {
                wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: self.buffers.get(&id).ok_or("no such buffer")?,
                    offset: entry.number("offset")?,
                    size: entry.maybe("size").and_then(wgpu::BufferSize::new),
                })
            } else if let Some(id) = entry.maybe("sampler") {
                wgpu::BindingResource::Sampler(self.samplers.get(&id).ok_or("no such sampler")?)
            } else {
                wgpu::BindingResource::TextureView(self.views.get(&entry.number("view")?).ok_or("no such view")?)
            };
            entries.push(wgpu::BindGroupEntry { binding: entry.word("binding")?, resource });
        }
        let layout = self.group_layouts.get(&request.number("layout")?).ok_or("no such layout")?;
        let descriptor = wgpu::BindGroupDescriptor { label: request.label(), layout, entries: &entries };
        Ok(self.device(request)?.device.create_bind_group(&descriptor))
    }
}

fn texture<'a>(request: &Request<'a>, view_formats: &'a [wgpu::TextureFormat]) -> Outcome<wgpu::TextureDescriptor<'a>> {
    Ok(wgpu::TextureDescriptor {
        label: request.label(),
        size: request.extent("size"),
        mip_level_count: request.word("levels")?,
        sample_count: request.word("samples")?,
        dimension: dimension(request)?,
        format: request.named("format", &FORMATS)?,
        usage: wgpu::TextureUsages::from_bits_retain(request.word("usage")?),
        view_formats,
    })
}

fn dimension(request: &Request<'_>) -> Outcome<wgpu::TextureDimension> {
    let place = match request.text("dimension")? {
        "1d" => 0,
        "2d" => 1,
        _ => 2,
    };
    Ok(DIMENSIONS[place])
}

fn view<'a>(request: &Request<'a>) -> Outcome<wgpu::TextureViewDescriptor<'a>> {
    Ok(wgpu::TextureViewDescriptor {
        label: request.label(),
        format: request.maybe_named("format", &FORMATS),
        dimension: request.head["dimension"].as_str().map(view_dimension),
        usage: None,
        aspect: aspect(request),
        base_mip_level: request.word("level")?,
        mip_level_count: request.maybe_word("levels"),
        base_array_layer: request.word("layer")?,
        array_layer_count: request.maybe_word("layers"),
    })
}

/// The aspect that is named.
pub fn aspect(request: &Request<'_>) -> wgpu::TextureAspect {
    match request.head["aspect"].as_str() {
        Some("depth-only") => wgpu::TextureAspect::DepthOnly,
        Some("stencil-only") => wgpu::TextureAspect::StencilOnly,
        _ => wgpu::TextureAspect::All,
    }
}

fn view_dimension(name: &str) -> wgpu::TextureViewDimension {
    match name {
        "1d" => wgpu::TextureViewDimension::D1,
        "2d-array" => wgpu::TextureViewDimension::D2Array,
        "cube" => wgpu::TextureViewDimension::Cube,
        "cube-array" => wgpu::TextureViewDimension::CubeArray,
        "3d" => wgpu::TextureViewDimension::D3,
        _ => wgpu::TextureViewDimension::D2,
    }
}

fn sampler<'a>(request: &Request<'a>) -> wgpu::SamplerDescriptor<'a> {
    let address = |name: &str| request.maybe_named(name, &ADDRESSES).unwrap_or_default();
    let filter = |name: &str| {
        if request.head[name] == "linear" { wgpu::FilterMode::Linear } else { wgpu::FilterMode::Nearest }
    };
    let is_linear = request.head["mipmapFilter"] == "linear";
    wgpu::SamplerDescriptor {
        label: request.label(),
        address_mode_u: address("addressModeU"),
        address_mode_v: address("addressModeV"),
        address_mode_w: address("addressModeW"),
        mag_filter: filter("magFilter"),
        min_filter: filter("minFilter"),
        mipmap_filter: if is_linear { wgpu::MipmapFilterMode::Linear } else { wgpu::MipmapFilterMode::Nearest },
        lod_min_clamp: request.float("lodMinClamp").unwrap_or(0.0),
        lod_max_clamp: request.float("lodMaxClamp").unwrap_or(32.0),
        compare: request.maybe_named("compare", &COMPARISONS),
        anisotropy_clamp: request.maybe_word("maxAnisotropy").map_or(1, |most| most.min(16) as u16),
        border_color: None,
    }
}

fn layout_entry(entry: &Request<'_>) -> Outcome<wgpu::BindGroupLayoutEntry> {
    let ty = if let Some(buffer) = entry.maybe_part("buffer") {
        let ty = match buffer.head["type"].as_str() {
            Some("storage") => wgpu::BufferBindingType::Storage { read_only: false },
            Some("read-only-storage") => wgpu::BufferBindingType::Storage { read_only: true },
            _ => wgpu::BufferBindingType::Uniform,
        };
        let min_binding_size = buffer.maybe("minBindingSize").and_then(wgpu::BufferSize::new);
        wgpu::BindingType::Buffer { ty, has_dynamic_offset: buffer.is("hasDynamicOffset"), min_binding_size }
    } else if let Some(sampler) = entry.maybe_part("sampler") {
        wgpu::BindingType::Sampler(match sampler.head["type"].as_str() {
            Some("non-filtering") => wgpu::SamplerBindingType::NonFiltering,
            Some("comparison") => wgpu::SamplerBindingType::Comparison,
            _ => wgpu::SamplerBindingType::Filtering,
        })
    } else if let Some(texture) = entry.maybe_part("texture") {
        let sample_type = match texture.head["sampleType"].as_str() {
            Some("unfilterable-float") => wgpu::TextureSampleType::Float { filterable: false },
            Some("depth") => wgpu::TextureSampleType::Depth,
            Some("sint") => wgpu::TextureSampleType::Sint,
            Some("uint") => wgpu::TextureSampleType::Uint,
            _ => wgpu::TextureSampleType::Float { filterable: true },
        };
        let dimension = view_dimension(texture.head["viewDimension"].as_str().unwrap_or("2d"));
        wgpu::BindingType::Texture { sample_type, view_dimension: dimension, multisampled: texture.is("multisampled") }
    } else {
        let texture = entry.part("storageTexture");
        wgpu::BindingType::StorageTexture {
            access: texture.maybe_named("access", &ACCESSES).unwrap_or(wgpu::StorageTextureAccess::WriteOnly),
            format: texture.named("format", &FORMATS)?,
            view_dimension: view_dimension(texture.head["viewDimension"].as_str().unwrap_or("2d")),
        }
    };
    let visibility = wgpu::ShaderStages::from_bits_retain(entry.word("visibility")?);
    Ok(wgpu::BindGroupLayoutEntry { binding: entry.word("binding")?, visibility, ty, count: None })
}
