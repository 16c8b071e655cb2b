//! The CPU executor's mechanisms, kernel by kernel, against values computed in plain Rust.

mod budget;
mod bytecode;
mod control;
mod field;
mod harness;
mod limits;
mod memory;
mod numbers;
mod texels;
mod workgroup;
