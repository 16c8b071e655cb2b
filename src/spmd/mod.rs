//! The CPU executor of WGSL (placeholder until the executor's branch lands).
use serde::{Deserialize, Serialize};
/// Bytecode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {}
impl Program {
    /// Checks.
    pub fn check(&self) -> Result<(), String> {
        Ok(())
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
