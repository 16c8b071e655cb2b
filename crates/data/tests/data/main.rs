//! `cantus-data` against the libraries whose files and structures it reads and writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod archives;
mod arrow_arrays;
