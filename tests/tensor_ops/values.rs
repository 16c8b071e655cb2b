//! Elements of any dtype as float64 or as whole numbers, to tensors and back.

use cantus::num_complex::Complex;
use cantus::{DType, Element, Engine, Tensor};
use half::{bf16, f16};
use kit::turn::{everything, turn};

/// One element, exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// Of bools and integers.
    Whole(i128),
    Float(f64),
    Complex(f64, f64),
}

impl Value {
    /// As the dtype holds it: integers wrap, floats are rounded.
    pub(crate) fn held(self, dtype: DType) -> Self {
        let rounded = |x: f64, dtype: DType| match dtype {
            DType::BF16 => bf16::from_f32(x as f32).to_f64(),
            DType::F16 => f16::from_f32(x as f32).to_f64(),
            DType::F32 | DType::Complex64 => f64::from(x as f32),
            _ => x,
        };
        match (self, dtype) {
            (Self::Whole(x), DType::Bool) => Self::Whole(i128::from(x != 0)),
            (Self::Whole(x), _) => Self::Whole(match dtype {
                DType::I8 => (x as i8).into(),
                DType::U8 => (x as u8).into(),
                DType::I16 => (x as i16).into(),
                DType::U16 => (x as u16).into(),
                DType::I32 => (x as i32).into(),
                DType::U32 => (x as u32).into(),
                DType::I64 => (x as i64).into(),
                _ => (x as u64).into(),
            }),
            (Self::Float(x), _) => Self::Float(rounded(x, dtype)),
            (Self::Complex(re, im), _) => Self::Complex(rounded(re, dtype), rounded(im, dtype)),
        }
    }

    /// The number, or its real part.
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Whole(x) => x as f64,
            Self::Float(x) | Self::Complex(x, _) => x,
        }
    }

    pub(crate) fn complex(self) -> Complex<f64> {
        match self {
            Self::Complex(re, im) => Complex::new(re, im),
            other => Complex::new(other.real(), 0.0),
        }
    }

    pub(crate) fn whole(self) -> i128 {
        match self {
            Self::Whole(x) => x,
            other => panic!("{other:?} is no integer"),
        }
    }
}

/// A Rust type's elements, one way and the other.
pub(crate) trait Held: Element {
    fn value(self) -> Value;
    fn of(value: Value) -> Self;
}

macro_rules! whole {
    ($($ty:ty),*) => {$(impl Held for $ty {
        fn value(self) -> Value { Value::Whole(self.into()) }
        fn of(value: Value) -> Self { value.whole() as $ty }
    })*};
}
whole!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! float {
    ($($ty:ty: $of:expr),*) => {$(impl Held for $ty {
        fn value(self) -> Value { Value::Float(self.into()) }
        fn of(value: Value) -> Self { $of(value.real()) }
    })*};
}
float!(bf16: |x| bf16::from_f32(x as f32), f16: |x| f16::from_f32(x as f32), f32: |x| x as f32, f64: |x| x);

impl Held for bool {
    fn value(self) -> Value {
        Value::Whole(self.into())
    }
    fn of(value: Value) -> Self {
        value.whole() != 0
    }
}

impl Held for Complex<f32> {
    fn value(self) -> Value {
        Value::Complex(self.re.into(), self.im.into())
    }
    fn of(value: Value) -> Self {
        let z = value.complex();
        Self::new(z.re as f32, z.im as f32)
    }
}

impl Held for Complex<f64> {
    fn value(self) -> Value {
        Value::Complex(self.re, self.im)
    }
    fn of(value: Value) -> Self {
        value.complex()
    }
}

/// Repeats code for the Rust type of a dtype known at run time.
#[macro_export]
macro_rules! by_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            cantus::DType::Bool => {
                type $T = bool;
                $body
            }
            cantus::DType::I8 => {
                type $T = i8;
                $body
            }
            cantus::DType::U8 => {
                type $T = u8;
                $body
            }
            cantus::DType::I16 => {
                type $T = i16;
                $body
            }
            cantus::DType::U16 => {
                type $T = u16;
                $body
            }
            cantus::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            cantus::DType::F16 => {
                type $T = half::f16;
                $body
            }
            cantus::DType::F32 => {
                type $T = f32;
                $body
            }
            cantus::DType::F64 => {
                type $T = f64;
                $body
            }
            cantus::DType::I32 => {
                type $T = i32;
                $body
            }
            cantus::DType::U32 => {
                type $T = u32;
                $body
            }
            cantus::DType::I64 => {
                type $T = i64;
                $body
            }
            cantus::DType::U64 => {
                type $T = u64;
                $body
            }
            cantus::DType::Complex64 => {
                type $T = cantus::num_complex::Complex<f32>;
                $body
            }
            cantus::DType::Complex128 => {
                type $T = cantus::num_complex::Complex<f64>;
                $body
            }
        }
    };
}

pub(crate) fn tensor_of(engine: &Engine, dtype: DType, values: &[Value], shape: &[usize]) -> Tensor {
    by_dtype!(dtype, T => {
        let values: Vec<T> = values.iter().map(|&value| <T as Held>::of(value)).collect();
        engine.tensor_from(&values, shape).unwrap()
    })
}

pub(crate) fn values_of(tensor: &Tensor) -> Vec<Value> {
    by_dtype!(tensor.dtype(), T => tensor.to_vec::<T>().unwrap().into_iter().map(Held::value).collect())
}

/// The elements, or their real parts.
pub(crate) fn doubles(tensor: &Tensor) -> Vec<f64> {
    values_of(tensor).into_iter().map(Value::real).collect()
}

/// Numbers in a dtype: floats towards 0 where it is of integers. As it holds them, and as a tensor.
pub(crate) fn operand(engine: &Engine, dtype: DType, numbers: &[f64]) -> (Vec<Value>, Tensor) {
    let value = |x: f64| match dtype {
        DType::Complex64 | DType::Complex128 => Value::Complex(x, 0.0),
        DType::BF16 | DType::F16 | DType::F32 | DType::F64 => Value::Float(x),
        _ => Value::Whole(x as i128),
    };
    let held: Vec<Value> = numbers.iter().map(|&x| value(x).held(dtype)).collect();
    let tensor = tensor_of(engine, dtype, &held, &[held.len()]);
    (held, tensor)
}

/// Returns whether a device takes one of many pieces that each need kernels of their own: the processor one in `share`, any other device one in 16
/// times as many, by turns. In `./test --all` the processor takes all of them, the others one in four.
pub(crate) fn sampled(engine: &Engine, piece: usize, share: u64) -> bool {
    let place = crate::engines().iter().position(|other| std::ptr::eq(other, engine)).unwrap_or(0) as u64;
    let share = match (engine.selected().device.backend == "cpu", everything()) {
        (true, true) => 1,
        (false, true) => 4,
        (true, false) => share,
        (false, false) => 16 * share,
    };
    // Neighbouring pieces are alike: they are spread.
    let number = (piece as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (number + place + turn()).is_multiple_of(share)
}

/// Returns whether a device computes with a dtype.
pub(crate) fn supported(engine: &Engine, dtype: DType) -> bool {
    let features = engine.selected().device.capabilities.features;
    match dtype {
        DType::F64 | DType::Complex128 => features.float64 && features.int64,
        DType::I64 | DType::U64 => features.int64,
        _ => true,
    }
}

/// The least and the greatest integer.
pub(crate) fn limits(dtype: DType) -> Option<(i128, i128)> {
    let bits = 8 * dtype.bytes();
    match dtype.name().chars().next() {
        _ if dtype == DType::Bool => Some((0, 1)),
        Some('i') => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        Some('u') => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}
