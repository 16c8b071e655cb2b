//! Tests of circuits against a plain simulator, Qiskit's records, statistics, and hostile programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod amplitudes;
mod devices;
mod gradients;
mod hostile;
mod oracle;
mod pictures;
mod qasm;
mod shots;
mod strips;
mod surface;

/// The processor.
fn cpu() -> cantus::Engine {
    cantus::Engine::builder().backend("cpu").build().expect("the processor")
}
