//! Transforms.

use cantus::zk::{BabyBear, Bls12381Fr, Bn254Fr, Field, FieldTensor, Goldilocks, KoalaBear, PrimeField};
use cantus::{Engine, Error};

use super::{elements, engines, some_engines};

/// A polynomial's value, by Horner's rule.
fn value<F: PrimeField>(coefficients: &[F], x: F) -> F {
    coefficients.iter().rev().fold(F::ZERO, |sum, &coefficient| sum * x + coefficient)
}

fn transforms<F: PrimeField>(engine: &Engine, name: &str) {
    let shift = F::from_u64(F::GENERATOR);
    for (rows, length) in [(1, 2), (3, 4), (2, 64), (1, 256)] {
        let log = usize::ilog2(length);
        let x = elements::<F>(rows * length, 1);
        let tensor = FieldTensor::from_shaped(engine, &x, &[rows, length]).unwrap();
        let root = F::root_of_unity(log).unwrap();
        for shift in [F::ONE, shift] {
            let expected: Vec<F> = x
                .chunks(length)
                .flat_map(|row| (0..length as u64).map(move |k| value(row, shift * root.pow(&[k]))))
                .collect();
            let values = tensor.coset_ntt(shift).unwrap();
            assert_eq!(values.to_vec().unwrap(), expected, "{rows} x {length} of {} on {name}", F::KIND);
            let back = values.inverse_coset_ntt(shift).unwrap();
            assert_eq!(back.to_vec().unwrap(), x, "back, {rows} x {length} of {} on {name}", F::KIND);
        }
    }
}

#[test]
fn transforms_are_values_of_polynomials_on_every_device() {
    for (name, engine) in engines() {
        transforms::<BabyBear>(&engine, &name);
    }
    for (name, engine) in some_engines(3) {
        transforms::<Goldilocks>(&engine, &name);
        transforms::<Bn254Fr>(&engine, &name);
    }
    let (name, engine) = engines().remove(0);
    transforms::<KoalaBear>(&engine, &name);
    transforms::<Bls12381Fr>(&engine, &name);
}

#[test]
fn large_transforms_come_back_and_multiply_polynomials() {
    let (_, engine) = engines().remove(0);
    let x = elements::<BabyBear>(1 << 15, 2);
    let tensor = FieldTensor::from_elements(&engine, &x).unwrap();
    let values = tensor.ntt().unwrap();
    let list = values.to_vec().unwrap();
    let root = BabyBear::root_of_unity(15).unwrap();
    for k in [0_u64, 1, 2, 5000, 16384, 32767] {
        assert_eq!(list[k as usize], value(&x, root.pow(&[k])));
    }
    assert_eq!(values.inverse_ntt().unwrap().to_vec().unwrap(), x);
}

#[test]
fn lengths_that_have_no_transform_are_errors() {
    let (_, engine) = engines().remove(0);
    let of = |count| FieldTensor::from_elements(&engine, &elements::<BabyBear>(count, 3)).unwrap();
    assert!(matches!(of(6).ntt(), Err(Error::Shape(_))));
    assert!(matches!(of(8).coset_ntt(Field::ZERO), Err(Error::InvalidInput { .. })));
    assert_eq!(of(1).ntt().unwrap().to_vec().unwrap().len(), 1);
}
