//! Fields.

use cantus::zk::{
    BabyBear, Bls12381Fq, Bls12381Fr, Bn254Fq, Bn254Fr, Check, Field, FieldTensor, Goldilocks, KoalaBear, LimbForm,
    Mersenne31, PrimeField, force_form,
};
use cantus::{Engine, Error};

use super::{elements, engines, some_engines};

const COUNT: usize = 150;

/// Numbers by their bits, the least significant first: slow, and plainly right.
mod bits {
    /// Returns whether a is below b.
    fn below(a: &[u32], b: &[u32]) -> bool {
        a.iter().rev().lt(b.iter().rev())
    }

    fn minus(a: &mut [u32], b: &[u32]) {
        let mut borrow = false;
        for (a, &b) in a.iter_mut().zip(b) {
            let (x, first) = a.overflowing_sub(b);
            let (y, second) = x.overflowing_sub(u32::from(borrow));
            (*a, borrow) = (y, first || second);
        }
    }

    /// a + b modulo m, of numbers below m; a word more holds the carry.
    pub(super) fn sum(a: &[u32], b: &[u32], m: &[u32]) -> Vec<u32> {
        let mut carry = 0;
        let wide = |x: &[u32]| x.iter().copied().chain([0]).collect::<Vec<u32>>();
        let (mut sum, m) = (wide(a), wide(m));
        for (a, b) in sum.iter_mut().zip(wide(b)) {
            let x = u64::from(*a) + u64::from(b) + carry;
            *a = x as u32;
            carry = x >> 32;
        }
        if !below(&sum, &m) {
            minus(&mut sum, &m);
        }
        sum.pop();
        sum
    }

    /// a b modulo m, by doubling.
    pub(super) fn product(a: &[u32], b: &[u32], m: &[u32]) -> Vec<u32> {
        let mut result = vec![0; a.len()];
        for bit in (0..32 * b.len()).rev() {
            result = sum(&result, &result, m);
            if b[bit / 32] >> (bit % 32) & 1 == 1 {
                result = sum(&result, a, m);
            }
        }
        result
    }
}

fn host<F: PrimeField>() {
    let (x, mut y) = (elements::<F>(COUNT, 1), elements::<F>(COUNT, 2));
    y.rotate_left(COUNT / 3);
    let m = F::KIND.modulus();
    for (&x, &y) in x.iter().zip(&y) {
        let (a, b) = (x.to_limbs(), y.to_limbs());
        assert_eq!((x + y).to_limbs(), bits::sum(&a, &b, m), "{x:?} + {y:?} of {}", F::KIND);
        assert_eq!((x * y).to_limbs(), bits::product(&a, &b, m), "{x:?} {y:?} of {}", F::KIND);
        assert_eq!(x - y + y, x);
        assert_eq!(x + -x, F::ZERO);
        assert_eq!(F::from_limbs(&a), Some(x));
        assert_eq!(x.inverse().map_or(F::ONE, |inverse| inverse * x), F::ONE);
    }
    assert_eq!(F::from_limbs(m), None);
    let log = F::KIND.two_adicity();
    let root = F::root_of_unity(log).unwrap();
    assert_eq!((0..log - 1).fold(root, |root, _| root.square()), -F::ONE);
    assert_eq!(F::root_of_unity(log + 1), None);
}

#[test]
fn the_hosts_arithmetic_is_that_of_numbers() {
    host::<Bn254Fr>();
    host::<Bn254Fq>();
    host::<Bls12381Fr>();
    host::<Bls12381Fq>();
    host::<BabyBear>();
    host::<KoalaBear>();
    host::<Goldilocks>();
    host::<Mersenne31>();
}

fn device<F: PrimeField>(engine: &Engine, name: &str) {
    let (x, mut y) = (elements::<F>(COUNT, 3), elements::<F>(COUNT, 4));
    y.rotate_left(COUNT / 3);
    let (a, b) = (FieldTensor::from_elements(engine, &x).unwrap(), FieldTensor::from_elements(engine, &y).unwrap());
    let check = |what: &str, result: cantus::Result<FieldTensor<F>>, oracle: &dyn Fn(F, F) -> F| {
        let result = result.unwrap().to_vec().unwrap();
        for (place, ((&x, &y), result)) in x.iter().zip(&y).zip(result).enumerate() {
            assert_eq!(result, oracle(x, y), "{what} of {}, element {place} on {name}: {x:?}, {y:?}", F::KIND);
        }
    };
    check("add", a.add(&b), &|x, y| x + y);
    check("sub", a.sub(&b), &|x, y| x - y);
    check("mul", a.mul(&b), &|x, y| x * y);
    check("neg", a.neg(), &|x, _| -x);
    check("square", a.square(), &|x, _| x * x);
    check("pow", a.pow(&[0x1_0000_0005]), &|x, _| x.pow(&[0x1_0000_0005]));
    check("inverse", a.inverse(), &|x, _| x.inverse().unwrap_or(F::ZERO));
    let single = FieldTensor::from_elements(engine, &y[7..8]).unwrap();
    check("one less all", single.sub(&a), &|x, _| y[7] - x);
    // Of one stretch of a workgroup, of one element more, and of a stretch of stretches.
    for length in [1, COUNT, 1024, 1025, 3000] {
        let (x, y): (Vec<F>, Vec<F>) = x.iter().copied().cycle().zip(y.iter().copied().cycle()).take(length).unzip();
        let [a, b] = [&x, &y].map(|of| FieldTensor::from_elements(engine, of).unwrap());
        let sum = x.iter().fold(F::ZERO, |sum, &x| sum + x);
        assert_eq!(a.sum().unwrap().to_vec().unwrap(), [sum], "sum of {length} of {} on {name}", F::KIND);
        let dot = x.iter().zip(&y).fold(F::ZERO, |sum, (&x, &y)| sum + x * y);
        assert_eq!(a.dot(&b).unwrap().to_vec().unwrap(), [dot], "dot of {length} of {} on {name}", F::KIND);
    }
}

#[test]
fn fields_are_those_of_the_host_on_every_device() {
    type Test = fn(&Engine, &str);
    let fields: [Test; 7] = [
        device::<Bn254Fr>,
        device::<Bls12381Fr>,
        device::<Bls12381Fq>,
        device::<BabyBear>,
        device::<KoalaBear>,
        device::<Goldilocks>,
        device::<Mersenne31>,
    ];
    for (number, field) in fields.into_iter().enumerate() {
        for (name, engine) in some_engines(number) {
            field(&engine, &name);
        }
    }
}

#[test]
fn every_form_of_limbs_gives_the_same() {
    let engines = engines();
    let (name, executor) = engines.last().unwrap();
    for form in [12, 13, 14].map(|bits| LimbForm::Narrow { bits }).into_iter().chain([LimbForm::Wide]) {
        force_form(Some(form));
        device::<Bn254Fq>(executor, &format!("{name}, {form:?}"));
        device::<Bls12381Fq>(executor, &format!("{name}, {form:?}"));
        device::<KoalaBear>(executor, &format!("{name}, {form:?}"));
        force_form(None);
    }
}

#[test]
fn values_come_in_and_go_out_in_every_form() {
    let (_, engine) = engines().remove(0);
    // The last example of a sum in EIP-196's numbers: 1 and 2 as 32 bytes each.
    let mut bytes = vec![0; 64];
    (bytes[31], bytes[63]) = (1, 2);
    let x = FieldTensor::<Bn254Fq>::from_be_bytes(&engine, &bytes, Check::Strict).unwrap();
    assert_eq!(x.to_limbs().unwrap()[..9], [1, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(x.to_be_bytes().unwrap(), bytes);
    let again = FieldTensor::<Bn254Fq>::from_memory(&engine, &x.to_memory().unwrap(), Check::Strict).unwrap();
    assert_eq!(again.to_be_bytes().unwrap(), bytes);
}

#[test]
fn what_is_not_below_the_modulus_is_an_error_or_reduced() {
    let (_, engine) = engines().remove(0);
    let mut limbs = vec![5, 0, 0, 0, 0, 0, 0, 0];
    limbs.extend_from_slice(Bn254Fr::ONE.to_limbs().as_slice());
    limbs.extend_from_slice(Bn254Fr::KIND.modulus());
    let strict = FieldTensor::<Bn254Fr>::from_limbs(&engine, &limbs, Check::Strict).unwrap_err();
    assert!(matches!(&strict, Error::InvalidInput { what, .. } if what.contains("element 2")), "{strict}");
    let reduced = FieldTensor::<Bn254Fr>::from_limbs(&engine, &limbs, Check::Reduce).unwrap();
    assert_eq!(reduced.to_vec().unwrap()[2], Bn254Fr::ZERO);
    let memory = FieldTensor::<Goldilocks>::from_memory(&engine, &[1, u32::MAX], Check::Strict).unwrap_err();
    assert!(matches!(&memory, Error::InvalidInput { .. }), "{memory}");
    let ragged = FieldTensor::<Goldilocks>::from_limbs(&engine, &[1, 2, 3], Check::Strict).unwrap_err();
    assert!(matches!(&ragged, Error::Shape(_)), "{ragged}");
    let (two, three) = ([BabyBear::ONE; 2], [BabyBear::ONE; 3]);
    let of = |list: &[BabyBear]| FieldTensor::from_elements(&engine, list).unwrap();
    assert!(matches!(of(&two).add(&of(&three)), Err(Error::Shape(_))));
    assert!(matches!(of(&two).dot(&of(&three)), Err(Error::Shape(_))));
    assert!(of(&[]).mul(&of(&[])).unwrap().to_vec().unwrap().is_empty());
    assert_eq!(of(&[]).sum().unwrap().to_vec().unwrap(), [BabyBear::ZERO]);
}
