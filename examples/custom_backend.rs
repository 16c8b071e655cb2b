//! A custom backend around another backend's device: an "accelerator" that takes kernels named `double` and refuses all others. The
//! engine prefers it by priority, and takes the CPU for the rest. cargo run --example custom_backend

use std::sync::Arc;

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, MemoryFigures, OpenOptions, Probe, Program,
    Refusal,
};
use cantus::{Engine, Error, Kernel, Result};

/// The device's description, and the device that does its work: a driver's handle would be here.
struct Accelerator(DeviceInfo, Arc<dyn Device>);

impl Device for Accelerator {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        if kernel.name() == "double" {
            return self.1.compile(kernel);
        }
        let (kernel, device) = (kernel.name().to_owned(), self.0.name.clone());
        let construct = "it takes kernels named \"double\" alone".to_owned();
        Box::pin(async { Err(Error::Unsupported { kernel, device, construct, report: String::new() }) })
    }
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        self.1.check_workgroups(program, label, workgroups)
    }
    fn allocate<'a>(&'a self, bytes: u64, held: Contents, label: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        self.1.allocate(bytes, held, label)
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        self.1.write(buffer, offset, data)
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        self.1.read(buffer, offset, into)
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.1.submit(batch)
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        self.1.finish()
    }
    fn memory(&self) -> MemoryFigures {
        self.1.memory()
    }
    fn trim(&self) {
        self.1.trim();
    }
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
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            let cpu = CpuBackend::new().open(index, options).await?;
            let found = self.probe().await.devices.into_iter().nth(index);
            let info = found.ok_or(Error::NoDevice { wanted: "accelerator".into(), reasons: Vec::new() })?;
            Ok(Arc::new(Accelerator(info, cpu)) as Arc<dyn Device>)
        })
    }
}

/// Doubles on the accelerator, adds on the CPU, and tells what happened.
pub fn main() -> Result<()> {
    let engine = Engine::builder().with_backend(Arc::new(AcceleratorBackend)).build()?;
    let values = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    for (name, statement) in [("double", "v[id.x] *= 2.0;"), ("add_one", "v[id.x] += 1.0;")] {
        let kernel = Kernel::from_wgsl(&format!(
            "@group(0) @binding(0) var<storage, read_write> v: array<f32>;
             @compute @workgroup_size(64) fn {name}(@builtin(global_invocation_id) id: vec3u) {{
                 if id.x < arrayLength(&v) {{ {statement} }}
             }}"
        ))?;
        engine.dispatch(&kernel).bind("v", &values).invocations(3).run()?;
        println!("{:?} on {}", values.to_vec::<f32>()?, values.device_name());
    }
    engine.events().iter().for_each(|event| println!("{event}"));
    Ok(())
}
