//! Checks that the driver does not make itself, before anything is queued: this device's side of `gpu/src/checks.rs`.

use std::sync::Arc;

use super::memory::StreamBuffer;
use super::program::StreamProgram;
use super::shared::Shared;
use crate::checks::{Facts, Owner, Rules};
use crate::error::{Error, Result};
use crate::kernel::{Reflection, fold};

impl Owner for Shared {
    type Program = StreamProgram;
    type Buffer = StreamBuffer;

    fn rules(&self) -> Rules<'_> {
        let limits = &self.info.capabilities.limits;
        Rules {
            device: &self.info.name,
            storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
            uniform: (limits.uniform_binding_bytes, 16),
        }
    }

    fn compiled(&self, program: &StreamProgram) -> bool {
        std::ptr::eq(Arc::as_ptr(&program.shared), self)
    }

    fn holds(&self, buffer: &StreamBuffer) -> bool {
        std::ptr::eq(Arc::as_ptr(&buffer.shared), self)
    }

    fn reflection(program: &StreamProgram) -> &Reflection {
        &program.reflection
    }

    fn facts(buffer: &StreamBuffer) -> Facts<'_> {
        buffer.facts()
    }
}

impl Shared {
    /// Returns how a dispatch is folded if a dimension holds fewer workgroups.
    pub(super) fn folding(&self, label: &str, counts: [u32; 3], program: &StreamProgram) -> Result<Option<fold::Plan>> {
        self.check_ids(program, label, counts)?;
        if counts.iter().zip(self.grid).all(|(count, most)| *count <= most) {
            return Ok(None);
        }
        let plan = fold::plan(counts, self.info.capabilities.limits.workgroups_per_dimension);
        plan.map(Some).ok_or_else(|| {
            Error::limit(
                format!("the workgroups of {label}"),
                format!("{counts:?} are too many for one dispatch on {}: dispatch fewer at a time", self.info.name),
            )
        })
    }
}
