//! A backend of one's own: an "accelerator" that has one kernel built in, `double`, and refuses every other. The engine prefers it by
//! priority, and takes the CPU for the rest.
//!
//! cargo run --example custom_backend

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, MemoryFigures, OpenOptions, Probe,
    Program, ready,
};
use cantus::{Engine, Error, Kernel, Result};

struct Accelerator(DeviceInfo);
struct Double;
struct Words(Mutex<Vec<f32>>);

impl Program for Double {}
impl Buffer for Words {
    fn bytes(&self) -> u64 {
        4 * self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

/// Calls `action` with the buffer's words. All buffers that reach this device were made by it.
fn with<T>(buffer: &dyn Buffer, action: impl FnOnce(&mut Vec<f32>) -> T) -> Result<T> {
    let buffer = (buffer as &dyn Any).downcast_ref::<Words>().ok_or_else(|| Error::Device {
        device: "accelerator".into(),
        action: "an access".into(),
        message: "the buffer is another device's".into(),
    })?;
    Ok(action(&mut buffer.0.lock().unwrap_or_else(PoisonError::into_inner)))
}

impl Device for Accelerator {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        ready(if kernel.name() == "double" {
            Ok(Arc::new(Double) as Arc<dyn Program>)
        } else {
            let construct = "it has only the kernel \"double\"".into();
            Err(Error::Unsupported {
                kernel: kernel.name().into(),
                device: "accelerator".into(),
                construct,
                report: String::new(),
            })
        })
    }
    fn check_workgroups(&self, _: &dyn Program, _: &str, _: [u32; 3]) -> Result<()> {
        Ok(())
    }
    fn allocate<'a>(&'a self, bytes: u64, _: Contents, _: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        ready(Ok(Arc::new(Words(Mutex::new(vec![0.0; bytes as usize / 4]))) as Arc<dyn Buffer>))
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        let start = offset as usize;
        ready(with(&**buffer, |words| {
            bytemuck::cast_slice_mut::<_, u8>(words)[start..start + data.len()].copy_from_slice(data)
        }))
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        let start = offset as usize;
        ready(with(&**buffer, |words| {
            into.copy_from_slice(&bytemuck::cast_slice::<_, u8>(words)[start..start + into.len()])
        }))
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<()>> {
        let run = batch.iter().try_for_each(|command| match command {
            Command::Dispatch(dispatch) => dispatch.bindings.iter().try_for_each(|bound| match bound {
                Bound::Buffer { buffer, .. } => with(&**buffer, |words| words.iter_mut().for_each(|word| *word *= 2.0)),
                Bound::Uniform(_) => Ok(()),
            }),
            Command::Copy { source, target, .. } => {
                let words = with(&**source, |words| words.clone())?;
                with(&**target, |into| *into = words)
            }
        });
        ready(run)
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        ready(Ok(()))
    }
    fn memory(&self) -> MemoryFigures {
        MemoryFigures::default()
    }
    fn trim(&self) {}
}

/// Finds the one accelerator.
pub struct AcceleratorBackend;

impl Backend for AcceleratorBackend {
    fn name(&self) -> &str {
        "accelerator"
    }
    fn priority(&self) -> i32 {
        90
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async {
            let mut probe = CpuBackend::new().probe().await;
            for device in &mut probe.devices {
                (device.name, device.backend, device.priority) = ("accelerator".into(), "accelerator".into(), 90);
            }
            probe
        })
    }
    fn open<'a>(&'a self, _: usize, _: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async {
            let devices = self.probe().await.devices;
            let info =
                devices.into_iter().next().ok_or(Error::NoDevice { wanted: "accelerator".into(), reasons: vec![] })?;
            Ok(Arc::new(Accelerator(info)) as Arc<dyn Device>)
        })
    }
}

/// A kernel that does `statement` for each element of `v`.
pub fn kernel(name: &str, statement: &str) -> Result<Kernel> {
    Kernel::from_wgsl(&format!(
        "@group(0) @binding(0) var<storage, read_write> v: array<f32>;
         @compute @workgroup_size(64) fn {name}(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&v) {{ {statement} }}
         }}"
    ))
}

/// Doubles on the accelerator, adds on the CPU, and tells what happened.
pub fn main() -> Result<()> {
    let engine = Engine::builder().with_backend(Arc::new(AcceleratorBackend)).build()?;
    let values = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    engine.dispatch(&kernel("double", "v[id.x] *= 2.0;")?).bind("v", &values).invocations(3).run()?;
    println!("{:?} on {}", values.to_vec::<f32>()?, values.device_name());
    engine.dispatch(&kernel("add_one", "v[id.x] += 1.0;")?).bind("v", &values).invocations(3).run()?;
    println!("{:?} on {}", values.to_vec::<f32>()?, values.device_name());
    for event in engine.events() {
        println!("{event}");
    }
    Ok(())
}
