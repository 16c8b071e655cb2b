//! A polynomial commitment (Kate, Zaverucha, Goldberg): commit, open, and check the opening.
//!
//! `cargo run --release --features zk --example kzg`

use cantus::Engine;
use cantus::zk::{self, Bn254Fr, Bn254G1, Check, Curve, Field, FieldTensor, PointTensor, Projective};

const DEGREE: u64 = 1 << 10;

/// Commits to a polynomial, and opens it at a place.
///
/// # Errors
/// What the engine answers.
pub fn main() -> cantus::Result<()> {
    let engine = Engine::new()?;
    // Real powers come from a ceremony, after which nobody knows the secret. Here it takes the verifier's pairing's place.
    let secret = Bn254Fr::from_u64(0x5eed_0123_4567_89ab).square();
    let g = Bn254G1::generator();
    let powers: Vec<_> = (0..DEGREE).map(|i| g.times(secret.pow(&[i]))).collect();
    let powers = Projective::to_affines(&powers);
    let setup = PointTensor::from_points(&engine, &powers, Check::Strict)?;

    let coefficients: Vec<Bn254Fr> = (0..DEGREE).map(|i| Bn254Fr::from_u64(i * i + 1)).collect();
    let polynomial = FieldTensor::from_elements(&engine, &coefficients)?;
    let start = std::time::Instant::now();
    let commitment = zk::multi_scalar_mul(&polynomial, &setup)?;
    println!("{DEGREE} coefficients committed to in {:?} on {}", start.elapsed(), engine.selected().device.name);

    // The witness commits to (p(X) - p(z)) / (X - z).
    let z = Bn254Fr::from_u64(42);
    let (quotient, value) = polynomial.divide_by_root(z)?;
    let setup = PointTensor::from_points(&engine, &powers[..powers.len() - 1], Check::Trusted)?;
    let witness = zk::multi_scalar_mul(&quotient, &setup)?;

    let right = witness.times(secret - z).add(g.times(value)).to_affine();
    assert_eq!(right, commitment, "the opening is right");
    let wrong = witness.times(secret - z).add(g.times(value + Bn254Fr::ONE)).to_affine();
    assert_ne!(wrong, commitment, "another value has no such witness");
    println!("p({z:?}) = {value:?}, opened and checked");
    Ok(())
}
