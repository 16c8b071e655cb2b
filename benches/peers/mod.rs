//! Peers of the benches: what ours is compared with, in the same run.

#![allow(clippy::expect_used, missing_docs, reason = "a peer that cannot run stops the bench")]

pub mod bare;
pub mod process;
pub mod turns;
