//! Devices that run operation graphs and no kernels (PJRT, Ascend): tensors as values that never change, programs by graph, batches. What a
//! vendor's library does is behind [`Target`].

mod device;
mod memory;
mod queue;
mod recording;
mod shared;
mod target;

pub(crate) use device::ValueDevice;
pub(crate) use target::{Fault, FaultKind, Fetched, Ran, Run, Target};
