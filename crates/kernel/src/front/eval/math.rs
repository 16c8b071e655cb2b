//! Functions of float64 that std lacks.

/// `value * 2^exponent`, rounded once at most.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    let mut value = value;
    let mut left = exponent.clamp(-4000, 4000);
    while left > 1000 {
        value *= 2.0_f64.powi(1000);
        left -= 1000;
    }
    // Downwards the last step alone may round: bring the value near one first.
    let (fraction, own) = split(value);
    if fraction == 0.0 || !value.is_finite() {
        return value;
    }
    let total = own + left;
    if total > 1024 {
        return fraction * f64::INFINITY;
    }
    if total >= -1021 {
        return fraction * 2.0_f64.powi(1) * 2.0_f64.powi(total - 1);
    }
    fraction * 2.0_f64.powi(-1000) * 2.0_f64.powi((total + 1000).max(-1074))
}

/// Fraction in [0.5, 1) and exponent, as `frexp` has them.
pub(super) fn split(value: f64) -> (f64, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let (value, bias) = if value.abs() < f64::MIN_POSITIVE { (value * 2.0_f64.powi(54), -54) } else { (value, 0) };
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1022;
    (f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52)), exponent + bias)
}

/// Rounds halves to even.
pub(super) fn round(value: f64) -> f64 {
    value.round_ties_even()
}

pub(super) fn atanh(value: f64) -> f64 {
    0.5 * (value.ln_1p() - (-value).ln_1p())
}

/// The value from which only the square under the root matters, which would overflow.
const LARGE: f64 = 1e100;

pub(super) fn asinh(value: f64) -> f64 {
    let size = value.abs();
    if size > LARGE { (size.ln() + std::f64::consts::LN_2).copysign(value) } else { value.asinh() }
}

pub(super) fn acosh(value: f64) -> f64 {
    if value > LARGE { value.ln() + std::f64::consts::LN_2 } else { value.acosh() }
}

pub(super) fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        value
    }
}
