//! Encodes commands.

use serde_json::Value;

use crate::Objects;
use crate::make::aspect;
use crate::request::{Outcome, Request};

/// The place of texels in bytes.
pub fn layout(request: &Request<'_>) -> wgpu::TexelCopyBufferLayout {
    wgpu::TexelCopyBufferLayout {
        offset: request.maybe("offset").unwrap_or(0),
        bytes_per_row: request.maybe_word("bytesPerRow"),
        rows_per_image: request.maybe_word("rowsPerImage"),
    }
}

impl Objects {
    fn buffer(&self, request: &Request<'_>, name: &str) -> Outcome<&wgpu::Buffer> {
        Ok(self.buffers.get(&request.number(name)?).ok_or("no such buffer")?)
    }

    fn query(&self, request: &Request<'_>) -> Outcome<&wgpu::QuerySet> {
        Ok(self.queries.get(&request.number("set")?).ok_or("no such set of queries")?)
    }

    pub fn texel_copy(&self, request: &Request<'_>) -> Outcome<wgpu::TexelCopyTextureInfo<'_>> {
        let [x, y, z] = request.triple("origin", 0);
        Ok(wgpu::TexelCopyTextureInfo {
            texture: self.textures.get(&request.number("texture")?).ok_or("no such texture")?,
            mip_level: request.maybe_word("mipLevel").unwrap_or(0),
            origin: wgpu::Origin3d { x, y, z },
            aspect: aspect(request),
        })
    }

    fn buffer_copy(&self, request: &Request<'_>) -> Outcome<wgpu::TexelCopyBufferInfo<'_>> {
        Ok(wgpu::TexelCopyBufferInfo { buffer: self.buffer(request, "buffer")?, layout: layout(request) })
    }

    /// Encodes the commands of a request.
    pub fn encode(&self, request: &Request<'_>) -> Outcome<wgpu::CommandBuffer> {
        let descriptor = wgpu::CommandEncoderDescriptor { label: request.label() };
        let mut encoder = self.device(request)?.device.create_command_encoder(&descriptor);
        for command in request.parts("commands") {
            self.command(&mut encoder, &command)?;
        }
        Ok(encoder.finish())
    }

    fn command(&self, encoder: &mut wgpu::CommandEncoder, command: &Request<'_>) -> Outcome<()> {
        match command.text("do")? {
            "copy" => {
                let (from, to) = (self.buffer(command, "from")?, self.buffer(command, "to")?);
                let (at, into) = (command.number("at")?, command.number("into")?);
                encoder.copy_buffer_to_buffer(from, at, to, into, command.maybe("size"));
            }
            "clear" => {
                let buffer = self.buffer(command, "buffer")?;
                encoder.clear_buffer(buffer, command.number("offset")?, command.maybe("size"));
            }
            "buffer to texture" => {
                let (from, to) = (self.buffer_copy(&command.part("from"))?, self.texel_copy(&command.part("to"))?);
                encoder.copy_buffer_to_texture(from, to, command.extent("size"));
            }
            "texture to buffer" => {
                let (from, to) = (self.texel_copy(&command.part("from"))?, self.buffer_copy(&command.part("to"))?);
                encoder.copy_texture_to_buffer(from, to, command.extent("size"));
            }
            "texture to texture" => {
                let (from, to) = (self.texel_copy(&command.part("from"))?, self.texel_copy(&command.part("to"))?);
                encoder.copy_texture_to_texture(from, to, command.extent("size"));
            }
            "resolve" => {
                let first = command.word("first")?;
                let (set, into) = (self.query(command)?, self.buffer(command, "into")?);
                encoder.resolve_query_set(set, first..first + command.word("count")?, into, command.number("offset")?);
            }
            "push group" => encoder.push_debug_group(command.text("label")?),
            "pop group" => encoder.pop_debug_group(),
            "mark" => encoder.insert_debug_marker(command.text("label")?),
            "compute" => self.compute(encoder, command)?,
            "render" => self.clear(encoder, command)?,
            other => return Err(format!("\"{other}\" is no command").into()),
        }
        Ok(())
    }

    fn compute(&self, encoder: &mut wgpu::CommandEncoder, pass: &Request<'_>) -> Outcome<()> {
        let timestamp_writes = match pass.maybe_part("timestamps") {
            None => None,
            Some(writes) => Some(wgpu::ComputePassTimestampWrites {
                query_set: self.query(&writes)?,
                beginning_of_pass_write_index: writes.maybe_word("first"),
                end_of_pass_write_index: writes.maybe_word("last"),
            }),
        };
        let descriptor = wgpu::ComputePassDescriptor { label: pass.label(), timestamp_writes };
        let mut encoded = encoder.begin_compute_pass(&descriptor);
        for step in pass.parts("steps") {
            match step.text("do")? {
                "pipeline" => {
                    encoded.set_pipeline(self.pipelines.get(&step.number("id")?).ok_or("no such pipeline")?);
                }
                "group" => {
                    let offsets = step.list("offsets").iter().filter_map(Value::as_u64);
                    let offsets: Vec<u32> = offsets.map(u32::try_from).collect::<Result<_, _>>()?;
                    let group = step.maybe("id").and_then(|id| self.groups.get(&id));
                    encoded.set_bind_group(step.word("index")?, group, &offsets);
                }
                "dispatch" => {
                    let [x, y, z] = step.triple("workgroups", 1);
                    encoded.dispatch_workgroups(x, y, z);
                }
                "indirect" => {
                    encoded.dispatch_workgroups_indirect(self.buffer(&step, "buffer")?, step.number("offset")?);
                }
                "push group" => encoded.push_debug_group(step.text("label")?),
                "pop group" => encoded.pop_debug_group(),
                "mark" => encoded.insert_debug_marker(step.text("label")?),
                other => return Err(format!("\"{other}\" is no step of a compute pass").into()),
            }
        }
        Ok(())
    }

    /// A render pass that draws nothing.
    fn clear(&self, encoder: &mut wgpu::CommandEncoder, pass: &Request<'_>) -> Outcome<()> {
        let view = |attachment: &Request<'_>| -> Outcome<&wgpu::TextureView> {
            Ok(self.views.get(&attachment.number("view")?).ok_or("no such view")?)
        };
        let store = |attachment: &Request<'_>, name: &str| {
            if attachment.head[name] == "discard" { wgpu::StoreOp::Discard } else { wgpu::StoreOp::Store }
        };
        let mut colours = Vec::new();
        for attachment in pass.parts("colours") {
            if attachment.head.is_null() {
                colours.push(None);
                continue;
            }
            let colour = attachment.list("clear");
            let [r, g, b, a] = [0, 1, 2, 3].map(|at| colour.get(at).and_then(Value::as_f64).unwrap_or(0.0));
            let is_cleared = attachment.head["load"] == "clear";
            colours.push(Some(wgpu::RenderPassColorAttachment {
                view: view(&attachment)?,
                depth_slice: attachment.maybe_word("slice"),
                resolve_target: None,
                ops: wgpu::Operations {
                    load: if is_cleared { wgpu::LoadOp::Clear(wgpu::Color { r, g, b, a }) } else { wgpu::LoadOp::Load },
                    store: store(&attachment, "store"),
                },
            }));
        }
        let depth_stencil_attachment = match pass.maybe_part("depth") {
            None => None,
            Some(attachment) => Some(wgpu::RenderPassDepthStencilAttachment {
                view: view(&attachment)?,
                depth_ops: (!attachment.head["load"].is_null()).then(|| wgpu::Operations {
                    load: if attachment.head["load"] == "clear" {
                        wgpu::LoadOp::Clear(attachment.float("clear").unwrap_or(0.0))
                    } else {
                        wgpu::LoadOp::Load
                    },
                    store: store(&attachment, "store"),
                }),
                stencil_ops: None,
            }),
        };
        drop(encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: pass.label(),
            color_attachments: &colours,
            depth_stencil_attachment,
            timestamp_writes: None,
            occlusion_query_set: None,
            multiview_mask: None,
        }));
        Ok(())
    }
}
