//! The CPU executor's mechanisms, kernel by kernel, against values computed in plain Rust.
#![cfg(all(feature = "wgsl", feature = "cpu"))]

mod control;
mod field;
mod harness;
mod limits;
mod memory;
mod numbers;
mod workgroup;
