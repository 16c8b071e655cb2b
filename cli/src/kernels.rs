//! `cantus kernels`: the shipped kernels, their bindings, and the WGSL that runs.

use std::fmt::Write as _;
use std::process::ExitCode;

use cantus::kernel::{Access, AddressSpace, Binding, Layout, Reflection};
use cantus::ops::{self, ShippedKernel};
use cantus::{Error, Kernel, Result, link};
use clap::Args;
use serde_json::{Value, json};

use super::global::Global;
use super::{parse, report};

/// List the shipped kernels, or print one: its bindings and its WGSL, imports linked
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kernel to print, as valid WGSL
    name: Option<String>,
    /// List the library's modules, from which kernels may import (import cantus::random::uniform), or print the module NAME
    #[arg(long)]
    library: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus kernels
  cantus kernels field > field.wgsl
  cantus kernels --library
      modules that every kernel may import from
  cantus kernels --library random";

/// Runs the subcommand.
///
/// # Errors
/// [`Error::InvalidInput`] when there is no kernel of that name.
pub fn run(_: &Global, arguments: &Arguments) -> Result<ExitCode> {
    if arguments.library {
        return of_library(arguments);
    }
    let kernels = ops::kernels();
    let Some(name) = &arguments.name else {
        return if arguments.json {
            let list = kernels.iter().map(|shipped| kernel_json(shipped, false)).collect::<Result<Vec<Value>>>()?;
            report::print_json(&json!({ "kernels": list }))
        } else {
            report::print(&list_text(kernels)?)
        };
    };
    let Some(shipped) = kernels.iter().find(|shipped| shipped.name() == name) else {
        let known: Vec<&str> = kernels.iter().map(|shipped| shipped.name()).collect();
        return Err(Error::invalid(
            format!("the kernel \"{name}\""),
            format!(
                "there is no shipped kernel of that name{} (there are: {})",
                parse::closest(name, &known),
                known.join(", ")
            ),
        ));
    };
    if arguments.json {
        return report::print_json(&kernel_json(shipped, true)?);
    }
    let mut text = String::new();
    for line in summary(shipped.kernel()?.reflection()?) {
        let _ = writeln!(text, "// {line}");
    }
    let _ = write!(text, "\n{}", shipped.kernel()?.wgsl());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    report::print(&text)
}

/// Lists the modules that apps' kernels may import.
fn of_library(arguments: &Arguments) -> Result<ExitCode> {
    let modules = link::library();
    if let Some(name) = &arguments.name {
        let known: Vec<&str> = modules.iter().map(|module| module.name).collect();
        let Some(module) = modules.iter().find(|module| module.name == name) else {
            return Err(Error::invalid(
                format!("the module \"{name}\""),
                format!("the library has {}{}", known.join(", "), parse::closest(name, &known)),
            ));
        };
        if !arguments.json {
            return report::print(module.text);
        }
    }
    let chosen = modules.iter().filter(|module| arguments.name.as_deref().is_none_or(|name| name == module.name));
    if arguments.json {
        let function = |function: &link::Function| json!({ "name": function.name, "signature": function.signature, "about": function.about });
        let module = |module: &link::LibraryModule| {
            let functions: Vec<Value> = module.functions().iter().map(function).collect();
            json!({ "name": module.name, "about": module.about(), "functions": functions })
        };
        return report::print_json(&json!({ "modules": chosen.map(module).collect::<Vec<Value>>() }));
    }
    let mut rows = Vec::new();
    for module in chosen {
        rows.extend(module.functions().into_iter().map(|function| {
            vec![format!("cantus::{}::{}", module.name, function.name), function.signature.to_owned(), function.about]
        }));
    }
    report::print(&report::fitted_table(&["IMPORT", "SIGNATURE", "WHAT IT IS"], &rows, 2))
}

fn list_text(kernels: &[&ShippedKernel]) -> Result<String> {
    let mut rows = Vec::new();
    for shipped in kernels {
        let reflection = shipped.kernel()?.reflection()?;
        let bindings: Vec<&str> = reflection.bindings.iter().map(|binding| binding.name.as_str()).collect();
        let [x, y, z] = reflection.workgroup_size;
        rows.push(vec![
            shipped.name().to_owned(),
            shipped.family().to_owned(),
            format!("{x} x {y} x {z}"),
            on_the_cpu(shipped.kernel()?),
            bindings.join(", "),
        ]);
    }
    Ok(report::fitted_table(&["KERNEL", "FAMILY", "WORKGROUP", "ON THE CPU", "BINDINGS"], &rows, 4))
}

/// Describes how the CPU backend runs a kernel.
fn on_the_cpu(kernel: &Kernel) -> String {
    let compiled = cantus::backend::cpu::compiled_ahead(kernel);
    if compiled.is_some() { "compiled ahead".to_owned() } else { "executor".to_owned() }
}

/// The interface in words, a line each.
fn summary(reflection: &Reflection) -> Vec<String> {
    let [x, y, z] = reflection.workgroup_size;
    let mut lines = vec![format!("{}: workgroups of {x} x {y} x {z}", reflection.entry_point)];
    for binding in &reflection.bindings {
        lines.push(format!("  {}: {} {}", binding.name, space_text(binding), binding.layout));
        if let Layout::Struct { members, .. } = &binding.layout {
            lines.extend(
                members.iter().map(|member| format!("    {}.{}: {}", binding.name, member.name, member.layout)),
            );
        }
    }
    for constant in &reflection.overrides {
        let value = constant.value.map_or_else(|| "no value".to_owned(), |value| value.to_string());
        lines.push(format!("  override {}: {} = {value}", constant.name, constant.scalar));
    }
    lines
}

fn space_text(binding: &Binding) -> &'static str {
    match (binding.space, binding.access) {
        (AddressSpace::Uniform, _) => "uniform",
        (AddressSpace::Storage, Access::Read) => "storage, read",
        (AddressSpace::Storage, Access::ReadWrite) => "storage, read_write",
    }
}

fn kernel_json(shipped: &ShippedKernel, with_text: bool) -> Result<Value> {
    let reflection = shipped.kernel()?.reflection()?;
    let bindings: Vec<Value> = reflection.bindings.iter().map(binding_json).collect();
    let overrides: Vec<Value> = reflection
        .overrides
        .iter()
        .map(|known| json!({ "name": known.name, "type": known.scalar.name(), "value": known.value }))
        .collect();
    let mut value = json!({
        "name": shipped.name(),
        "family": shipped.family(),
        "entry": reflection.entry_point,
        "workgroup_size": reflection.workgroup_size,
        "bindings": bindings,
        "overrides": overrides,
        "on_the_cpu": on_the_cpu(shipped.kernel()?),
    });
    if with_text && let Some(object) = value.as_object_mut() {
        object.insert("wgsl".to_owned(), shipped.kernel()?.wgsl().into());
    }
    Ok(value)
}

fn binding_json(binding: &Binding) -> Value {
    let members = match &binding.layout {
        Layout::Struct { members, .. } => members
            .iter()
            .map(|member| json!({ "name": member.name, "type": member.layout.to_string(), "offset": member.offset }))
            .collect(),
        _ => Vec::new(),
    };
    json!({
        "name": binding.name,
        "group": binding.group,
        "binding": binding.binding,
        "space": space_text(binding),
        "type": binding.layout.to_string(),
        "members": members,
    })
}
