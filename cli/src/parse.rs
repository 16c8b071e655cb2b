//! Arguments made of text: sizes, shapes, names with values. Each says what it takes when it is given something else.

use std::path::PathBuf;
use std::str::FromStr;

use cantus::{DType, TextureFormat};

/// A side of a grid.
pub fn side(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(side) if side > 0 => Ok(side),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            Err("it exceeds what this system can address".to_owned())
        }
        _ => Err("a side is a whole number of at least 1".to_owned()),
    }
}

/// Columns and rows: `640x480`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((width, height)) = text.split_once(['x', 'X']) else {
            return Err("a size is WIDTHxHEIGHT, as in 640x480".to_owned());
        };
        Ok(Self { width: side(width)?, height: side(height)? })
    }
}

/// A finite number.
pub fn finite(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(|| "it is not a finite number".to_owned())
}

/// A positive finite number.
pub fn positive(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|value| *value > 0.0).ok_or_else(|| "it is not a positive finite number".to_owned())
}

/// `MIN,MAX` for a colour scale.
pub fn range(text: &str) -> Result<(f32, f32), String> {
    let wanted = || "a range is MIN,MAX with MIN less than MAX, as in -1,1".to_owned();
    let (low, high) = text.split_once(',').ok_or_else(wanted)?;
    let value = |text: &str| text.trim().parse::<f32>().ok().filter(|value| value.is_finite()).ok_or_else(wanted);
    let (low, high) = (value(low)?, value(high)?);
    if low < high { Ok((low, high)) } else { Err(wanted()) }
}

/// A size in bytes, with or without a unit; not 0.
pub fn bytes(text: &str) -> Result<u64, String> {
    cantus::config::parse_bytes(text)
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "a size is a number of bytes, or has a unit, as in 512MB or 16GiB".to_owned())
}

/// A time in milliseconds, with or without a unit; not 0.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "" | "ms" => Some(1.0),
        "s" => Some(1e3),
        "m" | "min" => Some(60e3),
        _ => None,
    };
    let value = factor.and_then(|factor| Some(number.parse::<f64>().ok()? * factor)).map(f64::ceil);
    value
        .filter(|&value| value >= 1.0 && value <= u32::MAX.into())
        .map(|value| value as u64)
        .ok_or_else(|| "a time is a number of milliseconds, or has a unit, as in 500ms, 30s or 2m".to_owned())
}

/// One to three counts, missing ones being 1: `1024`, `64,64` or `8,8,8`.
pub fn extent(text: &str) -> Result<[u32; 3], String> {
    let wanted = || format!("it takes one to three counts of 1 to {}, as in 1024 or 64,64,1", u32::MAX);
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > extent.len() {
        return Err(wanted());
    }
    for (count, part) in extent.iter_mut().zip(parts) {
        *count = part.trim().parse().ok().filter(|&count| count > 0).ok_or_else(wanted)?;
    }
    Ok(extent)
}

/// The number of invocations: counts, or one for each element of a binding (`@x`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocations {
    /// Counts along x, y and z.
    Counts([u32; 3]),
    /// One for each element of that binding.
    Like(String),
}

/// `1024`, `64,64` or `@x`.
pub fn invocations(text: &str) -> Result<Invocations, String> {
    match text.strip_prefix('@') {
        Some("") => Err("@ takes a binding's name, as in @x: one invocation for each of its elements".to_owned()),
        Some(name) => Ok(Invocations::Like(name.to_owned())),
        None => extent(text).map(Invocations::Counts),
    }
}

/// `NAME=VALUE`, the value still text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Before the `=`.
    pub name: String,
    /// After it.
    pub value: String,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = split_named(text, "NAME=VALUE, as in params.a=2 or SIZE=64")?;
        Ok(Self { name, value })
    }
}

/// Two names: `A,B`.
#[cfg(feature = "viewer")]
pub fn pair(text: &str) -> Result<[String; 2], String> {
    let wanted = || "it takes two bindings, as in cells,after".to_owned();
    let (a, b) = text.split_once(',').ok_or_else(wanted)?;
    let [a, b] = [a.trim(), b.trim()].map(str::to_owned);
    if a.is_empty() || b.is_empty() || a == b || b.contains(',') { Err(wanted()) } else { Ok([a, b]) }
}

/// `NAME=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The binding.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for NamedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = split_named(text, "NAME=FILE, as in y=out.npy")?;
        Ok(Self { name, path: path.into() })
    }
}

/// The contents of a generated binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// A tensor of this dtype.
    Numbers(DType),
    /// A texture of this format.
    Texels(TextureFormat),
}

/// `NAME=DTYPE[SHAPE]` or `NAME=FORMAT[SHAPE]`: a tensor or a texture to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTensor {
    /// The binding.
    pub name: String,
    /// The contents.
    pub elements: Elements,
    /// Its shape.
    pub shape: Shape,
}

/// The shape of a tensor to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Given.
    Sides(Vec<usize>),
    /// The shape of another binding.
    Like(String),
}

impl FromStr for NamedTensor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "NAME=DTYPE[SHAPE], as in y=f32[1024], y=u32[480,640] or y=f32[@x] for the shape of x (of a texture: y=rgba8unorm[480,640])";
        let (name, tensor) = split_named(text, wanted)?;
        let Some((dtype, shape)) = tensor.strip_suffix(']').and_then(|tensor| tensor.split_once('[')) else {
            return Err(format!("it takes {wanted}"));
        };
        let elements = match TextureFormat::from_name(dtype.trim()) {
            Some(format) => Elements::Texels(format),
            None => Elements::Numbers(dtype.trim().parse().map_err(|_: cantus::Error| neither(dtype.trim()))?),
        };
        Ok(Self { name, elements, shape: self::shape(shape, wanted)? })
    }
}

/// Says that a name is that of no dtype and no format.
fn neither(name: &str) -> String {
    let dtypes: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    let formats: Vec<&str> = TextureFormat::ALL.iter().map(|format| format.name()).collect();
    let near = closest(name, &[dtypes.as_slice(), &formats].concat());
    format!(
        "\"{name}\" is neither a dtype nor a texture format{near}. Dtypes: {}. Formats: {}",
        dtypes.join(", "),
        formats.join(", ")
    )
}

/// Parses the text between the brackets of a shape: `480,640`, or `@x` for that of `x`.
pub fn shape(text: &str, wanted: &str) -> Result<Shape, String> {
    match text.trim().strip_prefix('@') {
        Some(other) if !other.is_empty() => Ok(Shape::Like(other.to_owned())),
        Some(_) => Err(format!("it takes {wanted}")),
        None if text.trim().is_empty() => Ok(Shape::Sides(Vec::new())),
        None => Ok(Shape::Sides(text.split([',', 'x']).map(|text| side(text.trim())).collect::<Result<_, _>>()?)),
    }
}

/// ` (did you mean "x"?)` where one of the known words is close; nothing otherwise.
pub fn closest(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::jaro_winkler(word, known), known));
    let best = near.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(String::new, |(_, best)| format!(" (did you mean \"{best}\"?)"))
}

/// The parts of `NAME=VALUE`.
pub fn split_named(text: &str, wanted: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("it takes {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_extents() {
        assert_eq!("640x480".parse(), Ok(Size { width: 640, height: 480 }));
        for bad in ["", "640", "0x3", "3x", "-1x3", "1x2x3", "1.5x2", "99999999999999999999x1"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        assert_eq!(extent("7"), Ok([7, 1, 1]));
        assert_eq!(extent("7, 8,9"), Ok([7, 8, 9]));
        for bad in ["", "0", "1,0", "1,2,3,4", "-1", "4294967296", "1,,2"] {
            assert!(extent(bad).is_err(), "{bad}");
        }
        assert_eq!(invocations("64,64"), Ok(Invocations::Counts([64, 64, 1])));
        assert_eq!(invocations("@x"), Ok(Invocations::Like("x".to_owned())));
        assert!(invocations("@").is_err() && invocations("x").is_err());
    }

    #[test]
    fn ranges_bytes_and_times() {
        assert_eq!(range("-1,1"), Ok((-1.0, 1.0)));
        for bad in ["1", "1,1", "2,1", "nan,1", "0,inf", "a,b"] {
            assert!(range(bad).is_err(), "{bad}");
        }
        assert_eq!(bytes("16GiB"), Ok(16 << 30));
        assert_eq!(bytes("512MB"), Ok(512_000_000));
        assert!(bytes("0").is_err() && bytes("-1").is_err() && bytes("5 apples").is_err());
        assert_eq!(milliseconds("250"), Ok(250));
        assert_eq!(milliseconds("1.5s"), Ok(1500));
        assert_eq!(milliseconds("2m"), Ok(120_000));
        for bad in ["", "0", "-1", "s", "1h", "1e99s"] {
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_with_values() {
        let tensor: NamedTensor = "y = f32[2, 3]".parse().unwrap();
        assert_eq!(
            tensor,
            NamedTensor {
                name: "y".to_owned(),
                elements: Elements::Numbers(DType::F32),
                shape: Shape::Sides(vec![2, 3])
            }
        );
        let tensor: NamedTensor = "y=u64[@x]".parse().unwrap();
        assert_eq!(tensor.shape, Shape::Like("x".to_owned()));
        assert_eq!("s=i32[]".parse::<NamedTensor>().unwrap().shape, Shape::Sides(Vec::new()));
        for bad in ["y", "y=", "=f32[1]", "y=f32", "y=f32[0]", "y=f32[-1]", "y=f31[1]", "y=f32[1", "y=f32[@]"] {
            assert!(bad.parse::<NamedTensor>().is_err(), "{bad}");
        }
        let refusal = "y=rgba9unorm[4,4]".parse::<NamedTensor>().unwrap_err();
        assert!(
            refusal.contains("\"rgba8unorm\"?") && refusal.contains("r32float") && refusal.contains("bf16"),
            "{refusal}"
        );
        let file: NamedFile = "x=a=b.npy".parse().unwrap();
        assert_eq!((file.name.as_str(), file.path.as_os_str()), ("x", "a=b.npy".as_ref()));
    }
}
