//! WGSL text to bytes: parse, validate, compile, serialise and back, run.

use bytemuck::{AnyBitPattern, NoUninit};
use cantus::spmd::{self, Bytecode, Launch, Memory, Order, Stopped};

/// Compiles the only entry point of the text.
pub fn compile(wgsl: &str) -> Bytecode {
    try_compile(wgsl).unwrap_or_else(|error| panic!("{error} at {:?}\n{wgsl}", error.span))
}

pub fn try_compile(wgsl: &str) -> Result<Bytecode, spmd::Unsupported> {
    let module = naga::front::wgsl::parse_str(wgsl).unwrap_or_else(|error| panic!("{}", error.emit_to_string(wgsl)));
    let flags = naga::valid::ValidationFlags::all();
    let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::all());
    validator.subgroup_stages(naga::valid::ShaderStages::all());
    validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator.validate(&module).unwrap_or_else(|error| panic!("{}", error.emit_to_string(wgsl)));
    spmd::compile(&module, &info, 0)
}

/// Buffers in the order of the bindings; each run leaves its results there.
pub struct Run {
    program: Bytecode,
    buffers: Vec<Vec<u64>>,
    sizes: Vec<usize>,
}

impl Run {
    pub fn new(wgsl: &str) -> Self {
        Run { program: compile(wgsl), buffers: Vec::new(), sizes: Vec::new() }
    }

    /// The next binding's contents.
    pub fn buffer<T: NoUninit>(mut self, values: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        // Whole words of 8 bytes, so that every type is aligned.
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        self.buffers.push(words);
        self.sizes.push(bytes.len());
        self
    }

    pub fn zeros(self, bytes: usize) -> Self {
        self.buffer(&vec![0_u8; bytes])
    }

    pub fn dispatch(self, workgroups: [u32; 3]) -> Self {
        self.dispatch_with(workgroups, true)
    }

    pub fn dispatch_with(self, workgroups: [u32; 3], parallel: bool) -> Self {
        self.launch(workgroups, |launch| launch.parallel(parallel))
    }

    /// One workgroup after the other, in this order.
    pub fn in_order(self, workgroups: [u32; 3], order: Order) -> Self {
        self.launch(workgroups, |launch| launch.order(order))
    }

    pub fn listing(&self) -> String {
        self.program.listing()
    }

    fn launch(mut self, workgroups: [u32; 3], with: impl FnOnce(Launch<'_>) -> Launch<'_>) -> Self {
        let bindings: Vec<Memory<'_>> = self
            .buffers
            .iter_mut()
            .zip(&self.sizes)
            .map(|(words, size)| Memory::new(&mut bytemuck::cast_slice_mut::<u64, u8>(words)[..*size]))
            .collect();
        let launch = with(Launch::new(workgroups, &bindings));
        let result: Result<(), Stopped> = spmd::execute(&self.program, &launch);
        result.unwrap_or_else(|stopped| panic!("{stopped}\n{}", self.program.listing()));
        self
    }

    pub fn read<T: AnyBitPattern + NoUninit>(&self, binding: usize) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&bytemuck::cast_slice::<u64, u8>(&self.buffers[binding])[..self.sizes[binding]])
    }
}
