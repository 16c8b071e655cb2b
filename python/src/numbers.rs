//! Numbers of one dtype in the host's memory, and functions of them. A dtype is a row of `Numbers` and of its macros.

use cantus::DType;
use cantus::ops::{Binary, Unary};

/// Numbers by dtype; truths are bytes of 0 and 1.
#[derive(Clone)]
pub(crate) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<Truth>),
}

/// Does the same with the vector of each dtype.
macro_rules! each {
    ($numbers:expr, $x:ident => $do:expr) => {
        match $numbers {
            Numbers::F32($x) => $do,
            Numbers::F64($x) => $do,
            Numbers::I8($x) => $do,
            Numbers::I16($x) => $do,
            Numbers::I32($x) => $do,
            Numbers::I64($x) => $do,
            Numbers::U8($x) => $do,
            Numbers::U16($x) => $do,
            Numbers::U32($x) => $do,
            Numbers::U64($x) => $do,
            Numbers::Bool($x) => $do,
        }
    };
}

/// Makes numbers of the same dtype of the vector of each; within, `?` ends with None.
macro_rules! mapped {
    ($numbers:expr, $x:ident => $do:expr) => {
        (|| {
            Some(match $numbers {
                Numbers::F32($x) => Numbers::F32($do),
                Numbers::F64($x) => Numbers::F64($do),
                Numbers::I8($x) => Numbers::I8($do),
                Numbers::I16($x) => Numbers::I16($do),
                Numbers::I32($x) => Numbers::I32($do),
                Numbers::I64($x) => Numbers::I64($do),
                Numbers::U8($x) => Numbers::U8($do),
                Numbers::U16($x) => Numbers::U16($do),
                Numbers::U32($x) => Numbers::U32($do),
                Numbers::U64($x) => Numbers::U64($do),
                Numbers::Bool($x) => Numbers::Bool($do),
            })
        })()
    };
}

pub(crate) use {each, mapped};

/// A truth as arrays hold it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
#[repr(transparent)]
pub(crate) struct Truth(u8);

/// A function of each two elements, or of one for all.
pub(crate) type OfTwo<T> = fn(&[T], &[T]) -> Vec<T>;
/// The truth of each two elements, or of each beside one.
type Compare<T> = fn(&[T], &[T]) -> Vec<Truth>;
/// A function of each element.
pub(crate) type OfOne<T> = fn(&[T]) -> Vec<T>;

/// An element: its functions that round once or wrap. Whole numbers have no quotient, since NumPy's is a float; truths have no arithmetic.
pub(crate) trait Number: Copy + PartialOrd {
    fn binary(op: Binary) -> Option<OfTwo<Self>>;
    fn unary(op: Unary) -> Option<OfOne<Self>>;
    /// A number of Python's, if there is one of this dtype for it.
    fn of(number: f64) -> Option<Self>;
}

macro_rules! floats {
    ($($float:ident)*) => {$(
        impl Number for $float {
            fn binary(op: Binary) -> Option<OfTwo<Self>> {
                Some(match op {
                    Binary::Add => |a, b| both(a, b, |a, b| a + b),
                    Binary::Sub => |a, b| both(a, b, |a, b| a - b),
                    Binary::Mul => |a, b| both(a, b, |a, b| a * b),
                    Binary::Div => |a, b| both(a, b, |a, b| a / b),
                    _ => return None,
                })
            }

            fn unary(op: Unary) -> Option<OfOne<Self>> {
                Some(match op {
                    Unary::Neg => |x| one(x, |x| -x),
                    Unary::Abs => |x| one(x, $float::abs),
                    Unary::Sqrt => |x| one(x, $float::sqrt),
                    Unary::Square => |x| one(x, |x| x * x),
                    _ => return None,
                })
            }

            fn of(number: f64) -> Option<Self> {
                Some(number as $float)
            }
        }
    )*};
}

macro_rules! whole {
    ($($int:ident)*) => {$(
        impl Number for $int {
            fn binary(op: Binary) -> Option<OfTwo<Self>> {
                Some(match op {
                    Binary::Add => |a, b| both(a, b, $int::wrapping_add),
                    Binary::Sub => |a, b| both(a, b, $int::wrapping_sub),
                    Binary::Mul => |a, b| both(a, b, $int::wrapping_mul),
                    Binary::BitwiseAnd => |a, b| both(a, b, |a, b| a & b),
                    Binary::BitwiseOr => |a, b| both(a, b, |a, b| a | b),
                    Binary::BitwiseXor => |a, b| both(a, b, |a, b| a ^ b),
                    _ => return None,
                })
            }

            fn unary(op: Unary) -> Option<OfOne<Self>> {
                match op {
                    Unary::Neg if $int::MIN != 0 => Some(|x| one(x, $int::wrapping_neg)),
                    Unary::Square => Some(|x| one(x, |x| x.wrapping_mul(x))),
                    _ => None,
                }
            }

            fn of(number: f64) -> Option<Self> {
                // Above 2^53 a float64 may be another number than what was meant.
                let made = number as $int;
                (made as f64 == number && number.abs() <= 9_007_199_254_740_992.0).then_some(made)
            }
        }
    )*};
}

floats!(f32 f64);
whole!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Number for Truth {
    fn binary(op: Binary) -> Option<OfTwo<Self>> {
        Some(match op {
            Binary::BitwiseAnd | Binary::LogicalAnd => |a, b| both(a, b, |a, b| Self(a.0 & b.0)),
            Binary::BitwiseOr | Binary::LogicalOr => |a, b| both(a, b, |a, b| Self(a.0 | b.0)),
            Binary::BitwiseXor | Binary::LogicalXor => |a, b| both(a, b, |a, b| Self(a.0 ^ b.0)),
            _ => return None,
        })
    }

    fn unary(_: Unary) -> Option<OfOne<Self>> {
        None
    }

    fn of(number: f64) -> Option<Self> {
        Some(Self(u8::from(number != 0.0)))
    }
}

/// The comparison of each two numbers; a NaN equals nothing.
fn comparison<T: Copy + PartialOrd>(op: Binary) -> Option<Compare<T>> {
    Some(match op {
        Binary::Lt => |a, b| both(a, b, |a, b| Truth(u8::from(a < b))),
        Binary::Le => |a, b| both(a, b, |a, b| Truth(u8::from(a <= b))),
        Binary::Gt => |a, b| both(a, b, |a, b| Truth(u8::from(a > b))),
        Binary::Ge => |a, b| both(a, b, |a, b| Truth(u8::from(a >= b))),
        Binary::Eq => |a, b| both(a, b, |a, b| Truth(u8::from(a == b))),
        Binary::Ne => |a, b| both(a, b, |a, b| Truth(u8::from(a != b))),
        _ => return None,
    })
}

/// A function of each.
fn one<T: Copy, R>(x: &[T], of: impl Fn(T) -> R) -> Vec<R> {
    x.iter().map(|&x| of(x)).collect()
}

/// A function of each two; of one number for all, where there is one.
fn both<T: Copy, R>(a: &[T], b: &[T], of: impl Fn(T, T) -> R) -> Vec<R> {
    match (a, b) {
        (a, &[b]) => a.iter().map(|&a| of(a, b)).collect(),
        (&[a], b) => b.iter().map(|&b| of(a, b)).collect(),
        _ => a.iter().zip(b).map(|(&a, &b)| of(a, b)).collect(),
    }
}

/// The same bits as elements, which are plain numbers; None if there is no room.
fn read<T: Copy>(bytes: &[u8]) -> Option<Vec<T>> {
    let count = bytes.len() / size_of::<T>();
    let mut numbers: Vec<T> = Vec::new();
    numbers.try_reserve_exact(count).ok()?;
    // SAFETY: there is room for `count` elements, which are numbers: any bits are one. Memory of two allocations does not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), numbers.as_mut_ptr().cast::<u8>(), count * size_of::<T>());
        numbers.set_len(count);
    }
    Some(numbers)
}

impl Numbers {
    /// No numbers of a dtype; None of those that are not held.
    pub(crate) fn empty(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::F32 => Self::F32(Vec::new()),
            DType::F64 => Self::F64(Vec::new()),
            DType::I8 => Self::I8(Vec::new()),
            DType::I16 => Self::I16(Vec::new()),
            DType::I32 => Self::I32(Vec::new()),
            DType::I64 => Self::I64(Vec::new()),
            DType::U8 => Self::U8(Vec::new()),
            DType::U16 => Self::U16(Vec::new()),
            DType::U32 => Self::U32(Vec::new()),
            DType::U64 => Self::U64(Vec::new()),
            DType::Bool => Self::Bool(Vec::new()),
            _ => return None,
        })
    }

    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::F32(_) => DType::F32,
            Self::F64(_) => DType::F64,
            Self::I8(_) => DType::I8,
            Self::I16(_) => DType::I16,
            Self::I32(_) => DType::I32,
            Self::I64(_) => DType::I64,
            Self::U8(_) => DType::U8,
            Self::U16(_) => DType::U16,
            Self::U32(_) => DType::U32,
            Self::U64(_) => DType::U64,
            Self::Bool(_) => DType::Bool,
        }
    }

    /// The numbers in memory of a dtype.
    pub(crate) fn from_bytes(dtype: DType, bytes: &[u8]) -> Option<Self> {
        let mut numbers = mapped!(Self::empty(dtype)?, _none => read(bytes)?)?;
        if let Self::Bool(truths) = &mut numbers {
            // Any byte but 0 is true.
            truths.iter_mut().for_each(|truth| truth.0 = u8::from(truth.0 != 0));
        }
        Some(numbers)
    }

    /// A number `count` times, if the dtype has it.
    pub(crate) fn repeated(dtype: DType, number: f64, count: usize) -> Option<Self> {
        mapped!(Self::empty(dtype)?, _none => vec![Number::of(number)?; count])
    }

    /// The number of each place by a function, if the dtype has them all.
    pub(crate) fn made(dtype: DType, count: usize, of: &dyn Fn(usize) -> f64) -> Option<Self> {
        mapped!(Self::empty(dtype)?, _none => (0..count).map(|at| Number::of(of(at))).collect::<Option<_>>()?)
    }

    pub(crate) fn len(&self) -> usize {
        each!(self, x => x.len())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        each!(self, x => {
            // SAFETY: numbers are bytes without gaps.
            unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x.as_slice())) }
        })
    }

    /// The numbers at places; None if one is outside.
    pub(crate) fn at(&self, places: &[usize]) -> Option<Self> {
        mapped!(self, x => places.iter().map(|&place| x.get(place).copied()).collect::<Option<_>>()?)
    }

    /// The numbers of runs of one length, which begin at these places; None if one is outside, and without room.
    pub(crate) fn runs(&self, starts: &[usize], length: usize) -> Option<Self> {
        mapped!(self, x => {
            let mut numbers = Vec::new();
            numbers.try_reserve_exact(starts.len().checked_mul(length)?).ok()?;
            for &start in starts {
                numbers.extend_from_slice(x.get(start..start.checked_add(length)?)?);
            }
            numbers
        })
    }

    /// The numbers with the last `by` of each block before its others.
    pub(crate) fn rolled(&self, block: usize, by: usize) -> Self {
        let mut numbers = self.clone();
        each!(&mut numbers, x => x.chunks_exact_mut(block.max(1)).for_each(|block| block.rotate_right(by.min(block.len()))));
        numbers
    }

    /// Writes numbers of the same dtype to runs of one length; false, and nothing is written, of another dtype or count, and outside.
    pub(crate) fn write(&mut self, starts: &[usize], length: usize, from: &Self) -> bool {
        let ends = |&start: &usize| start.checked_add(length).is_some_and(|end| end <= self.len());
        if starts.len().checked_mul(length) != Some(from.len()) || !starts.iter().all(ends) {
            return false;
        }
        macro_rules! rows {
            ($($name:ident)*) => {
                match (self, from) {
                    $((Self::$name(to), Self::$name(from)) => {
                        for (&start, numbers) in starts.iter().zip(from.chunks_exact(length.max(1))) {
                            if let Some(to) = to.get_mut(start..start + length) {
                                to.copy_from_slice(numbers);
                            }
                        }
                        true
                    })*
                    _ => false,
                }
            };
        }
        rows!(F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Bool)
    }

    /// A function of each two numbers of one dtype, or of one for all; None where the host does not compute it.
    pub(crate) fn combined(op: Binary, a: &Self, b: &Self) -> Option<Self> {
        macro_rules! rows {
            ($($name:ident)*) => {
                match (a, b) {
                    $((Self::$name(a), Self::$name(b)) => match comparison(op) {
                        Some(of) => Self::Bool(of(a, b)),
                        None => Self::$name(Number::binary(op)?(a, b)),
                    },)*
                    _ => return None,
                }
            };
        }
        Some(rows!(F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Bool))
    }
}
