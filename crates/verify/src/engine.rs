//! Cantus itself: one target per device that an engine lists.

use std::time::Duration;

use cantus::backend::{DeviceInfo, Registry};
use cantus::engine::survey;
use cantus::{Config, DType, Engine, Fallback, Kernel, Result};

use crate::case::{Binding, Case, Needs, Space, Values};
use crate::device::{Failure, Target};

/// The time after which a command's device counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct EngineDevice {
    info: DeviceInfo,
    engine: Engine,
}

impl EngineDevice {
    /// Opens a device, which must do everything alone.
    ///
    /// # Errors
    /// What [`cantus::EngineBuilder::build`] says.
    pub fn open(info: DeviceInfo) -> Result<Self> {
        let builder = Engine::builder().backend(&info.backend).device(info.index);
        let engine = builder.fallback(Fallback::Never).timeout(PATIENCE).build()?;
        Ok(Self { info, engine })
    }

    /// An engine that is open: its first device, which must do everything alone.
    pub fn of(engine: Engine) -> Self {
        Self { info: engine.selected().device.clone(), engine }
    }
}

/// Every device of every backend, and the reasons for missing ones.
pub fn targets() -> (Vec<Box<dyn Target>>, Vec<String>) {
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    let mut reasons = Vec::new();
    for backend in survey(&Registry::with_defaults(), &Config::default()).backends {
        reasons.extend(backend.reason.iter().map(|reason| format!("{}: {reason}", backend.name)));
        for info in backend.devices {
            match EngineDevice::open(info.clone()) {
                Ok(target) => targets.push(Box::new(target)),
                Err(error) => reasons.push(format!("{} {}: {error}", info.backend, info.name)),
            }
        }
    }
    (targets, reasons)
}

impl Target for EngineDevice {
    fn name(&self) -> String {
        format!("{}: {}", self.info.backend, self.info.name)
    }

    fn missing(&self, needs: &Needs) -> Option<String> {
        let has = self.info.capabilities.features;
        let wanted = [
            (needs.f16, has.f16, "f16"),
            (needs.int16, false, "tensors of 16-bit integers"),
            (needs.int64, has.int64, "64-bit integers"),
            (needs.int64_atomics, has.int64_atomics, "64-bit atomics"),
            (needs.float_atomics, has.float32_atomics, "float32 atomics"),
            (needs.f64, has.float64, "f64"),
            (needs.cooperative_matrix, has.cooperative_matrix, "cooperative matrices"),
            (needs.subgroups || needs.subgroup_barrier, has.subgroups, "subgroup operations"),
        ];
        if self.info.capabilities.operation_graphs {
            return Some("the device takes operations, and no kernels".to_owned());
        }
        if needs.refused_by_engines {
            return Some("an engine refuses empty dispatches".to_owned());
        }
        if let Some((_, _, what)) = wanted.iter().find(|(needed, has, _)| *needed && !has) {
            return Some(format!("the device has no {what}"));
        }
        let most = self.info.capabilities.limits.workgroup_invocations;
        (needs.invocations > most).then(|| format!("the device has at most {most} invocations in a workgroup"))
    }

    fn engine(&self) -> Option<&Engine> {
        Some(&self.engine)
    }

    fn strict(&self) -> bool {
        self.info.backend == "cpu"
    }

    fn run(&self, case: &Case) -> std::result::Result<Vec<Vec<u8>>, Failure> {
        let mut kernel = Kernel::from_named_wgsl(&case.name, &case.wgsl)?.with_entry_point("main")?;
        for &(name, value) in &case.overrides {
            kernel = kernel.with_override(name, value)?;
        }
        let uniforms: Vec<Vec<u8>> = case.bindings.iter().map(|b| b.initial.bytes()).collect();
        let tensors = case.bindings.iter().map(|b| self.tensor(b)).collect::<std::result::Result<Vec<_>, _>>()?;
        let mut dispatch = self.engine.dispatch(&kernel).label(&case.name).workgroups(case.workgroups);
        let used = &kernel.reflection()?.bindings;
        for ((binding, tensor), bytes) in case.bindings.iter().zip(&tensors).zip(&uniforms) {
            // A binding that the entry point does not use is not there to be bound.
            if !used.iter().any(|b| b.name == binding.identifier()) {
                continue;
            }
            dispatch = match binding.space {
                Space::Uniform => dispatch.set_bytes(binding.identifier(), bytes),
                Space::Read | Space::ReadWrite => dispatch.bind_raw(binding.identifier(), tensor),
            };
        }
        dispatch.run()?;
        tensors.iter().map(|t| Ok(t.to_bytes()?)).collect()
    }
}

impl EngineDevice {
    /// The case's bytes. They are bound raw: cases write all their words as u32 where only bits matter.
    fn tensor(&self, binding: &Binding) -> std::result::Result<cantus::Tensor, Failure> {
        let dtype = match binding.initial {
            Values::F16(_) => DType::F16,
            Values::F32(_) => DType::F32,
            Values::F64(_) => DType::F64,
            Values::I32(_) => DType::I32,
            Values::U32(_) => DType::U32,
            Values::I64(_) => DType::I64,
            Values::U64(_) => DType::U64,
            Values::I16(_) | Values::U16(_) => return Err(Failure("tensors have no 16-bit integers".to_owned())),
        };
        let bytes = binding.initial.bytes();
        Ok(self.engine.tensor_from_bytes(dtype, &[bytes.len() / dtype.bytes()], &bytes)?)
    }
}
