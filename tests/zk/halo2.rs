//! Every device beside halo2curves, which shares no code with arkworks: fields, G1 and sums of multiples.

use cantus::Engine;
use cantus::zk::{
    Affine, Bls12381Fq, Bls12381Fr, Bls12381G1, Bn254Fq, Bn254Fr, Bn254G1, Check, Coordinate, Curve, FieldTensor,
    PointEncoding, PointTensor, PrimeField, multi_scalar_mul,
};
use halo2curves::ff::PrimeField as Theirs;
use halo2curves::group::{Curve as _, Group};
use halo2curves::{CurveAffine, bls12381, bn256};

use super::{elements, some_engines};

/// From bytes of which the least significant is the first.
fn element<T: Theirs>(bytes: impl IntoIterator<Item = u8>) -> T {
    let mut memory = T::Repr::default();
    memory.as_mut().iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    T::from_repr(memory).unwrap()
}

fn theirs<F: PrimeField, T: Theirs>(list: &[F]) -> Vec<T> {
    list.iter().map(|x| element(x.to_limbs().into_iter().flat_map(u32::to_le_bytes))).collect()
}

fn limbs<T: Theirs>(list: &[T]) -> Vec<u32> {
    let bytes: Vec<u8> = list.iter().flat_map(|x| x.to_repr().as_ref().to_vec()).collect();
    bytes.as_chunks().0.iter().map(|&limb| u32::from_le_bytes(limb)).collect()
}

fn arithmetic<F: PrimeField, T: Theirs>(engine: &Engine, name: &str) {
    let (x, mut y) = (elements::<F>(130, 51), elements::<F>(130, 52));
    y.rotate_left(41);
    let of = |list: &[F]| FieldTensor::from_elements(engine, list).unwrap();
    let ((a, b), (x, y)) = ((of(&x), of(&y)), (theirs::<F, T>(&x), theirs::<F, T>(&y)));
    let pairs = || x.iter().copied().zip(y.iter().copied());
    let check = |what: &str, ours: cantus::Result<FieldTensor<F>>, theirs: Vec<T>| {
        assert_eq!(ours.unwrap().to_limbs().unwrap(), limbs(&theirs), "{what} of {} on {name}", F::KIND);
    };
    check("add", a.add(&b), pairs().map(|(x, y)| x + y).collect());
    check("sub", a.sub(&b), pairs().map(|(x, y)| x - y).collect());
    check("mul", a.mul(&b), pairs().map(|(x, y)| x * y).collect());
    check("neg", a.neg(), x.iter().map(|x| -*x).collect());
    check("square", a.square(), x.iter().map(|x| x.square()).collect());
    check("pow", a.pow(&[7, 1 << 63]), x.iter().map(|x| x.pow_vartime([7, 1 << 63])).collect());
    check("inverse", a.inverse(), x.iter().map(|x| x.invert().unwrap_or(T::ZERO)).collect());
    check("dot", a.dot(&b), vec![pairs().map(|(x, y)| x * y).sum()]);
}

fn point<C: Curve, A: CurveAffine>(ours: &Affine<C>) -> A
where
    C::Base: Coordinate,
    A::Base: Theirs,
{
    let bytes = ours.to_bytes(PointEncoding::Eip);
    if bytes.iter().all(|&byte| byte == 0) {
        return A::identity();
    }
    let (x, y) = bytes.split_at(bytes.len() / 2);
    let [x, y] = [x, y].map(|bytes| element(bytes.iter().rev().copied()));
    A::from_xy(x, y).unwrap()
}

fn curve<C: Curve, A: CurveAffine<ScalarExt: Theirs, Base: Theirs>>(engine: &Engine, name: &str)
where
    C::Base: Coordinate,
{
    const COUNT: usize = 48;
    let name = format!("{} on {name}", C::KIND.name());
    let of = |list: &[Affine<C>]| PointTensor::from_points(engine, list, Check::Strict).unwrap();
    let generators = of(&[C::generator(); COUNT]);
    let check = |what: &str, ours: PointTensor<C>, expected: Vec<A::CurveExt>| {
        let ours: Vec<A> = ours.to_vec().unwrap().iter().map(point::<C, A>).collect();
        let expected: Vec<A> = expected.iter().map(|point| point.to_affine()).collect();
        assert_eq!(ours, expected, "{what} of {name}");
    };
    let some = |seed| {
        let scalars = elements::<C::Scalar>(COUNT, seed);
        let points = generators.scale(&FieldTensor::from_elements(engine, &scalars).unwrap()).unwrap();
        let multiples = theirs::<C::Scalar, A::ScalarExt>(&scalars).into_iter().map(|s| A::CurveExt::generator() * s);
        check("multiples of the generator", points.clone(), multiples.collect());
        points.to_vec().unwrap()
    };
    let (mut a, mut b) = (some(53), some(54));
    b.rotate_left(9);
    // P + P, P + (-P), and infinity on either side and on both.
    (b[3], b[4], b[5], a[6], a[7], b[7]) =
        (a[3], -a[4], Affine::INFINITY, Affine::INFINITY, Affine::INFINITY, Affine::INFINITY);
    let points = |list: &[Affine<C>]| list.iter().map(point::<C, A>).collect::<Vec<A>>();
    let ((ta, tb), (x, y)) = ((of(&a), of(&b)), (points(&a), points(&b)));
    check("add", ta.add(&tb).unwrap(), x.iter().zip(&y).map(|(&x, &y)| A::CurveExt::from(x) + y).collect());
    check("double", ta.double().unwrap(), x.iter().map(|&x| A::CurveExt::from(x).double()).collect());
    let mut scalars = elements::<C::Scalar>(COUNT, 55);
    scalars.rotate_left(13);
    for (points, scalars) in [
        (&a[..], &scalars[..]),
        (&[a[1]; COUNT], &scalars),
        (&b, &[scalars[20]; COUNT]),
        (&a[..2], &scalars[..2]),
        (&b[1..17], &scalars[16..32]),
    ] {
        let ours = multi_scalar_mul(&FieldTensor::from_elements(engine, scalars).unwrap(), &of(points)).unwrap();
        // Term by term: their own method of sums is one more that could be wrong.
        let terms = points.iter().map(point::<C, A>).zip(theirs::<C::Scalar, A::ScalarExt>(scalars));
        let expected = terms.fold(A::CurveExt::identity(), |sum, (point, scalar)| sum + point * scalar);
        assert_eq!(point::<C, A>(&ours), expected.to_affine(), "sum of {} multiples of {name}", points.len());
    }
}

#[test]
fn fields_and_points_are_halo2s() {
    for (name, engine) in some_engines(12) {
        arithmetic::<Bn254Fr, bn256::Fr>(&engine, &name);
        arithmetic::<Bn254Fq, bn256::Fq>(&engine, &name);
        curve::<Bn254G1, bn256::G1Affine>(&engine, &name);
    }
    for (name, engine) in some_engines(13) {
        arithmetic::<Bls12381Fr, bls12381::Fr>(&engine, &name);
        arithmetic::<Bls12381Fq, bls12381::Fq>(&engine, &name);
        curve::<Bls12381G1, bls12381::G1Affine>(&engine, &name);
    }
}
