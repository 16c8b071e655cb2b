//! The judge of the conformance cases, on devices whose errors are known.

use cantus_verify::case::{Case, Values};
use cantus_verify::check::{Near, judge};

fn judged(near: Near, got: Values) -> Result<(), String> {
    let case = Case::each("judged", "0.0").write_near("out", near);
    judge(&case.bindings[0], 0, &[got], true)
}

#[test]
fn what_is_near_passes_and_nothing_else() {
    let within = |expected: &[f64], got: &[f32]| {
        judged(Near::absolute(expected.iter().copied(), 0.5), Values::F32(got.to_vec()))
    };
    assert_eq!(within(&[1.0, -2.0], &[1.5, -2.5]), Ok(()), "as far off as is allowed");
    let off = within(&[1.0, -2.0, 3.0], &[1.0, -2.6, 4.0]).unwrap_err();
    assert!(off.starts_with("out[1]: ") && off.contains("2 of 3"), "{off}");
    assert!(within(&[1.0], &[f32::NAN]).is_err() && within(&[1.0], &[f32::INFINITY]).is_err());
    assert_eq!(within(&[f64::NAN, f64::INFINITY], &[1.0, f32::NAN]), Ok(()), "nothing is expected of these");
    assert!(within(&[1.0, 2.0], &[1.0]).is_err(), "one is missing");
    assert!(judged(Near::absolute([1.0], 0.5), Values::I32(vec![1])).is_err(), "whole numbers");
}

/// A device may take a subnormal number for zero, and no normal one.
#[test]
fn subnormal_numbers_may_be_zero() {
    let within = |expected: f64, got: f32| judged(Near::ulp([expected], 1.0), Values::F32(vec![got]));
    assert_eq!(within(1e-39, 0.0), Ok(()));
    assert!(within(1.3e-38, 0.0).is_err());
    assert_eq!(within(1.0, 1.0 + f32::EPSILON), Ok(()));
    assert!(within(1.0, 1.0 + 2.0 * f32::EPSILON).is_err());
}
