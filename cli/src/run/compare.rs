//! Compares two arrays of one dtype and shape: the largest differences, and where they are. Reads arrays; runs nothing.

use std::fmt::Write as _;
use std::str::FromStr;

use cantus::DType;
use cantus::backend::DeviceInfo;
use cantus::tensor::npy::Array;
use serde_json::{Value, json};

/// A limit on a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// |a - b|
    Absolute(f64),
    /// |a - b| / |b|
    Relative(f64),
    /// Floats that lie between a and b.
    Ulp(u64),
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || "a tolerance is a number of at least 0, as in 1e-5, or has a unit, as in 1e-6rel or 4ulp".to_owned();
        if let Some(count) = text.strip_suffix("ulp") {
            return count.trim().parse().map(Self::Ulp).map_err(|_| wanted());
        }
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| *value >= 0.0).ok_or_else(wanted);
        match text.strip_suffix("rel") {
            Some(relative) => number(relative).map(Self::Relative),
            None => number(text).map(Self::Absolute),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absolute(value) => write!(f, "{value:e}"),
            Self::Relative(value) => write!(f, "{value:e} relative"),
            Self::Ulp(count) => write!(f, "{count} ULP"),
        }
    }
}

/// The largest differences between two arrays.
#[derive(Debug, Clone)]
pub struct Difference {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    absolute: Extreme<f64>,
    /// |a - b| / |b|
    relative: Extreme<f64>,
    /// The largest difference in units in the last place, of floats only.
    ulp: Option<Extreme<u64>>,
    /// The number of elements that are not equal (two NaNs are equal).
    unequal: usize,
}

/// A largest value, and the flat index of the first element that has it.
#[derive(Debug, Clone, Copy, Default)]
struct Extreme<T> {
    value: T,
    at: usize,
    pair: (f64, f64),
}

impl<T: PartialOrd + Copy> Extreme<T> {
    fn meet(&mut self, value: T, at: usize, pair: (f64, f64)) {
        if value > self.value {
            *self = Self { value, at, pair };
        }
    }
}

/// One element as a number, and its place among the floats of its width.
struct Element {
    number: f64,
    /// Exact, for 64-bit integers.
    integer: Option<i128>,
    rank: i64,
}

impl Difference {
    /// Compares `ours` with the reference `theirs`, which has the same dtype and shape.
    pub fn between(name: &str, ours: &Array, theirs: &Array) -> Self {
        let dtype = ours.dtype;
        // Parts of complex numbers are compared one by one.
        let part = match dtype {
            DType::Complex64 => DType::F32,
            DType::Complex128 => DType::F64,
            whole => whole,
        };
        let is_float = matches!(part, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        let parts = dtype.bytes() / part.bytes();
        let mut difference = Self {
            name: name.to_owned(),
            dtype,
            shape: ours.shape.clone(),
            absolute: Extreme::default(),
            relative: Extreme::default(),
            ulp: is_float.then(Extreme::default),
            unequal: 0,
        };
        let elements = ours.bytes.chunks_exact(part.bytes()).zip(theirs.bytes.chunks_exact(part.bytes()));
        for (at, (ours, theirs)) in elements.enumerate() {
            difference.meet(at / parts, &element(part, ours), &element(part, theirs));
        }
        difference
    }

    fn meet(&mut self, at: usize, ours: &Element, theirs: &Element) {
        let pair = (ours.number, theirs.number);
        let equal = match (ours.integer, theirs.integer) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => ours.number == theirs.number || (ours.number.is_nan() && theirs.number.is_nan()),
        };
        if equal {
            return;
        }
        self.unequal += 1;
        let absolute = match (ours.integer, theirs.integer) {
            (Some(ours), Some(theirs)) => ours.abs_diff(theirs) as f64,
            _ => (ours.number - theirs.number).abs(),
        };
        // A NaN against a number is as far apart as can be.
        let absolute = if absolute.is_nan() { f64::INFINITY } else { absolute };
        let relative = absolute / theirs.number.abs();
        self.absolute.meet(absolute, at, pair);
        self.relative.meet(if relative.is_nan() { f64::INFINITY } else { relative }, at, pair);
        if let Some(ulp) = &mut self.ulp {
            let one_nan = ours.number.is_nan() != theirs.number.is_nan();
            ulp.meet(if one_nan { u64::MAX } else { ours.rank.abs_diff(theirs.rank) }, at, pair);
        }
    }

    /// Returns the message if the tolerance is exceeded.
    pub fn excess(&self, tolerance: Tolerance) -> Option<String> {
        let (passed, value) = match tolerance {
            Tolerance::Absolute(limit) => (self.absolute.value > limit, format!("{:e}", self.absolute.value)),
            Tolerance::Relative(limit) => (self.relative.value > limit, format!("{:e} relative", self.relative.value)),
            // Integers have no ULP; they count whole numbers.
            Tolerance::Ulp(limit) => match &self.ulp {
                Some(ulp) => (ulp.value > limit, format!("{} ULP", ulp.value)),
                None => (self.absolute.value > limit as f64, format!("{:e}", self.absolute.value)),
            },
        };
        passed.then(|| format!("{} differs by {value}, more than the tolerance of {tolerance}", self.name))
    }

    /// Returns the comparison as JSON. An infinite difference is null.
    pub fn json(&self) -> Value {
        let extreme = |value: Value, at: usize, (ours, theirs): (f64, f64)| json!({ "value": value, "at": self.index(at), "values": [ours, theirs] });
        json!({
            "name": self.name,
            "dtype": self.dtype.name(),
            "shape": self.shape,
            "unequal": self.unequal,
            "absolute": extreme(self.absolute.value.into(), self.absolute.at, self.absolute.pair),
            "relative": extreme(self.relative.value.into(), self.relative.at, self.relative.pair),
            "ulp": self.ulp.map(|ulp| extreme(ulp.value.into(), ulp.at, ulp.pair)),
        })
    }

    /// The index by axis of a flat index.
    fn index(&self, at: usize) -> Vec<usize> {
        let mut rest = at;
        let mut index = Vec::new();
        for &side in self.shape.iter().rev() {
            let side = side.max(1);
            index.push(rest % side);
            rest /= side;
        }
        index.reverse();
        index
    }
}

/// The differences for a person.
pub fn text(ours: &DeviceInfo, theirs: &DeviceInfo, differences: &[Difference]) -> String {
    let device = |info: &DeviceInfo| format!("{} {}: {}", info.backend, info.index, info.name);
    let mut text = format!("{}\nagainst {}\n", device(ours), device(theirs));
    if differences.is_empty() {
        text.push_str("nothing to compare: the kernel writes no binding\n");
    }
    for difference in differences {
        let Difference { name, dtype, shape, absolute, relative, ulp, unequal } = difference;
        if *unequal == 0 {
            let _ = writeln!(text, "{name} {dtype}{shape:?}: equal");
            continue;
        }
        let count: usize = shape.iter().product();
        let _ = writeln!(text, "{name} {dtype}{shape:?}: {unequal} of {count} differ, at most by");
        let place =
            |at: usize, (ours, theirs): (f64, f64)| format!("at {:?}: {ours:?}, {theirs:?}", difference.index(at));
        let _ = writeln!(text, "  absolute  {:<10.3e}  {}", absolute.value, place(absolute.at, absolute.pair));
        let _ = writeln!(text, "  relative  {:<10.3e}  {}", relative.value, place(relative.at, relative.pair));
        if let Some(ulp) = ulp {
            let _ = writeln!(text, "  ULP       {:<10}  {}", ulp.value, place(ulp.at, ulp.pair));
        }
    }
    text
}

/// Decodes an element of `dtype`; `bytes` has its size.
fn element(dtype: DType, bytes: &[u8]) -> Element {
    fn whole(value: i128) -> Element {
        Element { number: value as f64, integer: Some(value), rank: 0 }
    }
    match dtype {
        DType::F16 => {
            let value: half::f16 = bytemuck::pod_read_unaligned(bytes);
            float(value.to_f64(), i64::from(value.to_bits() & 0x7fff), value.is_sign_negative())
        }
        DType::BF16 => {
            let value: half::bf16 = bytemuck::pod_read_unaligned(bytes);
            float(value.to_f64(), i64::from(value.to_bits() & 0x7fff), value.is_sign_negative())
        }
        DType::F32 => {
            let value: f32 = bytemuck::pod_read_unaligned(bytes);
            float(value.into(), i64::from(value.to_bits() & 0x7fff_ffff), value.is_sign_negative())
        }
        DType::F64 => {
            let value: f64 = bytemuck::pod_read_unaligned(bytes);
            float(value, (value.to_bits() & (u64::MAX >> 1)) as i64, value.is_sign_negative())
        }
        DType::I8 => whole(bytemuck::pod_read_unaligned::<i8>(bytes).into()),
        DType::I16 => whole(bytemuck::pod_read_unaligned::<i16>(bytes).into()),
        DType::I32 => whole(bytemuck::pod_read_unaligned::<i32>(bytes).into()),
        DType::I64 => whole(bytemuck::pod_read_unaligned::<i64>(bytes).into()),
        // Unsigned, of any size.
        _ => whole(bytes.iter().rev().fold(0, |value, &byte| value << 8 | i128::from(byte))),
    }
}

/// Magnitude bits grow with the value, so that ranks of neighbours differ by one; both zeros have rank 0.
fn float(number: f64, magnitude: i64, negative: bool) -> Element {
    Element { number, integer: None, rank: if negative { -magnitude } else { magnitude } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array<T: cantus::Element>(values: &[T]) -> Array {
        Array::new(T::DTYPE, &[values.len()], bytemuck::cast_slice(values).to_vec()).unwrap()
    }

    fn between<T: cantus::Element>(ours: &[T], theirs: &[T]) -> Difference {
        Difference::between("y", &array(ours), &array(theirs))
    }

    #[test]
    fn floats_by_absolute_relative_and_ulp() {
        let next = f32::from_bits(1000.0_f32.to_bits() + 3);
        let difference = between(&[1.0_f32, next, 0.0, f32::NAN], &[1.0, 1000.0, -0.0, f32::NAN]);
        assert_eq!(difference.unequal, 1);
        assert_eq!(difference.absolute.value, f64::from(next) - 1000.0);
        assert_eq!((difference.absolute.at, difference.ulp.unwrap().value), (1, 3));
        assert!((difference.relative.value - difference.absolute.value / 1000.0).abs() < 1e-15);
        let crossing = between(&[f32::from_bits(1)], &[-f32::from_bits(2)]);
        assert_eq!(crossing.ulp.unwrap().value, 3);
        let nan = between(&[1.0_f64, f64::NAN], &[1.0, 2.0]);
        assert_eq!((nan.absolute.value, nan.ulp.unwrap().value, nan.absolute.at), (f64::INFINITY, u64::MAX, 1));
        let infinite = between(&[f64::INFINITY], &[f64::INFINITY]);
        assert_eq!(infinite.unequal, 0);
    }

    #[test]
    fn integers_exactly() {
        let difference = between(&[u64::MAX, 5], &[u64::MAX - 1, 5]);
        assert_eq!((difference.unequal, difference.absolute.value), (1, 1.0));
        assert!(difference.ulp.is_none());
        assert_eq!(between(&[i64::MIN], &[i64::MAX]).absolute.value, 2.0_f64.powi(64));
    }

    #[test]
    fn tolerances() {
        let difference = between(&[1.5_f32], &[1.0]);
        for (text, passes) in [
            ("0.5", true),
            ("0.4", false),
            ("0.5rel", true),
            ("0.1rel", false),
            ("4194304ulp", true),
            ("4194303 ulp", false),
        ] {
            assert_eq!(difference.excess(text.parse().unwrap()).is_none(), passes, "{text}");
        }
        for bad in ["", "-1", "nan", "ulp", "1.5ulp", "x"] {
            assert!(bad.parse::<Tolerance>().is_err(), "{bad}");
        }
    }

    #[test]
    fn indices_by_axis() {
        let array = |values: [i32; 6]| Array::new(DType::I32, &[2, 3], bytemuck::cast_slice(&values).to_vec()).unwrap();
        let (ours, theirs) = (array([0, 0, 0, 0, 0, 9]), array([0; 6]));
        assert_eq!(Difference::between("y", &ours, &theirs).json()["absolute"]["at"], json!([1, 2]));
    }
}
