//! The sum of the npm package's example, by arkworks: the page's test holds the point in `web/tests/bn254-sum.json`.

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInteger, PrimeField};

#[test]
fn the_pages_sum_is_arkworks() {
    let text = include_str!("../../web/tests/bn254-sum.json");
    let expected: serde_json::Value = serde_json::from_str(text).unwrap();
    let count = expected["count"].as_u64().unwrap() as usize;
    // As `web/examples/bn254-sum.js` makes them.
    let multiples: Vec<G1Projective> =
        std::iter::successors(Some(G1Affine::generator().into_group()), |&sum| Some(sum + G1Affine::generator()))
            .take(count)
            .collect();
    let mut state = expected["seed"].as_u64().unwrap();
    let mut limb = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let scalars: Vec<Fr> = (0..count)
        .map(|_| Fr::from_le_bytes_mod_order(&(0..8).flat_map(|_| limb().to_le_bytes()).collect::<Vec<_>>()))
        .collect();
    let sum = G1Projective::msm(&G1Projective::normalize_batch(&multiples), &scalars).unwrap().into_affine();
    let hex = |number: ark_bn254::Fq| -> String {
        number.into_bigint().to_bytes_be().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!(
        (hex(sum.x).as_str(), hex(sum.y).as_str()),
        (expected["x"].as_str().unwrap(), expected["y"].as_str().unwrap())
    );
}
