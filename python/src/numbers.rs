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

    /// The greater; NaN if either is.
    fn greater(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The lesser; NaN if either is.
    fn lesser(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }

    /// Only a NaN is unlike itself.
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    /// Returns whether it isn't 0; a NaN isn't.
    fn is_true(self) -> bool;
}

/// A number whose sums of many are the same in any order.
pub(crate) trait Whole: Number {
    fn sum(self, other: Self) -> Self;
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
                    Binary::Max => |a, b| both(a, b, Number::greater),
                    Binary::Min => |a, b| both(a, b, Number::lesser),
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

            fn is_true(self) -> bool {
                self != 0.0
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
                    Binary::Max => |a, b| both(a, b, Number::greater),
                    Binary::Min => |a, b| both(a, b, Number::lesser),
                    _ => return None,
                })
            }

            fn unary(op: Unary) -> Option<OfOne<Self>> {
                match op {
                    Unary::Neg if $int::MIN != 0 => Some(|x| one(x, $int::wrapping_neg)),
                    Unary::Square => Some(|x| one(x, |x| x.wrapping_mul(x))),
                    // The least number has no other sign.
                    Unary::Abs if $int::MIN != 0 => Some(|x| one(x, |x| x.max(x.wrapping_neg()))),
                    Unary::Abs => Some(|x| one(x, |x| x)),
                    _ => None,
                }
            }

            fn of(number: f64) -> Option<Self> {
                // Above 2^53 a float64 may be another number than what was meant.
                let made = number as $int;
                (made as f64 == number && number.abs() <= 9_007_199_254_740_992.0).then_some(made)
            }

            fn is_true(self) -> bool {
                self != 0
            }
        }

        impl Whole for $int {
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

floats!(f32 f64);
whole!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Number for Truth {
    fn binary(op: Binary) -> Option<OfTwo<Self>> {
        Some(match op {
            Binary::BitwiseAnd | Binary::LogicalAnd | Binary::Min => |a, b| both(a, b, |a, b| Self(a.0 & b.0)),
            Binary::BitwiseOr | Binary::LogicalOr | Binary::Max => |a, b| both(a, b, |a, b| Self(a.0 | b.0)),
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

    fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Self {
        Self(is_true.into())
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

/// One of each two by a truth; of one number for all, where there is one.
fn chosen<T: Copy>(truths: &[Truth], yes: &[T], no: &[T]) -> Vec<T> {
    let pick = |truth: Truth, yes: T, no: T| if truth.0 != 0 { yes } else { no };
    let truths = truths.iter();
    match (yes, no) {
        (&[yes], &[no]) => truths.map(|&truth| pick(truth, yes, no)).collect(),
        (&[yes], no) => truths.zip(no).map(|(&truth, &no)| pick(truth, yes, no)).collect(),
        (yes, &[no]) => truths.zip(yes).map(|(&truth, &yes)| pick(truth, yes, no)).collect(),
        _ => truths.zip(yes.iter().zip(no)).map(|(&truth, (&yes, &no))| pick(truth, yes, no)).collect(),
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

    /// The numbers as those of another dtype: rounded to the nearest float, or wrapped. None of floats as whole numbers, and of dtypes that are not held.
    pub(crate) fn cast(&self, to: DType) -> Option<Self> {
        macro_rules! to {
            ($x:ident, $number:expr; $($name:ident $type:ident)*) => {
                match to {
                    $(DType::$name => Self::$name(one($x, |x| $number(x) as $type)),)*
                    DType::Bool => Self::Bool(one($x, |x| x.is_true().into())),
                    _ => return None,
                }
            };
        }
        macro_rules! from {
            ($($float:ident)*; $($whole:ident)*) => {
                match self {
                    $(Self::$float(x) => to!(x, |x| x; F32 f32 F64 f64),)*
                    $(Self::$whole(x) => {
                        to!(x, |x| x; F32 f32 F64 f64 I8 i8 I16 i16 I32 i32 I64 i64 U8 u8 U16 u16 U32 u32 U64 u64)
                    })*
                    Self::Bool(x) => {
                        to!(x, |x: Truth| x.0; F32 f32 F64 f64 I8 i8 I16 i16 I32 i32 I64 i64 U8 u8 U16 u16 U32 u32 U64 u64)
                    }
                }
            };
        }
        Some(from!(F32 F64; I8 I16 I32 I64 U8 U16 U32 U64))
    }

    /// Whole numbers as places; None of others.
    pub(crate) fn places(&self) -> Option<Vec<i64>> {
        match (self.cast(DType::I64)?, self) {
            (Self::I64(places), wide) if !matches!(wide, Self::U64(_) | Self::Bool(_)) => Some(places),
            _ => None,
        }
    }

    /// One of each two numbers of one dtype by these truths; of one number for all, where there is one.
    pub(crate) fn chosen(&self, yes: &Self, no: &Self) -> Option<Self> {
        let Self::Bool(truths) = self else { return None };
        macro_rules! rows {
            ($($name:ident)*) => {
                match (yes, no) {
                    $((Self::$name(yes), Self::$name(no)) => Self::$name(chosen(truths, yes, no)),)*
                    _ => return None,
                }
            };
        }
        Some(rows!(F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Bool))
    }

    /// The runs of several, by turns, each as long as the number that goes with it; None of several dtypes, and outside.
    pub(crate) fn joined(parts: &[(&Self, usize)], turns: usize) -> Option<Self> {
        let count =
            parts.iter().try_fold(0_usize, |count, (_, length)| count.checked_add(length.checked_mul(turns)?))?;
        let mut all = mapped!(Self::empty(parts.first()?.0.dtype())?, _none => Vec::with_capacity(count))?;
        macro_rules! rows {
            ($($name:ident)*) => {
                for turn in 0..turns {
                    for (part, length) in parts {
                        match (&mut all, part) {
                            $((Self::$name(all), Self::$name(part)) => {
                                // A long copy at once is the string instruction of the C library, which takes Zen 3 three times as long.
                                let run = part.get(turn * length..(turn + 1) * length)?;
                                run.chunks(128).for_each(|chunk| all.extend_from_slice(chunk));
                            })*
                            _ => return None,
                        }
                    }
                }
            };
        }
        rows!(F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Bool);
        Some(all)
    }

    /// One number for all along an axis of `side` elements, behind each of which lie those of `inner` others: see [`Fold`]. None without elements, of
    /// sums that round, and of places beyond 32 bits.
    pub(crate) fn folded(&self, fold: Fold, side: usize, inner: usize) -> Option<Self> {
        if side == 0 || inner == 0 || u32::try_from(side).is_err() {
            return None;
        }
        let rows = Rows { side, inner };
        let same = |x: &Self| match fold {
            Fold::Max => mapped!(x, x => rows.folded(x, |x| x, Number::greater)),
            Fold::Min => mapped!(x, x => rows.folded(x, |x| x, Number::lesser)),
            _ => None,
        };
        Some(match fold {
            Fold::Max | Fold::Min => same(self)?,
            Fold::Any => {
                Self::Bool(each!(self, x => rows.folded(x, |x| Truth::from(x.is_true()), |a, b| Truth(a.0 | b.0))))
            }
            Fold::All => {
                Self::Bool(each!(self, x => rows.folded(x, |x| Truth::from(x.is_true()), |a, b| Truth(a.0 & b.0))))
            }
            Fold::ArgMax => Self::U32(each!(self, x => rows.first(x, Number::greater))),
            Fold::ArgMin => Self::U32(each!(self, x => rows.first(x, Number::lesser))),
            Fold::Sum => {
                macro_rules! wholes {
                    ($($name:ident)*) => {
                        match self {
                            $(Self::$name(x) => Self::$name(rows.folded(x, |x| x, Whole::sum)),)*
                            Self::F32(_) | Self::F64(_) | Self::Bool(_) => return None,
                        }
                    };
                }
                wholes!(I8 I16 I32 I64 U8 U16 U32 U64)
            }
        })
    }
}

/// A function of all numbers along an axis.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    /// The greatest, or the least; NaN if one is.
    Max,
    Min,
    /// The place of the first that is.
    ArgMax,
    ArgMin,
    /// True if one, or each, isn't 0.
    Any,
    All,
    /// The sum of whole numbers, which wraps.
    Sum,
}

/// Numbers along an axis of `side` elements, `inner` numbers apart.
#[derive(Clone, Copy)]
struct Rows {
    side: usize,
    inner: usize,
}

impl Rows {
    /// `map` of the numbers, joined in any order.
    fn folded<T: Copy, A: Copy>(self, x: &[T], map: impl Fn(T) -> A, join: impl Fn(A, A) -> A) -> Vec<A> {
        /// As many at once as registers have room for.
        const LANES: usize = 16;
        if self.inner == 1 {
            let row = |row: &[T]| {
                let (chunks, rest) = row.as_chunks::<LANES>();
                let lanes = chunks.iter().map(|chunk| chunk.map(&map)).reduce(|mut lanes, chunk| {
                    lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane = join(*lane, x));
                    lanes
                });
                let joined = lanes.and_then(|lanes| lanes.into_iter().reduce(&join));
                let with = |all: Option<A>, x| Some(all.map_or(x, |all| join(all, x)));
                rest.iter().map(|&x| map(x)).fold(joined, with)
            };
            return x.chunks_exact(self.side).filter_map(row).collect();
        }
        let mut all = Vec::with_capacity(x.len() / self.side);
        for block in x.chunks_exact(self.side * self.inner) {
            let (first, others) = block.split_at(self.inner);
            let from = all.len();
            all.extend(first.iter().map(|&x| map(x)));
            for other in others.chunks_exact(self.inner) {
                all[from..].iter_mut().zip(other).for_each(|(all, &x)| *all = join(*all, map(x)));
            }
        }
        all
    }

    /// The place of the first number that is what `best` finds of all, which is a NaN where there is one.
    fn first<T: Number>(self, x: &[T], best: impl Fn(T, T) -> T) -> Vec<u32> {
        let found = self.folded(x, |x| x, best);
        let is = |x: T, found: T| x == found || x.is_nan();
        if self.inner == 1 {
            let rows = found.into_iter().zip(x.chunks_exact(self.side));
            return rows.map(|(found, row)| row.iter().position(|&x| is(x, found)).unwrap_or(0) as u32).collect();
        }
        let of = |(at, found): (usize, T)| {
            let from = at / self.inner * self.side * self.inner + at % self.inner;
            let along = x.iter().skip(from).step_by(self.inner).take(self.side);
            along.zip(0..).find(|&(&x, _)| is(x, found)).map_or(0, |(_, place)| place)
        };
        found.into_iter().enumerate().map(of).collect()
    }
}
