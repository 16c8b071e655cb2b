//! Finite fields, curves and hashes on the host, by 64-bit words. What the kernels of `zk` are tested against, what the CPU backend runs in
//! their place, and what combines the last of their results. Knows nothing of tensors, kernels or devices.
//!
//! Nothing here takes the same time for all values.

mod curve;
mod curves;
mod encoding;
mod extension;
mod field;
mod four_steps;
mod hash;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod kind;
mod lanes;
mod montgomery;
mod msm;
mod ntt;
mod operation;
mod parallel;
mod poseidon2;
mod small;
mod straus;

use cantus_base::threads;

pub use curve::{Affine, Curve, Projective};
pub use curves::{Bls12381G1, Bls12381G2, Bn254G1, Bn254G2, CurveKind};
pub use encoding::{Coordinate, PointEncoding};
pub use extension::{BabyBear4, Bls12381Fq2, Bn254Fq2, Extension, Goldilocks2, KoalaBear4, Mersenne31Complex};
pub use field::{Field, PrimeField, batch_inverse, powers};
pub use hash::{HashFunction, KECCAK_LANES, KECCAK_ROUNDS};
pub use kind::FieldKind;
pub use montgomery::{Bls12381Fq, Bls12381Fr, Bn254Fq, Bn254Fr, Prime};
pub use msm::{MsmPlan, combine_windows, window_bits};
pub use operation::{Elementwise, Operation, PointFunction};
pub use poseidon2::Poseidon2;
pub use small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};
