//! Elements, points and messages as JSON has them. Forms of requests are made of these. Elements are decimal or hexadecimal digits in JSON, limbs of 32
//! bits as bytes, and both become limbs when they are checked. What was not checked has no bytes to compute with.

use serde::Deserialize;

#[cfg(feature = "zk")]
use super::array::Array;
use crate::problem::Problem;

/// Elements of a field.
#[derive(Debug, Clone, Default)]
pub enum Elements {
    /// One by one, as JSON has them.
    Listed(Vec<Element>),
    /// Checked, or as they came as bytes: 32-bit limbs, the least significant first.
    Limbs(Vec<u32>),
    /// Not there.
    #[default]
    Missing,
}

/// An element of a field, below the modulus.
#[derive(Debug, Clone)]
pub enum Element {
    /// A number.
    Number(u64),
    /// Decimal digits, or hexadecimal digits after 0x.
    Text(String),
}

described!(Element, "An element of a field, below its modulus: a number, or text of decimal digits, or of hexadecimal digits after 0x.", {
    "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": u64::MAX },
        { "type": "string", "pattern": "^(0x[0-9a-fA-F]{1,96}|[0-9]{1,116})$" },
    ]
});

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        super::listed(from).map(Self::Listed)
    }
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Element;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a whole number of at least 0, or text of decimal digits, or of hexadecimal digits after 0x",
                )
            }
            fn visit_u64<E>(self, value: u64) -> Result<Element, E> {
                Ok(Element::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Element, E> {
                Ok(Element::Text(value.to_owned()))
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// Bytes in hexadecimal digits.
#[derive(Debug, Clone, Default)]
pub enum Bytes {
    /// The digits.
    Digits(String),
    /// The elements' bytes.
    Held(Vec<u8>),
    /// No elements.
    #[default]
    Missing,
}

described!(Bytes, "Bytes as hexadecimal digits, with or without 0x in front.", {
    "type": "string", "pattern": "^(0x)?([0-9a-fA-F]{2})*$",
});

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                digits(text)
            }
        }
        from.deserialize_str(Visitor)
    }
}

/// A copy of digits.
fn digits<E: serde::de::Error>(text: &str) -> Result<Bytes, E> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| E::custom(super::NO_MEMORY))?;
    copy.push_str(text);
    Ok(Bytes::Digits(copy))
}

impl Bytes {
    /// Reads the digits.
    ///
    /// # Errors
    /// 422 at the pointer.
    pub fn check(&mut self, pointer: &str) -> Result<(), Problem> {
        let Self::Digits(text) = self else { return Ok(()) };
        let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
        let refused = |place: usize| {
            Problem::invalid(format!("hexadecimal digits are expected, two for a byte; see digit {place}")).at(pointer)
        };
        if !digits.len().is_multiple_of(2) {
            return Err(refused(digits.len()));
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = super::room(digits.len() / 2)?;
        for (place, &[high, low]) in digits.as_chunks::<2>().0.iter().enumerate() {
            let byte = digit(high).zip(digit(low)).map(|(high, low)| (high << 4 | low) as u8);
            bytes.push(byte.ok_or_else(|| refused(2 * place))?);
        }
        *self = Self::Held(bytes);
        Ok(())
    }

    /// The bytes, once they were read.
    pub fn held(&self) -> &[u8] {
        if let Self::Held(bytes) = self { bytes } else { &[] }
    }
}

/// Points: their bytes one after the other, or one by one.
#[derive(Debug, Clone)]
pub enum Points {
    /// One after the other.
    Together(Bytes),
    /// One by one.
    Listed(Vec<Bytes>),
}

impl Default for Points {
    fn default() -> Self {
        Self::Together(Bytes::Missing)
    }
}

#[cfg(feature = "zk")]
impl Points {
    /// Takes points that came as bytes.
    ///
    /// # Errors
    /// 422 where there are some.
    pub fn bind(&mut self, name: &str, array: Array) -> Result<(), Problem> {
        super::once(matches!(self, Self::Together(Bytes::Missing)), "", name)?;
        *self = Self::of(array)?;
        Ok(())
    }

    /// Points that came as bytes.
    ///
    /// # Errors
    /// 500 for an array that was not checked.
    pub fn of(array: Array) -> Result<Self, Problem> {
        array.into_bytes().map(|bytes| Self::Together(Bytes::Held(bytes)))
    }
}

described!(Points, "Points as hexadecimal digits, with or without 0x in front: a list of points, or one text with all of them one after the other.", {
    "anyOf": [
        { "type": "string", "pattern": "^(0x)?([0-9a-fA-F]{2})*$" },
        { "type": "array", "items": { "type": "string", "pattern": "^(0x)?([0-9a-fA-F]{2})*$" } },
    ]
});

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Points;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("hexadecimal digits, or a list of them")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Points, E> {
                digits(text).map(Points::Together)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Points, A::Error> {
                super::all_of(list).map(Points::Listed)
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Elements {
    /// Takes elements that came as bytes.
    ///
    /// # Errors
    /// 422 where there are some.
    #[cfg(feature = "zk")]
    pub fn bind(&mut self, name: &str, limbs: Self) -> Result<(), Problem> {
        super::once(matches!(self, Self::Missing), "", name)?;
        *self = limbs;
        Ok(())
    }

    /// Returns the number of elements, of that many limbs each.
    #[cfg(feature = "zk")]
    pub fn count(&self, words: usize) -> usize {
        match self {
            Self::Listed(list) => list.len(),
            Self::Limbs(limbs) => limbs.len() / words.max(1),
            Self::Missing => 0,
        }
    }
}
