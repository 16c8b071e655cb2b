//! The CPU executor alone: a kernel's bytecode and `spmd::execute`, with no engine between.

use std::time::Duration;

use cantus::Kernel;
use cantus::spmd::{Launch, Memory, execute};

use crate::case::{Case, Needs};
use crate::device::{Failure, Target};

/// A time that no case nearly takes: one that reaches it hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than the alignment of any WGSL type.
const ALIGNMENT: usize = 64;

pub struct Executor;

impl Target for Executor {
    fn name(&self) -> String {
        "executor".to_owned()
    }

    fn missing(&self, _: &Needs) -> Option<String> {
        None
    }

    fn strict(&self) -> bool {
        true
    }

    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failure> {
        let mut kernel = Kernel::from_wgsl(&case.wgsl)?.with_entry_point("main")?;
        for &(name, value) in &case.overrides {
            kernel = kernel.with_override(name, value)?;
        }
        let program = kernel.program()?;
        // Only bindings that the entry point uses take memory; the others keep what they had.
        let mut buffers: Vec<Aligned> = case.bindings.iter().map(|b| Aligned::new(&b.initial.bytes())).collect();
        let mut slots: Vec<Option<&mut [u8]>> = buffers.iter_mut().map(|b| Some(b.bytes())).collect();
        let mut memory = Vec::new();
        for binding in program.bindings() {
            let bytes = slots.get_mut(binding.binding as usize).and_then(Option::take);
            let bytes = bytes.ok_or(Failure(format!("the program asks for binding {} twice", binding.binding)))?;
            memory.push(if binding.writable { Memory::new(bytes) } else { Memory::read_only(bytes) });
        }
        execute(program, &Launch::new(case.workgroups, &memory).deadline(web_time::Instant::now() + PATIENCE))?;
        if !buffers.iter().all(Aligned::is_whole) {
            return Err(Failure("the executor wrote outside of a binding".to_owned()));
        }
        Ok(buffers.iter_mut().map(|b| b.bytes().to_vec()).collect())
    }
}

/// Bytes at an address that suits every type, between guards. With `CANTUS_EXACT_MEMORY` set there are none: a sanitizer knows where the
/// memory ends, and sees reads as well.
pub struct Aligned {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub fn new(bytes: &[u8]) -> Self {
        if std::env::var_os("CANTUS_EXACT_MEMORY").is_some() {
            return Self { storage: bytes.to_vec(), start: 0, len: bytes.len() };
        }
        let mut storage = vec![0xA5; bytes.len() + 3 * ALIGNMENT];
        let start = ALIGNMENT + storage.as_ptr().align_offset(ALIGNMENT);
        storage[start..start + bytes.len()].copy_from_slice(bytes);
        Self { storage, start, len: bytes.len() }
    }

    /// Nothing was written outside.
    pub fn is_whole(&self) -> bool {
        let (before, rest) = self.storage.split_at(self.start);
        before.iter().chain(&rest[self.len..]).all(|byte| *byte == 0xA5)
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}
