//! Points and elements as bytes.

use cantus::zk::{
    Affine, Bls12381G1, Bls12381G2, Bn254Fr, Bn254G1, Bn254G2, Coordinate, Curve, Field, Goldilocks, PointEncoding,
    Prime,
};

use crate::mutate::{self, Rng};
use crate::{Input, Outcome};

/// Bytes of a point, mostly changed a little, read: what is read lies on the curve and has one form alone.
fn point<C: Curve>(rng: &mut Rng) -> Outcome
where
    C::Base: Coordinate,
{
    let encoding = *rng.pick(&[PointEncoding::Eip, PointEncoding::Compressed]);
    let mut bytes =
        C::generator().times(C::Scalar::from_u64(rng.next() >> rng.below(64))).to_affine().to_bytes(encoding);
    match rng.below(5) {
        0 => bytes.iter_mut().for_each(|byte| *byte = rng.next() as u8),
        1 => mutate::bytes(rng, &mut bytes, &[0, 1, 0x40, 0x80, 0xc0, 0xe0, 0xff], 4),
        2 => {
            let at = rng.below(bytes.len());
            bytes[at] ^= 1 << rng.below(8);
        }
        _ => {}
    }
    match Affine::<C>::from_bytes(&bytes, encoding) {
        Ok(point) => {
            assert!(point.is_on_curve());
            assert_eq!(point.to_bytes(encoding), bytes);
            Outcome::Ran
        }
        Err(_) if bytes.len() != C::KIND.encoded_bytes(encoding) => Outcome::Refused,
        Err(_) => Outcome::Passed,
    }
}

fn elements(rng: &mut Rng) -> Outcome {
    let random = rng.next() as u32;
    let limbs: Vec<u32> = if rng.one_in(2) {
        (0..rng.below(10)).map(|_| *rng.pick(&[0, 1, u32::MAX, 0x3064_4e72, random])).collect()
    } else {
        let x = Bn254Fr::from_u64(rng.next());
        let mut limbs = (x * x * x).to_limbs();
        if rng.one_in(2) {
            let at = rng.below(limbs.len());
            limbs[at] ^= 1 << rng.below(32);
        }
        limbs
    };
    let mut outcome = Outcome::Refused;
    if let Some(x) = Bn254Fr::from_limbs(&limbs) {
        assert_eq!(x.to_limbs(), limbs);
        assert_eq!(Prime::from_montgomery(x.to_montgomery()), Some(x));
        outcome = Outcome::Ran;
    }
    if let Some(x) = Goldilocks::from_limbs(&limbs) {
        assert_eq!(x.to_limbs(), limbs);
        outcome = Outcome::Ran;
    }
    outcome
}

pub fn points() -> Input {
    Box::new(|rng| match rng.below(16) {
        0 => point::<Bls12381G1>(rng),
        1 => point::<Bls12381G2>(rng),
        2 => point::<Bn254G2>(rng),
        3..8 => elements(rng),
        _ => point::<Bn254G1>(rng),
    })
}
