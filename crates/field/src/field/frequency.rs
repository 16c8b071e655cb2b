//! Frequencies: six named ones, and any other.

use std::str::FromStr;

use crate::error::{Error, Result};
use cantus_base::listed::Listed;

/// A frequency in Hz: one of the six named ones, or any positive finite number.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Frequency {
    /// 528 Hz
    Love,
    /// 432 Hz
    Unity,
    /// 594 Hz
    Cascade,
    /// 672 Hz
    Truth,
    /// 720 Hz
    Vision,
    /// 768 Hz
    Oneness,
    /// Any other: positive and finite.
    Hertz(f64),
}

impl Frequency {
    const NAMED: [(&'static str, Self, f64); 6] = [
        ("love", Self::Love, 528.0),
        ("unity", Self::Unity, 432.0),
        ("cascade", Self::Cascade, 594.0),
        ("truth", Self::Truth, 672.0),
        ("vision", Self::Vision, 720.0),
        ("oneness", Self::Oneness, 768.0),
    ];

    /// Returns the frequency in Hz.
    ///
    /// ```
    /// use cantus::ops::field::Frequency;
    ///
    /// assert_eq!(Frequency::Love.hertz(), 528.0);
    /// assert_eq!(Frequency::Hertz(440.0).hertz(), 440.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn hertz(self) -> f64 {
        if let Self::Hertz(hertz) = self {
            return hertz;
        }
        Self::NAMED.iter().find(|(_, frequency, _)| *frequency == self).map_or(f64::NAN, |(_, _, hertz)| *hertz)
    }

    /// Returns the names, with their values in Hz.
    ///
    /// ```
    /// use cantus::ops::field::Frequency;
    ///
    /// assert!(Frequency::names().any(|pair| pair == ("unity", 432.0)));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn names() -> impl Iterator<Item = (&'static str, f64)> {
        Self::NAMED.iter().map(|(name, _, hertz)| (*name, *hertz))
    }

    pub(super) fn checked(self) -> Result<f64> {
        let hertz = self.hertz();
        if hertz.is_finite() && hertz > 0.0 {
            return Ok(hertz);
        }
        Err(Error::invalid(format!("the frequency {hertz}"), "it must be a positive finite number of Hz"))
    }
}

impl FromStr for Frequency {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.to_ascii_lowercase();
        if let Some((_, frequency, _)) = Self::NAMED.iter().find(|(name, _, _)| *name == lower) {
            return Ok(*frequency);
        }
        match text.parse::<f64>() {
            Ok(hertz) if hertz.is_finite() && hertz > 0.0 => Ok(Self::Hertz(hertz)),
            _ => {
                let names: Vec<String> = Self::names().map(|(name, hertz)| format!("{name} ({hertz})")).listed();
                Err(Error::invalid(
                    format!("the frequency \"{text}\""),
                    format!("it is neither a positive number of Hz nor one of {}", names.join(", ")),
                ))
            }
        }
    }
}

impl std::fmt::Display for Frequency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Self::NAMED.iter().find(|(_, frequency, _)| frequency == self) {
            Some((name, _, hertz)) => write!(f, "{name} ({hertz} Hz)"),
            None => write!(f, "{} Hz", self.hertz()),
        }
    }
}
