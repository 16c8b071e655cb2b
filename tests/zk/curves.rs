//! Points and sums of multiples.

use std::sync::Arc;

use cantus::backend::Registry;
use cantus::backend::vulkan::{Emulation, VulkanBackend};
use cantus::zk::{
    Affine, Bls12381G1, Bls12381G2, Bn254G1, Bn254G2, Check, Coordinate, Curve, Field, FieldTensor, PointEncoding,
    PointTensor, Projective, multi_scalar_mul, multi_scalar_mul_rows,
};
use cantus::{Engine, Error, Fallback};

use super::{elements, engines, some_engines};

/// Multiples of the generator; every eighth is a special one.
fn points<C: Curve>(count: usize, seed: u64) -> Vec<Affine<C>> {
    let g = C::generator();
    let mut power = g.times(C::Scalar::from_u64(seed));
    let list: Vec<Projective<C>> = (0..count)
        .map(|_| {
            power = power.double().add_affine(g);
            power
        })
        .collect();
    let mut list = Projective::to_affines(&list);
    for place in (7..count).step_by(8) {
        list[place] = [Affine::INFINITY, list[place - 1], -list[place - 1], g][place / 8 % 4];
    }
    list
}

/// One by one, in Jacobian coordinates.
fn sum<C: Curve>(points: &[Affine<C>], scalars: &[C::Scalar]) -> Affine<C> {
    points
        .iter()
        .zip(scalars)
        .fold(Projective::INFINITY, |sum, (point, &scalar)| sum.add(point.times(scalar)))
        .to_affine()
}

fn point_by_point<C: Curve>(engine: &Engine, name: &str) {
    let (a, mut b) = (points::<C>(24, 3), points::<C>(24, 5));
    (b[0], b[1], b[7]) = (a[0], -a[1], a[7]);
    let tensor = |points: &[Affine<C>]| PointTensor::from_points(engine, points, Check::Trusted).unwrap();
    let (ta, tb) = (tensor(&a), tensor(&b));
    let each = |f: &dyn Fn(usize) -> Projective<C>| (0..24).map(|i| f(i).to_affine()).collect::<Vec<_>>();
    let of = |i: usize| Projective::from(a[i]);
    let name = format!("of {} on {name}", C::KIND.name());
    assert_eq!(ta.add(&tb).unwrap().to_vec().unwrap(), each(&|i| of(i).add_affine(b[i])), "add {name}");
    assert_eq!(ta.double().unwrap().to_vec().unwrap(), each(&|i| of(i).double()), "double {name}");
    assert_eq!(ta.neg().unwrap().to_vec().unwrap(), each(&|i| (-a[i]).into()), "neg {name}");
    let scalars = elements::<C::Scalar>(24, 6);
    let scaled = ta.scale(&FieldTensor::from_elements(engine, &scalars).unwrap()).unwrap();
    assert_eq!(scaled.to_vec().unwrap(), each(&|i| a[i].times(scalars[i])), "scale {name}");
}

#[test]
fn points_are_those_of_the_host() {
    for (name, engine) in some_engines(1) {
        point_by_point::<Bn254G1>(&engine, &name);
    }
    let (name, engine) = engines().remove(0);
    point_by_point::<Bls12381G1>(&engine, &name);
    point_by_point::<Bn254G2>(&engine, &name);
    point_by_point::<Bls12381G2>(&engine, &name);
}

fn sums<C: Curve>(engine: &Engine, name: &str, count: usize) {
    let check = |what: &str, points: &[Affine<C>], scalars: &[C::Scalar]| {
        let tensor = PointTensor::from_points(engine, points, Check::Trusted).unwrap();
        let scalar_tensor = FieldTensor::from_elements(engine, scalars).unwrap();
        let result = multi_scalar_mul(&scalar_tensor, &tensor).unwrap();
        assert_eq!(result, sum(points, scalars), "{what} of {} on {name}", C::KIND.name());
    };
    let (list, scalars) = (points::<C>(count, 7), elements::<C::Scalar>(count, 8));
    check("many", &list, &scalars);
    check("none", &[], &[]);
    check("one", &list[..1], &scalars[count - 1..]);
    check("one point and one scalar", &[list[0]; 70], &[scalars[count - 1]; 70]);
    check("zeros and infinity", &[Affine::INFINITY, list[0]], &[scalars[9], C::Scalar::ZERO]);
    let opposite: Vec<_> = list[..20].iter().flat_map(|&point| [point, -point]).collect();
    let twice: Vec<_> = scalars[20..40].iter().flat_map(|&scalar| [scalar, scalar]).collect();
    check("opposites", &opposite, &twice);
}

#[test]
fn sums_of_multiples_are_those_of_the_host() {
    for (name, engine) in some_engines(2) {
        sums::<Bn254G1>(&engine, &name, 120);
    }
    let (name, engine) = engines().remove(0);
    sums::<Bls12381G1>(&engine, &name, 120);
    sums::<Bls12381G2>(&engine, &name, 60);
    sums::<Bn254G2>(&engine, &name, 60);
}

#[test]
fn sums_are_linear_and_rows_are_sums() {
    let (_, engine) = engines().remove(0);
    let list = points::<Bn254G1>(3000, 9);
    let points = PointTensor::from_points(&engine, &list, Check::Strict).unwrap();
    let (a, b) = (elements(3000, 10), elements(3000, 11));
    let of = |list: &[_]| FieldTensor::from_elements(&engine, list).unwrap();
    let both = of(&a).add(&of(&b)).unwrap();
    let [x, y, z] = [of(&a), of(&b), both].map(|scalars| multi_scalar_mul(&scalars, &points).unwrap());
    assert_eq!(Projective::from(x).add_affine(y).to_affine(), z);
    let rows = FieldTensor::from_shaped(&engine, &[a, b].concat(), &[2, 3000]).unwrap();
    assert_eq!(multi_scalar_mul_rows(&rows, &points).unwrap(), [x, y]);
    let refused = multi_scalar_mul(&rows, &points).unwrap_err();
    assert!(matches!(&refused, Error::Shape(_)), "{refused}");
}

/// A device whose bindings hold a few thousand points: the rest is summed after them, all of it right.
#[test]
fn sums_of_more_points_than_a_binding_holds() {
    let emulation = Emulation { binding: Some(256 << 10), ..Default::default() };
    let mut registry = Registry::empty();
    registry.register(Arc::new(VulkanBackend::new().emulate(emulation)));
    let small = match Engine::builder().registry(registry).backend("vulkan").fallback(Fallback::Never).build() {
        Ok(small) => small,
        Err(error) => return kit::not_run("sums on a small device", &error.to_string()),
    };
    let (_, here) = engines().remove(0);
    fn on<C: Curve>(engine: &Engine, list: &[Affine<C>], scalars: &[C::Scalar]) -> Vec<Affine<C>> {
        let points = PointTensor::from_points(engine, list, Check::Trusted).unwrap();
        let rows = FieldTensor::from_shaped(engine, scalars, &[scalars.len() / list.len(), list.len()]).unwrap();
        multi_scalar_mul_rows(&rows, &points).unwrap()
    }
    let (list, scalars) = (points::<Bn254G1>(6000, 31), elements(12_000, 32));
    assert_eq!(on(&small, &list, &scalars), on(&here, &list, &scalars));
    let (list, scalars) = (points::<Bls12381G1>(3001, 33), elements(3001, 34));
    assert_eq!(on(&small, &list, &scalars), on(&here, &list, &scalars));
}

fn encodings<C: Curve>(seed: u64)
where
    C::Base: Coordinate,
{
    for point in points::<C>(24, seed) {
        for encoding in [PointEncoding::Eip, PointEncoding::Compressed] {
            let bytes = point.to_bytes(encoding);
            assert_eq!(Affine::from_bytes(&bytes, encoding), Ok(point), "{encoding:?} of {}", C::KIND.name());
            // Whatever is read has one form alone.
            for place in 0..bytes.len() {
                let mut other = bytes.clone();
                other[place] ^= 1 << (place % 8);
                if let Ok(read) = Affine::<C>::from_bytes(&other, encoding) {
                    assert_eq!(read.to_bytes(encoding), other);
                    assert_ne!(read, point);
                }
            }
        }
    }
}

#[test]
fn points_come_back_from_their_bytes() {
    encodings::<Bn254G1>(1);
    encodings::<Bls12381G1>(2);
    encodings::<Bn254G2>(3);
    encodings::<Bls12381G2>(4);
}

#[test]
fn points_off_the_curve_or_the_group_are_errors() {
    let (_, engine) = engines().remove(0);
    let mut wrong = [Bn254G1::generator(); 2];
    wrong[1].y = wrong[1].x;
    let refused = PointTensor::from_points(&engine, &wrong, Check::Strict).unwrap_err();
    assert!(matches!(&refused, Error::InvalidInput { what, .. } if what.contains("point 1")), "{refused}");
    // x = 4 is on BLS12-381, and all but one in 2^125 of its points are outside of the group.
    let mut x = <Bls12381G1 as Curve>::Base::from_u64(4);
    let outside: Affine<Bls12381G1> = loop {
        match (x.square() * x + Bls12381G1::b()).root() {
            Some(y) => break Affine { x, y },
            None => x += Field::ONE,
        }
    };
    assert!(outside.is_on_curve() && !outside.is_in_group());
    assert!(points::<Bls12381G1>(6, 12).iter().all(|point| point.is_in_group()));
    let refused = PointTensor::from_points(&engine, &[outside], Check::Strict).unwrap_err();
    assert!(matches!(&refused, Error::InvalidInput { reason, .. } if reason.contains("group")), "{refused}");
}
