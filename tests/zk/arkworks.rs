//! Every device beside arkworks: fields, G1, sums of multiples and transforms.

use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInteger, PrimeField as Theirs, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use cantus::Engine;
use cantus::zk::{
    Affine, Bls12381Fq, Bls12381Fr, Bls12381G1, Bn254Fq, Bn254Fr, Bn254G1, Check, Coordinate, Curve, Field,
    FieldTensor, PointEncoding, PointTensor, PrimeField, multi_scalar_mul,
};

use super::{elements, some_engines};

fn element<F: PrimeField, T: Theirs>(ours: F) -> T {
    let bytes: Vec<u8> = ours.to_limbs().iter().flat_map(|limb| limb.to_le_bytes()).collect();
    T::from_le_bytes_mod_order(&bytes)
}

fn limbs<T: Theirs>(theirs: &[T]) -> Vec<u32> {
    let bytes: Vec<u8> = theirs.iter().flat_map(|x| x.into_bigint().to_bytes_le()).collect();
    bytes.chunks_exact(4).map(|limb| u32::from_le_bytes(limb.try_into().unwrap())).collect()
}

/// By the coordinates, which the EIPs write in halves of equal length; infinity is all zeros.
fn point<C: Curve, A>(ours: Affine<C>) -> A
where
    C::Base: Coordinate,
    A: AffineRepr + FromCoordinates<Base = <A as AffineRepr>::BaseField>,
    <A as AffineRepr>::BaseField: Theirs,
{
    let bytes = ours.to_bytes(PointEncoding::Eip);
    let (x, y) = bytes.split_at(bytes.len() / 2);
    if bytes.iter().all(|&byte| byte == 0) {
        return A::zero();
    }
    let [x, y] = [x, y].map(<A as AffineRepr>::BaseField::from_be_bytes_mod_order);
    A::of(x, y)
}

/// A point of theirs from its coordinates, which their traits leave to each curve.
trait FromCoordinates {
    type Base;
    fn of(x: Self::Base, y: Self::Base) -> Self;
}

impl<P: ark_ec::short_weierstrass::SWCurveConfig> FromCoordinates for ark_ec::short_weierstrass::Affine<P> {
    type Base = P::BaseField;
    fn of(x: Self::Base, y: Self::Base) -> Self {
        Self::new_unchecked(x, y)
    }
}

fn arithmetic<F: PrimeField, T: Theirs>(engine: &Engine, name: &str) {
    let (x, mut y) = (elements::<F>(150, 21), elements::<F>(150, 22));
    y.rotate_left(50);
    let of = |list: &[F]| FieldTensor::from_elements(engine, list).unwrap();
    let theirs = |list: &[F]| list.iter().map(|&x| element(x)).collect::<Vec<T>>();
    let ((a, b), (x, y)) = ((of(&x), of(&y)), (theirs(&x), theirs(&y)));
    let pairs = || x.iter().zip(&y);
    let check = |what: &str, ours: cantus::Result<FieldTensor<F>>, theirs: Vec<T>| {
        assert_eq!(ours.unwrap().to_limbs().unwrap(), limbs(&theirs), "{what} of {} on {name}", F::KIND);
    };
    check("add", a.add(&b), pairs().map(|(&x, &y)| x + y).collect());
    check("sub", a.sub(&b), pairs().map(|(&x, &y)| x - y).collect());
    check("mul", a.mul(&b), pairs().map(|(&x, &y)| x * y).collect());
    check("neg", a.neg(), x.iter().map(|&x| -x).collect());
    check("square", a.square(), x.iter().map(|x| x.square()).collect());
    check("pow", a.pow(&[u64::MAX, 5]), x.iter().map(|x| x.pow([u64::MAX, 5])).collect());
    check("inverse", a.inverse(), x.iter().map(|x| x.inverse().unwrap_or(T::zero())).collect());
    check("sum", a.sum(), vec![x.iter().sum()]);
    check("dot", a.dot(&b), vec![pairs().map(|(&x, &y)| x * y).sum()]);
}

fn transforms<F: PrimeField, T: Theirs>(engine: &Engine, name: &str) {
    let x: Vec<T> = elements::<F>(128, 21).into_iter().map(element).collect();
    let of = |list: &[T]| FieldTensor::<F>::from_limbs(engine, &limbs(list), Check::Strict).unwrap();
    let check = |what: &str, ours: cantus::Result<FieldTensor<F>>, theirs: Vec<T>| {
        assert_eq!(ours.unwrap().to_limbs().unwrap(), limbs(&theirs), "{what} of {} on {name}", F::KIND);
    };
    let domain = Radix2EvaluationDomain::<T>::new(128).unwrap();
    let root = F::root_of_unity(7).unwrap();
    // Each side chose a root of unity; ours is theirs to an odd power e, so value k of ours is value k e of theirs.
    let e = (1..128).step_by(2).find(|&e| domain.group_gen.pow([e]) == element(root)).unwrap();
    let ordered = |values: Vec<T>| (0..128).map(|k| values[k * e as usize % 128]).collect::<Vec<T>>();
    let values = ordered(domain.fft(&x));
    check("ntt", of(&x).ntt(), values.clone());
    check("inverse ntt", of(&values).inverse_ntt(), x.clone());
    let shift = F::from_u64(7);
    let values = ordered(domain.get_coset(element(shift)).unwrap().fft(&x));
    check("coset ntt", of(&x).coset_ntt(shift), values.clone());
    check("inverse coset ntt", of(&values).inverse_coset_ntt(shift), x);
}

fn multiples<C: Curve>(engine: &Engine, name: &str, count: usize) -> (Vec<Affine<C>>, Vec<Affine<C>>)
where
    C::Base: Coordinate,
{
    let g = PointTensor::from_points(engine, &vec![C::generator(); count], Check::Trusted).unwrap();
    let some = |seed| {
        let scalars = FieldTensor::from_elements(engine, &elements::<C::Scalar>(count, seed)).unwrap();
        g.scale(&scalars).unwrap_or_else(|error| panic!("{name}: {error}")).to_vec().unwrap()
    };
    (some(23), some(24))
}

fn curve<C: Curve, A>(engine: &Engine, name: &str)
where
    C::Base: Coordinate,
    A: AffineRepr + FromCoordinates<Base = <A as AffineRepr>::BaseField>,
    <A as AffineRepr>::BaseField: Theirs,
    A::Group: VariableBaseMSM<MulBase = A, ScalarField = A::ScalarField>,
{
    const COUNT: usize = 40;
    let name = format!("{} on {name}", C::KIND.name());
    let (a, mut b) = multiples::<C>(engine, &name, COUNT);
    b.rotate_left(7);
    // P + P, P + (-P), and infinity on either side and on both.
    (b[3], b[4], b[5]) = (a[3], -a[4], Affine::INFINITY);
    let mut a = a;
    (a[6], a[7], b[7]) = (Affine::INFINITY, Affine::INFINITY, Affine::INFINITY);
    let theirs = |list: &[Affine<C>]| list.iter().map(|&p| point::<C, A>(p)).collect::<Vec<A>>();
    let (x, y) = (theirs(&a), theirs(&b));
    assert_eq!(point::<C, A>(C::generator()), A::generator(), "generator of {name}");
    let of = |list: &[Affine<C>]| PointTensor::from_points(engine, list, Check::Strict).unwrap();
    let (ta, tb) = (of(&a), of(&b));
    let check = |what: &str, ours: PointTensor<C>, expected: Vec<A>| {
        assert_eq!(theirs(&ours.to_vec().unwrap()), expected, "{what} of {name}");
    };
    let affine = |p: A::Group| p.into_affine();
    check("add", ta.add(&tb).unwrap(), x.iter().zip(&y).map(|(&x, &y)| affine(x.into_group() + y)).collect());
    check("double", ta.double().unwrap(), x.iter().map(|&x| affine(x.into_group() + x)).collect());
    check("neg", ta.neg().unwrap(), x.iter().map(|&x| affine(-x.into_group())).collect());
    let mut scalars = elements::<C::Scalar>(COUNT, 25);
    scalars.rotate_left(11);
    let multipliers: Vec<A::ScalarField> = scalars.iter().map(|&s| element(s)).collect();
    let tensor = FieldTensor::from_elements(engine, &scalars).unwrap();
    let scaled = ta.scale(&tensor).unwrap();
    check("scale", scaled, x.iter().zip(&multipliers).map(|(&x, s)| affine(x.into_group() * *s)).collect());
    let sum = |what: &str, points: &[Affine<C>], scalars: &[C::Scalar]| {
        let tensor = FieldTensor::from_elements(engine, scalars).unwrap();
        let ours = point::<C, A>(multi_scalar_mul(&tensor, &of(points)).unwrap());
        let multipliers: Vec<A::ScalarField> = scalars.iter().map(|&s| element(s)).collect();
        let expected = A::Group::msm(&theirs(points), &multipliers).unwrap();
        assert_eq!(ours, affine(expected), "sum of multiples, {what}, of {name}");
        expected.is_zero()
    };
    assert!(!sum("many", &a, &scalars));
    sum("one point all over", &[a[0]; COUNT], &scalars);
    sum("one scalar all over", &b, &[scalars[3]; COUNT]);
    let opposite: Vec<_> = a[..20].iter().flat_map(|&point| [point, -point]).collect();
    let twice: Vec<_> = scalars[..20].iter().flat_map(|&scalar| [scalar, scalar]).collect();
    assert!(sum("opposite points", &opposite, &twice));
    let skewed: Vec<_> = (0..COUNT).map(|i| if i == 7 { -C::Scalar::ONE } else { C::Scalar::from_u64(1) }).collect();
    sum("scalars of which one is large", &a, &skewed);
    sum("one", &a[..1], &scalars[..1]);
}

#[test]
fn fields_and_transforms_are_arkworks() {
    for (name, engine) in some_engines(6) {
        arithmetic::<Bn254Fr, ark_bn254::Fr>(&engine, &name);
        transforms::<Bn254Fr, ark_bn254::Fr>(&engine, &name);
        arithmetic::<Bn254Fq, ark_bn254::Fq>(&engine, &name);
    }
    for (name, engine) in some_engines(7) {
        arithmetic::<Bls12381Fr, ark_bls12_381::Fr>(&engine, &name);
        transforms::<Bls12381Fr, ark_bls12_381::Fr>(&engine, &name);
        arithmetic::<Bls12381Fq, ark_bls12_381::Fq>(&engine, &name);
    }
}

#[test]
fn points_and_sums_of_multiples_are_arkworks() {
    for (name, engine) in some_engines(8) {
        curve::<Bn254G1, ark_bn254::G1Affine>(&engine, &name);
    }
    for (name, engine) in some_engines(9) {
        curve::<Bls12381G1, ark_bls12_381::G1Affine>(&engine, &name);
    }
}
