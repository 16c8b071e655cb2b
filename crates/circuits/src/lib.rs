//! Quantum circuits on every device that [Cantus](cantus) runs on: OpenQASM or a builder in; amplitudes, samples, expectation values and gradients out.
//!
//! ```
//! use cantus_circuits::{Circuit, Compiled, Observable, Precision};
//!
//! let circuit = Circuit::from_qasm("
//!     OPENQASM 3;
//!     include \"stdgates.inc\";
//!     input float theta;
//!     qubit[2] q;
//!     ry(theta) q[0];
//!     cx q[0], q[1];
//! ")?;
//! let engine = cantus::Engine::builder().backend("cpu").build()?;
//! let compiled = Compiled::new(&engine, &circuit, Precision::Single)?;
//! let state = compiled.state(&[std::f64::consts::FRAC_PI_2])?;
//! assert!((state.probabilities()?[3] - 0.5).abs() < 1e-6);
//! let (zz, gradient) = compiled.gradient(&[0.3], &Observable::new(&[("ZI", 1.0)])?)?;
//! assert!((zz - 0.3_f64.cos()).abs() < 1e-6 && (gradient[0] + 0.3_f64.sin()).abs() < 1e-6);
//! # Ok::<_, cantus::Error>(())
//! ```
//!
//! | | |
//! | --- | --- |
//! | [`Circuit`] | gates, measurements, resets and conditions; from OpenQASM 2 and 3, or built |
//! | [`Compiled`] | a circuit that is planned for an engine, run for any parameters, or captured as a graph |
//! | [`State`] | amplitudes, probabilities, samples, expectation values |
//! | [`run()`], [`run_noisy()`] | shots, with mid-circuit measurements, conditions, resets and noise |
//! | [`Stream`] | a state in a file, for one that is larger than memory |
//!
//! Conventions are Qiskit's: qubit 0 is the lowest bit of a basis state's number, and the last letter of texts.
//!
//! # How it runs
//! Neighbouring gates become one matrix of up to five qubits or one diagonal, where that costs less; exchanges of qubits at the top of a circuit cost nothing. A
//! pass is one of a few kernels, whose matrices and places of qubits are data: no kernel is compiled for a circuit. The CPU goes through memory once for as
//! many passes as a tile of 15 qubits allows, which stays in the cache meanwhile. Gates' matrices are computed in float64.
//!
//! A state that one binding of the device does not hold (on the CPU from 29 qubits of complex64 on) is in strips, tensors of equal size. Passes run on windows:
//! those strips whose numbers differ in a few bits are copied into one tensor, which has all amplitudes of the places that the passes mix. Controls and diagonals
//! on other places are decided by the window's number. A state in a file goes through memory by the same windows.
//!
//! # Limits
//! - A state has to fit the device's memory, or a file ([`Stream`]).
//! - complex128 needs the CPU, or a device with float64.
//! - Calls block; there are none on the web.

#![cfg(not(target_arch = "wasm32"))]
#![warn(missing_debug_implementations)]

mod angle;
mod apply;
mod builder;
mod circuit;
mod compiled;
mod condition;
mod draw;
mod gate;
mod gradient;
mod kernels;
mod label;
mod native;
mod noise;
mod observable;
mod outcomes;
mod plan;
mod qasm;
mod random;
mod real;
mod shots;
mod split;
mod state;
mod stream;
mod strips;
mod trajectory;

pub use angle::{Angle, Function, Operation, Parameter};
pub use circuit::{Circuit, MOST_BITS, MOST_INSTRUCTIONS, MOST_QUBITS, Register};
pub use compiled::{Compiled, Figures, Precision, Replay};
pub use condition::Condition;
pub use gate::{Kind, MOST_TARGETS};
pub use noise::Noise;
pub use observable::{MOST_TERMS, Observable};
pub use outcomes::Shots;
#[doc(hidden)]
pub use shots::run_within;
pub use shots::{MOST_SHOTS, run, run_noisy};
pub use state::State;
pub use stream::Stream;

/// Bytes as people read them.
fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            return if unit == "bytes" { format!("{count} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} EiB")
}
