//! `cantus run --serve`: dispatches by request, from a program that asks for many. One process, one engine, kernels compiled once.
//!
//! A request is a line of JSON, and behind it the bytes of its bindings, one after the other, in WGSL's own layout:
//!
//! ```json
//! {"wgsl": "…", "entry": "main", "set": {"SIZE": 64}, "workgroups": [4, 1, 1], "bindings": [{"group": 0, "binding": 0, "bytes": 256}]}
//! ```
//!
//! A texture or a sampler has its description too; a texture's bytes are those of all levels, by level, layer and row, without padding, and of one that is
//! written its only level comes back:
//!
//! ```json
//! {"group": 0, "binding": 1, "bytes": 3072, "texture": {"dimension": "2d", "format": "rgba8unorm", "size": [32, 24, 1], "levels": 1, "samples": 1}}
//! {"group": 0, "binding": 2, "bytes": 0, "sampler": {"address_mode": ["repeat", "repeat", "clamp-to-edge"], "mag_filter": "linear",
//!     "min_filter": "linear", "mipmap_filter": "nearest", "lod_min_clamp": 0, "lod_max_clamp": 32, "compare": null}}
//! ```
//!
//! `entry` and `set` (values of overrides) may be left out; bindings that the entry point does not use may be given. The answer is a line of JSON
//! too, and behind it the bytes of the bindings that the kernel may write, in the order of the request:
//!
//! ```json
//! {"ms": 0.21, "written": [{"group": 0, "binding": 0, "bytes": 256}]}
//! {"error": "…"}
//! ```
//!
//! After an error of a kernel the next request is read. What cannot be understood as a request ends the program, since nobody knows where the
//! next one begins.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

use cantus::error::without_remedies;
use cantus::kernel::{Access, StorageTextureAccess};
use cantus::{
    DType, Engine, Error, Kernel, Result, Sampler, Tensor, Texture, TextureDescriptor, TextureDimension, TextureFormat,
};
use serde_json::{Value, json};

use super::super::global::Global;
use super::super::{output, report};

/// The longest line that is read: WGSL has at most 2 MiB here.
const LONGEST_LINE: u64 = 64 << 20;

struct Request {
    kernel: String,
    entry: Option<String>,
    set: Vec<(String, f64)>,
    workgroups: [u32; 3],
    bindings: Vec<Given>,
}

/// A binding as the request has it.
struct Given {
    group: u32,
    binding: u32,
    what: What,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum What {
    Buffer,
    Texture(TextureDescriptor),
    Sampler(Sampler),
}

/// A binding on the device.
enum Bound {
    Tensor(Tensor),
    Texture(Texture),
    Sampler(Sampler),
}

/// The latest kernels, each parsed once.
#[derive(Default)]
struct Kernels(VecDeque<(Source, Kernel)>);

/// A text, the entry point and the overrides.
type Source = (String, Option<String>, Vec<(String, f64)>);

/// The kernels that are kept.
const KEPT: usize = 64;

impl Kernels {
    fn of(&mut self, request: &Request) -> Result<Kernel> {
        let is_it =
            |(text, entry, set): &Source| *text == request.kernel && *entry == request.entry && *set == request.set;
        if let Some((_, kernel)) = self.0.iter().find(|(source, _)| is_it(source)) {
            return Ok(kernel.clone());
        }
        let mut kernel = Kernel::from_wgsl(&request.kernel)?;
        if let Some(entry) = &request.entry {
            kernel = kernel.with_entry_point(entry)?;
        }
        for (name, value) in &request.set {
            kernel = kernel.with_override(name, *value)?;
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        let source = (request.kernel.clone(), request.entry.clone(), request.set.clone());
        self.0.push_back((source, kernel.clone()));
        Ok(kernel)
    }
}

/// Answers requests from stdin until it ends.
///
/// # Errors
/// [`Error::InvalidInput`] for input that is not a request; when stdout is closed; when no device opens any more.
pub fn serve(global: &Global) -> Result<()> {
    let (mut engine, mut kernels) = (global.engine()?, Kernels::default());
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    while let Some(request) = read(&mut input)? {
        let started = Instant::now();
        let (head, contents) = match execute(&engine, &mut kernels, &request) {
            Ok(written) => {
                let places = written.iter().map(
                    |(given, bytes)| json!({ "group": given.group, "binding": given.binding, "bytes": bytes.len() }),
                );
                let places: Vec<Value> = places.collect();
                let head = json!({ "ms": report::milliseconds(started.elapsed()), "written": places });
                (head, written.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>())
            }
            Err(error) => {
                if matches!(error, Error::DeviceLost { .. } | Error::Timeout { .. } | Error::TensorLost { .. }) {
                    engine = global.engine()?;
                }
                (json!({ "error": without_remedies(&error.to_string()) }), Vec::new())
            }
        };
        let sent = writeln!(output, "{head}")
            .and_then(|()| contents.iter().try_for_each(|bytes| output.write_all(bytes)))
            .and_then(|()| output.flush());
        sent.map_err(|error| output::fault(Path::new("stdout"), &error))?;
    }
    Ok(())
}

fn fault(reason: impl std::fmt::Display) -> Error {
    Error::invalid("the request", reason.to_string())
}

/// The next request; `None` at the end.
fn read(input: &mut impl BufRead) -> Result<Option<Request>> {
    let mut line = String::new();
    input.by_ref().take(LONGEST_LINE).read_line(&mut line).map_err(fault)?;
    if line.is_empty() {
        return Ok(None);
    }
    let head: Value = serde_json::from_str(&line).map_err(fault)?;
    let text = |key: &str| head.get(key).and_then(Value::as_str).map(str::to_owned);
    let list =
        |key: &str| head.get(key).and_then(Value::as_array).ok_or_else(|| fault(format!("\"{key}\" is no list")));
    let number = |value: Option<&Value>, what: &str| {
        let number = value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| fault(format!("{what} is not a number from 0 to 4294967295")))
    };
    let mut workgroups = [1; 3];
    let counts = list("workgroups")?;
    if counts.is_empty() || counts.len() > 3 {
        return Err(fault("\"workgroups\" has one to three numbers"));
    }
    for (count, value) in workgroups.iter_mut().zip(counts) {
        *count = number(Some(value), "a number of workgroups")?;
    }
    let mut set = Vec::new();
    for (name, value) in head.get("set").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_f64().or_else(|| value.as_bool().map(|value| f64::from(u8::from(value))));
        set.push((name.clone(), value.ok_or_else(|| fault(format!("the value of \"{name}\" is not a number")))?));
    }
    let mut bindings = Vec::new();
    for given in list("bindings")? {
        let bytes = u64::from(number(given.get("bytes"), "the size of a binding")?);
        let (group, binding) = (number(given.get("group"), "a group")?, number(given.get("binding"), "a binding")?);
        bindings.push((group, binding, what(given)?, bytes));
    }
    let kernel = text("wgsl").ok_or_else(|| fault("it has no \"wgsl\""))?;
    let mut whole = Vec::new();
    for (group, binding, what, size) in bindings {
        // Memory is taken as bytes come, whatever the request says.
        let mut bytes = Vec::new();
        input.by_ref().take(size).read_to_end(&mut bytes).map_err(fault)?;
        if bytes.len() as u64 != size {
            return Err(fault(format!("it ends within the {size} bytes of binding {group}.{binding}")));
        }
        whole.push(Given { group, binding, what, bytes });
    }
    Ok(Some(Request { kernel, entry: text("entry"), set, workgroups, bindings: whole }))
}

/// The kind of a binding.
fn what(given: &Value) -> Result<What> {
    if let Some(sampler) = given.get("sampler") {
        return Ok(What::Sampler(serde_json::from_value(sampler.clone()).map_err(fault)?));
    }
    let Some(texture) = given.get("texture") else { return Ok(What::Buffer) };
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let side = |place: usize| number(texture.get("size").and_then(|size| size.get(place)));
    let dimension = match texture.get("dimension").and_then(Value::as_str) {
        Some("1d") => Some(TextureDimension::D1),
        Some("2d") => Some(TextureDimension::D2),
        Some("3d") => Some(TextureDimension::D3),
        _ => None,
    };
    let format = texture.get("format").and_then(Value::as_str).and_then(TextureFormat::from_name);
    let (levels, samples) = (number(texture.get("levels")), number(texture.get("samples")));
    match (dimension, format, side(0), side(1), side(2), levels, samples) {
        (Some(dimension), Some(format), Some(x), Some(y), Some(z), Some(levels), Some(samples)) => {
            Ok(What::Texture(TextureDescriptor { dimension, size: [x, y, z], levels, samples, format }))
        }
        (_, None, ..) => Err(fault("a texture has no format that there is")),
        _ => Err(fault("a texture has a dimension (1d, 2d, 3d), a size of three numbers, levels and samples")),
    }
}

/// The bindings that the kernel may write, with their bytes after the dispatch.
fn execute<'a>(engine: &Engine, kernels: &mut Kernels, request: &'a Request) -> Result<Vec<(&'a Given, Vec<u8>)>> {
    let kernel = kernels.of(request)?;
    let reflection = kernel.reflection()?;
    let mut used = Vec::new();
    for given in &request.bindings {
        let place = (given.group, given.binding);
        // Its name, and whether it is written.
        let found = match given.what {
            What::Buffer => {
                let found = reflection.bindings.iter().find(|known| (known.group, known.binding) == place);
                found.map(|known| (&known.name, known.access == Access::ReadWrite))
            }
            What::Texture(_) => {
                let found = reflection.textures.iter().find(|known| (known.group, known.binding) == place);
                found.map(|known| (&known.name, !matches!(known.storage, None | Some((_, StorageTextureAccess::Read)))))
            }
            What::Sampler(_) => {
                let found = reflection.samplers.iter().find(|known| (known.group, known.binding) == place);
                found.map(|known| (&known.name, false))
            }
        };
        let Some((name, writes)) = found else { continue };
        let bound = match given.what {
            What::Buffer => {
                let mut bytes = given.bytes.clone();
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                Bound::Tensor(engine.tensor_from_bytes(DType::U32, &[bytes.len() / 4], &bytes)?)
            }
            What::Texture(descriptor) => Bound::Texture(engine.texture_from_bytes(&descriptor, &given.bytes)?),
            What::Sampler(sampler) => Bound::Sampler(sampler),
        };
        used.push((given, name, writes, bound));
    }
    let mut dispatch = engine.dispatch(&kernel).workgroups(request.workgroups);
    for (_, name, _, bound) in &used {
        dispatch = match bound {
            Bound::Tensor(tensor) => dispatch.bind_raw(name, tensor),
            Bound::Texture(texture) => dispatch.bind(name, texture),
            Bound::Sampler(sampler) => dispatch.bind(name, sampler),
        };
    }
    dispatch.run()?;
    engine.finish()?;
    let mut written = Vec::new();
    for (given, _, _, bound) in used.iter().filter(|(_, _, writes, _)| *writes) {
        let mut bytes = match bound {
            Bound::Tensor(tensor) => tensor.to_bytes()?,
            Bound::Texture(texture) => texture.to_bytes()?,
            Bound::Sampler(_) => continue,
        };
        bytes.truncate(given.bytes.len());
        written.push((*given, bytes));
    }
    Ok(written)
}
