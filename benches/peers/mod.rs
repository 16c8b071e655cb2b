//! Peers of the benches: what ours is compared with, in the same run.

#![allow(dead_code, reason = "no bench uses all of them")]

pub mod bare;
pub mod process;
