//! The kit of the tests: cases (a kernel, its inputs, what must come out), targets that run them, random programs.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must fail the comparison")]
#![allow(clippy::manual_is_multiple_of, reason = "oracles are written like the WGSL beside them")]

pub use cantus_skips::not_run;
pub use cantus_verify::{case, cases, check, checks, deviations, device, inputs, outcome};

pub mod backend;
pub mod bare;
pub mod doubles;
pub mod drops;
pub mod engine;
pub mod executor;
pub mod harness;
pub mod hesitant;
pub mod host_c;
pub mod host_device;
pub mod random;
pub mod reproducible;
pub mod turn;
pub mod verified;
