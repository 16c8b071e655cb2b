//! Checks that OpenCL does not make itself, before anything is queued: this device's side of `gpu/src/checks.rs`.

use std::sync::Arc;

use super::memory::OpenClBuffer;
use super::program::OpenClProgram;
use super::shared::Shared;
use crate::checks::{Facts, Owner, Rules};
use crate::kernel::Reflection;

impl Owner for Shared {
    type Program = OpenClProgram;
    type Buffer = OpenClBuffer;

    fn rules(&self) -> Rules<'_> {
        let limits = &self.info.capabilities.limits;
        Rules {
            device: &self.info.name,
            storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
            uniform: (limits.uniform_binding_bytes, u64::from(limits.storage_alignment)),
        }
    }

    fn compiled(&self, program: &OpenClProgram) -> bool {
        std::ptr::eq(Arc::as_ptr(&program.shared), self)
    }

    fn holds(&self, buffer: &OpenClBuffer) -> bool {
        std::ptr::eq(Arc::as_ptr(&buffer.shared), self)
    }

    fn reflection(program: &OpenClProgram) -> &Reflection {
        &program.reflection
    }

    fn facts(buffer: &OpenClBuffer) -> Facts<'_> {
        buffer.facts()
    }
}
