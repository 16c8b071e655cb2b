//! Checks that the inputs fit a kernel's bindings, with messages in terms of files and flags.

use std::path::Path;

use cantus::kernel::{Access, Binding, Layout, Reflection};
use cantus::tensor::npy::Array;
use cantus::{DType, Error, Result};

use super::job::{Source, Step};
use super::shown;
use crate::parse::{self, NamedFile, Shape};
use crate::room;

/// The binding of that name.
pub fn found<'a>(step: &'a Step, name: &str, flag: &str) -> Result<&'a Binding> {
    let reflection = &step.reflection;
    reflection.binding(name).map(|(_, binding)| binding).ok_or_else(|| {
        let reason = if reflection.samplers.iter().any(|sampler| sampler.name == name) {
            format!("it is a sampler, which {flag} does not set: --sampler {name}=nearest does")
        } else if declares(step.kernel.wgsl(), name) {
            format!("the kernel declares it and does not use it: leave {flag} {name} out")
        } else {
            format!("{flag} names an unknown binding{}: {}", near(reflection, name), known(reflection))
        };
        step.fault(name, reason)
    })
}

/// Returns whether a text has a variable of that name with a binding: what no statement uses isn't reflected.
fn declares(wgsl: &str, name: &str) -> bool {
    wgsl.split("@binding").skip(1).any(|rest| {
        let rest = rest.split_once("var").map_or("", |(_, rest)| rest).trim_start();
        let rest = if rest.starts_with('<') { rest.split_once('>').map_or("", |(_, rest)| rest) } else { rest };
        rest.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':'))
    })
}

/// The binding that a flag names, if it is there and has nothing yet.
pub fn unbound<'a>(step: &'a Step, tensors: &[Source], name: &str, flag: &str) -> Result<&'a Binding> {
    let binding = found(step, name, flag)?;
    if tensors.iter().any(|source| source.name == name) {
        return Err(step.fault(name, format!("{flag} names it a second time")));
    }
    Ok(binding)
}

/// The names of the bindings to read back: those asked for with `-o`; with `--compare`, everything that the kernel may write.
pub fn results<'a>(
    step: &Step,
    tensors: &[Source],
    outputs: impl Iterator<Item = &'a NamedFile>,
    all: bool,
) -> Result<Vec<String>> {
    let reflection = &step.reflection;
    let mut names: Vec<String> = Vec::new();
    for output in outputs {
        let name = &output.name;
        let binding = found(step, name, "-o")?;
        if binding.access == Access::Read {
            return Err(fault(reflection, name, "-o asks for it, but the kernel only reads it".to_owned()));
        }
        if !tensors.iter().any(|source| source.name == *name) {
            let remedy =
                format!("-o asks for it, but it was given neither --in {name}=FILE nor --out {name}=DTYPE[SHAPE]");
            return Err(fault(reflection, name, remedy));
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if all {
        let written = reflection.bindings.iter().filter(|binding| binding.access == Access::ReadWrite);
        for binding in written.filter(|binding| tensors.iter().any(|source| source.name == binding.name)) {
            if !names.contains(&binding.name) {
                names.push(binding.name.clone());
            }
        }
    }
    Ok(names)
}

/// A shape that was given, or that of another binding.
pub fn sides(reflection: &Reflection, tensors: &[Source], name: &str, shape: &Shape) -> Result<Vec<usize>> {
    match shape {
        Shape::Sides(sides) => Ok(sides.clone()),
        Shape::Like(other) => shape_of(tensors, other).ok_or_else(|| {
            fault(reflection, name, format!("there is no --in or earlier --out \"{other}\" to take the shape of"))
        }),
    }
}

pub fn shape_of(tensors: &[Source], name: &str) -> Option<Vec<usize>> {
    tensors.iter().find(|source| source.name == name).map(|source| source.shape().to_vec())
}

/// The bytes of a file, as the binding's numbers where it has one kind of them.
pub fn read_raw(reflection: &Reflection, binding: &Binding, path: &Path) -> Result<Array> {
    let file = shown(path);
    let bytes = room::read(path)?;
    let dtype = binding.layout.scalar().and_then(DType::of_scalar).unwrap_or(DType::U32);
    let (found, least) = (bytes.len() as u64, binding.layout.min_bytes());
    if found < least {
        let reason = format!("{file} has {found} bytes; {} takes at least {least}", binding.layout);
        return Err(fault(reflection, &binding.name, reason));
    }
    if !bytes.len().is_multiple_of(dtype.bytes()) {
        let reason = format!("{file} has {found} bytes, no whole number of {dtype}: bytes in WGSL's layout are needed");
        return Err(fault(reflection, &binding.name, reason));
    }
    Array::new(dtype, &[bytes.len() / dtype.bytes()], bytes)
}

/// A file's dtype and size against the binding.
pub fn check_file(reflection: &Reflection, binding: &Binding, file: &str, array: &Array) -> Result<()> {
    let holds = format!("{file} holds");
    check_dtype(reflection, binding, array.dtype, &holds, &conversion(binding))?;
    if let Some(reason) = binding.layout.misread(&array.shape) {
        return Err(fault(reflection, &binding.name, format!("{file}: {reason}")));
    }
    let (held, least) = (array.bytes.len() as u64, binding.layout.min_bytes());
    let what = format!("{holds} {}{:?}, {held} bytes", array.dtype, array.shape);
    // Elements that share a word fill the last one with zeros.
    let packed = binding.layout.scalar().is_some_and(|scalar| scalar.bytes() as usize > array.dtype.bytes());
    let bytes = if packed { held.next_multiple_of(4) } else { held };
    if bytes < least {
        return Err(fault(reflection, &binding.name, format!("{what}; {} takes at least {least}", binding.layout)));
    }
    if let Layout::Array { element, count: None, stride } = &binding.layout
        && bytes % u64::from(*stride) != 0
    {
        let reason = format!(
            "{what}, not a multiple of the {stride} bytes that {element} takes in an array (a .bin file may have a rest)"
        );
        return Err(fault(reflection, &binding.name, reason));
    }
    Ok(())
}

pub fn check_dtype(reflection: &Reflection, binding: &Binding, dtype: DType, holds: &str, remedy: &str) -> Result<()> {
    let Some(scalar) = binding.layout.scalar() else { return Ok(()) };
    if dtype.binds(scalar) {
        return Ok(());
    }
    Err(fault(reflection, &binding.name, format!("{holds} {dtype}, the shader has {}{remedy}", binding.layout)))
}

/// Describes how a file's numbers become those of a binding.
pub fn conversion(binding: &Binding) -> String {
    let code = match binding.layout.scalar().and_then(DType::of_scalar) {
        Some(DType::F16) => "f2",
        Some(DType::F32) => "f4",
        Some(DType::F64) => "f8",
        Some(DType::I32) => "i4",
        Some(DType::U32) => "u4",
        Some(DType::I64) => "i8",
        Some(DType::U64) => "u8",
        _ => return String::new(),
    };
    format!(" (convert it, as NumPy's x.astype(\"{code}\") does)")
}

/// The numbers for which an element of a binding has room, if it is a vector: four of a `vec3`.
pub fn parts(layout: &Layout) -> Option<usize> {
    let Layout::Array { element, stride, .. } = layout else { return None };
    match **element {
        Layout::Vector(_, scalar) => Some((stride / scalar.bytes()) as usize),
        _ => None,
    }
}

/// An invocation for each element of a shape: its last axes by x, y and z, with those before the first of them in one.
pub fn spread(shape: &[usize], axes: usize) -> Option<[u32; 3]> {
    let mut counts = [1; 3];
    let axes = axes.min(shape.len()).clamp(1, counts.len());
    let (outer, inner) = shape.split_at(shape.len().saturating_sub(axes - 1));
    for (count, &side) in counts.iter_mut().zip(inner.iter().rev()) {
        *count = u32::try_from(side).ok()?;
    }
    *counts.get_mut(axes - 1)? = u32::try_from(outer.iter().product::<usize>()).ok()?;
    Some(counts)
}

/// The binding, override or member that was meant, where one is close.
pub fn near(reflection: &Reflection, name: &str) -> String {
    let bindings = reflection.bindings.iter().map(|binding| binding.name.as_str());
    let overrides = reflection.overrides.iter().map(|known| known.name.as_str());
    let textures = reflection.textures.iter().map(|texture| texture.name.as_str());
    parse::closest(name, &bindings.chain(textures).chain(overrides).collect::<Vec<_>>())
}

pub fn known(reflection: &Reflection) -> String {
    let bindings = reflection.bindings.iter().map(|binding| format!("{}: {}", binding.name, binding.layout));
    let textures = reflection.textures.iter().map(|texture| format!("{}: {texture}", texture.name));
    let samplers = reflection.samplers.iter().map(|sampler| format!("{}: a sampler", sampler.name));
    let names: Vec<String> = bindings.chain(textures).chain(samplers).collect();
    if names.is_empty() { "the kernel has none".to_owned() } else { format!("the kernel has {}", names.join(", ")) }
}

pub fn fault(reflection: &Reflection, binding: &str, reason: String) -> Error {
    Error::Binding { kernel: reflection.entry_point.clone(), binding: binding.to_owned(), fault: reason.into() }
}
