//! Is a device right? Small WGSL kernels with oracles in plain Rust, the shipped kernels and the operations on tensors against float64.
//!
//! The conformance suite runs them on every device of a machine, and so does `cantus verify`. A [`Device`](engine::EngineDevice) runs a
//! [`Case`](case::Case) and [`Outcome::of`](outcome::Outcome::of) judges what came back; [`checks::all`] are whole operations.
#![allow(missing_docs, reason = "cases explain themselves")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an oracle's panic is its case's failure")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

pub mod case;
pub mod cases;
pub mod check;
pub mod checks;
pub mod deviations;
pub mod device;
pub mod engine;
pub mod inputs;
pub mod outcome;
pub mod record;
