//! A backend through its traits: short forms of their calls, blocking.

use std::sync::Arc;

use cantus::backend::{Bound, Buffer, Command, Contents, Device, Dispatch, Program, Recording};
use cantus::{Error, Kernel, Result};
use pollster::block_on;

/// An opened device, with blocking calls.
#[derive(Clone)]
pub struct Open(pub Arc<dyn Device>);

impl Open {
    pub fn compile(&self, wgsl: &str) -> Arc<dyn Program> {
        self.try_compile(wgsl).expect("compiles")
    }

    pub fn try_compile(&self, wgsl: &str) -> Result<Arc<dyn Program>> {
        block_on(self.0.compile(&Kernel::from_wgsl(wgsl).expect("is valid WGSL")))
    }

    pub fn zeros(&self, bytes: u64) -> Arc<dyn Buffer> {
        block_on(self.0.allocate(bytes, Contents::Zeroed, "zeros")).expect("allocates")
    }

    pub fn buffer<T: bytemuck::NoUninit>(&self, label: &str, values: &[T]) -> Arc<dyn Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = block_on(self.0.allocate(bytes.len() as u64, Contents::Overwritten, label)).expect("allocates");
        block_on(self.0.write(&buffer, 0, bytes)).expect("writes");
        buffer
    }

    pub fn try_read<T: bytemuck::Pod>(&self, buffer: &Arc<dyn Buffer>) -> Result<Vec<T>> {
        let mut bytes = vec![0; usize::try_from(buffer.bytes()).expect("fits")];
        block_on(self.0.read(buffer, 0, &mut bytes))?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    pub fn read<T: bytemuck::Pod>(&self, buffer: &Arc<dyn Buffer>) -> Vec<T> {
        self.try_read(buffer).expect("reads")
    }

    pub fn submit(&self, batch: Vec<Command>) -> Result<()> {
        Ok(block_on(self.0.submit(batch))?)
    }

    pub fn record(&self, batch: &[Command]) -> Arc<dyn Recording> {
        block_on(self.0.record(batch)).expect("records")
    }

    pub fn replay(&self, recording: &Arc<dyn Recording>) -> Result<()> {
        Ok(block_on(self.0.replay(recording))?)
    }

    pub fn write<T: bytemuck::NoUninit>(&self, buffer: &Arc<dyn Buffer>, offset: u64, values: &[T]) {
        block_on(self.0.write(buffer, offset, bytemuck::cast_slice(values))).expect("writes");
    }

    /// Runs one kernel.
    pub fn run(&self, program: &Arc<dyn Program>, bindings: Vec<Bound>, workgroups: [u32; 3]) -> Result<()> {
        self.submit(vec![dispatch("case", program, bindings, workgroups)])
    }
}

pub fn dispatch(label: &str, program: &Arc<dyn Program>, bindings: Vec<Bound>, workgroups: [u32; 3]) -> Command {
    Command::Dispatch(Dispatch::new(program.clone(), label, bindings, workgroups))
}

/// A whole buffer.
pub fn whole(buffer: &Arc<dyn Buffer>) -> Bound {
    Bound::Buffer { buffer: buffer.clone(), offset: 0, bytes: buffer.bytes() }
}

/// The contents of a uniform.
pub fn uniform<T: bytemuck::NoUninit>(values: &[T]) -> Bound {
    Bound::Uniform(bytemuck::cast_slice(values).to_vec())
}

/// Checks that an error's text holds all of these.
pub fn assert_says<T>(result: Result<T>, parts: &[&str]) -> Error {
    let Err(error) = result else { panic!("no error; expected one that says {parts:?}") };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "\"{text}\" does not say \"{part}\"");
    }
    error
}
