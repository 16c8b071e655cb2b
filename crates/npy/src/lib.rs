//! NumPy's `.npy` files to and from plain bytes (dtype, shape and row-major elements). No other format.
//!
//! Format versions 1 to 3, C and Fortran order, either byte order are read; C order in the machine's byte order is written.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use cantus_base::error::{Error, Result};
use cantus_base::listed::Listed;
use cantus_base::tensor::{DType, Kind, check_bytes, dtype_names};
use cantus_base::{files, memory};

/// NumPy's own limit on a header: what is longer is not one.
const HEADER_BYTES: usize = 10_000;

/// An array read from a file: `bytes` holds the elements in the machine's byte order, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes; `[]` for a scalar.
    pub shape: Vec<usize>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Creates an array of `bytes`, the elements in the machine's byte order, row-major.
    ///
    /// ```
    /// use cantus::{DType, tensor::npy::Array};
    ///
    /// let array = Array::new(DType::F32, &[2, 1], bytemuck::cast_slice(&[1.0_f32, 2.0]).to_vec())?;
    /// assert_eq!(array.shape, [2, 1]);
    /// assert!(Array::new(DType::F32, &[3], vec![0; 8]).is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of bytes is not what `shape` needs.
    pub fn new(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self> {
        check_bytes(shape, dtype, bytes.len() as u64)?;
        Ok(Self { dtype, shape: shape.to_vec(), bytes })
    }
}

/// Reads a `.npy` file of a supported dtype.
///
/// # Errors
/// [`Error::Unreadable`] if the file cannot be read; [`Error::InvalidFile`], naming the file, if it is not a `.npy` file, is truncated, continues
/// after its last element, or holds another dtype.
pub fn read(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| Error::unreadable(path, &error))?;
    let held = file.metadata().map_err(|error| Error::unreadable(path, &error))?.len();
    read_where(BufReader::new(file), path, held, |_| Ok(()))
}

/// Reads the contents of a `.npy` file from any reader; `name` is for errors.
///
/// ```
/// use cantus::{DType, tensor::npy};
///
/// let mut file = Vec::new();
/// npy::write_header(&mut file, DType::U32, &[2])?;
/// file.extend([7_u32, 8].iter().flat_map(|value| value.to_ne_bytes()));
/// let array = npy::read_from(file.as_slice(), "two numbers")?;
/// assert_eq!((array.dtype, array.shape), (DType::U32, vec![2]));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from(reader: impl Read, name: impl AsRef<Path>) -> Result<Array> {
    // It grows as bytes come, and that may fail: a header may claim anything.
    read_where(reader, name.as_ref(), 1 << 16, |_| Ok(()))
}

/// The header of a `.npy` file, and the sizes that follow from it.
#[doc(hidden)]
pub struct Described {
    #[doc(hidden)]
    pub dtype: DType,
    #[doc(hidden)]
    pub shape: Vec<usize>,
    /// The bytes of each number are in the other order.
    #[doc(hidden)]
    pub swapped: bool,
    /// Column by column.
    #[doc(hidden)]
    pub fortran: bool,
    /// Bytes of the elements.
    #[doc(hidden)]
    pub bytes: u64,
}

impl std::fmt::Debug for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

impl Described {
    /// Reads a header; the elements follow it.
    #[doc(hidden)]
    pub fn read(reader: &mut impl Read, path: &Path) -> Result<Self> {
        let invalid = |reason: String| Error::file(path.display().to_string(), reason);
        let header = match read_header(reader) {
            Ok(header) => header,
            Err(HeaderFault::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(invalid("it ends within its header: it is truncated, or not a .npy file".to_owned()));
            }
            Err(HeaderFault::Io(error)) => return Err(Error::unreadable(path, &error)),
            Err(HeaderFault::Invalid(reason)) => return Err(invalid(reason)),
        };
        let (dtype, swapped) = element(header.descriptor.as_deref()).map_err(&invalid)?;
        let bytes =
            header.shape.iter().try_fold(dtype.bytes() as u64, |product, &side| product.checked_mul(side as u64));
        let Some(bytes) = bytes.filter(|&bytes| bytes < i64::MAX as u64) else {
            return Err(invalid(format!("its shape {} exceeds what this system can address", Shape(&header.shape))));
        };
        Ok(Self { dtype, swapped, fortran: header.fortran, shape: header.shape, bytes })
    }

    /// Returns the error for a file that has `held` bytes of elements, too few or too many.
    #[doc(hidden)]
    pub fn wrong_length(&self, path: &Path, held: u64) -> Error {
        let (dtype, shape, bytes) = (self.dtype, Shape(&self.shape), self.bytes);
        let reason = if held < bytes {
            format!("it is truncated: {dtype} {shape} takes {bytes} bytes, and it has {held} after its header")
        } else {
            format!("it is longer than its header says: {dtype} {shape} takes {bytes} bytes")
        };
        Error::file(path.display().to_string(), reason)
    }

    /// Puts the bytes of whole elements into the machine's order.
    #[doc(hidden)]
    pub fn order(&self, bytes: &mut [u8]) {
        if self.swapped {
            bytes.chunks_exact_mut(swapped_bytes(self.dtype)).for_each(<[u8]>::reverse);
        }
    }
}

/// As [`read_from`] what holds about `held` bytes, if `fits` agrees to the header: nothing is allocated for the elements before.
///
/// # Errors
/// As [`read_from`], and those of `fits`.
#[doc(hidden)]
pub fn read_where(
    mut reader: impl Read,
    path: &Path,
    held: u64,
    fits: impl FnOnce(&Described) -> Result<()>,
) -> Result<Array> {
    let described = Described::read(&mut reader, path)?;
    fits(&described)?;
    let what = path.display().to_string();
    // Room is taken for what the file holds, not for what its header claims.
    let expected = described.bytes;
    let mut bytes = memory::vec(&what, usize::try_from(expected.min(held)).unwrap_or(usize::MAX))?;
    reader.take(expected + 1).read_to_end(&mut bytes).map_err(|error| Error::unreadable(path, &error))?;
    if bytes.len() as u64 != expected {
        return Err(described.wrong_length(path, bytes.len() as u64));
    }
    described.order(&mut bytes);
    if described.fortran {
        let ordered = memory::vec(&what, bytes.len())?;
        bytes = row_major(&bytes, &described.shape, described.dtype.bytes(), ordered);
    }
    Ok(Array { dtype: described.dtype, shape: described.shape, bytes })
}

/// Writes a `.npy` file, whole or not at all: under a temporary name in the same folder, renamed when complete.
///
/// `bytes` are the elements in the machine's byte order, row-major.
///
/// # Errors
/// [`Error::Shape`] if `bytes` does not fit the shape, [`Error::Io`] if the file cannot be written.
pub fn write(path: impl AsRef<Path>, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    check_bytes(shape, dtype, bytes.len() as u64)?;
    let written = files::write_whole(path, |file| {
        write_header(file, dtype, shape)?;
        file.write_all(bytes)
    });
    written.map_err(|error| Error::Io {
        action: "cannot write".to_owned(),
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// Writes the header of a `.npy` file of row-major elements in the machine's byte order, as NumPy writes it; the elements follow it.
///
/// # Errors
/// The writer's.
pub fn write_header(writer: &mut impl Write, dtype: DType, shape: &[usize]) -> io::Result<()> {
    let order = match dtype.bytes() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    let sides = match shape {
        [side] => format!("({side},)"),
        sides => format!("({})", sides.iter().map(usize::to_string).listed().join(", ")),
    };
    let mut text = format!("{{'descr': '{order}{}', 'fortran_order': False, 'shape': {sides}, }}", dtype.numpy_code());
    // NumPy leaves room for the first length to grow in place, and begins the elements at a multiple of 64 bytes.
    if let Some(first) = shape.first() {
        text.push_str(&" ".repeat(21_usize.saturating_sub(first.to_string().len())));
    }
    let start = MAGIC.len() + 2;
    text.push_str(&" ".repeat(64 - (start + text.len() + 1) % 64));
    text.push('\n');
    let length =
        u16::try_from(text.len()).map_err(|_| io::Error::other("a shape has too many axes for a .npy file"))?;
    writer.write_all(MAGIC)?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(text.as_bytes())
}

/// The first bytes of a file in the format's first version.
const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// The bytes of a number: a complex one is two.
fn swapped_bytes(dtype: DType) -> usize {
    if dtype.kind() == Kind::Complex { dtype.bytes() / 2 } else { dtype.bytes() }
}

/// The dtype of a type descriptor, and whether its bytes must be swapped; or why not.
fn element(descriptor: Option<&str>) -> Result<(DType, bool), String> {
    let text = descriptor.ok_or_else(|| foreign("a structured dtype"))?;
    let (order, rest) = match text.split_at_checked(1) {
        Some((order @ ("<" | ">" | "=" | "|"), rest)) => (order, rest),
        _ => ("=", text),
    };
    let Some(dtype) = DType::ALL.iter().copied().find(|&dtype| dtype.numpy_code() == rest) else {
        return Err(foreign(&format!("dtype '{}'", text.escape_default())));
    };
    let swapped = match order {
        "<" => cfg!(target_endian = "big"),
        ">" => cfg!(target_endian = "little"),
        _ => false,
    };
    Ok((dtype, swapped))
}

fn foreign(what: &str) -> String {
    format!("it holds {what}, which is not one of {} (convert it in NumPy: array.astype(\"float32\"))", dtype_names())
}

enum HeaderFault {
    Io(io::Error),
    Invalid(String),
}

impl From<io::Error> for HeaderFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The dictionary of a header.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// The dtype's name; `None` for a structured dtype, which is a list.
    descriptor: Option<String>,
    /// Column by column.
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses the literal that NumPy writes, with its keys in any order; `None` if it is something else.
    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim_start();
        let (mut descriptor, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            let after = match key {
                "descr" if value.starts_with('[') => {
                    descriptor = Some(None);
                    after_list(value)?
                }
                "descr" => {
                    let (text, after) = quoted(value)?;
                    descriptor = Some(Some(text.to_owned()));
                    after
                }
                "fortran_order" => {
                    fortran = Some(value.starts_with("True"));
                    value.strip_prefix("True").or_else(|| value.strip_prefix("False"))?
                }
                "shape" => {
                    let (sides, after) = value.strip_prefix('(')?.split_once(')')?;
                    shape = Some(sides_of(sides)?);
                    after
                }
                _ => return None,
            };
            let after = after.trim_start();
            rest = if after.is_empty() { after } else { after.strip_prefix(',')?.trim_start() };
        }
        Some(Self { descriptor: descriptor?, fortran: fortran?, shape: shape? })
    }
}

/// A string in quotes without escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (inner, after) = text.strip_prefix(quote)?.split_once(quote)?;
    (!inner.contains('\\')).then_some((inner, after))
}

/// Returns the text after a list, whose strings may contain brackets.
fn after_list(text: &str) -> Option<&str> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 1 => return text.get(at + 1..),
            (None, ']') => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The sides between a tuple's brackets. Python 2 wrote some of them as `3L`.
fn sides_of(text: &str) -> Option<Vec<usize>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let (first, rest) = text.split_once(',')?;
    let rest = rest.split(',').filter(|side| !side.trim().is_empty());
    std::iter::once(first).chain(rest).map(|side| side.trim().trim_end_matches('L').parse().ok()).collect()
}

/// Reads the header, bounded in length before it is parsed.
fn read_header(reader: &mut impl Read) -> Result<Header, HeaderFault> {
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(HeaderFault::Invalid("it is not a .npy file (write one with numpy.save)".to_owned()));
    }
    let length_bytes = if start[6] == 1 { 2 } else { 4 };
    let mut length = [0; 4];
    reader.read_exact(&mut length[..length_bytes])?;
    let header_bytes = u32::from_le_bytes(length) as usize;
    let unreadable =
        || HeaderFault::Invalid("its header cannot be parsed: it is damaged, or not a plain array".to_owned());
    if header_bytes > HEADER_BYTES {
        return Err(unreadable());
    }
    let mut text = vec![0; header_bytes];
    reader.read_exact(&mut text)?;
    std::str::from_utf8(&text).ok().and_then(Header::parse).ok_or_else(unreadable)
}

/// Elements of `size` bytes in Fortran order, put into row-major order in `ordered`, which has room for them.
fn row_major(bytes: &[u8], shape: &[usize], size: usize, mut ordered: Vec<u8>) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for side in shape {
        strides.push(stride);
        stride *= side;
    }
    let mut index = vec![0; shape.len()];
    let mut offset = 0;
    while ordered.len() < bytes.len() {
        ordered.extend_from_slice(&bytes[offset..offset + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    ordered
}

/// A shape as NumPy users write it: `[480, 640]`.
struct Shape<'a>(&'a [usize]);

impl std::fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// A file as NumPy writes it, made by hand.
    fn file(descriptor: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let mut text = format!("{{'descr': '{descriptor}', 'fortran_order': {order}, 'shape': {shape}, }}");
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut whole = b"\x93NUMPY\x01\x00".to_vec();
        whole.extend((text.len() as u16).to_le_bytes());
        whole.extend(text.as_bytes());
        whole.extend(data);
        whole
    }

    fn read_bytes(whole: &[u8]) -> Result<Array> {
        let folder = folder();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, whole).unwrap();
        read(&path)
    }

    #[test]
    fn round_trips_every_dtype_and_shape() {
        let folder = folder();
        for &dtype in DType::ALL {
            for shape in [&[][..], &[0], &[5], &[3, 2], &[2, 0, 4], &[1, 2, 3, 4]] {
                let count: usize = shape.iter().product();
                let bytes: Vec<u8> = (0..count * dtype.bytes()).map(|value| value as u8).collect();
                let path = folder.path().join(format!("{dtype}.npy"));
                write(&path, dtype, shape, &bytes).unwrap();
                assert_eq!(read(&path).unwrap(), Array { dtype, shape: shape.to_vec(), bytes });
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), DType::ALL.len(), "a temporary file is left");
    }

    #[test]
    fn writes_what_the_crate_reads() {
        let folder = folder();
        let path = folder.path().join("a.npy");
        let values = [1.5_f32, -2.0, 3.25, 4.0, 5.0, 6.0];
        write(&path, DType::F32, &[2, 3], bytemuck::cast_slice(&values)).unwrap();
        let array: ndarray::Array2<f32> = ndarray_npy::read_npy(&path).unwrap();
        assert_eq!(array, ndarray::arr2(&[[1.5, -2.0, 3.25], [4.0, 5.0, 6.0]]));
    }

    #[test]
    fn reads_big_endian_and_fortran_order() {
        let big: Vec<u8> = [1_i32, 2, 3].iter().flat_map(|value| value.to_be_bytes()).collect();
        let array = read_bytes(&file(">i4", false, "(3,)", &big)).unwrap();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, i32>(&array.bytes), [1, 2, 3]);
        // The parts of a complex number each by itself.
        let big: Vec<u8> = [1.0_f32, -2.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        let array = read_bytes(&file(">c8", false, "(1,)", &big)).unwrap();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&array.bytes), [1.0, -2.0]);

        let expected: ndarray::Array3<u32> =
            ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as u32);
        let fortran: Vec<u32> = expected.t().iter().copied().collect();
        let array = read_bytes(&file("<u4", true, "(2, 3, 4)", bytemuck::cast_slice(&fortran))).unwrap();
        let values: Vec<u32> = bytemuck::pod_collect_to_vec(&array.bytes);
        assert_eq!(values, expected.iter().copied().collect::<Vec<u32>>());
    }

    #[test]
    fn damaged_and_foreign_files_are_errors_that_name_the_file() {
        let nested = format!("{}1{}", "(".repeat(4000), ")".repeat(4000));
        let mut long = b"\x93NUMPY\x02\x00".to_vec();
        long.extend(u32::MAX.to_le_bytes());
        let cases: [(Vec<u8>, &str); 12] = [
            (Vec::new(), "truncated"),
            (b"\x93NUM".to_vec(), "truncated"),
            (b"hello, world".to_vec(), "not a .npy file"),
            (file("<f4", false, "(3,)", &[0; 12])[..40].to_vec(), "within its header"),
            (file("<f4", false, "(3,)", &[0; 11]), "takes 12 bytes, and it has 11"),
            (file("<f4", false, "(3,)", &[0; 13]), "longer than its header says"),
            (file("<c32", false, "(1,)", &[0; 32]), "dtype '<c32'"),
            (file("<f4", false, "(4294967296, 4294967296, 4294967296)", &[]), "exceeds what this system can address"),
            (file("<f4", false, "(1099511627776,)", &[0; 4]), "truncated"),
            (file("<f4", false, &nested, &[]), "header cannot be parsed"),
            (file("<f4", false, "(-1,)", &[]), "header cannot be parsed"),
            (long, "header cannot be parsed"),
        ];
        for (whole, expected) in cases {
            let error = read_bytes(&whole).unwrap_err();
            assert!(error.is_input(), "{error}");
            let text = error.to_string();
            assert!(text.contains("a.npy") && text.contains(expected), "{text} / {expected}");
        }
    }

    #[test]
    fn headers_as_numpy_and_others_write_them() {
        let header = |descriptor: Option<&str>, fortran, shape: &[usize]| {
            Some(Header { descriptor: descriptor.map(str::to_owned), fortran, shape: shape.to_vec() })
        };
        for (text, expected) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", header(Some("<f4"), false, &[3, 4])),
            ("{\"shape\":(7,),\"fortran_order\":True,\"descr\":\">i2\"}", header(Some(">i2"), true, &[7])),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", header(Some("|b1"), false, &[])),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 2L), }", header(Some("<f8"), false, &[3, 2])),
            (
                "{'descr': [('a]', '<f4'), ('b', [('c', '<i4')])], 'fortran_order': False, 'shape': (2,), }",
                header(None, false, &[2]),
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,), }", None),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,), }", None),
            ("{'descr': '<f4', 'fortran_order': False}", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", None),
            ("{'descr': [[, 'fortran_order': False, 'shape': (3,)}", None),
            ("", None),
        ] {
            assert_eq!(Header::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = folder();
        let error = write(folder.path().join("no/such/a.npy"), DType::F32, &[1], &[0; 4]).unwrap_err();
        assert!(error.to_string().contains("no/such/a.npy"), "{error}");
        assert!(write(folder.path().join("a.npy"), DType::F32, &[2], &[0; 4]).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
