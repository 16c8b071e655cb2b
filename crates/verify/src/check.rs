//! Comparison of what a device wrote with what the oracle expects.

use crate::case::{Binding, Values};

/// Judges the final contents of all bindings, in order.
pub type Judge = Box<dyn Fn(&[Values]) -> Result<(), String> + Send + Sync>;

/// The expected contents of a binding after the dispatch.
pub enum Expect {
    /// Not judged (inputs, scratch).
    Any,
    /// The same bits. Floats: the same value; +0 and -0 count as equal.
    Exact(Values),
    Near(Near),
    Check(Judge),
}

/// Floats that may be off by a stated amount each. An element whose expected value is not finite is not judged: WGSL
/// lets a device assume that there is no NaN and no infinity.
#[derive(Clone, Debug)]
pub struct Near {
    /// In words, for the message.
    pub kind: String,
    expected: Vec<f64>,
    allowed: Vec<f64>,
}

/// The distance between two neighbouring float32 at `x`.
pub fn ulp32(x: f64) -> f64 {
    ulp(x, -126, 23)
}

/// The distance between two neighbouring float16 at `x`.
pub fn ulp16(x: f64) -> f64 {
    ulp(x, -14, 10)
}

fn ulp(x: f64, min_exponent: i32, fraction_bits: i32) -> f64 {
    let exponent = if x == 0.0 { min_exponent } else { ((x.abs().to_bits() >> 52) as i32 - 1023).max(min_exponent) };
    2.0_f64.powi(exponent - fraction_bits)
}

impl Near {
    /// Within `n` units in the last place of float32.
    pub fn ulp(expected: impl IntoIterator<Item = f64>, n: f64) -> Self {
        Self::each(format!("{n} ULP"), expected.into_iter().map(|e| (e, n * ulp32(e))))
    }

    /// Within `n` units in the last place of float16.
    pub fn ulp16(expected: impl IntoIterator<Item = f64>, n: f64) -> Self {
        Self::each(format!("{n} ULP (f16)"), expected.into_iter().map(|e| (e, n * ulp16(e))))
    }

    pub fn absolute(expected: impl IntoIterator<Item = f64>, allowed: f64) -> Self {
        Self::each(format!("absolute {allowed:e}"), expected.into_iter().map(|e| (e, allowed)))
    }

    /// Pairs of expected value and allowed absolute error.
    pub fn each(kind: impl Into<String>, pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (expected, allowed) = pairs.into_iter().unzip();
        Self { kind: kind.into(), expected, allowed }
    }

    pub fn count(&self) -> usize {
        self.expected.len()
    }
}

/// The first element that differs, in words.
pub fn judge(binding: &Binding, index: usize, finals: &[Values], strict: bool) -> Result<(), String> {
    let got = &finals[index];
    let name = binding.identifier();
    if let Some(check) = binding.strict.as_ref().filter(|_| strict) {
        check(finals).map_err(|e| format!("{name}: {e}"))?;
    }
    match &binding.expect {
        Expect::Any => Ok(()),
        Expect::Check(check) => check(finals).map_err(|e| format!("{name}: {e}")),
        Expect::Exact(expected) => exact(expected, got).map_err(|e| format!("{name}{e}")),
        Expect::Near(near) => self::near(near, got).map_err(|e| format!("{name}{e}")),
    }
}

fn exact(expected: &Values, got: &Values) -> Result<(), String> {
    macro_rules! first {
        ($e:expr, $g:expr, $same:expr) => {{
            let (e, g) = ($e, $g);
            if e.len() != g.len() {
                return Err(format!(" has {} elements, expected {}", g.len(), e.len()));
            }
            let differing = (0..e.len()).filter(|&i| !$same(e[i], g[i])).count();
            match (0..e.len()).find(|&i| !$same(e[i], g[i])) {
                None => Ok(()),
                Some(i) => {
                    Err(format!("[{i}]: expected {:?}, got {:?} ({differing} of {} differ)", e[i], g[i], e.len()))
                }
            }
        }};
    }
    match (expected, got) {
        (Values::I16(e), Values::I16(g)) => first!(e, g, |a, b| a == b),
        (Values::U16(e), Values::U16(g)) => first!(e, g, |a, b| a == b),
        (Values::I32(e), Values::I32(g)) => first!(e, g, |a, b| a == b),
        (Values::U32(e), Values::U32(g)) => first!(e, g, |a, b| a == b),
        (Values::I64(e), Values::I64(g)) => first!(e, g, |a, b| a == b),
        (Values::U64(e), Values::U64(g)) => first!(e, g, |a, b| a == b),
        (Values::F16(e), Values::F16(g)) => first!(e, g, |a: half::f16, b: half::f16| a == b),
        (Values::F32(e), Values::F32(g)) => first!(e, g, |a: f32, b: f32| a == b),
        (Values::F64(e), Values::F64(g)) => first!(e, g, |a: f64, b: f64| a == b),
        _ => Err(format!(" is {}, expected {}", got.element(), expected.element())),
    }
}

fn near(near: &Near, got: &Values) -> Result<(), String> {
    // A device may flush subnormal numbers to zero, on the way in and on the way out.
    let (got, smallest): (Vec<f64>, f64) = match got {
        Values::F16(v) => (v.iter().map(|x| x.to_f64()).collect(), 2.0_f64.powi(-14)),
        Values::F32(v) => (v.iter().map(|&x| f64::from(x)).collect(), f64::from(f32::MIN_POSITIVE)),
        Values::F64(v) => (v.clone(), f64::MIN_POSITIVE),
        _ => return Err(format!(" is {}, expected floats", got.element())),
    };
    if got.len() != near.count() {
        return Err(format!(" has {} elements, expected {}", got.len(), near.count()));
    }
    let off = |i: usize| -> bool {
        let (e, mut allowed) = (near.expected[i], near.allowed[i]);
        if e.abs() <= smallest * 1.01 {
            allowed = allowed.max(smallest);
        }
        // Written so that a NaN from the device is off.
        e.is_finite() && !((got[i] - e).abs() <= allowed)
    };
    let differing = (0..got.len()).filter(|&i| off(i)).count();
    match (0..got.len()).find(|&i| off(i)) {
        None => Ok(()),
        Some(i) => Err(format!(
            "[{i}]: expected {:e} within {:e} ({}), got {:e} ({differing} of {} are off)",
            near.expected[i],
            near.allowed[i],
            near.kind,
            got[i],
            got.len()
        )),
    }
}
