//! A device for the public WebGPU conformance suite, on plain wgpu: requests come on standard input, and answers go to standard output. The other side is
//! `tests/cts/wgpu.cjs`.
//!
//! A request is a line of JSON: `do` says what to do, and `follows` how many bytes come behind the line. An answer has the same form. Objects have the numbers
//! that the other side gave them. `error` in an answer is a request that makes no sense; errors of WebGPU wait in the scopes of wgpu.
#![cfg(not(target_arch = "wasm32"))]

mod encode;
mod make;
mod request;

use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use request::{Outcome, Request};
use serde_json::{Value, json};

/// A device, with the scopes of errors that are open.
struct Opened {
    device: wgpu::Device,
    queue: wgpu::Queue,
    scopes: Vec<wgpu::ErrorScopeGuard>,
}

/// The objects, by the numbers of the other side.
#[derive(Default)]
struct Objects {
    devices: HashMap<u64, Opened>,
    buffers: HashMap<u64, wgpu::Buffer>,
    textures: HashMap<u64, wgpu::Texture>,
    views: HashMap<u64, wgpu::TextureView>,
    samplers: HashMap<u64, wgpu::Sampler>,
    group_layouts: HashMap<u64, wgpu::BindGroupLayout>,
    layouts: HashMap<u64, wgpu::PipelineLayout>,
    groups: HashMap<u64, wgpu::BindGroup>,
    modules: HashMap<u64, wgpu::ShaderModule>,
    pipelines: HashMap<u64, wgpu::ComputePipeline>,
    queries: HashMap<u64, wgpu::QuerySet>,
    commands: HashMap<u64, wgpu::CommandBuffer>,
}

/// Errors that no scope caught.
type Uncaught = Arc<Mutex<Vec<String>>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = cantus_wgpu::Options::default();
    options.default_limits = true;
    let instance = cantus_wgpu::instance_with(options);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (mut objects, uncaught) = (Objects::default(), Uncaught::default());
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let head: Value = serde_json::from_str(&line)?;
        line.clear();
        let mut bytes = vec![0; usize::try_from(head["follows"].as_u64().unwrap_or(0))?];
        input.read_exact(&mut bytes)?;
        let request = Request { head: &head, bytes: &bytes };
        let outcome = answer(&mut objects, &adapter, &uncaught, &request);
        let (mut head, bytes) = outcome.unwrap_or_else(|reason| (json!({ "error": reason.to_string() }), Vec::new()));
        let errors = std::mem::take(&mut *uncaught.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(head) = head.as_object_mut() {
            head.insert("follows".to_owned(), bytes.len().into());
            head.insert("uncaught".to_owned(), errors.into());
        }
        writeln!(output, "{head}")?;
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// Does what a request says.
fn answer(
    objects: &mut Objects,
    adapter: &wgpu::Adapter,
    uncaught: &Uncaught,
    request: &Request<'_>,
) -> Outcome<(Value, Vec<u8>)> {
    for id in request.list("dropped") {
        objects.forget(id.as_u64().unwrap_or(0));
    }
    let mut bytes = Vec::new();
    let mut said = json!({});
    match request.text("do")? {
        "device" => {
            let opened = open(adapter, uncaught)?;
            objects.devices.insert(request.number("id")?, opened);
        }
        "destroy device" => objects.device(request)?.device.destroy(),
        "destroy" => {
            let id = request.number("id")?;
            if let Some(buffer) = objects.buffers.get(&id) {
                buffer.destroy();
            }
            if let Some(texture) = objects.textures.get(&id) {
                texture.destroy();
            }
        }
        "map" => said = objects.map(request)?,
        "range" => {
            let (start, size) = (request.number("offset")?, request.number("size")?);
            let buffer = objects.buffers.get(&request.number("buffer")?).ok_or("no such buffer")?;
            match buffer.get_mapped_range(start..start + size) {
                Ok(view) => bytes.extend_from_slice(&view),
                Err(error) => said = json!({ "wrong": error.to_string() }),
            }
        }
        "unmap" => objects.unmap(request)?,
        "submit" => {
            let ids: Vec<u64> = request.list("commands").iter().filter_map(Value::as_u64).collect();
            let commands: Vec<_> = ids.iter().filter_map(|id| objects.commands.remove(id)).collect();
            objects.device(request)?.queue.submit(commands);
        }
        "write buffer" => {
            let buffer = objects.buffers.get(&request.number("buffer")?).ok_or("no such buffer")?;
            objects.device(request)?.queue.write_buffer(buffer, request.number("offset")?, request.bytes);
        }
        "write texture" => {
            let target = objects.texel_copy(&request.part("to"))?;
            let layout = encode::layout(&request.part("layout"));
            objects.device(request)?.queue.write_texture(target, request.bytes, layout, request.extent("size"));
        }
        "done" => {
            let outcome = objects.device(request)?.device.poll(wgpu::PollType::wait_indefinitely());
            outcome.map_err(|error| error.to_string())?;
        }
        "push" => {
            let filter = match request.text("filter")? {
                "validation" => wgpu::ErrorFilter::Validation,
                "out-of-memory" => wgpu::ErrorFilter::OutOfMemory,
                _ => wgpu::ErrorFilter::Internal,
            };
            let opened = objects.devices.get_mut(&request.number("device")?).ok_or("no such device")?;
            opened.scopes.push(opened.device.push_error_scope(filter));
        }
        "pop" => {
            let opened = objects.devices.get_mut(&request.number("device")?).ok_or("no such device")?;
            let scope = opened.scopes.pop().ok_or("no scope is open")?;
            if let Some(error) = pollster::block_on(scope.pop()) {
                let kind = match error {
                    wgpu::Error::OutOfMemory { .. } => "out-of-memory",
                    wgpu::Error::Validation { .. } => "validation",
                    wgpu::Error::Internal { .. } => "internal",
                };
                said = json!({ "kind": kind, "message": error.to_string() });
            }
        }
        "finish" => {
            let commands = objects.encode(request)?;
            objects.commands.insert(request.number("id")?, commands);
        }
        _ => objects.make(request)?,
    }
    Ok((said, bytes))
}

/// Opens a device with all features that the suite has names for.
fn open(adapter: &wgpu::Adapter, uncaught: &Uncaught) -> Outcome<Opened> {
    let required_features = wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::FLOAT32_FILTERABLE
        | wgpu::Features::BGRA8UNORM_STORAGE;
    let descriptor = wgpu::DeviceDescriptor { required_features, ..wgpu::DeviceDescriptor::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| error.to_string())?;
    let heard = uncaught.clone();
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string());
    }));
    Ok(Opened { device, queue, scopes: Vec::new() })
}

impl Objects {
    fn device(&self, request: &Request<'_>) -> Outcome<&Opened> {
        Ok(self.devices.get(&request.number("device")?).ok_or("no such device")?)
    }

    /// Drops an object that the other side holds no longer.
    fn forget(&mut self, id: u64) {
        self.buffers.remove(&id);
        self.textures.remove(&id);
        self.views.remove(&id);
        self.samplers.remove(&id);
        self.group_layouts.remove(&id);
        self.layouts.remove(&id);
        self.groups.remove(&id);
        self.modules.remove(&id);
        self.pipelines.remove(&id);
        self.queries.remove(&id);
        self.commands.remove(&id);
    }

    /// Maps a part of a buffer, and waits for it. The answer says what was wrong.
    fn map(&self, request: &Request<'_>) -> Outcome<Value> {
        let buffer = self.buffers.get(&request.number("buffer")?).ok_or("no such buffer")?;
        let mode = if request.number("mode")? == 1 { wgpu::MapMode::Read } else { wgpu::MapMode::Write };
        let (start, size) = (request.number("offset")?, request.number("size")?);
        let end = start.checked_add(size).ok_or("a range beyond all numbers")?;
        let outcome = Arc::new(Mutex::new(None));
        let told = outcome.clone();
        buffer.map_async(mode, start..end, move |outcome| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        });
        self.device(request)?.device.poll(wgpu::PollType::wait_indefinitely()).map_err(|error| error.to_string())?;
        let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(match outcome {
            Some(Ok(())) => json!({}),
            Some(Err(error)) => json!({ "wrong": error.to_string() }),
            None => json!({ "wrong": "it was not mapped" }),
        })
    }

    /// Writes the pieces that were mapped, and unmaps the buffer.
    fn unmap(&self, request: &Request<'_>) -> Outcome<()> {
        let buffer = self.buffers.get(&request.number("buffer")?).ok_or("no such buffer")?;
        let mut rest = request.bytes;
        for piece in request.list("pieces") {
            let part = Request { head: piece, bytes: &[] };
            let (start, size) = (part.number("offset")?, part.number("size")?);
            let (piece, behind) = rest.split_at_checked(usize::try_from(size)?).ok_or("bytes are missing")?;
            rest = behind;
            if let Ok(mut view) = buffer.get_mapped_range_mut(start..start + size) {
                view.copy_from_slice(piece);
            }
        }
        // WebGPU has no error for a buffer that is not mapped, or not valid.
        let scope = self.device(request)?.device.push_error_scope(wgpu::ErrorFilter::Validation);
        buffer.unmap();
        drop(pollster::block_on(scope.pop()));
        Ok(())
    }
}
