//! Peers of the benches: what ours is compared with, in the same process.

pub mod bare;
