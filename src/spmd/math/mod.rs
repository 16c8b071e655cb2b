//! Placeholder: the standard library's functions behind the names that the executor uses.

/// An instruction set's marker.
pub trait Isa: Copy {
    /// Whether there is a fused multiply-add.
    const FMA: bool;
    /// `a * b + c`.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// No fused multiply-add.
#[derive(Clone, Copy)]
pub struct Baseline;
/// Fused multiply-add.
#[derive(Clone, Copy)]
pub struct Fma;

impl Isa for Baseline {
    const FMA: bool = false;
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}
impl Isa for Fma {
    const FMA: bool = true;
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

macro_rules! unary {
    ($($name:ident = $f:expr;)*) => {$(
        #[inline(always)]
        #[allow(missing_docs, reason = "placeholder")]
        pub fn $name<I: Isa>(x: f32) -> f32 { ($f)(x) }
    )*};
}
unary! {
    exp = f32::exp; exp2 = f32::exp2; log = f32::ln; log2 = f32::log2; asin = f32::asin; acos = f32::acos;
    atan = f32::atan; sinh = f32::sinh; cosh = f32::cosh; tanh = f32::tanh; asinh = f32::asinh; acosh = f32::acosh;
    atanh = f32::atanh; sqrt = f32::sqrt; inverse_sqrt = |x: f32| 1.0 / x.sqrt(); floor = f32::floor; ceil = f32::ceil;
    trunc = f32::trunc; round_even = f32::round_ties_even; fract = |x: f32| x - x.floor();
}

/// Placeholder.
#[inline(always)]
pub fn pow<I: Isa>(x: f32, y: f32) -> f32 {
    x.powf(y)
}
/// Placeholder.
#[inline(always)]
pub fn atan2<I: Isa>(y: f32, x: f32) -> f32 {
    y.atan2(x)
}
/// Placeholder.
pub fn round_f16(x: f32) -> f32 {
    half::f16::from_f32(x).to_f32()
}
/// Placeholder.
pub fn f32_to_f16(x: f32) -> u16 {
    half::f16::from_f32(x).to_bits()
}
/// Placeholder.
pub fn f16_to_f32(x: u16) -> f32 {
    half::f16::from_bits(x).to_f32()
}
macro_rules! lanes {
    ($($name:ident = $f:expr;)*) => {$(
        /// # Safety
        /// Both hold n lanes.
        #[inline(always)]
        pub unsafe fn $name<I: Isa>(dst: *mut f32, src: *const f32, n: usize) {
            for i in 0..n {
                // SAFETY: the caller's promise.
                unsafe { dst.add(i).write(($f)(src.add(i).read())) }
            }
        }
    )*};
}
lanes! { sin_lanes = f32::sin; cos_lanes = f32::cos; tan_lanes = f32::tan; }
