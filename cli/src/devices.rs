//! `cantus devices`: what this machine has, and what would be chosen.

use std::fmt::Write as _;
use std::process::ExitCode;

use cantus::backend::{Capabilities, DeviceInfo, Registry};
use cantus::engine::{BackendSurvey, Survey, Verdict, survey, wrong_answers};
use cantus::error::Bytes;
use cantus::{Engine, Fallback, Result};
use clap::Args;
use serde_json::{Map, Value, json};

use super::global::Global;
use super::report;

/// List the devices of this machine, and explain the choice
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Print everything known as JSON, limits included
    #[arg(long)]
    json: bool,
    /// Test every device with kernels whose answers are known, and list the wrong answers
    #[arg(long, conflicts_with = "json")]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus devices
  cantus devices -v        also drivers, features, limits, wrong answers
  cantus devices --check   is each driver right?
  cantus devices --json";

/// Runs the subcommand.
///
/// # Errors
/// [`cantus::Error::Config`], also for an unknown backend; a device that is not available is no error here.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let survey = survey(&Registry::with_defaults(), &global.usable_config()?);
    if arguments.check {
        return check(&survey);
    }
    if arguments.json { report::print_json(&json(&survey)) } else { report::print(&text(&survey, global.verbose > 0)) }
}

/// Asks each device that goes through a driver's compiler. Ends with 1 if one gives a wrong answer.
fn check(survey: &Survey) -> Result<ExitCode> {
    let mut all_right = true;
    for device in survey.backends.iter().flat_map(|backend| &backend.devices) {
        let name = format!("{} {} ({})", device.backend, device.index, device.name);
        let builder = Engine::builder().backend(&device.backend).device(device.index).fallback(Fallback::Never);
        let verdicts = match builder.build().and_then(|engine| engine.check_device()) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                all_right = false;
                report::print(&format!("{name}: {error}\n"))?;
                continue;
            }
        };
        let wrong: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.wrong.is_some()).collect();
        all_right &= wrong.is_empty();
        let mut text = format!("{name}: {} of {} answers are right\n", verdicts.len() - wrong.len(), verdicts.len());
        for verdict in wrong {
            let _ = writeln!(text, "  {}: {}", verdict.need, verdict.wrong.as_deref().unwrap_or_default());
        }
        report::print(&text)?;
    }
    Ok(if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The program was built for the processor alone, as the static one for Linux is: a static program opens no library of a vendor.
const CPU_ONLY: bool = cfg!(not(any(
    feature = "wgpu",
    feature = "vulkan",
    feature = "opencl",
    feature = "cuda",
    feature = "hip",
    feature = "pjrt",
    feature = "ascend"
)));

fn text(survey: &Survey, verbose: bool) -> String {
    let mut rows = Vec::new();
    for device in survey.backends.iter().flat_map(|backend| &backend.devices) {
        let mark = if is_selected(survey, device) { "*" } else { " " };
        rows.push(vec![
            format!("{mark} {} {}", device.backend, device.index),
            device.name.clone(),
            device.kind.name().to_owned(),
            device.memory_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string()),
            device.priority.to_string(),
            Answers::of(device).status(),
        ]);
    }
    let mut text = if rows.is_empty() {
        "No device.\n".to_owned()
    } else {
        report::fitted_table(&["  BACKEND", "DEVICE", "KIND", "MEMORY", "PRIORITY", "WRONG"], &rows, 1)
    };
    let remarks: Vec<&BackendSurvey> = survey.backends.iter().filter(|backend| backend.reason.is_some()).collect();
    if !remarks.is_empty() {
        text.push('\n');
    }
    for backend in remarks {
        let state = if backend.available { "" } else { " is not available" };
        let line = format!("{}{state}: {}\n", backend.name, backend.reason.as_deref().unwrap_or_default());
        text.push_str(&report::wrapped(&line, 2));
    }
    let devices = || survey.backends.iter().flat_map(|backend| &backend.devices);
    if devices().any(|device| !Answers::of(device).wrong.is_empty()) {
        let told = "WRONG counts constructs that a driver gets wrong (-v says which): kernels that need one go to the next device.";
        text.push_str(&report::wrapped(&format!("\n{told}\n"), 0));
    }
    let mut untried: Vec<&str> =
        devices().filter(|device| device.is_experimental()).map(|device| device.backend.as_str()).collect();
    untried.dedup();
    if !untried.is_empty() {
        let verb = if untried.len() == 1 { "is" } else { "are" };
        let told = "not run on its hardware yet. cantus verify says whether it is right here.";
        text.push_str(&report::wrapped(&format!("\n{} {verb} experimental: {told}\n", untried.join(" and ")), 0));
    }
    match (&survey.selected, &survey.refusal) {
        (Some(selected), _) => {
            let device = &selected.device;
            let line = format!("\n* chosen: {} {}, {}\n", device.backend, device.index, selected.why);
            text.push_str(&report::wrapped(&line, 2));
        }
        (None, Some(refusal)) => {
            text.push_str(&report::wrapped(&format!("\nNone is chosen: {refusal}\n"), 2));
        }
        (None, None) => text.push_str("\nNone is chosen.\n"),
    }
    if CPU_ONLY {
        let told = "CPU only: this program was built without ways to other devices.";
        text.push_str(&report::wrapped(&format!("\n{told}\n"), 0));
    }
    if verbose {
        devices().for_each(|device| details(&mut text, device));
    }
    text
}

/// The remembered wrong answers of a device to kernels with known answers.
struct Answers {
    /// Numbers that differ: the construct, and how.
    wrong: Vec<(String, String)>,
    /// Kernels that it does not take: it has no such feature.
    refused: Vec<(String, String)>,
}

impl Answers {
    fn of(device: &DeviceInfo) -> Self {
        let (refused, wrong) =
            wrong_answers(device).into_iter().partition(|(_, answer)| cantus::engine::is_refusal(answer));
        Self { wrong, refused }
    }

    /// Returns the number of wrong constructs; a dash if none is known.
    fn status(&self) -> String {
        if self.wrong.is_empty() { "-".to_owned() } else { self.wrong.len().to_string() }
    }
}

fn details(text: &mut String, device: &DeviceInfo) {
    let limits = &device.capabilities.limits;
    let [x, y, z] = limits.workgroup_size;
    let _ = writeln!(text, "\n{} {}: {}", device.backend, device.index, device.name);
    let mut line = |name: &str, what: &str| {
        text.push_str(&report::wrapped(&format!("  {name:<10}  {what}\n"), 14));
    };
    let extras = extras(&device.capabilities);
    let buffers = [limits.buffer_bytes, limits.storage_binding_bytes, limits.uniform_binding_bytes].map(Bytes);
    let memory = format!(
        "buffers to {}, one storage binding to {}, one uniform binding to {}",
        buffers[0], buffers[1], buffers[2]
    );
    let bindings = format!("{} storage and {} uniform in one kernel", limits.storage_bindings, limits.uniform_bindings);
    let workgroup = format!(
        "{} invocations ({x}, {y}, {z} by axis), {} of workgroup memory",
        limits.workgroup_invocations,
        Bytes(u64::from(limits.workgroup_bytes)),
    );
    line("driver", &device.driver);
    line("has", &if extras.is_empty() { "nothing beyond plain WGSL".to_owned() } else { extras.join(" ") });
    line("memory", &memory);
    line("bindings", &bindings);
    line("workgroup", &workgroup);
    let Answers { wrong, refused } = Answers::of(device);
    for (construct, answer) in wrong {
        line("wrong", &format!("{construct}: {answer}"));
    }
    let refused: Vec<String> = refused.into_iter().map(|(construct, _)| construct).collect();
    if !refused.is_empty() {
        line("refuses", &refused.join(", "));
    }
}

fn is_selected(survey: &Survey, device: &DeviceInfo) -> bool {
    let selected = survey.selected.as_ref().map(|selected| &selected.device);
    selected.is_some_and(|selected| selected.backend == device.backend && selected.index == device.index)
}

/// Returns the device's features beyond plain WGSL, in words.
fn extras(capabilities: &Capabilities) -> Vec<String> {
    let features = capabilities.features.named();
    let mut extras: Vec<String> =
        features.into_iter().filter(|(_, have)| *have).map(|(name, _)| name.to_owned()).collect();
    if let Some((least, most)) = capabilities.subgroup_sizes {
        let sizes = if least == most { least.to_string() } else { format!("{least}-{most}") };
        for extra in extras.iter_mut().filter(|extra| *extra == "subgroups") {
            *extra = format!("subgroups({sizes})");
        }
    }
    if capabilities.subgroup_size_control {
        extras.push("subgroup_size_control".to_owned());
    }
    // Kernels with it may also run by shuffles.
    if capabilities.cooperative_matrix && !extras.iter().any(|extra| extra == "cooperative_matrix") {
        extras.push("cooperative_matrix".to_owned());
    }
    if capabilities.timestamps {
        extras.push("timestamps".to_owned());
    }
    if capabilities.unified_memory {
        extras.push("unified_memory".to_owned());
    }
    if capabilities.operation_graphs {
        extras.push("operation_graphs".to_owned());
    }
    extras
}

fn json(survey: &Survey) -> Value {
    let backends: Vec<Value> = survey
        .backends
        .iter()
        .map(|backend| {
            json!({
                "name": backend.name,
                "priority": backend.priority,
                "available": backend.available,
                "reason": backend.reason,
                "devices": backend.devices.iter().map(device_json).collect::<Vec<Value>>(),
            })
        })
        .collect();
    let selected = survey.selected.as_ref().map(
        |selected| json!({ "backend": selected.device.backend, "device": selected.device.index, "why": selected.why }),
    );
    json!({ "backends": backends, "selected": selected, "refusal": survey.refusal.as_ref().map(ToString::to_string) })
}

fn device_json(device: &DeviceInfo) -> Value {
    let Answers { wrong, refused } = Answers::of(device);
    let named = |answers: Vec<(String, String)>| -> Map<String, Value> {
        answers.into_iter().map(|(construct, answer)| (construct, answer.into())).collect()
    };
    json!({
        "index": device.index,
        "name": device.name,
        "kind": device.kind.name(),
        "driver": device.driver,
        "memory_bytes": device.memory_bytes,
        "priority": device.priority,
        "experimental": device.is_experimental(),
        "capabilities": capabilities_json(&device.capabilities),
        "answers": { "wrong": named(wrong), "refused": named(refused) },
    })
}

fn capabilities_json(capabilities: &Capabilities) -> Value {
    let mut object: Map<String, Value> =
        capabilities.features.named().into_iter().map(|(name, have)| (name.to_owned(), have.into())).collect();
    let sizes = capabilities.subgroup_sizes.map(|(least, most)| [least, most]);
    object.insert("subgroup_sizes".to_owned(), json!(sizes));
    object.insert("subgroup_size_control".to_owned(), capabilities.subgroup_size_control.into());
    object.insert("cooperative_matrix".to_owned(), capabilities.cooperative_matrix.into());
    object.insert("timestamps".to_owned(), capabilities.timestamps.into());
    object.insert("unified_memory".to_owned(), capabilities.unified_memory.into());
    object.insert("operation_graphs".to_owned(), capabilities.operation_graphs.into());
    let limits = &capabilities.limits;
    object.insert(
        "limits".to_owned(),
        json!({
            "buffer_bytes": limits.buffer_bytes,
            "storage_binding_bytes": limits.storage_binding_bytes,
            "uniform_binding_bytes": limits.uniform_binding_bytes,
            "storage_bindings": limits.storage_bindings,
            "uniform_bindings": limits.uniform_bindings,
            "workgroup_bytes": limits.workgroup_bytes,
            "workgroup_invocations": limits.workgroup_invocations,
            "workgroup_size": limits.workgroup_size,
            "workgroups_per_dimension": limits.workgroups_per_dimension,
        }),
    );
    Value::Object(object)
}
