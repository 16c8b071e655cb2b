//! A graph computed on the processor, node by node: what an author sees before having a device, and what tests compare devices with. Tests and the PJRT
//! simulator compute by it, and constants are folded by it while building, so both agree. It is written to be right, not quick. `Precision::Bf16` rounds
//! every result, to show what such a device would give.

use half::bf16;

use super::{Binary, Compare, Convolution, Fold, Graph, Node, Op, Unary};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The precision in which float32 is computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precision {
    /// Computes in float32.
    #[default]
    Full,
    /// Every float32 is rounded to bf16, as on devices that compute in bf16.
    Bf16,
}

/// Values of one kind. What is narrower than a word is in the kind that it widens to.
#[derive(Debug, Clone, PartialEq)]
enum Array {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    C32(Vec<[f32; 2]>),
    C64(Vec<[f64; 2]>),
}

/// The same for the values of any kind; the result is of that kind.
macro_rules! moved {
    ($array:expr, $values:ident => $body:expr) => {
        match $array {
            Array::Bool($values) => Array::Bool($body),
            Array::I32($values) => Array::I32($body),
            Array::U32($values) => Array::U32($body),
            Array::I64($values) => Array::I64($body),
            Array::U64($values) => Array::U64($body),
            Array::F32($values) => Array::F32($body),
            Array::F64($values) => Array::F64($body),
            Array::C32($values) => Array::C32($body),
            Array::C64($values) => Array::C64($body),
        }
    };
}

fn fault(reason: impl Into<String>) -> Error {
    Error::invalid("an operation graph", reason.into())
}

// Functions of elements are called through pointers, here and below: a copy of each loop per function and dtype would be a tenth of what the library
// compiles to, and the simulator is no place to be quick.

fn elements<const N: usize, T>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    map(bytes.as_chunks::<N>().0, from)
}

fn bytes_of<const N: usize, T: Copy>(values: &[T], into: fn(T) -> [u8; N]) -> Vec<u8> {
    map(values, into).into_flattened()
}

/// The numbers that these bits are in a float dtype of 16 bits.
fn widened(half: DType, bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|bits| half.half(*bits).unwrap_or_default()).listed()
}

/// The bits of numbers as a float dtype of 16 bits holds them.
fn narrowed(half: DType, numbers: &[f32]) -> Vec<u16> {
    numbers.iter().map(|number| half.float_bits((*number).into()).unwrap_or_default() as u16).listed()
}

impl Array {
    fn decode(dtype: DType, bytes: &[u8]) -> Self {
        match dtype {
            DType::Bool => Self::Bool(bytes.iter().map(|byte| *byte != 0).collect()),
            DType::I8 => Self::I32(elements(bytes, |b| i8::from_le_bytes(b).into())),
            DType::U8 => Self::U32(elements(bytes, |b| u8::from_le_bytes(b).into())),
            DType::I16 => Self::I32(elements(bytes, |b| i16::from_le_bytes(b).into())),
            DType::U16 => Self::U32(elements(bytes, |b| u16::from_le_bytes(b).into())),
            DType::I32 => Self::I32(elements(bytes, i32::from_le_bytes)),
            DType::U32 => Self::U32(elements(bytes, u32::from_le_bytes)),
            DType::I64 => Self::I64(elements(bytes, i64::from_le_bytes)),
            DType::U64 => Self::U64(elements(bytes, u64::from_le_bytes)),
            DType::F32 => Self::F32(elements(bytes, f32::from_le_bytes)),
            DType::F64 => Self::F64(elements(bytes, f64::from_le_bytes)),
            DType::Complex64 => Self::C32(elements(bytes, f32::from_le_bytes).as_chunks::<2>().0.to_vec()),
            DType::Complex128 => Self::C64(elements(bytes, f64::from_le_bytes).as_chunks::<2>().0.to_vec()),
            half => Self::F32(widened(half, &elements(bytes, u16::from_le_bytes))),
        }
    }

    fn encode(&self, dtype: DType) -> Vec<u8> {
        match (self, dtype) {
            (Self::Bool(values), _) => values.iter().map(|value| u8::from(*value)).collect(),
            (Self::I32(values), DType::I8) => bytes_of(values, |x| (x as i8).to_le_bytes()),
            (Self::I32(values), DType::I16) => bytes_of(values, |x| (x as i16).to_le_bytes()),
            (Self::I32(values), _) => bytes_of(values, i32::to_le_bytes),
            (Self::U32(values), DType::U8) => bytes_of(values, |x| (x as u8).to_le_bytes()),
            (Self::U32(values), DType::U16) => bytes_of(values, |x| (x as u16).to_le_bytes()),
            (Self::U32(values), _) => bytes_of(values, u32::to_le_bytes),
            (Self::I64(values), _) => bytes_of(values, i64::to_le_bytes),
            (Self::U64(values), _) => bytes_of(values, u64::to_le_bytes),
            (Self::F32(values), half) if half.is_half() => bytes_of(&narrowed(half, values), u16::to_le_bytes),
            (Self::F32(values), _) => bytes_of(values, f32::to_le_bytes),
            (Self::F64(values), _) => bytes_of(values, f64::to_le_bytes),
            (Self::C32(values), _) => bytes_of(values.as_flattened(), f32::to_le_bytes),
            (Self::C64(values), _) => bytes_of(values.as_flattened(), f64::to_le_bytes),
        }
    }

    /// One number, by its bits.
    fn number(dtype: DType, bits: u64) -> Self {
        let bytes = bits.to_le_bytes();
        Self::decode(dtype, &bytes[..dtype.bytes().min(8)])
    }

    fn bits(&self, dtype: DType) -> Option<u64> {
        let bytes = self.encode(dtype);
        let mut all = [0; 8];
        all.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(u64::from_le_bytes(all))
    }

    /// The elements at places.
    fn at(&self, places: &[usize]) -> Self {
        moved!(self, values => places.iter().map(|&place| values.get(place).copied().unwrap_or_default()).listed())
    }

    fn rounded(self, precision: Precision) -> Self {
        match (self, precision) {
            (Self::F32(values), Precision::Bf16) => {
                Self::F32(values.into_iter().map(|x| bf16::from_f32(x).to_f32()).collect())
            }
            (other, _) => other,
        }
    }
}

/// The places of the elements of a strided view.
fn places(shape: &[usize], strides: &[usize], offset: usize) -> Vec<usize> {
    let mut all = vec![offset];
    for (&side, &stride) in shape.iter().zip(strides) {
        all = all.iter().flat_map(|&from| (0..side).map(move |at| from + at * stride)).collect();
    }
    all
}

/// Distances between neighbours along each axis of contiguous elements.
pub(super) fn contiguous(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

fn map<T: Copy, R>(x: &[T], f: fn(T) -> R) -> Vec<R> {
    let mut all = Vec::with_capacity(x.len());
    for x in x {
        all.push(f(*x));
    }
    all
}

fn zip<T: Copy, R>(x: &[T], y: &[T], f: fn(T, T) -> R) -> Vec<R> {
    let mut all = Vec::with_capacity(x.len());
    for (x, y) in x.iter().zip(y) {
        all.push(f(*x, *y));
    }
    all
}

/// A function of two integers.
macro_rules! whole {
    ($op:expr, $x:expr, $y:expr) => {
        match $op {
            Binary::Add => zip($x, $y, |a, b| a.wrapping_add(b)),
            Binary::Subtract => zip($x, $y, |a, b| a.wrapping_sub(b)),
            Binary::Multiply => zip($x, $y, |a, b| a.wrapping_mul(b)),
            // The graph has no such divisors.
            Binary::Divide => zip($x, $y, |a, b| a.checked_div(b).unwrap_or(a)),
            Binary::Remainder => zip($x, $y, |a, b| a.checked_rem(b).unwrap_or(0)),
            Binary::Minimum => zip($x, $y, |a, b| a.min(b)),
            Binary::Maximum => zip($x, $y, |a, b| a.max(b)),
            Binary::And => zip($x, $y, |a, b| a & b),
            Binary::Or => zip($x, $y, |a, b| a | b),
            Binary::Xor => zip($x, $y, |a, b| a ^ b),
            Binary::ShiftLeft => zip($x, $y, |a, b| a.wrapping_shl(b as u32)),
            Binary::ShiftRight => zip($x, $y, |a, b| a.wrapping_shr(b as u32)),
            _ => return Err(fault(format!("{:?} of integers", $op))),
        }
    };
}

macro_rules! floating {
    ($op:expr, $x:expr, $y:expr) => {
        match $op {
            Binary::Add => zip($x, $y, |a, b| a + b),
            Binary::Subtract => zip($x, $y, |a, b| a - b),
            Binary::Multiply => zip($x, $y, |a, b| a * b),
            Binary::Divide => zip($x, $y, |a, b| a / b),
            Binary::Remainder => zip($x, $y, |a, b| a % b),
            Binary::Minimum => zip($x, $y, |a, b| if a.is_nan() || a < b { a } else { b }),
            Binary::Maximum => zip($x, $y, |a, b| if a.is_nan() || a > b { a } else { b }),
            Binary::Power => zip($x, $y, |a, b| a.powf(b)),
            Binary::Atan2 => zip($x, $y, |a, b| a.atan2(b)),
            _ => return Err(fault(format!("{:?} of floats", $op))),
        }
    };
}

macro_rules! float_function {
    ($op:expr, $x:expr) => {
        match $op {
            Unary::Negate => map($x, |x| -x),
            Unary::Abs => map($x, |x| x.abs()),
            Unary::Floor => map($x, |x| x.floor()),
            Unary::Ceil => map($x, |x| x.ceil()),
            Unary::RoundEven => map($x, |x| x.round_ties_even()),
            Unary::Sqrt => map($x, |x| x.sqrt()),
            Unary::Rsqrt => map($x, |x| 1.0 / x.sqrt()),
            Unary::Exp => map($x, |x| x.exp()),
            Unary::Log => map($x, |x| x.ln()),
            Unary::Sine => map($x, |x| x.sin()),
            Unary::Cosine => map($x, |x| x.cos()),
            Unary::Tanh => map($x, |x| x.tanh()),
            _ => return Err(fault(format!("{:?} of floats", $op))),
        }
    };
}

macro_rules! whole_function {
    ($op:expr, $x:expr, $abs:expr) => {
        match $op {
            Unary::Negate => map($x, |x| x.wrapping_neg()),
            Unary::Abs => map($x, $abs),
            Unary::Not => map($x, |x| !x),
            Unary::Popcnt => map($x, |x| x.count_ones() as _),
            Unary::LeadingZeros => map($x, |x| x.leading_zeros() as _),
            _ => return Err(fault(format!("{:?} of integers", $op))),
        }
    };
}

fn unary(op: Unary, x: &Array) -> Result<Array> {
    Ok(match x {
        Array::Bool(x) if op == Unary::Not => Array::Bool(map(x, |x| !x)),
        Array::I32(x) => Array::I32(whole_function!(op, x, |x: i32| x.wrapping_abs())),
        Array::U32(x) => Array::U32(whole_function!(op, x, |x: u32| x)),
        Array::I64(x) => Array::I64(whole_function!(op, x, |x: i64| x.wrapping_abs())),
        Array::U64(x) => Array::U64(whole_function!(op, x, |x: u64| x)),
        Array::F32(x) => Array::F32(float_function!(op, x)),
        Array::F64(x) => Array::F64(float_function!(op, x)),
        Array::C32(x) if matches!(op, Unary::Real | Unary::Imag) => {
            Array::F32(map(x, if op == Unary::Real { |[real, _]| real } else { |[_, imaginary]| imaginary }))
        }
        Array::C64(x) if matches!(op, Unary::Real | Unary::Imag) => {
            Array::F64(map(x, if op == Unary::Real { |[real, _]| real } else { |[_, imaginary]| imaginary }))
        }
        _ => return Err(fault(format!("{op:?} of such a dtype"))),
    })
}

fn binary(op: Binary, x: &Array, y: &Array) -> Result<Array> {
    Ok(match (x, y) {
        (Array::Bool(x), Array::Bool(y)) => Array::Bool(match op {
            Binary::And | Binary::Multiply | Binary::Minimum => zip(x, y, |a, b| a & b),
            Binary::Or | Binary::Add | Binary::Maximum => zip(x, y, |a, b| a | b),
            Binary::Xor => zip(x, y, |a, b| a ^ b),
            _ => return Err(fault(format!("{op:?} of bool"))),
        }),
        (Array::F32(x), Array::F32(y)) if op == Binary::Complex => Array::C32(zip(x, y, |a, b| [a, b])),
        (Array::F64(x), Array::F64(y)) if op == Binary::Complex => Array::C64(zip(x, y, |a, b| [a, b])),
        (Array::I32(x), Array::I32(y)) => Array::I32(whole!(op, x, y)),
        (Array::U32(x), Array::U32(y)) => Array::U32(whole!(op, x, y)),
        (Array::I64(x), Array::I64(y)) => Array::I64(whole!(op, x, y)),
        (Array::U64(x), Array::U64(y)) => Array::U64(whole!(op, x, y)),
        (Array::F32(x), Array::F32(y)) => Array::F32(floating!(op, x, y)),
        (Array::F64(x), Array::F64(y)) => Array::F64(floating!(op, x, y)),
        _ => return Err(fault(format!("{op:?} of two dtypes"))),
    })
}

fn compare(op: Compare, x: &Array, y: &Array) -> Result<Array> {
    fn each<T: Copy + PartialOrd>(op: Compare, x: &[T], y: &[T]) -> Array {
        Array::Bool(match op {
            Compare::Eq => zip(x, y, |a, b| a == b),
            Compare::Ne => zip(x, y, |a, b| a != b),
            Compare::Lt => zip(x, y, |a, b| a < b),
            Compare::Le => zip(x, y, |a, b| a <= b),
            Compare::Gt => zip(x, y, |a, b| a > b),
            Compare::Ge => zip(x, y, |a, b| a >= b),
        })
    }
    Ok(match (x, y) {
        (Array::Bool(x), Array::Bool(y)) => each(op, x, y),
        (Array::I32(x), Array::I32(y)) => each(op, x, y),
        (Array::U32(x), Array::U32(y)) => each(op, x, y),
        (Array::I64(x), Array::I64(y)) => each(op, x, y),
        (Array::U64(x), Array::U64(y)) => each(op, x, y),
        (Array::F32(x), Array::F32(y)) => each(op, x, y),
        (Array::F64(x), Array::F64(y)) => each(op, x, y),
        _ => return Err(fault("a comparison of two dtypes")),
    })
}

fn select(condition: &Array, a: &Array, b: &Array) -> Result<Array> {
    let Array::Bool(condition) = condition else { return Err(fault("a selection whose condition is not a bool")) };
    macro_rules! chosen {
        ($($kind:ident),*) => {
            match (a, b) {
                $((Array::$kind(a), Array::$kind(b)) => {
                    let pairs = condition.iter().zip(a.iter().zip(b));
                    Array::$kind(pairs.map(|(c, (a, b))| if *c { *a } else { *b }).listed())
                })*
                _ => return Err(fault("a selection of two dtypes")),
            }
        };
    }
    Ok(chosen!(Bool, I32, U32, I64, U64, F32, F64, C32, C64))
}

fn convert(x: &Array, to: DType) -> Result<Array> {
    macro_rules! from {
        ($x:expr, $zero:expr) => {
            match to {
                DType::Bool => Array::Bool(map($x, |x| x != $zero)),
                DType::I8 => Array::I32(map($x, |x| i32::from(x as i64 as i8))),
                DType::I16 => Array::I32(map($x, |x| i32::from(x as i64 as i16))),
                DType::I32 => Array::I32(map($x, |x| x as i64 as i32)),
                DType::I64 => Array::I64(map($x, |x| x as i64)),
                DType::U8 => Array::U32(map($x, |x| u32::from(x as i64 as u8))),
                DType::U16 => Array::U32(map($x, |x| u32::from(x as i64 as u16))),
                DType::U32 => Array::U32(map($x, |x| x as i64 as u32)),
                DType::U64 => Array::U64(map($x, |x| x as u64)),
                half if half.is_half() => Array::F32(widened(half, &narrowed(half, &map($x, |x| x as f32)))),
                DType::F32 => Array::F32(map($x, |x| x as f32)),
                DType::F64 => Array::F64(map($x, |x| x as f64)),
                _ => return Err(fault(format!("a conversion to {to}"))),
            }
        };
    }
    Ok(match x {
        Array::Bool(x) => {
            let numbers = map(x, u32::from);
            return convert(&Array::U32(numbers), to);
        }
        Array::I32(x) => from!(x, 0),
        Array::U32(x) => from!(x, 0),
        Array::I64(x) => from!(x, 0),
        Array::U64(x) => from!(x, 0),
        Array::F32(x) => from!(x, 0.0),
        Array::F64(x) => from!(x, 0.0),
        _ => return Err(fault("a conversion of complex numbers")),
    })
}

/// Sums of halves of halves: errors grow with the logarithm of the length.
fn pairwise<T: Copy>(values: &[T], add: fn(T, T) -> T) -> Option<T> {
    match values {
        [] => None,
        [first, rest @ ..] if rest.len() < 16 => {
            let mut sum = *first;
            for x in rest {
                sum = add(sum, *x);
            }
            Some(sum)
        }
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            Some(add(pairwise(left, add)?, pairwise(right, add)?))
        }
    }
}

/// The totals of rows, by where each begins and where its elements are from there.
fn totals<T: Copy + Default>(x: &[T], [starts, along]: [&[usize]; 2], start: T, combine: fn(T, T) -> T) -> Vec<T> {
    let mut row = Vec::with_capacity(along.len());
    let mut totals = Vec::with_capacity(starts.len());
    for from in starts {
        row.clear();
        for at in along {
            row.push(x.get(from + at).copied().unwrap_or_default());
        }
        totals.push(pairwise(&row, combine).unwrap_or(start));
    }
    totals
}

fn reduce(fold: Fold, axes: &[usize], x: &Array, shape: &[usize], dtype: DType) -> Result<Array> {
    let strides = contiguous(shape);
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let pick = |of: &[usize], axes: &[usize]| axes.iter().map(|&axis| of[axis]).collect::<Vec<_>>();
    let along = places(&pick(shape, axes), &pick(&strides, axes), 0);
    let starts = places(&pick(shape, &kept), &pick(&strides, &kept), 0);
    let op = match fold {
        Fold::Sum => Binary::Add,
        Fold::Prod => Binary::Multiply,
        Fold::Max => Binary::Maximum,
        Fold::Min => Binary::Minimum,
    };
    macro_rules! folded {
        ($kind:ident, $x:expr, $combine:expr) => {{
            let Array::$kind(start) = Array::number(dtype, fold.start(dtype)) else {
                return Err(fault("a reduction to another dtype"));
            };
            Array::$kind(totals($x, [&starts, &along], start.first().copied().unwrap_or_default(), $combine))
        }};
    }
    macro_rules! numbers {
        ($kind:ident, $type:ty, $x:expr, $add:expr, $multiply:expr, $max:expr, $min:expr) => {{
            let combine: fn($type, $type) -> $type = match op {
                Binary::Add => $add,
                Binary::Multiply => $multiply,
                Binary::Maximum => $max,
                _ => $min,
            };
            folded!($kind, $x, combine)
        }};
    }
    macro_rules! wholes {
        ($kind:ident, $type:ty, $x:expr) => {
            numbers!($kind, $type, $x, <$type>::wrapping_add, <$type>::wrapping_mul, <$type>::max, <$type>::min)
        };
    }
    macro_rules! floats {
        ($kind:ident, $type:ty, $x:expr) => {
            numbers!(
                $kind,
                $type,
                $x,
                |a, b| a + b,
                |a, b| a * b,
                |a, b| if a.is_nan() || a > b { a } else { b },
                |a, b| if a.is_nan() || a < b { a } else { b }
            )
        };
    }
    Ok(match x {
        Array::Bool(x) => match op {
            Binary::Add | Binary::Maximum => folded!(Bool, x, |a: bool, b: bool| a | b),
            _ => folded!(Bool, x, |a: bool, b: bool| a & b),
        },
        Array::I32(x) => wholes!(I32, i32, x),
        Array::U32(x) => wholes!(U32, u32, x),
        Array::I64(x) => wholes!(I64, i64, x),
        Array::U64(x) => wholes!(U64, u64, x),
        Array::F32(x) => floats!(F32, f32, x),
        Array::F64(x) => floats!(F64, f64, x),
        _ => return Err(fault("a reduction of complex numbers")),
    })
}

/// Rows times columns, summed in blocks so that long sums keep their digits.
fn dot(a: &[f32], b: &[f32], [batches, m, k, n]: [usize; 4]) -> Vec<f32> {
    const BLOCK: usize = 64;
    let mut result = vec![0.0_f32; batches * m * n];
    if n == 0 || k == 0 {
        return result;
    }
    let mut part = vec![0.0_f32; n];
    for (row, sums) in result.chunks_exact_mut(n).enumerate() {
        let (batch, left) = (row / m, &a[row * k..][..k]);
        let right = &b[batch * k * n..][..k * n];
        for (block, factors) in left.chunks(BLOCK).enumerate() {
            part.fill(0.0);
            for (at, factor) in factors.iter().enumerate() {
                let line = &right[(block * BLOCK + at) * n..][..n];
                part.iter_mut().zip(line).for_each(|(sum, x)| *sum += factor * x);
            }
            sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
        }
    }
    result
}

fn convolution(x: &[f32], w: &[f32], [from, taps, to]: [&[usize]; 3], window: Convolution) -> Vec<f32> {
    let Convolution { stride, padding, dilation, groups } = window;
    let (channels, per_group, outputs) = (from[1], taps[1], to[1]);
    let mut result = Vec::with_capacity(to.iter().product());
    for (image, output) in (0..to[0]).flat_map(|image| (0..outputs).map(move |output| (image, output))) {
        let first = output / (outputs / groups.max(1)).max(1) * per_group;
        for (row, column) in (0..to[2]).flat_map(|row| (0..to[3]).map(move |column| (row, column))) {
            let mut sum = 0.0_f32;
            for channel in 0..per_group {
                let plane = (image * channels + first + channel) * from[2];
                for i in 0..taps[2] {
                    let Some(y) = (row * stride[0] + i * dilation[0]).checked_sub(padding[0]).filter(|y| *y < from[2])
                    else {
                        continue;
                    };
                    for j in 0..taps[3] {
                        let at = (column * stride[1] + j * dilation[1]).checked_sub(padding[1]);
                        let Some(z) = at.filter(|z| *z < from[3]) else { continue };
                        let weight = w[((output * per_group + channel) * taps[2] + i) * taps[3] + j];
                        sum += x[(plane + y) * from[3] + z] * weight;
                    }
                }
            }
            result.push(sum);
        }
    }
    result
}

/// The bits as another dtype.
fn bitcast(x: &Array, dtype: DType) -> Result<Array> {
    Ok(match (x, dtype) {
        (Array::F32(x), DType::U32) => Array::U32(map(x, f32::to_bits)),
        (Array::F32(x), DType::I32) => Array::I32(map(x, |x| x.to_bits().cast_signed())),
        (Array::I32(x), DType::U32) => Array::U32(map(x, i32::cast_unsigned)),
        (Array::I32(x), DType::F32) => Array::F32(map(x, |x| f32::from_bits(x.cast_unsigned()))),
        (Array::U32(x), DType::I32) => Array::I32(map(x, u32::cast_signed)),
        (Array::U32(x), DType::F32) => Array::F32(map(x, f32::from_bits)),
        (Array::F64(x), DType::U64) => Array::U64(map(x, f64::to_bits)),
        (Array::U64(x), DType::F64) => Array::F64(map(x, f64::from_bits)),
        (Array::F64(x), DType::I64) => Array::I64(map(x, |x| x.to_bits().cast_signed())),
        (Array::I64(x), DType::F64) => Array::F64(map(x, |x| f64::from_bits(x.cast_unsigned()))),
        (Array::I64(x), DType::U64) => Array::U64(map(x, i64::cast_unsigned)),
        (Array::U64(x), DType::I64) => Array::I64(map(x, u64::cast_signed)),
        _ => return Err(fault(format!("the bits as {dtype}"))),
    })
}

/// One node of operands with their shapes.
fn apply(node: &Node, operands: &[(&Array, &[usize])]) -> Result<Array> {
    let operand = |place: usize| operands.get(place).copied().ok_or_else(|| fault("an operand is missing"));
    let shape = &node.shape;
    Ok(match &node.op {
        Op::Input(_) => return Err(fault("an argument is missing")),
        Op::Constant(bits) => Array::number(node.dtype, *bits),
        Op::Iota(axis) => {
            let mut strides = vec![0; shape.len()];
            strides[*axis] = 1;
            let numbers = places(shape, &strides, 0);
            convert(&Array::U64(map(&numbers, |place| place as u64)), node.dtype)?
        }
        Op::Unary(op) => unary(*op, operand(0)?.0)?,
        Op::Binary(op) => binary(*op, operand(0)?.0, operand(1)?.0)?,
        Op::Compare(op) => compare(*op, operand(0)?.0, operand(1)?.0)?,
        Op::Select => select(operand(0)?.0, operand(1)?.0, operand(2)?.0)?,
        Op::Convert => convert(operand(0)?.0, node.dtype)?,
        Op::Bitcast => bitcast(operand(0)?.0, node.dtype)?,
        Op::Broadcast(axes) => {
            let (x, from) = operand(0)?;
            let own = contiguous(from);
            let mut strides = vec![0; shape.len()];
            for (place, &axis) in axes.iter().enumerate() {
                strides[axis] = if from[place] == 1 { 0 } else { own[place] };
            }
            x.at(&places(shape, &strides, 0))
        }
        Op::Reshape => operand(0)?.0.clone(),
        Op::Transpose(axes) => {
            let (x, from) = operand(0)?;
            let own = contiguous(from);
            let strides: Vec<usize> = axes.iter().map(|&axis| own[axis]).collect();
            x.at(&places(shape, &strides, 0))
        }
        Op::Slice { start, step, .. } => {
            let (x, from) = operand(0)?;
            let own = contiguous(from);
            let offset = start.iter().zip(&own).map(|(start, stride)| start * stride).sum();
            let strides: Vec<usize> = own.iter().zip(step).map(|(stride, step)| stride * step).collect();
            x.at(&places(shape, &strides, offset))
        }
        Op::Pad { low, .. } => {
            let (x, from) = operand(0)?;
            let own = contiguous(shape);
            let offset = low.iter().zip(&own).map(|(low, stride)| low * stride).sum();
            let (count, inside) = (node.count(), places(from, &own, offset));
            let mut from_place = vec![usize::MAX; count];
            inside.iter().enumerate().for_each(|(place, &to)| from_place[to] = place);
            x.at(&from_place)
        }
        Op::Take => {
            let Array::U32(places) = operand(1)?.0 else { return Err(fault("places that are no u32")) };
            operand(0)?.0.at(&map(places, |place| place as usize))
        }
        Op::Reduce(fold, axes) => {
            let (x, from) = operand(0)?;
            reduce(*fold, axes, x, from, node.dtype)?
        }
        Op::Dot(batch) => {
            let ((Array::F32(a), from), (Array::F32(b), to)) = (operand(0)?, operand(1)?) else {
                return Err(fault("a product of other dtypes than f32"));
            };
            let batches = from[..*batch].iter().product();
            Array::F32(dot(a, b, [batches, from[*batch], from[batch + 1], to[batch + 1]]))
        }
        Op::Convolution(window) => {
            let ((Array::F32(x), from), (Array::F32(w), taps)) = (operand(0)?, operand(1)?) else {
                return Err(fault("a convolution of other dtypes than f32"));
            };
            Array::F32(convolution(x, w, [from, taps, shape], *window))
        }
    })
}

impl Graph {
    /// Computes a node over constants; `None` for what is computed where the graph runs.
    pub(super) fn folded(&self, node: &Node) -> Option<u64> {
        let numbers: Vec<Array> = node
            .operands
            .iter()
            .map(|value| Some(Array::number(self.dtype(*value), self.number(*value)?)))
            .collect::<Option<_>>()?;
        let operands: Vec<(&Array, &[usize])> = numbers.iter().map(|number| (number, &[][..])).collect();
        if node.dtype.bytes() > 8 || node.dtype == DType::Complex64 {
            return None;
        }
        apply(node, &operands).ok()?.bits(node.dtype)
    }

    /// Computes the results of arguments, as little-endian bytes.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for arguments of another number or size, and for what no graph of Cantus has (a reduction of complex numbers).
    pub fn simulate(&self, inputs: &[Vec<u8>], precision: Precision) -> Result<Vec<Vec<u8>>> {
        if inputs.len() != self.inputs.len() {
            return Err(fault(format!("it takes {} arguments, {} were given", self.inputs.len(), inputs.len())));
        }
        let mut last = vec![0; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            node.operands.iter().for_each(|value| last[value.index()] = place);
        }
        self.outputs.iter().for_each(|value| last[value.index()] = usize::MAX);
        let mut values: Vec<Option<Array>> = vec![None; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            let value = match node.op {
                Op::Input(number) => {
                    let bytes = inputs.get(number).ok_or_else(|| fault("an argument is missing"))?;
                    let wanted = node.count() * node.dtype.bytes();
                    if bytes.len() < wanted {
                        return Err(fault(format!("argument {number} has {} of {wanted} bytes", bytes.len())));
                    }
                    Array::decode(node.dtype, &bytes[..wanted])
                }
                _ => {
                    let operands: Vec<(&Array, &[usize])> = node
                        .operands
                        .iter()
                        .map(|value| Some((values[value.index()].as_ref()?, self.shape(*value))))
                        .collect::<Option<_>>()
                        .ok_or_else(|| fault("a node is read before it is computed"))?;
                    apply(node, &operands)?
                }
            };
            values[place] = Some(value.rounded(precision));
            // What nothing reads any more gives its memory back.
            for value in &node.operands {
                if last[value.index()] == place {
                    values[value.index()] = None;
                }
            }
        }
        let result = |value: &super::Value| {
            let array = values[value.index()].as_ref().ok_or_else(|| fault("a result was not computed"))?;
            Ok(array.encode(self.dtype(*value)))
        };
        self.outputs.iter().map(result).collect()
    }
}
