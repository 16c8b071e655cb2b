//! A device behind a plugin, opened. It runs operation graphs and no kernels: what is no graph goes to the engine's next device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::abi::{self, Call, ClientCreate, NamedValue};
use super::memory::{Held, PjrtBuffer};
use super::plugin::{self, Candidate, Owned, Plugin, Source};
use super::program::PjrtProgram;
use super::queue::is_missing;
use super::shared::{self, Shared};
use crate::backend::health::Health;
use crate::backend::native::NativeOperation;
use crate::backend::{
    BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Program, Refusal,
    padded, ready,
};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::plan::{self, Machine, Partition};
use crate::kernel::Kernel;

/// Programs kept, at most.
const KEPT: usize = 1024;

/// A device behind a PJRT plugin, opened.
pub struct PjrtDevice {
    shared: Arc<Shared>,
    /// By graph, and with it by shape; without one for graphs that the device cannot run.
    programs: Mutex<HashMap<Arc<Graph>, Option<Arc<PjrtProgram>>>>,
    /// Why the last graph was none for it.
    refused: Mutex<Option<String>>,
    /// Whether times are those of the cost model.
    simulated: bool,
    profile: bool,
    times: Mutex<Vec<KernelTime>>,
}

opaque_debug!(PjrtDevice);

impl PjrtDevice {
    pub(super) fn open(candidate: &Candidate, info: &DeviceInfo, options: &OpenOptions) -> Result<Self> {
        let failed = |reason: String| Error::NoDevice {
            wanted: format!("the device {}", info.name),
            reasons: vec![(candidate.source.name(), reason)],
        };
        if let Source::Library(path) = &candidate.source {
            for (name, place) in candidate.kind.environment {
                let folder = path.parent().map(|parent| parent.join(place)).filter(|folder| folder.is_dir());
                if let (None, Some(folder)) = (std::env::var_os(name), folder) {
                    // SAFETY: the variable is set once, before the library that reads it is loaded; Rust's own readers take a lock.
                    unsafe { std::env::set_var(name, folder) };
                }
            }
        }
        let plugin = Plugin::load(&candidate.source).map_err(failed)?;
        plugin::initialised(plugin).map_err(|fault| failed(fault.to_string()))?;
        let settings: Vec<NamedValue> = candidate
            .kind
            .options
            .iter()
            .map(|(name, value)| NamedValue {
                struct_size: size_of::<NamedValue>(),
                extension: std::ptr::null_mut(),
                name: name.as_ptr(),
                name_length: name.count_bytes(),
                kind: abi::BOOL,
                value: u64::from(*value),
                value_size: 1,
            })
            .collect();
        let made = plugin.call(
            Call::ClientCreate,
            ClientCreate {
                options: settings.as_ptr(),
                option_count: settings.len(),
                callbacks: [std::ptr::null_mut(); 4],
                client: std::ptr::null_mut(),
            },
        );
        let client = made.map_err(|fault| failed(fault.to_string()))?.client;
        let client = Owned::new(plugin, client, Call::ClientDestroy, None);
        let devices = shared::devices(&client).map_err(|fault| failed(fault.to_string()))?;
        let Some(&(device, id)) = devices.first() else { return Err(failed("its client has no device".to_owned())) };
        let mut info = info.clone();
        let platform = plugin.text_of(Call::ClientPlatformName, client.object).unwrap_or_default();
        let version = plugin.text_of(Call::ClientPlatformVersion, client.object).unwrap_or_default();
        let title = shared::title(plugin, device).filter(|title| !title.is_empty()).unwrap_or_else(|| platform.clone());
        info.name = format!("{title} (PJRT)");
        info.driver = format!("{} by {platform} {}", info.driver, version.lines().next().unwrap_or_default());
        info.memory_bytes = shared::memory(plugin, device);
        let health = Arc::new(Health::new(info.name.clone(), options.timeout));
        let limit = options.memory_limit;
        Ok(Self {
            shared: Arc::new(Shared::new(info, client, (device, id), health, limit)),
            programs: Mutex::default(),
            refused: Mutex::default(),
            simulated: matches!(candidate.source, Source::Simulator(_)),
            profile: options.profile,
            times: Mutex::default(),
        })
    }

    fn program(&self, graph: &Arc<Graph>) -> Option<Arc<PjrtProgram>> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = programs.get(graph) {
            return known.clone();
        }
        let made = PjrtProgram::new(&self.shared, graph);
        let program = match made {
            Ok(program) => Some(Arc::new(program)),
            Err(fault) => {
                let missing = is_missing(&fault);
                tracing::debug!(device = %self.shared.info.name, missing, "a graph was refused: {fault}");
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault.to_string());
                if !missing {
                    return None;
                }
                None
            }
        };
        if programs.len() >= KEPT {
            programs.clear();
        }
        programs.insert(graph.clone(), program.clone());
        program
    }

    /// Notes what the cost model says of the simulated device.
    fn note_times(&self, batch: &[Command]) {
        if !(self.simulated && self.profile) {
            return;
        }
        let machine = Machine::default();
        for command in batch {
            let Command::Dispatch(dispatch) = command else { continue };
            let Some(program) = (&*dispatch.program as &dyn std::any::Any).downcast_ref::<PjrtProgram>() else {
                continue;
            };
            let steps = plan::timeline(&program.graph, &machine, Partition::Golden).steps;
            let time: Duration = steps.iter().map(|(_, _, time)| *time).sum();
            let label = dispatch.label.clone();
            self.times.lock().unwrap_or_else(PoisonError::into_inner).push(KernelTime { label, start: None, time });
        }
    }
}

impl Device for PjrtDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let entry = kernel.reflection().map(|reflection| reflection.entry_point.clone());
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let because = refused.map_or_else(String::new, |reason| format!(" (of the graph before it says: {reason})"));
        ready(entry.and_then(|entry| {
            Err(Error::Unsupported {
                kernel: entry,
                device: self.shared.info.name.clone(),
                construct: format!("WGSL kernels: a PJRT device runs operation graphs{because}"),
                report: String::new(),
            })
        }))
    }

    fn check_workgroups(&self, _program: &dyn Program, _label: &str, _workgroups: [u32; 3]) -> Result<()> {
        Ok(())
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        _contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        let made = self.shared.health.check().and_then(|()| PjrtBuffer::new(&self.shared, bytes, label));
        ready(made.map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.health.check()?;
            let target = self.shared.own(&**buffer, "a write")?;
            let size = usize::try_from(padded(target.bytes())).unwrap_or(usize::MAX);
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let Some(end) = start.checked_add(data.len()).filter(|end| *end <= size) else {
                return Err(Error::InvalidInput {
                    what: target.label.to_string(),
                    reason: "a write goes beyond its end".to_owned(),
                });
            };
            let whole = start == 0 && data.len() as u64 >= target.bytes();
            let mut bytes = if whole { vec![0; size] } else { target.contents().await? };
            if let Some(part) = bytes.get_mut(start..end) {
                part.copy_from_slice(data);
            }
            *target.held() = Held::Host(Arc::new(bytes));
            Ok(())
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.health.check()?;
            let source = self.shared.own(&**buffer, "a read")?;
            let bytes = source.contents().await?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = start.checked_add(into.len()).and_then(|end| bytes.get(start..end));
            let part = part.ok_or_else(|| Error::InvalidInput {
                what: source.label.to_string(),
                reason: "a read goes beyond its end".to_owned(),
            })?;
            into.copy_from_slice(part);
            Ok(())
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.note_times(&batch);
        ready(self.shared.submit(&batch))
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.finish())
    }

    fn native(&self, operation: &NativeOperation) -> Option<Arc<dyn Program>> {
        match operation {
            NativeOperation::Graph(graph) => self.program(graph).map(|program| program as Arc<dyn Program>),
            _ => None,
        }
    }

    fn memory(&self) -> MemoryFigures {
        *self.shared.figures()
    }

    fn trim(&self) {}

    fn take_times(&self) -> Vec<KernelTime> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
