//! Ethereum's vectors of BLS12-381's precompiles (EIP-2537), where they are: in the folder `vectors` beside the project, or where
//! `CANTUS_VECTORS` points.

use std::path::PathBuf;

use cantus::zk::{
    Affine, Bls12381Fr, Bls12381G1, Bls12381G2, Check, Coordinate, Curve, FieldTensor, PointEncoding, PointTensor,
    PrimeField, Projective, multi_scalar_mul,
};

use super::engines;

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|place| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).unwrap()).collect()
}

/// Name, input, and what is expected; `None` where the input is refused.
type Row = (String, Vec<u8>, Option<Vec<u8>>);

fn rows(name: &str) -> Option<Vec<Row>> {
    let folder = std::env::var_os("CANTUS_VECTORS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors")), PathBuf::from);
    let path = folder.join("eip-2537").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("not run: {name}: it is not in {}", folder.display());
        return None;
    };
    let list: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(!list.is_empty());
    let row = |value: &serde_json::Value| {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        (text("Name").unwrap_or_default(), bytes(&text("Input").unwrap()), text("Expected").map(|text| bytes(&text)))
    };
    Some(list.iter().map(row).collect())
}

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
    for (name, input, expected) in rows(file).into_iter().flatten() {
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
