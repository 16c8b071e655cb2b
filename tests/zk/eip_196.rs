//! BN254's precompiles (EIP-196): sums and multiples that revm's tests hold Ethereum's clients to (MIT), all vectors of the clients where they
//! are, and the rules for inputs of other lengths and for bytes that are not a point.

use cantus::zk::{Affine, Bn254Fr, Bn254G1, Check, FieldTensor, PointEncoding, PointTensor, multi_scalar_mul};
use cantus::{Engine, Result};

use super::vectors::{bytes, rows};
use super::{engines, some_engines};

/// A precompile's input: zeros follow where it is too short, and it is cut where it is too long.
fn padded(input: &[u8], length: usize) -> Vec<u8> {
    input.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
}

fn point(engine: &Engine, bytes: &[u8]) -> Result<PointTensor<Bn254G1>> {
    PointTensor::from_bytes(engine, bytes, PointEncoding::Eip, Check::Strict)
}

fn sum(engine: &Engine, input: &[u8]) -> Result<Vec<u8>> {
    let input = padded(input, 128);
    let sum = point(engine, &input[..64])?.add(&point(engine, &input[64..])?)?;
    Ok(sum.to_vec()?[0].to_bytes(PointEncoding::Eip))
}

/// A multiple by any 32 bytes, by both ways to it.
fn multiple(engine: &Engine, input: &[u8]) -> Result<Vec<u8>> {
    let input = padded(input, 96);
    let point = point(engine, &input[..64])?;
    let scalar = FieldTensor::<Bn254Fr>::from_be_bytes(engine, &input[64..], Check::Reduce)?;
    let scaled: Affine<Bn254G1> = point.scale(&scalar)?.to_vec()?[0];
    assert_eq!(scaled, multi_scalar_mul(&scalar, &point)?);
    Ok(scaled.to_bytes(PointEncoding::Eip))
}

const A: &str = "18b18acfb4c2c30276db5411368e7185b311dd124691610c5d3b74034e093dc9\
                 063c909c4720840cb5134cb9f59fa749755796819658d32efc0d288198f37266";
const B: &str = "07c2b7f58a84bd6145f00c9c2bc0bb1a187f20ff2c92963a88019e7c6a014eed\
                 06614e20c147e940f2d70da3f74c9a17df361706a4485c742bd6788478fa17d7";
const A_AND_B: &str = "2243525c5efd4b9c3d3c45ac0ca3fe4dd85e830a4ce6b65fa1eeaee202839703\
                       301d1d33be6da8e509df21cc35964723180eed7532537db9ae5e7d48f195c915";
const C: &str = "2bd3e6d0f3b142924f5ca7b49ce5b9d54c4703d7ae5648e61d02268b1a0a9fb7\
                 21611ce0a6af85915e2f1d70300909ce2e49dfad4a4619c8390cae66cefdb204";
const SCALAR: &str = "00000000000000000000000000000000000000000000000011138ce750fa15c2";
const MULTIPLE_OF_C: &str = "070a8d6a982153cae4be29d434e8faef8a47b274a053f5a4ee2a6c9c13c31e5c\
                             031b8ce914eba3a9ffb989f9cdd5b0f01943074bf4f0f315690ec3cec6981afc";
const ORDER: &str = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001";
const MODULUS: &str = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47";

#[test]
fn sums_and_multiples_of_the_precompiles() {
    let zeros = "00".repeat(64);
    let sums = [
        ([A, B].concat(), A_AND_B),
        ([B, A].concat(), A_AND_B),
        ([A, &zeros].concat(), A),
        ([&zeros, B].concat(), B),
        (A.to_owned(), A),
        (String::new(), &zeros),
        ([A, B, &zeros, "ff"].concat(), A_AND_B),
    ];
    let [one, max] = [format!("{:064x}", 1), "ff".repeat(32)];
    let multiples = [
        ([C, SCALAR].concat(), MULTIPLE_OF_C),
        ([C, SCALAR, "ff"].concat(), MULTIPLE_OF_C),
        ([C, &one].concat(), C),
        ([C, ORDER].concat(), &zeros),
        (C.to_owned(), &zeros),
        (String::new(), &zeros),
        ([zeros.as_str(), &max].concat(), &zeros),
    ];
    let off_the_curve = "11".repeat(64);
    let not_reduced = [MODULUS, &format!("{:064x}", 0)].concat();
    for (name, engine) in some_engines(14) {
        for (input, expected) in &sums {
            assert_eq!(sum(&engine, &bytes(input)).unwrap(), bytes(expected), "sum of {input} on {name}");
        }
        for (input, expected) in &multiples {
            assert_eq!(multiple(&engine, &bytes(input)).unwrap(), bytes(expected), "multiple of {input} on {name}");
        }
        for wrong in [&off_the_curve, &not_reduced] {
            assert!(sum(&engine, &bytes(wrong)).is_err(), "{wrong} on {name}");
            assert!(sum(&engine, &bytes(&[A, wrong].concat())).is_err(), "{wrong} on {name}");
            assert!(multiple(&engine, &bytes(wrong)).is_err(), "{wrong} on {name}");
        }
    }
}

#[test]
fn vectors_of_eip_196() {
    let (_, engine) = engines().remove(0);
    type Precompile<'a> = &'a dyn Fn(&Engine, &[u8]) -> Result<Vec<u8>>;
    let check = |file: &str, compute: Precompile<'_>| {
        for (name, input, expected) in rows("eip-196", file).into_iter().flatten() {
            assert_eq!(compute(&engine, &input).ok(), expected, "{name} of {file}");
        }
    };
    check("bn256Add.json", &sum);
    check("bn256ScalarMul.json", &multiple);
}
