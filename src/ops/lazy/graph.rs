//! Expressions that are recorded and not yet computed: operations on their elements, views of their shape. What is recorded becomes one
//! kernel when it is evaluated.

use std::sync::Arc;

use super::shape;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::tensor::{DType, Tensor};

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unary {
    /// -x
    Neg,
    /// |x|
    Abs,
    /// The square root; NaN below 0.
    Sqrt,
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// The sine of radians, |x| up to 10,000.
    Sin,
    /// The cosine of radians, |x| up to 10,000.
    Cos,
    /// The hyperbolic tangent.
    Tanh,
    /// max(x, 0); NaN stays.
    Relu,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// x sigmoid(x)
    Silu,
    /// x Φ(x), with Φ the normal distribution's, by erf.
    Gelu,
    /// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
    GeluTanh,
    /// The error function.
    Erf,
}

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binary {
    /// a + b; integers wrap.
    Add,
    /// a - b; integers wrap.
    Sub,
    /// a b; integers wrap.
    Mul,
    /// a / b; integers as WGSL has it: towards zero, a / 0 = a.
    Div,
    /// a^b, floats only; for a < 0 a number where b is whole.
    Pow,
    /// The lesser; NaN if either is.
    Min,
    /// The greater; NaN if either is.
    Max,
    /// 1 where a = b, as u32; so are the others.
    Eq,
    /// a ≠ b
    Ne,
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// a > b
    Gt,
    /// a ≥ b
    Ge,
}

impl Binary {
    pub(super) fn compares(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

/// A view of a tensor: where its elements lie, without a copy.
#[derive(Clone)]
pub(super) struct View {
    pub(super) tensor: Tensor,
    pub(super) offset: usize,
    pub(super) strides: Vec<usize>,
}

/// What an expression computes, element by element, in its own shape.
pub(super) enum Node {
    Read(View),
    /// The same value everywhere, as the bits of its dtype's arithmetic type.
    Constant(f64),
    Unary(Unary, Arc<Typed>),
    Binary(Binary, Arc<Typed>, Arc<Typed>),
    /// condition ≠ 0 ? a : b
    Select(Arc<Typed>, Arc<Typed>, Arc<Typed>),
    Cast(Arc<Typed>),
}

/// A node with its shape and dtype.
pub(super) struct Typed {
    pub(super) node: Node,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
}

/// An expression over tensors, recorded and not yet computed. Its methods and operators record more; [`Lazy::eval`] makes one kernel of all
/// of it. A mistake (shapes that do not broadcast, dtypes that differ) is kept, and comes out of `eval`.
///
/// Dtypes are f32, f16 (computed in f32), i32 and u32.
#[derive(Clone)]
pub struct Lazy {
    pub(super) engine: Engine,
    pub(super) state: Result<Arc<Typed>>,
}

impl std::fmt::Debug for Lazy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.state {
            Ok(typed) => write!(f, "Lazy({} {:?})", typed.dtype, typed.shape),
            Err(error) => write!(f, "Lazy({error})"),
        }
    }
}

impl From<&Tensor> for Lazy {
    fn from(tensor: &Tensor) -> Self {
        let strides = shape::contiguous(tensor.shape());
        let view = View { tensor: tensor.clone(), offset: 0, strides };
        let state = check_dtype(tensor.dtype(), tensor.label()).map(|()| {
            Arc::new(Typed { node: Node::Read(view), shape: tensor.shape().to_vec(), dtype: tensor.dtype() })
        });
        Self { engine: tensor.engine(), state }
    }
}

impl From<Tensor> for Lazy {
    fn from(tensor: Tensor) -> Self {
        Self::from(&tensor)
    }
}

impl From<&Self> for Lazy {
    fn from(lazy: &Self) -> Self {
        lazy.clone()
    }
}

fn check_dtype(dtype: DType, label: &str) -> Result<()> {
    if matches!(dtype, DType::F32 | DType::F16 | DType::I32 | DType::U32) {
        return Ok(());
    }
    Err(Error::InvalidInput {
        what: format!("the tensor {label}"),
        reason: format!("operations take f32, f16, i32 and u32, and it is {dtype} (write a kernel for it)"),
    })
}

pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16)
}

impl Lazy {
    fn derived(&self, make: impl FnOnce(&Arc<Typed>) -> Result<Typed>) -> Self {
        let state = self.state.as_ref().map_err(Clone::clone).and_then(|typed| make(typed).map(Arc::new));
        Self { engine: self.engine.clone(), state }
    }

    /// The shape.
    ///
    /// # Errors
    /// The first mistake in what was recorded.
    pub fn shape(&self) -> Result<&[usize]> {
        self.state.as_ref().map(|typed| typed.shape.as_slice()).map_err(Clone::clone)
    }

    /// The dtype.
    ///
    /// # Errors
    /// The first mistake in what was recorded.
    pub fn dtype(&self) -> Result<DType> {
        self.state.as_ref().map(|typed| typed.dtype).map_err(Clone::clone)
    }

    /// The same value everywhere, of the dtype of `self`, to be combined with it. For integers it must be one.
    #[must_use]
    pub fn constant(&self, value: f64) -> Self {
        self.derived(|typed| {
            let fits = match typed.dtype {
                DType::I32 => value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value),
                DType::U32 => value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value),
                _ => true,
            };
            if !fits {
                return Err(Error::InvalidInput {
                    what: format!("the number {value}"),
                    reason: format!("it is no {}", typed.dtype),
                });
            }
            Ok(Typed { node: Node::Constant(value), shape: Vec::new(), dtype: typed.dtype })
        })
    }

    /// Applies a function to each element. All but `Neg` and `Abs` are for floats.
    #[must_use]
    pub fn unary(&self, op: Unary) -> Self {
        self.derived(|typed| {
            let integers = matches!(op, Unary::Neg | Unary::Abs);
            if !is_float(typed.dtype) && !integers || op == Unary::Neg && typed.dtype == DType::U32 {
                return Err(Error::InvalidInput {
                    what: format!("{op:?} of {}", typed.dtype),
                    reason: "it is for other dtypes (cast first)".to_owned(),
                });
            }
            Ok(Typed { node: Node::Unary(op, typed.clone()), shape: typed.shape.clone(), dtype: typed.dtype })
        })
    }

    /// Combines with another expression of the same dtype, element by element; shapes broadcast.
    #[must_use]
    pub fn binary(&self, op: Binary, other: impl Into<Self>) -> Self {
        let other = other.into();
        self.derived(|typed| {
            let other = self.beside(&other)?;
            if typed.dtype != other.dtype {
                return Err(Error::InvalidInput {
                    what: format!("{op:?} of {} and {}", typed.dtype, other.dtype),
                    reason: "both must have one dtype (cast one of them)".to_owned(),
                });
            }
            if op == Binary::Pow && !is_float(typed.dtype) {
                return Err(Error::InvalidInput {
                    what: format!("Pow of {}", typed.dtype),
                    reason: "it is for floats (cast first)".to_owned(),
                });
            }
            let dtype = if op.compares() { DType::U32 } else { typed.dtype };
            let shape = shape::broadcast(&typed.shape, &other.shape)?;
            Ok(Typed { node: Node::Binary(op, typed.clone(), other), shape, dtype })
        })
    }

    /// The other operand, if it belongs to the same engine.
    fn beside(&self, other: &Self) -> Result<Arc<Typed>> {
        let typed = other.state.as_ref().map_err(Clone::clone)?;
        if !self.engine.is(&other.engine) {
            return Err(Error::AnotherEngine { tensor: "of the second operand".to_owned() });
        }
        Ok(typed.clone())
    }

    /// Where this (u32) is not 0 `a`, and elsewhere `b`.
    #[must_use]
    pub fn select(&self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        let (a, b) = (a.into(), b.into());
        self.derived(|condition| {
            let (a, b) = (self.beside(&a)?, self.beside(&b)?);
            if condition.dtype != DType::U32 || a.dtype != b.dtype {
                return Err(Error::InvalidInput {
                    what: format!("a selection by {} among {} and {}", condition.dtype, a.dtype, b.dtype),
                    reason: "the condition must be u32, the two of one dtype".to_owned(),
                });
            }
            let shape = shape::broadcast(&shape::broadcast(&condition.shape, &a.shape)?, &b.shape)?;
            let dtype = a.dtype;
            Ok(Typed { node: Node::Select(condition.clone(), a, b), shape, dtype })
        })
    }

    /// Converts: floats to integers towards zero and saturating, NaN to 0.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Self {
        self.derived(|typed| {
            check_dtype(dtype, "that results")?;
            Ok(Typed { node: Node::Cast(typed.clone()), shape: typed.shape.clone(), dtype })
        })
    }

    /// Limits to `low..=high`; NaN stays.
    #[must_use]
    pub fn clamp(&self, low: f64, high: f64) -> Self {
        if low > high || low.is_nan() || high.is_nan() {
            return self.derived(|_| {
                Err(Error::InvalidInput {
                    what: format!("clamp to {low}..={high}"),
                    reason: "the lower limit must not exceed the upper".to_owned(),
                })
            });
        }
        let (low, high) = (self.constant(low), self.constant(high));
        let above = self.binary(Binary::Gt, &high).select(&high, self);
        above.binary(Binary::Lt, &low).select(&low, &above)
    }

    /// Broadcasts to a shape.
    #[must_use]
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        self.derived(|typed| {
            if shape::broadcast(&typed.shape, shape)? != shape {
                return Err(Error::InvalidSize {
                    what: format!("the shape {:?}", typed.shape),
                    reason: format!("it does not broadcast to {shape:?}"),
                });
            }
            // A selection that is always taken would do; a cast to its own dtype costs nothing and has a shape.
            Ok(Typed { node: Node::Cast(typed.clone()), shape: shape.to_vec(), dtype: typed.dtype })
        })
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        impl Lazy {
            $($(#[$doc])* #[must_use] pub fn $method(&self) -> Self { self.unary(Unary::$op) })*
        }
    };
}

unary_methods! {
    /// -x
    negate = Neg;
    /// |x|
    abs = Abs;
    /// √x
    sqrt = Sqrt;
    /// e^x
    exp = Exp;
    /// ln x
    log = Log;
    /// sin x
    sin = Sin;
    /// cos x
    cos = Cos;
    /// tanh x
    tanh = Tanh;
    /// max(x, 0)
    relu = Relu;
    /// 1 / (1 + e^-x)
    sigmoid = Sigmoid;
    /// x / (1 + e^-x)
    silu = Silu;
    /// x Φ(x), by the error function
    gelu = Gelu;
    /// The form of gelu by tanh
    gelu_tanh = GeluTanh;
    /// The error function
    erf = Erf;
}

macro_rules! operators {
    ($($operator:ident, $method:ident;)*) => {$(
        impl<T: Into<Lazy>> std::ops::$operator<T> for &Lazy {
            type Output = Lazy;
            fn $method(self, other: T) -> Lazy { self.binary(Binary::$operator, other) }
        }
        impl<T: Into<Lazy>> std::ops::$operator<T> for Lazy {
            type Output = Lazy;
            fn $method(self, other: T) -> Lazy { self.binary(Binary::$operator, other) }
        }
    )*};
}

operators! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}

impl std::ops::Neg for &Lazy {
    type Output = Lazy;
    fn neg(self) -> Lazy {
        self.negate()
    }
}
