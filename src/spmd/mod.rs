//! The CPU executor of WGSL (placeholder until the executor's branch lands).
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
/// Bytecode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {}
/// x
pub struct BindingInfo {
    /// x
    pub group: u32,
    /// x
    pub binding: u32,
}
impl Program {
    /// Checks.
    pub fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// x
    pub fn bindings(&self) -> &[BindingInfo] {
        &[]
    }
}
/// What is not supported.
pub struct Unsupported {
    /// Construct.
    pub construct: String,
    /// Span.
    pub span: Option<core::ops::Range<usize>>,
}
/// Compiles.
#[cfg(feature = "wgsl")]
pub fn compile(_: &naga::Module, _: &naga::valid::ModuleInfo, _: usize) -> Result<Program, Unsupported> {
    Err(Unsupported { construct: "everything".into(), span: None })
}
/// x
pub const SUBGROUP_SIZE: u32 = 32;
/// x
pub const MAX_BINDING_BYTES: u64 = 1 << 32;
/// x
pub fn instruction_set() -> &'static str {
    "baseline"
}
/// x
pub struct Memory<'a>(PhantomData<&'a ()>);
impl Memory<'_> {
    /// # Safety
    /// x
    pub unsafe fn from_raw(_: *mut u8, _: usize) -> Self {
        Self(PhantomData)
    }
}
/// x
pub struct Launch<'a> {
    /// x
    pub workgroups: [u32; 3],
    /// x
    pub bindings: &'a [Memory<'a>],
    /// x
    pub deadline: Option<web_time::Instant>,
    /// x
    pub cancel: Option<&'a AtomicBool>,
    /// x
    pub parallel: bool,
}
/// x
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// x
    #[error("d")]
    Deadline,
    /// x
    #[error("c")]
    Cancelled,
    /// x
    #[error("o")]
    Other,
}
/// x
pub fn execute(_: &Program, _: &Launch<'_>) -> Result<(), Stopped> {
    Ok(())
}
