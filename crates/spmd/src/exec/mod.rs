//! Execution: checked bytecode runs in lock-step over lanes, on the threads of a pool. Knows nothing of naga.
//!
//! # What comes in
//! A `Bytecode`, and a `Launch`: the number of workgroups, the memory of each binding, and the limits that stop it.
//!
//! # Stages
//! 1. **Choose** (`launch`). Batches are consecutive workgroups along x, or in linear order where the grid is narrow. In a batch along x the lanes follow
//!    each other through all its workgroups before the next y begins, so that eight workgroups of 8 x 8 read rows of 64 neighbours. Of a kernel with workgroup
//!    memory or subgroup operations several small workgroups run in one batch, each with memory of its own; large ones run one at a time, and so do those
//!    that have atomics in buffers, where one may wait for an earlier one. Where another order is asked for, `order` says which workgroup comes when.
//! 2. **Spread** the batches over threads, as far as the instructions times lanes are worth it (`WORTHWHILE`). Each task has registers of its own
//!    (`Scratch`).
//! 3. **Resolve** (`Plan::resolve`). A contiguous index was recognised while lowering; here its address and the elements that exist are found once for the
//!    batch, so the lane loop has no check.
//! 4. **Interpret** (`machine::run`). Each instruction is one call of a lane loop. At back-edges and between workgroups the limits are checked (`Watch`).
//!
//! # What carries it
//! - `Machine`: the register file of one thread. A register has one lane (uniform), all lanes (vector), or is a mask with the number of its active lanes.
//! - The lane loops (`float`, `int`, `wide`, `double`, `convert`, `moves`, `memory`, `texel`): plain Rust loops, compiled for the baseline, for AVX2 with
//!   FMA and for AVX-512, chosen once (`isa`). `atomic`, `subgroup` and `input` have no such forms.
//!
//! # What holds
//! - Programs are checked before their first run (`check.rs`), so hostile bytes end in an error. The unsafe code here rests on that check (`machine`).
//! - A load out of range gives zero, and a store out of range is dropped (or noted, `Limits::beyond`).
//! - Registers and workgroup memory start as zeros, so one kernel never sees another's data.
//! - Each access to a buffer's element is one relaxed atomic access (`shared`), because other threads may write it.
//!
//! # What is surprising
//! - Barriers do nothing here: every lane is past what comes before. That holds for several workgroups in a batch too, which keep step with each other.
//! - Workgroup memory of several workgroups lies one after the other, and a lane's index counts in that of its own (`Resolved::apart`, `memory`'s parts).
//! - Masks exist only inside divergent control flow. The usual bounds check at the start of a kernel costs nothing on full batches.
//! - In a divergent loop, lane loops run from the first lane that is left to the last (`Op::Narrow`, `Machine::span`), by steps of 32. Registers of the lanes
//!   around keep what they have: only masked stores are seen behind the loop.
//! - A subgroup is 32 consecutive invocations, whatever the processor.
//! - Registers are limited to 256 MiB for a thread and 1 GiB for a launch: fewer threads run where that is not enough for all.
//!
//! # An example
//! `y[id.x] = x[id.x] * 2.0` over 1,000 elements, with workgroups of 64. The grid has 16 workgroups, and a batch eight of them: 512 lanes. In the second
//! batch 488 elements exist. `resolve` finds the addresses of `x[512]` and `y[512]` and 488 elements for both. Then three instructions run: load, multiply,
//! store. Each is a loop over 512 lanes, of which the load gives zeros beyond 488 and the store writes 488.

pub(crate) mod atomic;
mod convert;
mod double;
mod float;
mod input;
mod int;
mod isa;
pub(crate) mod launch;
pub(crate) mod machine;
mod memory;
mod moves;
pub(crate) mod order;
mod shared;
mod subgroup;
mod texel;
mod wide;
