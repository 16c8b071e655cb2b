//! Finite fields, curves and transforms for zero-knowledge proofs, on every device (feature `zk`).
//!
//! [`FieldTensor`] holds elements of a field on a device; one WGSL text, written for each field by its modulus and the form of its limbs
//! ([`LimbForm`]), computes with them on GPUs, in the browser and on the CPU executor. On the CPU the same operations run by 64-bit words in place
//! of the kernels, by priority, like any operation that a device has means of its own for.
//!
//! ```
//! # let engine = cantus::Engine::builder().backend("cpu").build()?;
//! use cantus::zk::{self, Bn254Fr, Check, FieldTensor};
//!
//! // Little-endian limbs of 32 bits, eight for an element.
//! let a = FieldTensor::<Bn254Fr>::from_limbs(&engine, &[3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0], Check::Strict)?;
//! let inverse = a.inverse()?;
//! let one = zk::field_mul(&a, &inverse)?;
//! assert_eq!(one.to_limbs()?, [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
//! # Ok::<(), cantus::Error>(())
//! ```
//!
//! **Nothing here takes the same time for all values.** Branches, memory accesses and the number of steps depend on scalars and elements: who can
//! measure time, caches or power may learn secrets. Proofs over witnesses that others may observe being computed, signatures and key material need
//! an implementation that is made for it.
//!
//! Values that are not below the modulus, points off their curve and lists of different lengths are errors, never truncated; [`Check`] says how
//! much is looked at.

mod elementwise;
mod form;
mod hash;
mod kernel;
mod msm;
mod native;
mod ntt;
mod points;
mod polynomial;
mod poseidon2;
mod tensor;

use cantus_algebra as algebra;
use cantus_base::{error, tensor as host};
use cantus_engine::{backend, engine};
use cantus_kernel::Kernel;

#[cfg(not(target_arch = "wasm32"))]
pub use elementwise::{
    field_add, field_dot, field_inverse, field_mul, field_neg, field_pow, field_square, field_sub, field_sum,
    field_sum_rows,
};
pub use form::LimbForm;
#[cfg(not(target_arch = "wasm32"))]
pub use hash::hash;
pub use hash::{MerkleTree, hash_async};
#[cfg(feature = "_test")]
pub use kernel::force_form;
#[cfg(not(target_arch = "wasm32"))]
pub use msm::{multi_scalar_mul, multi_scalar_mul_rows};
pub use msm::{multi_scalar_mul_async, multi_scalar_mul_rows_async};
pub use points::PointTensor;
#[cfg(not(target_arch = "wasm32"))]
pub use polynomial::sumcheck_round;
pub use polynomial::sumcheck_round_async;
pub use tensor::{Check, FieldTensor};

pub use crate::algebra::{
    Affine, BabyBear, BabyBear4, Bls12381Fq, Bls12381Fq2, Bls12381Fr, Bls12381G1, Bls12381G2, Bn254Fq, Bn254Fq2,
    Bn254Fr, Bn254G1, Bn254G2, Coordinate, Curve, CurveKind, Elementwise, Extension, Field, FieldKind, Goldilocks,
    Goldilocks2, HashFunction, KoalaBear, KoalaBear4, Mersenne31, Mersenne31Complex, Operation, PointEncoding,
    PointFunction, Poseidon2, Prime, PrimeField, Projective, batch_inverse,
};
