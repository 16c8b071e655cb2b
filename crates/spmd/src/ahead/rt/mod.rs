//! The run-time library of generated kernels: places in memory, lanes, chunks of a grid. Depends on `math` and `core`
//! alone, so that generated code can also be compiled as a crate of its own with these two modules.
//!
//! # The invariant of generated code
//!
//! - Memory of bindings is touched through [`Place`]s only: raw pointers to plain integers, within `count` elements. No
//!   reference to it exists while a kernel runs, and atomics go through `AtomicU32::from_ptr`, so that workgroups on
//!   several threads may touch the same words. All other accesses are plain: the kernel has no data race, as
//!   `Kernel::with_ahead` asks.
//! - [`Lanes`] are owned by one call. A lane's number is always below the number of lanes: loops run to it.

mod chunk;
mod lanes;
mod memory;

pub use chunk::{DONE, Entry, Job, Memory, NO_MEMORY, Row, STOPPED, Span, first_lanes, span};
pub use lanes::{Lanes, active, apart, at_most, beyond, cos, fence, is_beyond, select, sin, tan};
pub use memory::{Count, Element, Half, Place, Short, UnsignedShort, Wide, Word};

pub use super::math::lane;
pub use super::math::lane::truth;
pub use super::math::{
    AtomicOperation as Atomic32, AtomicOperation as Atomic64, atomic_u32, atomic_u64, plain_u32, plain_u64,
};
pub use super::math::{SCAN_EXCLUSIVE, SCAN_INCLUSIVE, SCAN_REDUCE, ballot, collect, gather};
