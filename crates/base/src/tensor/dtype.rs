//! Element types of tensors. A dtype has a storage type and a type in which operations compute (`computed`), which are not the same for numbers narrower
//! than a word. A new dtype is a row of the macro. Promotion is the array API standard's, and integers never become floats by it: say which with a cast.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::listed::Listed;
use crate::reflection::Scalar;

/// The kind of numbers that a dtype holds. Promotion stays within a kind, or goes from real to complex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    Complex,
}

/// One row for each dtype: its name, the Rust type of its elements, the kind of its numbers, the scalars of a kernel's binding, the dtype in which
/// operations compute, and NumPy's code.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $dtype:ident = $name:literal, $rust:ty, $kind:ident, $scalar:ident, $computed:ident, $code:literal;)*) => {
        /// The element type of a tensor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum DType {
            $($(#[$doc])* $dtype,)*
        }

        impl DType {
            /// Every dtype.
            pub const ALL: &'static [Self] = &[$(Self::$dtype,)*];

            /// Returns the size of an element in bytes.
            ///
            /// ```
            /// assert_eq!(cantus::DType::F16.bytes(), 2);
            /// assert_eq!("u64".parse::<cantus::DType>()?.bytes(), 8);
            /// # Ok::<_, cantus::Error>(())
            /// ```
            #[must_use]
            pub fn bytes(self) -> usize {
                match self {
                    $(Self::$dtype => size_of::<$rust>(),)*
                }
            }

            /// Returns the name, which is WGSL's if WGSL has the type.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$dtype => $name,)*
                }
            }

            /// Returns the scalars of a kernel's binding for such a tensor. Types that WGSL lacks are packed into words, the first element in the
            /// lowest bits: `array<u32>`. A complex number is its real and its imaginary part: `array<vec2f>`.
            #[must_use]
            pub fn scalar(self) -> Scalar {
                match self {
                    $(Self::$dtype => Scalar::$scalar,)*
                }
            }

            /// Returns the dtype in which operations compute: a 32-bit one for narrower types, else itself.
            #[doc(hidden)]
            pub fn computed(self) -> Self {
                match self {
                    $(Self::$dtype => Self::$computed,)*
                }
            }

            /// Returns the kind of its numbers.
            #[doc(hidden)]
            pub fn kind(self) -> Kind {
                match self {
                    $(Self::$dtype => Kind::$kind,)*
                }
            }

            /// Returns elements as texts, each as short as it can be without loss.
            #[doc(hidden)]
            #[must_use]
            pub fn texts(self, bytes: &[u8]) -> Vec<String> {
                match self {
                    $(Self::$dtype => texts_of::<$rust>(bytes),)*
                }
            }

            /// Returns NumPy's code, without the byte order.
            #[doc(hidden)]
            pub fn numpy_code(self) -> &'static str {
                match self {
                    $(Self::$dtype => $code,)*
                }
            }
        }

        $(
            element!($kind, $rust);
            impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

/// How bytes become elements.
macro_rules! element {
    // Bytes of a tensor of bools may be any; Rust's are 0 and 1.
    (Bool, $rust:ty) => {
        impl sealed::Sealed for $rust {
            fn bytes_mut(_: &mut [Self]) -> Option<&mut [u8]> {
                None
            }

            fn decode(values: &mut [Self], bytes: &[u8]) {
                values.iter_mut().zip(bytes).for_each(|(value, byte)| *value = *byte != 0);
            }
        }
    };
    ($kind:ident, $rust:ty) => {
        impl sealed::Sealed for $rust {
            fn bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
                Some(bytemuck::cast_slice_mut(values))
            }

            fn decode(values: &mut [Self], bytes: &[u8]) {
                bytemuck::cast_slice_mut(values).copy_from_slice(bytes);
            }
        }
    };
}

dtypes! {
    /// IEEE single precision.
    F32 = "f32", f32, Float, F32, F32, "f4";
    /// IEEE half precision.
    F16 = "f16", half::f16, Float, F16, F32, "f2";
    /// The upper half of an IEEE single precision number: its range, and 8 bits of precision.
    // NumPy has no code for it: the package `ml_dtypes` writes two bytes of no type, which `array.view(ml_dtypes.bfloat16)` reads.
    BF16 = "bf16", half::bf16, Float, U32, F32, "V2";
    /// IEEE double precision.
    F64 = "f64", f64, Float, F64, F64, "f8";
    /// 32-bit two's complement.
    I32 = "i32", i32, Signed, I32, I32, "i4";
    /// 32-bit unsigned.
    U32 = "u32", u32, Unsigned, U32, U32, "u4";
    /// 16-bit two's complement.
    I16 = "i16", i16, Signed, I16, I32, "i2";
    /// 16-bit unsigned.
    U16 = "u16", u16, Unsigned, U16, U32, "u2";
    /// 8-bit two's complement.
    I8 = "i8", i8, Signed, U32, I32, "i1";
    /// 8-bit unsigned.
    U8 = "u8", u8, Unsigned, U32, U32, "u1";
    /// 64-bit two's complement.
    I64 = "i64", i64, Signed, I64, I64, "i8";
    /// 64-bit unsigned.
    U64 = "u64", u64, Unsigned, U64, U64, "u8";
    /// False or true, a byte each: 0, or anything else.
    Bool = "bool", bool, Bool, U32, U32, "b1";
    /// Real and imaginary part in single precision.
    Complex64 = "complex64", num_complex::Complex<f32>, Complex, F32, Complex64, "c8";
    /// Real and imaginary part in double precision.
    Complex128 = "complex128", num_complex::Complex<f64>, Complex, F64, Complex128, "c16";
}

/// The texts of whole elements.
fn texts_of<T: Element + Default + ToString>(bytes: &[u8]) -> Vec<String> {
    let text = |bytes: &[u8]| {
        let mut value = [T::default()];
        T::decode(&mut value, bytes);
        let [value] = value;
        value.to_string()
    };
    bytes.chunks_exact(size_of::<T>()).map(text).listed()
}

impl DType {
    /// Returns the dtype of a WGSL scalar that can live in a tensor.
    #[must_use]
    pub fn of_scalar(scalar: Scalar) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == scalar.name() && dtype.scalar() == scalar)
    }

    /// Returns whether a binding of such scalars takes these elements: scalars of the same type, or words for narrower elements.
    #[must_use]
    pub fn binds(self, scalar: Scalar) -> bool {
        scalar == self.scalar() || (self.is_packed() && scalar == Scalar::U32)
    }

    /// Returns several elements share a word.
    #[doc(hidden)]
    pub fn is_packed(self) -> bool {
        self.bytes() < 4
    }

    /// Returns the bits of a number as a float dtype holds it, rounded to the nearest; `None` for other kinds.
    #[doc(hidden)]
    pub fn float_bits(self, number: f64) -> Option<u64> {
        Some(match self {
            Self::F16 => half::f16::from_f64(number).to_bits().into(),
            Self::BF16 => half::bf16::from_f64(number).to_bits().into(),
            Self::F32 => (number as f32).to_bits().into(),
            Self::F64 => number.to_bits(),
            _ => return None,
        })
    }

    /// Returns the number that these bits are in a float dtype of 16 bits; `None` for other dtypes.
    #[doc(hidden)]
    pub fn half(self, bits: u16) -> Option<f32> {
        match self {
            Self::F16 => Some(half::f16::from_bits(bits).to_f32()),
            Self::BF16 => Some(half::bf16::from_bits(bits).to_f32()),
            _ => None,
        }
    }

    /// Returns whether it is a float dtype of 16 bits.
    #[doc(hidden)]
    pub fn is_half(self) -> bool {
        self.half(0).is_some()
    }

    /// Returns the least and the greatest integer, for integers (bool: 0 and 1).
    #[cfg(feature = "wgsl")]
    #[doc(hidden)]
    pub fn limits(self) -> Option<(i128, i128)> {
        let bits = 8 * self.bytes();
        match self.kind() {
            Kind::Bool => Some((0, 1)),
            Kind::Signed => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Kind::Unsigned => Some((0, (1 << bits) - 1)),
            Kind::Float | Kind::Complex => None,
        }
    }

    /// Returns the dtype of a result computed from two dtypes, by the table of the Python array API standard. Beyond that table, bool counts as 0
    /// and 1 of the other dtype, f16 with bf16 gives f32, and both promote to wider floats.
    ///
    /// ```
    /// use cantus::DType;
    ///
    /// assert_eq!(DType::U8.promoted(DType::I8)?, DType::I16);
    /// assert_eq!(DType::I32.promoted(DType::U32)?, DType::I64);
    /// assert_eq!(DType::F64.promoted(DType::Complex64)?, DType::Complex128);
    /// assert!(DType::I32.promoted(DType::F32).is_err()); // say which: cast
    /// assert!(DType::I32.promoted(DType::U64).is_err()); // no integer holds both
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Dtype`] for an integer with a float or a complex number, and for u64 with a signed integer.
    pub fn promoted(self, other: Self) -> Result<Self> {
        use Kind::{Bool, Complex, Float, Signed, Unsigned};
        let wider = if self.bytes() >= other.bytes() { self } else { other };
        let none =
            |reason: &str| Error::dtype(format!("{self} and {other} together"), format!("{reason} (cast one of them)"));
        Ok(match (self.kind(), other.kind()) {
            _ if self == other => self,
            (Bool, _) => other,
            (_, Bool) => self,
            (Signed, Signed) | (Unsigned, Unsigned) | (Complex, Complex) => wider,
            (Float, Float) if self.bytes() == other.bytes() => Self::F32,
            (Float, Float) => wider,
            (Complex, Float) | (Float, Complex) => {
                let double = [self, other].iter().any(|dtype| matches!(dtype, Self::F64 | Self::Complex128));
                if double { Self::Complex128 } else { Self::Complex64 }
            }
            (Signed, Unsigned) | (Unsigned, Signed) => {
                let (signed, unsigned) = if self.kind() == Signed { (self, other) } else { (other, self) };
                match unsigned.bytes() {
                    bytes if bytes < signed.bytes() => signed,
                    1 => Self::I16,
                    2 => Self::I32,
                    4 => Self::I64,
                    _ => return Err(none("no integer holds the numbers of both")),
                }
            }
            _ => return Err(none("an integer beside a float has no dtype that both agree on")),
        })
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the names of all dtypes, for messages.
#[doc(hidden)]
pub fn names() -> String {
    DType::ALL.iter().map(|dtype| dtype.name()).listed().join(", ")
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .iter()
            .copied()
            .find(|dtype| dtype.name() == text)
            .ok_or_else(|| Error::invalid(format!("dtype \"{text}\""), format!("it is not one of {}", names())))
    }
}

/// A Rust type of tensor elements. Implemented for exactly one type per [`DType`]: numbers, [`half::f16`], [`half::bf16`], `bool`, and
/// [`num_complex::Complex`] of `f32` and `f64`.
pub trait Element: bytemuck::NoUninit + bytemuck::Zeroable + sealed::Sealed {
    /// The dtype.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed: Sized {
        /// The memory of elements, where any bytes are elements.
        fn bytes_mut(values: &mut [Self]) -> Option<&mut [u8]>;

        /// Sets elements from as many bytes as they have.
        fn decode(values: &mut [Self], bytes: &[u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    /// The table of the standard's section on type promotion, and the rows that it leaves open.
    #[test]
    fn promotion_is_the_array_api_standards() {
        let rows = [
            ("i8", "i8 i16 i32 i64 | i16 i32 i64 - | - - - - - - | i8"),
            ("i16", "i16 i16 i32 i64 | i16 i32 i64 - | - - - - - - | i16"),
            ("i32", "i32 i32 i32 i64 | i32 i32 i64 - | - - - - - - | i32"),
            ("i64", "i64 i64 i64 i64 | i64 i64 i64 - | - - - - - - | i64"),
            ("u8", "i16 i16 i32 i64 | u8 u16 u32 u64 | - - - - - - | u8"),
            ("u16", "i32 i32 i32 i64 | u16 u16 u32 u64 | - - - - - - | u16"),
            ("u32", "i64 i64 i64 i64 | u32 u32 u32 u64 | - - - - - - | u32"),
            ("u64", "- - - - | u64 u64 u64 u64 | - - - - - - | u64"),
            ("bf16", "- - - - | - - - - | bf16 f32 f32 f64 complex64 complex128 | bf16"),
            ("f16", "- - - - | - - - - | f32 f16 f32 f64 complex64 complex128 | f16"),
            ("f32", "- - - - | - - - - | f32 f32 f32 f64 complex64 complex128 | f32"),
            ("f64", "- - - - | - - - - | f64 f64 f64 f64 complex128 complex128 | f64"),
            (
                "complex64",
                "- - - - | - - - - | complex64 complex64 complex64 complex128 complex64 complex128 | complex64",
            ),
            (
                "complex128",
                "- - - - | - - - - | complex128 complex128 complex128 complex128 complex128 complex128 | complex128",
            ),
            ("bool", "i8 i16 i32 i64 | u8 u16 u32 u64 | bf16 f16 f32 f64 complex64 complex128 | bool"),
        ];
        let columns =
            "i8 i16 i32 i64 u8 u16 u32 u64 bf16 f16 f32 f64 complex64 complex128 bool".split(' ').collect::<Vec<_>>();
        let dtype = |name: &str| name.parse::<DType>().unwrap();
        for (left, row) in rows {
            let cells: Vec<&str> = row.split_whitespace().filter(|cell| *cell != "|").collect();
            assert_eq!(cells.len(), columns.len(), "{left}");
            for (right, cell) in columns.iter().zip(cells) {
                let promoted = dtype(left).promoted(dtype(right)).ok();
                assert_eq!(promoted, (cell != "-").then(|| dtype(cell)), "{left} and {right}");
            }
        }
    }

    #[cfg(feature = "wgsl")]
    #[test]
    fn limits_are_the_types_own() {
        assert_eq!(DType::I8.limits(), Some((i8::MIN.into(), i8::MAX.into())));
        assert_eq!(DType::U64.limits(), Some((0, u64::MAX.into())));
        assert_eq!(DType::I64.limits(), Some((i64::MIN.into(), i64::MAX.into())));
        assert_eq!(DType::BF16.limits(), None);
    }

    #[test]
    fn bindings_are_words_or_the_types_own() {
        use crate::reflection::Scalar;
        assert!(DType::U8.binds(Scalar::U32) && DType::I16.binds(Scalar::I16) && DType::I16.binds(Scalar::U32));
        assert!(DType::Complex64.binds(Scalar::F32) && !DType::Complex64.binds(Scalar::U32));
        assert!(!DType::I32.binds(Scalar::U32));
        assert_eq!(DType::of_scalar(Scalar::U32), Some(DType::U32));
        assert_eq!(DType::of_scalar(Scalar::I16), Some(DType::I16));
        assert_eq!(DType::of_scalar(Scalar::Bool), None);
    }
}
