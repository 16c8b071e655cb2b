//! The CPU executor of WGSL: naga IR, lowered once to flat bytecode, run in lock-step over lanes.
//!
//! Every instruction runs over all invocations of one or more workgroups (a batch) before the next one starts, so
//! barriers cost nothing and the interpreter's own cost is spread over hundreds of lanes. Values that are the same in
//! all invocations of a batch stay scalar; masks exist only inside divergent control flow.
//!
//! Knows nothing of `Engine`, `Tensor` or `Kernel`. Only the lowering needs naga (feature `wgsl`).

pub mod ahead;
#[doc(hidden)]
pub mod bytecode;
#[cfg(feature = "_test")]
#[doc(hidden)]
pub mod changed;
mod check;
mod exec;
#[cfg(feature = "wgsl")]
mod lower;
#[doc(hidden)]
pub mod math;
#[doc(hidden)]
pub mod shape;

#[cfg(feature = "wgsl")]
use cantus_base::{flow, fragment};
use cantus_base::{fnv, reflection, threads};

pub use bytecode::{BindingInfo, Bytecode};
pub use check::Corrupt;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use exec::atomic::atomic_operation;
pub(crate) use exec::launch::check_bindings;
pub use exec::launch::{Launch, Memory, Stopped, execute};
pub(crate) use exec::machine::Watch;
pub use exec::machine::{Beyond, Limits, OutOfRange};
pub use exec::order::Order;
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use lower::{Class, Flat, Register, flat};
#[cfg(feature = "wgsl")]
pub use lower::{Unsupported, compile};

/// Invocations of a subgroup: consecutive local invocation indices.
pub const SUBGROUP_SIZE: u32 = 32;

/// Bytes that one binding may have: offsets are 32 bits.
pub const MAX_BINDING_BYTES: u64 = u32::MAX as u64 - 3;

/// Returns the instruction set that the lane loops run with on this machine.
#[must_use]
pub fn instruction_set() -> &'static str {
    cantus_base::instructions::InstructionSet::best().name()
}
