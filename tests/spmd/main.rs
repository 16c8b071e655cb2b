//! The CPU executor's mechanisms, kernel by kernel, against values computed in plain Rust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops where it fails")]
#![cfg(all(feature = "wgsl", feature = "cpu"))]

mod budget;
mod bytecode;
mod control;
mod field;
mod harness;
mod limits;
mod memory;
mod numbers;
mod workgroup;
