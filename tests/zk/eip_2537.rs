//! Ethereum's vectors of BLS12-381's precompiles (EIP-2537), where they are.

use cantus::zk::{
    Affine, Bls12381Fr, Bls12381G1, Bls12381G2, Check, Coordinate, Curve, FieldTensor, PointEncoding, PointTensor,
    PrimeField, Projective, multi_scalar_mul,
};

use super::engines;
use super::vectors::rows;

type Outcome<C> = Result<Affine<C>, String>;

/// A sum of two, whose points need not be in the group.
fn add<C: Curve>(input: &[u8]) -> Outcome<C>
where
    C::Base: Coordinate,
{
    let each = C::KIND.encoded_bytes(PointEncoding::Eip);
    if input.len() != 2 * each {
        return Err("its length is wrong".to_owned());
    }
    let point = |bytes| Affine::<C>::from_bytes(bytes, PointEncoding::Eip);
    Ok(Projective::from(point(&input[..each])?).add_affine(point(&input[each..])?).to_affine())
}

/// A sum of multiples; scalars are any 32 bytes.
fn msm<C: Curve<Scalar = Bls12381Fr>>(engine: &cantus::Engine, input: &[u8]) -> Outcome<C>
where
    C::Base: Coordinate,
{
    let each = C::KIND.encoded_bytes(PointEncoding::Eip);
    if input.is_empty() || !input.len().is_multiple_of(each + 32) {
        return Err("its length is wrong".to_owned());
    }
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for pair in input.chunks(each + 32) {
        points.extend_from_slice(&pair[..each]);
        scalars.extend_from_slice(&pair[each..]);
    }
    let points = PointTensor::<C>::from_bytes(engine, &points, PointEncoding::Eip, Check::Strict)
        .map_err(|error| error.to_string())?;
    let scalars = FieldTensor::from_be_bytes(engine, &scalars, Check::Reduce).map_err(|error| error.to_string())?;
    multi_scalar_mul(&scalars, &points).map_err(|error| error.to_string())
}

fn check<C: Curve>(file: &str, compute: &dyn Fn(&[u8]) -> Outcome<C>)
where
    C::Base: Coordinate,
{
    for (name, input, expected) in rows("eip-2537", file).into_iter().flatten() {
        let result = compute(&input).map(|point| point.to_bytes(PointEncoding::Eip)).ok();
        assert_eq!(result, expected, "{name} of {file}");
    }
}

#[test]
fn sums_of_points_are_those_of_the_eip() {
    check::<Bls12381G1>("add_G1_bls.json", &add);
    check::<Bls12381G1>("fail-add_G1_bls.json", &add);
    check::<Bls12381G2>("add_G2_bls.json", &add);
    check::<Bls12381G2>("fail-add_G2_bls.json", &add);
}

#[test]
fn multiples_are_those_of_the_eip() {
    let (_, engine) = engines().remove(0);
    for file in ["mul_G1_bls.json", "fail-mul_G1_bls.json", "msm_G1_bls.json", "fail-msm_G1_bls.json"] {
        check::<Bls12381G1>(file, &|input| msm(&engine, input));
    }
    for file in ["mul_G2_bls.json", "fail-mul_G2_bls.json"] {
        check::<Bls12381G2>(file, &|input| msm(&engine, input));
    }
    assert_eq!(Bls12381Fr::GENERATOR, 7);
}
