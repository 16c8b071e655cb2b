//! Runs checked bytecode. Knows nothing of naga.
//!
//! `machine` is the register file and the interpreter loop; `float`, `int`, `wide`, `move_` and `memory` hold the lane
//! loops, compiled once for each instruction set (`isa`); `shared` says how memory of several threads is touched; `atomic`, `subgroup` and
//! `input` are plain; `launch` cuts a
//! grid into batches and spreads them over threads; `order` says which workgroup comes when, where that is asked for.

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
