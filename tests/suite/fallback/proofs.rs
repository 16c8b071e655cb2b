//! Sums of multiples on a device that fails half-way: the right point or an error, never another point.

use std::sync::atomic::Ordering;

use cantus::zk::{
    Affine, Bn254Fr, Bn254G1, Check, Curve, Field, FieldTensor, PointTensor, Projective, multi_scalar_mul,
};
use cantus::{Fallback, Result};

use super::engine;
use super::faulty::{Fault, Kind, Place, Strike};

/// The sum, and whether the call number `after` came, and so failed.
fn sum(place: Place, kind: Kind, after: usize, fallback: Fallback) -> (Result<Affine<Bn254G1>>, bool) {
    let (engine, counts) = engine(Fault::At(Strike { place, kind, after, times: 1, late: false }), fallback);
    let g = Bn254G1::generator();
    let points = PointTensor::from_points(&engine, &[g, g, -g, g], Check::Trusted).unwrap();
    let scalars = FieldTensor::from_elements(&engine, &[5, 0, 9, 7].map(Bn254Fr::from_u64)).unwrap();
    engine.finish().unwrap();
    counts.armed.store(true, Ordering::SeqCst);
    let sum = multi_scalar_mul(&scalars, &points);
    (sum, counts.calls.load(Ordering::SeqCst) > after)
}

#[test]
fn a_device_that_fails_in_a_sum_of_multiples_gives_no_wrong_point() {
    // 5 - 9 + 7 = 3.
    let g = Bn254G1::generator();
    let expected = Projective::from(g).double().add_affine(g).to_affine();
    let ways = [
        (Place::Compile, Kind::Refused),
        (Place::Allocate, Kind::NoMemory),
        (Place::Submit, Kind::NoMemory),
        (Place::Submit, Kind::Lost),
        (Place::Read, Kind::Lost),
    ];
    for (place, kind) in ways {
        let mut struck_calls = 0;
        for after in [0, 1, 2, 4, 8] {
            let case = format!("{kind:?} at {place:?} {after}");
            let (result, struck) = sum(place, kind, after, Fallback::Always);
            struck_calls += usize::from(struck);
            match result {
                Ok(point) => assert_eq!(point, expected, "{case}"),
                Err(error) => assert!(struck && !error.to_string().is_empty(), "{case}: {error}"),
            }
            if !struck {
                break;
            }
            // Nothing takes over here; a single refused allocation may be tried again.
            match sum(place, kind, after, Fallback::Never) {
                (Ok(point), struck) => {
                    assert_eq!(point, expected, "{case}, without fallback");
                    assert!(!struck || place == Place::Allocate, "{case}, without fallback: no error");
                }
                (Err(_), struck) => assert!(struck, "{case}, without fallback"),
            }
        }
        assert!(struck_calls > 0, "{place:?} was never reached");
    }
}
