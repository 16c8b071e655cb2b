//! Element types of tensors.

use std::str::FromStr;

use crate::error::Error;
use crate::reflection::Scalar;

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 32-bit two's complement.
    I32,
    /// 32-bit unsigned.
    U32,
    /// 64-bit two's complement.
    I64,
    /// 64-bit unsigned.
    U64,
}

impl DType {
    /// Every dtype.
    pub const ALL: &'static [Self] = &[Self::F16, Self::F32, Self::F64, Self::I32, Self::U32, Self::I64, Self::U64];

    /// Size of an element in bytes.
    ///
    /// ```
    /// assert_eq!(cantus::DType::F16.bytes(), 2);
    /// assert_eq!("u64".parse::<cantus::DType>()?.bytes(), 8);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// The WGSL name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.scalar().name()
    }

    /// The WGSL scalar type.
    #[must_use]
    pub fn scalar(self) -> Scalar {
        match self {
            Self::F16 => Scalar::F16,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
            Self::I32 => Scalar::I32,
            Self::U32 => Scalar::U32,
            Self::I64 => Scalar::I64,
            Self::U64 => Scalar::U64,
        }
    }

    /// The dtype of a WGSL scalar that can live in a tensor.
    #[must_use]
    pub fn of_scalar(scalar: Scalar) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.scalar() == scalar)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == text).ok_or_else(|| Error::InvalidInput {
            what: format!("dtype \"{text}\""),
            reason: "it is none of f16, f32, f64, i32, u32, i64, u64".to_owned(),
        })
    }
}

/// A Rust type that is a tensor's element. Implemented for the seven types of [`DType`], and for no others.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The dtype.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
elements!(half::f16 => F16, f32 => F32, f64 => F64, i32 => I32, u32 => U32, i64 => I64, u64 => U64);
