//! Functions of float64 and complex numbers, where the kernels have none. `elementwise` asks `by_host` while recording. The values are read to the host,
//! computed by all threads, and written back, so a program that must not wait on the device should cast first. Complex functions follow C99's annex G at
//! infinities and on cuts.

use std::sync::Arc;

use super::{C, Values, part_of, recorded};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::elementwise::{Binary, Unary};
use crate::ops::expr::chain;
use crate::ops::expr::node::{Node, Typed};
use crate::ops::expr::operation::Call;
use crate::ops::expr::shape::broadcast;
use crate::ops::expr::view::broadcast_to;
use crate::tensor::DType;
use cantus_base::threads;

/// The function of float64.
fn real(op: Unary) -> Option<fn(f64) -> f64> {
    Some(match op {
        Unary::Cbrt => f64::cbrt,
        Unary::Exp => f64::exp,
        Unary::Exp2 => f64::exp2,
        Unary::Expm1 => f64::exp_m1,
        Unary::Log => f64::ln,
        Unary::Log2 => f64::log2,
        Unary::Log10 => f64::log10,
        Unary::Log1p => f64::ln_1p,
        Unary::Sin => f64::sin,
        Unary::Cos => f64::cos,
        Unary::Tan => f64::tan,
        Unary::Asin => f64::asin,
        Unary::Acos => f64::acos,
        Unary::Atan => f64::atan,
        Unary::Sinh => f64::sinh,
        Unary::Cosh => f64::cosh,
        Unary::Asinh => asinh,
        Unary::Acosh => f64::acosh,
        Unary::Atanh => f64::atanh,
        Unary::Tanh => f64::tanh,
        Unary::Sigmoid => sigmoid,
        Unary::Silu => |x| x * sigmoid(x),
        Unary::Softplus => softplus,
        Unary::LogSigmoid => |x| -softplus(-x),
        Unary::GeluTanh => |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            x * sigmoid(2.0 * inner)
        },
        Unary::Angle => |x| 0.0_f64.atan2(x),
        _ => return None,
    })
}

/// Odd, with all digits near 0, and in range where the square is not.
fn asinh(x: f64) -> f64 {
    let magnitude = x.abs();
    let value = if magnitude < 1e8 {
        (magnitude + magnitude * magnitude / (1.0 + (magnitude * magnitude + 1.0).sqrt())).ln_1p()
    } else {
        magnitude.ln() + std::f64::consts::LN_2
    };
    value.copysign(x)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// i z.
fn turned(z: C) -> C {
    C::new(-z.im, z.re)
}

/// -i z.
fn turned_back(z: C) -> C {
    C::new(z.im, -z.re)
}

/// cosh z and sinh z (C99, annex G, for what is not finite).
fn hyperbolic(z: C) -> (C, C) {
    if z.im == 0.0 {
        let side = if z.re.is_nan() { z.im } else { z.im * 1.0_f64.copysign(z.re) };
        return (C::new(z.re.cosh(), side), C::new(z.re.sinh(), z.im));
    }
    if !z.im.is_finite() {
        let nan = f64::NAN;
        return match z.re {
            0.0 => (C::new(nan, 0.0), C::new(z.re, nan)),
            re if re.is_infinite() => (C::new(f64::INFINITY, nan), C::new(re, nan)),
            _ => (C::new(nan, nan), C::new(nan, nan)),
        };
    }
    let ((sin, cos), cosh, sinh) = (z.im.sin_cos(), z.re.cosh(), z.re.sinh());
    (C::new(cosh * cos, sinh * sin), C::new(sinh * cos, cosh * sin))
}

fn complex_exp(z: C) -> C {
    if z.im == 0.0 {
        return C::new(z.re.exp(), z.im);
    }
    if z.re == f64::NEG_INFINITY {
        let (sin, cos) = if z.im.is_finite() { z.im.sin_cos() } else { (0.0, 0.0) };
        return C::new(0.0 * cos, 0.0 * sin);
    }
    if z.re == f64::INFINITY && !z.im.is_finite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    let (scale, (sin, cos)) = (z.re.exp(), z.im.sin_cos());
    C::new(scale * cos, scale * sin)
}

fn complex_log(z: C) -> C {
    let magnitude = z.re.hypot(z.im);
    // Near 1 by what differs from it.
    let real = if magnitude > 0.5 && magnitude < 2.0 {
        let (large, small) = if z.re.abs() > z.im.abs() { (z.re.abs(), z.im) } else { (z.im.abs(), z.re) };
        0.5 * ((large - 1.0) * (large + 1.0) + small * small).ln_1p()
    } else {
        magnitude.ln()
    };
    C::new(real, z.im.atan2(z.re))
}

fn complex_log1p(z: C) -> C {
    let real = if z.re.abs() < 0.5 && z.im.abs() < 0.5 {
        0.5 * (z.re.mul_add(z.re + 2.0, z.im * z.im)).ln_1p()
    } else {
        (1.0 + z.re).hypot(z.im).ln()
    };
    C::new(real, z.im.atan2(1.0 + z.re))
}

fn complex_expm1(z: C) -> C {
    if z.im == 0.0 {
        // Of -0 it is 0.
        return C::new(z.re.exp_m1() + 0.0, z.im);
    }
    if !z.re.is_finite() || !z.im.is_finite() {
        return complex_exp(z) - 1.0;
    }
    let half = (z.im / 2.0).sin();
    let (sin, cos) = z.im.sin_cos();
    C::new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

fn complex_sqrt(z: C) -> C {
    if z.re == 0.0 && z.im == 0.0 {
        return C::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        return if z.re > 0.0 {
            C::new(z.re, if z.im.is_nan() { z.im } else { 0.0_f64.copysign(z.im) })
        } else {
            C::new(if z.im.is_nan() { z.im } else { 0.0 }, f64::INFINITY.copysign(z.im))
        };
    }
    // Halved where a sum would leave the range.
    let (scale, z) = if z.re.abs().max(z.im.abs()) > 1e300 { (2.0, z / 4.0) } else { (1.0, z) };
    let root = ((z.re.abs() + z.re.hypot(z.im)) / 2.0).sqrt() * scale;
    let other = z.im * scale * scale / (2.0 * root);
    if z.re >= 0.0 { C::new(root, other) } else { C::new(other.abs(), root.copysign(z.im)) }
}

fn complex_tanh(z: C) -> C {
    if z.re.is_infinite() {
        return C::new(1.0_f64.copysign(z.re), 0.0_f64.copysign(z.im));
    }
    if !z.im.is_finite() {
        return C::new(if z.re == 0.0 { z.re } else { f64::NAN }, f64::NAN);
    }
    if z.re.abs() > 22.0 {
        let (sin, cos) = z.im.sin_cos();
        return C::new(1.0_f64.copysign(z.re), 4.0 * sin * cos * (-2.0 * z.re.abs()).exp());
    }
    if z.im == 0.0 {
        return C::new(z.re.tanh(), z.im);
    }
    // Kahan, 1987.
    let t = z.im.tan();
    let beta = 1.0 + t * t;
    let s = z.re.sinh();
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return C::new(rho / s, 1.0 / t);
    }
    let below = 1.0 + beta * s * s;
    C::new(beta * rho * s / below, t / below)
}

/// Kahan's method: exact on the cuts, by the signs of zeros.
fn complex_asinh(z: C) -> C {
    let turned_value = complex_asin(turned(z));
    turned_back(turned_value)
}

fn complex_asin(z: C) -> C {
    if z.re.is_nan() || z.im.is_nan() || z.re.is_infinite() || z.im.is_infinite() {
        return turned_back_asinh_limits(z);
    }
    let (a, b) = (complex_sqrt(C::new(1.0 - z.re, -z.im)), complex_sqrt(C::new(1.0 + z.re, z.im)));
    let real = z.re.atan2((a * b).re);
    let imag = asinh((C::new(a.re, -a.im) * b).im);
    C::new(real, imag)
}

/// asin z = -i asinh(i z), for what is not finite (C99, annex G, of asinh).
fn turned_back_asinh_limits(z: C) -> C {
    // asinh of x + y i, with z turned.
    let (x, y) = (-z.im, z.re);
    let half = std::f64::consts::FRAC_PI_2;
    let quarter = std::f64::consts::FRAC_PI_4;
    let result = match (x, y) {
        (x, y) if x.is_infinite() && y.is_infinite() => C::new(x, quarter.copysign(y)),
        (x, y) if y.is_infinite() && !x.is_nan() => C::new(f64::INFINITY.copysign(x), half.copysign(y)),
        (x, y) if y.is_infinite() => C::new(f64::INFINITY, if x.is_nan() { f64::NAN } else { y }),
        (x, y) if x.is_infinite() && y.is_nan() => C::new(x, y),
        (x, y) if x.is_infinite() => C::new(x, 0.0_f64.copysign(y)),
        (x, y) if y == 0.0 && x.is_nan() => C::new(x, y),
        _ => C::new(f64::NAN, f64::NAN),
    };
    turned_back(result)
}

fn complex_acos(z: C) -> C {
    if !z.re.is_finite() || !z.im.is_finite() {
        let (x, y) = (z.re, z.im);
        let pi = std::f64::consts::PI;
        return match (x, y) {
            _ if x.is_infinite() && y.is_infinite() => C::new(if x > 0.0 { pi / 4.0 } else { 3.0 * pi / 4.0 }, -y),
            _ if y.is_infinite() && !x.is_nan() => C::new(pi / 2.0, -y),
            _ if y.is_infinite() => C::new(f64::NAN, -y),
            _ if x.is_infinite() && y.is_nan() => C::new(f64::NAN, f64::INFINITY),
            _ if x.is_infinite() => C::new(if x > 0.0 { 0.0 } else { pi }, -f64::INFINITY.copysign(y)),
            _ if x == 0.0 && y.is_nan() => C::new(pi / 2.0, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    let (a, b) = (complex_sqrt(C::new(1.0 - z.re, -z.im)), complex_sqrt(C::new(1.0 + z.re, z.im)));
    let real = 2.0 * a.re.atan2(b.re);
    let imag = asinh((C::new(b.re, -b.im) * a).im);
    C::new(real, imag)
}

fn complex_acosh(z: C) -> C {
    if !z.re.is_finite() || !z.im.is_finite() {
        // acosh z = ± i acos z, on the side of positive real parts.
        let angle = complex_acos(z);
        let (re, im) = (angle.im.abs(), if angle.re.is_nan() { f64::NAN } else { angle.re.copysign(z.im) });
        return C::new(re, im);
    }
    let (a, b) = (complex_sqrt(C::new(z.re - 1.0, z.im)), complex_sqrt(C::new(z.re + 1.0, z.im)));
    let real = asinh((C::new(a.re, -a.im) * b).re);
    let imag = 2.0 * a.im.atan2(b.re);
    C::new(real, imag)
}

fn complex_atanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    let half = std::f64::consts::FRAC_PI_2;
    if x.is_nan() || y.is_nan() {
        return match (x, y) {
            _ if y.is_infinite() => C::new(0.0_f64.copysign(x), half.copysign(y)),
            _ if x.is_infinite() => C::new(0.0_f64.copysign(x), f64::NAN),
            _ if x == 0.0 => C::new(x, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    if x.is_infinite() || y.is_infinite() || x.abs().max(y.abs()) > 1e150 {
        let real = if x.is_infinite() || y.is_infinite() {
            0.0
        } else {
            // 1 / z, whose square is out of range.
            (x.abs() / x.hypot(y)) / x.hypot(y)
        };
        return C::new(real.copysign(x), half.copysign(y));
    }
    if x.abs() == 1.0 && y == 0.0 {
        return C::new(f64::INFINITY.copysign(x), y);
    }
    let magnitude = x.abs();
    let real = 0.25 * (4.0 * magnitude / ((1.0 - magnitude) * (1.0 - magnitude) + y * y)).ln_1p();
    let imag = 0.5 * (2.0 * y).atan2((1.0 - magnitude) * (1.0 + magnitude) - y * y);
    C::new(real.copysign(x), imag)
}

/// The function of complex numbers.
fn complex(op: Unary) -> Option<fn(C) -> C> {
    Some(match op {
        Unary::Sqrt => complex_sqrt,
        Unary::Exp => complex_exp,
        Unary::Expm1 => complex_expm1,
        Unary::Log => complex_log,
        Unary::Log1p => complex_log1p,
        Unary::Log2 => |z| complex_log(z) / std::f64::consts::LN_2,
        Unary::Log10 => |z| complex_log(z) / std::f64::consts::LN_10,
        Unary::Sinh => |z| hyperbolic(z).1,
        Unary::Cosh => |z| hyperbolic(z).0,
        Unary::Tanh => complex_tanh,
        Unary::Sin => |z| turned_back(hyperbolic(turned(z)).1),
        Unary::Cos => |z| hyperbolic(turned(z)).0,
        Unary::Tan => |z| turned_back(complex_tanh(turned(z))),
        Unary::Asinh => complex_asinh,
        Unary::Asin => complex_asin,
        Unary::Acos => complex_acos,
        Unary::Acosh => complex_acosh,
        Unary::Atanh => complex_atanh,
        Unary::Atan => |z| turned_back(complex_atanh(turned(z))),
        Unary::Sign => |z| if z == C::from(0.0) { C::from(0.0) } else { z / z.re.hypot(z.im) },
        _ => return None,
    })
}

fn is_complex(dtype: DType) -> bool {
    matches!(dtype, DType::Complex64 | DType::Complex128)
}

/// Functions that the host has for dtypes which no kernel takes.
pub(in crate::ops) trait ByHost {
    /// Returns whether there is one for a dtype.
    fn by_host(self, dtype: DType) -> bool;
}

impl ByHost for Unary {
    fn by_host(self, dtype: DType) -> bool {
        match dtype {
            DType::F64 => real(self).is_some(),
            _ if self == Self::Angle => dtype == DType::Complex128,
            dtype => is_complex(dtype) && complex(self).is_some(),
        }
    }
}

impl ByHost for Binary {
    fn by_host(self, dtype: DType) -> bool {
        let whole = matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
        match self {
            Self::Pow => whole || dtype == DType::F64 || is_complex(dtype),
            _ => dtype == DType::F64 && real_pair(self).is_some(),
        }
    }
}

/// The function of each value, by all threads.
fn mapped<T: Copy + Send>(mut values: Vec<T>, of: fn(T) -> T) -> Vec<T> {
    /// Values of a task.
    const TASK: usize = 1 << 12;
    threads::each_chunk(&mut values, TASK, |_, part| part.iter_mut().for_each(|value| *value = of(*value)));
    values
}

/// The function, recorded.
pub(in crate::ops) fn unary(op: Unary, typed: &Arc<Typed>) -> Arc<Typed> {
    let shape = typed.shape.clone();
    let dtype = if op == Unary::Angle { part_of(typed.dtype) } else { typed.dtype };
    recorded(("function", vec![op as usize]), vec![typed.clone()], shape, dtype, move |inputs, _| {
        match inputs.into_iter().next() {
            Some(Values::Complexes(values)) if op == Unary::Angle => {
                Values::Reals(values.into_iter().map(|z| z.im.atan2(z.re)).collect())
            }
            Some(Values::Complexes(values)) => match complex(op) {
                Some(of) => Values::Complexes(mapped(values, of)),
                None => Values::Complexes(values),
            },
            Some(Values::Reals(values)) => match real(op) {
                Some(of) => Values::Reals(mapped(values, of)),
                None => Values::Reals(values),
            },
            other => other.unwrap_or(Values::Reals(Vec::new())),
        }
    })
}

/// Computes a function of float64 natively on the CPU, where chains have it, together with what it is a function of.
pub(super) async fn native(call: Call<'_>, key: &[usize], x: &Arc<Typed>) -> Result<Option<Tensor>> {
    let op = Unary::ALL.iter().find(|op| key == [**op as usize]);
    let Some(&op) = op.filter(|_| x.dtype == DType::F64 && call.engine.is_processors()) else { return Ok(None) };
    let x = call.slim(x).await?;
    let function = Typed::new(Node::Unary(op, x), call.of.shape.clone(), DType::F64);
    chain::computed(call.engine, &function).await
}

fn power(x: C, y: C) -> C {
    if y == C::from(0.0) {
        return C::from(1.0);
    }
    if x == C::from(0.0) {
        return if y.re > 0.0 && y.im == 0.0 { C::from(0.0) } else { C::new(f64::NAN, f64::NAN) };
    }
    // Small whole powers by multiplication, which is exact where the results are whole.
    if y.im == 0.0 && y.re.fract() == 0.0 && y.re.abs() <= 100.0 {
        let whole = x.powu(y.re.abs() as u32);
        return if y.re < 0.0 { C::from(1.0) / whole } else { whole };
    }
    complex_exp(y * complex_log(x))
}

fn log_add_exp(x: f64, y: f64) -> f64 {
    if x == y {
        return x + std::f64::consts::LN_2;
    }
    let (greater, rest) = (x.max(y), -(x - y).abs());
    if x.is_nan() || y.is_nan() { f64::NAN } else { greater + rest.exp().ln_1p() }
}

fn next_after(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) => y,
        Some(std::cmp::Ordering::Less) => x.next_up(),
        Some(std::cmp::Ordering::Greater) => x.next_down(),
    }
}

/// The function of two float64.
fn real_pair(op: Binary) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Binary::Pow => f64::powf,
        Binary::Atan2 => f64::atan2,
        Binary::Hypot => f64::hypot,
        Binary::NextAfter => next_after,
        Binary::LogAddExp => log_add_exp,
        Binary::Elu => |x, y| if x > 0.0 { x } else { y * x.exp_m1() },
        _ => return None,
    })
}

/// x^y of integers, which wraps.
fn whole_power(x: u64, y: u64) -> u64 {
    let (mut result, mut square, mut rest) = (1_u64, x, y);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

/// The same for signed ones: a negative power is 0, except of 1 and -1.
fn signed_power(x: i64, y: i64) -> i64 {
    match (x, u64::try_from(y)) {
        (_, Ok(y)) => whole_power(x.cast_unsigned(), y).cast_signed(),
        (1, _) => 1,
        (-1, _) if y % 2 == 0 => 1,
        (-1, _) => -1,
        _ => 0,
    }
}

/// The function of two, of one dtype, recorded; shapes broadcast.
pub(in crate::ops) fn binary(op: Binary, x: &Arc<Typed>, y: &Arc<Typed>) -> Result<Arc<Typed>> {
    let shape = broadcast(&x.shape, &y.shape)?;
    let inputs = [x, y].map(|side| broadcast_to(side, &shape)).to_vec();
    Ok(recorded(("function of two", vec![op as usize]), inputs, shape, x.dtype, move |inputs, _| {
        let mut inputs = inputs.into_iter();
        match (inputs.next(), inputs.next()) {
            (Some(Values::Complexes(x)), Some(Values::Complexes(y))) => {
                Values::Complexes(x.into_iter().zip(y).map(|(x, y)| power(x, y)).collect())
            }
            (Some(Values::Signed(x)), Some(Values::Signed(y))) => {
                Values::Signed(x.into_iter().zip(y).map(|(x, y)| signed_power(x, y)).collect())
            }
            (Some(Values::Unsigned(x)), Some(Values::Unsigned(y))) => {
                Values::Unsigned(x.into_iter().zip(y).map(|(x, y)| whole_power(x, y)).collect())
            }
            (Some(Values::Reals(x)), Some(Values::Reals(y))) => match real_pair(op) {
                Some(of) => Values::Reals(x.into_iter().zip(y).map(|(x, y)| of(x, y)).collect()),
                None => Values::Reals(x),
            },
            (x, _) => x.unwrap_or(Values::Reals(Vec::new())),
        }
    }))
}
