//! The two precisions of amplitudes.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use bytemuck::Pod;
use cantus::{DType, Result, Tensor};
use num_complex::Complex;

/// float32 or float64.
pub(crate) trait Real:
    Pod
    + Debug
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
    + 'static
{
    /// The complex numbers of such parts.
    const COMPLEX: DType;
    const ZERO: Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// Writes all of a tensor of such complex numbers.
    fn write(tensor: &Tensor, values: &[Complex<Self>]) -> Result<()>;
    /// Reads a part of one, from an element on.
    fn read(tensor: &Tensor, first: usize, into: &mut [Complex<Self>]) -> Result<()>;
}

impl Real for f32 {
    const COMPLEX: DType = DType::Complex64;
    const ZERO: Self = 0.0;

    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn write(tensor: &Tensor, values: &[Complex<Self>]) -> Result<()> {
        tensor.write(values)
    }

    fn read(tensor: &Tensor, first: usize, into: &mut [Complex<Self>]) -> Result<()> {
        tensor.read_at(first, into)
    }
}

impl Real for f64 {
    const COMPLEX: DType = DType::Complex128;
    const ZERO: Self = 0.0;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn write(tensor: &Tensor, values: &[Complex<Self>]) -> Result<()> {
        tensor.write(values)
    }

    fn read(tensor: &Tensor, first: usize, into: &mut [Complex<Self>]) -> Result<()> {
        tensor.read_at(first, into)
    }
}

/// An amplitude in float64.
pub(crate) fn wide<T: Real>(amplitude: Complex<T>) -> Complex<f64> {
    Complex::new(amplitude.re.to_f64(), amplitude.im.to_f64())
}
