//! The contents of bindings: files in six formats, standard input, and numbers that need no file. And the other way: what is read
//! back, as a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cantus::kernel::{Binding, Layout};
use cantus::memory;
use cantus::tensor::byte_count;
use cantus::tensor::npy::{self, Array};
use cantus::{DType, Error, Result};
use cantus_data::{Archive, Format as FileFormat, Writer};

use super::pixels::Pixels;
use crate::colormap::{Colormap, Shade};
use crate::output::{self, OutputFile};
use crate::parse::{self, Shape};
use crate::{picture, room};

/// `NAME=` and where its numbers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The binding.
    pub name: String,
    /// Its numbers.
    pub source: Source,
}

/// The source of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file; of `.safetensors` the named tensor.
    File(PathBuf, Option<String>),
    /// A `.npy` file on standard input.
    Stdin,
    /// Made here.
    Made(Made, Option<Shape>),
}

/// Numbers that need no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Zeros,
    /// 0, 1, 2 …
    Iota,
    /// Uniform by seed: below a bound that is given, else from 0 to 1, and of all values of an integer.
    Random(u64, Option<u64>),
}

/// The forms that `--in` takes.
const WANTED: &str = "NAME=FILE (.npy, .csv, .png, .safetensors, or .bin: bytes in WGSL's layout), NAME=- (.npy on standard input), or \
                      NAME=zeros, NAME=iota, NAME=random:SEED or NAME=random:SEED:BELOW, with a shape as in iota[480,640]";

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, source) = parse::split_named(text, WANTED)?;
        let (word, shape) = match source.strip_suffix(']').and_then(|source| source.split_once('[')) {
            Some((word, shape)) => (word, Some(shape)),
            None => (source.as_str(), None),
        };
        let made = match word.split_once(':') {
            None if word == "zeros" => Some(Made::Zeros),
            None if word == "iota" => Some(Made::Iota),
            None if word == "random" => return Err("random takes a seed, as in x=random:7".to_owned()),
            Some(("random", given)) => {
                let (seed, below) = given.split_once(':').map_or((given, None), |(seed, below)| (seed, Some(below)));
                let seed = seed.parse().map_err(|_| format!("the seed \"{seed}\" is not a whole number"))?;
                let bound = |text: &str| {
                    let bound = text.parse().ok().filter(|&bound| bound > 0_u64);
                    bound.ok_or_else(|| {
                        format!(
                            "the bound \"{text}\" is not a whole number of at least 1, as in x=random:7:2 for 0 and 1"
                        )
                    })
                };
                Some(Made::Random(seed, below.map(bound).transpose()?))
            }
            Some((word @ ("zeros" | "iota"), _)) => {
                return Err(format!("the shape of {word} goes in brackets, as in x={word}[480,640]"));
            }
            _ => None,
        };
        let source = match made {
            Some(made) => Source::Made(made, shape.map(|shape| parse::shape(shape, WANTED)).transpose()?),
            None if source == "-" => Source::Stdin,
            None => match source.split_once('#') {
                Some((path, tensor)) if path.ends_with(".safetensors") => {
                    Source::File(path.into(), Some(tensor.to_owned()))
                }
                _ => Source::File(source.into(), None),
            },
        };
        Ok(Self { name, source })
    }
}

/// The formats of files by their suffixes.
const READABLE: [&str; 6] = ["npy", "bin", "csv", "png", "jpg", "safetensors"];

/// A file of bytes in WGSL's own layout, not of an array of numbers.
pub fn is_raw(path: &Path) -> bool {
    output::extension(path) == "bin"
}

/// Reads an input other than raw bytes, as numbers of the binding's kind where the file does not say.
///
/// # Errors
/// [`Error::Unreadable`] and [`Error::InvalidFile`], naming the file.
pub fn read(path: &Path, tensor: Option<&str>, binding: &Binding) -> Result<Array> {
    let dtype = binding.layout.scalar().and_then(DType::of_scalar).unwrap_or(DType::F32);
    match output::extension(path).as_str() {
        "npy" => room::npy(path),
        "csv" => csv(path, dtype),
        "png" | "jpg" | "jpeg" => picture(path, binding, dtype),
        "safetensors" => from_safetensors(path, tensor.unwrap_or(&binding.name)),
        _ if !path.exists() => room::npy(path),
        other => Err(Error::file(
            format!("the input {}", path.display()),
            format!(
                "\"{other}\" is not a format that can be read: {}",
                READABLE.map(|known| format!(".{known}")).join(", ")
            ),
        )),
    }
}

/// A `.npy` file on standard input.
///
/// # Errors
/// As [`npy::read`].
pub fn read_stdin() -> Result<Array> {
    room::npy_from(std::io::stdin().lock(), Path::new("standard input"), 1 << 16)
}

/// Numbers of that shape.
///
/// # Errors
/// [`Error::Limit`] when they take more bytes than this system can address.
pub fn make(made: Made, dtype: DType, shape: &[usize]) -> Result<Array> {
    let count = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
    let count = count.filter(|count| count.checked_mul(dtype.bytes()).is_some_and(|bytes| bytes < isize::MAX as usize));
    let count =
        count.ok_or_else(|| Error::limit(format!("{dtype}{shape:?}"), "it exceeds what this system can address"))?;
    let what = format!("{dtype}{shape:?}");
    let bytes = match made {
        Made::Zeros => room::zeros(&what, count * dtype.bytes())?,
        Made::Iota => encode(&what, dtype, count, (0..count).map(|index| index as f64))?,
        Made::Random(seed, None) => random(&what, seed, dtype, count)?,
        Made::Random(seed, Some(below)) => random_below(&what, (seed, below), dtype, count)?,
    };
    Array::new(dtype, shape, bytes)
}

/// The bytes of `count` values.
fn bytes_of<V, T: bytemuck::NoUninit>(
    what: &str,
    count: usize,
    values: impl Iterator<Item = V>,
    to: impl Fn(V) -> T,
) -> Result<Vec<u8>> {
    let mut bytes = room::vec(what, count.saturating_mul(size_of::<T>()))?;
    // No more than there is room for: a vector that grows ends the process where there is no memory.
    values.take(count).for_each(|value| bytes.extend_from_slice(bytemuck::bytes_of(&to(value))));
    Ok(bytes)
}

/// `count` numbers in a dtype; integers saturate.
fn encode(what: &str, dtype: DType, count: usize, values: impl Iterator<Item = f64>) -> Result<Vec<u8>> {
    match dtype {
        DType::F16 => bytes_of(what, count, values, half::f16::from_f64),
        DType::BF16 => bytes_of(what, count, values, half::bf16::from_f64),
        DType::F64 => bytes_of(what, count, values, |value| value),
        DType::Bool => bytes_of(what, count, values, |value| u8::from(value != 0.0)),
        DType::I8 => bytes_of(what, count, values, |value| value as i8),
        DType::U8 => bytes_of(what, count, values, |value| value as u8),
        DType::I16 => bytes_of(what, count, values, |value| value as i16),
        DType::U16 => bytes_of(what, count, values, |value| value as u16),
        DType::I32 => bytes_of(what, count, values, |value| value as i32),
        DType::U32 => bytes_of(what, count, values, |value| value as u32),
        DType::I64 => bytes_of(what, count, values, |value| value as i64),
        DType::U64 => bytes_of(what, count, values, |value| value as u64),
        _ => bytes_of(what, count, values, |value| value as f32),
    }
}

/// SplitMix64 by place, so that the first numbers of a longer tensor are those of a shorter one.
fn word(seed: u64, place: usize) -> u64 {
    let mut z = seed.wrapping_add((place as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Whole numbers below `below`, or fractions of it.
fn random_below(what: &str, (seed, below): (u64, u64), dtype: DType, count: usize) -> Result<Vec<u8>> {
    let whole = |bits: u32| {
        if below > 1 << bits {
            return Err(Error::dtype(format!("random:{seed}:{below}"), format!("{dtype} holds no number that large")));
        }
        Ok((0..count).map(|place| ((u128::from(word(seed, place)) * u128::from(below)) >> 64) as u64))
    };
    match dtype {
        DType::Bool => bytes_of(what, count, whole(1)?, |value| value as u8),
        DType::I8 => bytes_of(what, count, whole(7)?, |value| value as i8),
        DType::U8 => bytes_of(what, count, whole(8)?, |value| value as u8),
        DType::I16 => bytes_of(what, count, whole(15)?, |value| value as i16),
        DType::U16 => bytes_of(what, count, whole(16)?, |value| value as u16),
        DType::I32 => bytes_of(what, count, whole(31)?, |value| value as i32),
        DType::U32 => bytes_of(what, count, whole(32)?, |value| value as u32),
        DType::I64 => bytes_of(what, count, whole(63)?, |value| value as i64),
        DType::U64 => bytes_of(what, count, whole(63)?, |value| value),
        _ => {
            // As fine as without a bound: steps of 2^-24 of it, and of 2^-11 for halves.
            let bits = if dtype == DType::F16 { 11 } else { 24 };
            let part = |place| (word(seed, place) >> (64 - bits)) as f64 / f64::from(1 << bits) * below as f64;
            encode(what, dtype, count, (0..count).map(part))
        }
    }
}

fn random(what: &str, seed: u64, dtype: DType, count: usize) -> Result<Vec<u8>> {
    let words = (0..count).map(|place| word(seed, place));
    match dtype {
        DType::I32 | DType::U32 => bytes_of(what, count, words, |word| (word >> 32) as u32),
        DType::I16 | DType::U16 => bytes_of(what, count, words, |word| (word >> 48) as u16),
        DType::I64 | DType::U64 => bytes_of(what, count, words, |word| word),
        // Steps of 2^-24, and of 2^-11 for halves: below 1 in every dtype.
        DType::F16 => encode(what, dtype, count, words.map(|word| (word >> 53) as f64 / f64::from(1 << 11))),
        _ => encode(what, dtype, count, words.map(|word| (word >> 40) as f64 / f64::from(1 << 24))),
    }
}

/// Rows of numbers, with or without names in the first row. One column is one axis.
fn csv(path: &Path, dtype: DType) -> Result<Array> {
    let invalid = |reason: String| Error::file(path.display().to_string(), reason);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).comment(Some(b'#')).from_path(path).map_err(
            |error| match error.into_kind() {
                csv::ErrorKind::Io(error) => Error::unreadable(path, &error),
                other => invalid(format!("{other:?}")),
            },
        )?;
    let what = path.display().to_string();
    // A line is held whole.
    memory::fits(&what, std::fs::metadata(path).map_or(0, |about| about.len()))?;
    let (mut values, mut rows, mut columns) = (Vec::new(), 0_usize, 0_usize);
    for (line, record) in reader.records().enumerate() {
        let record = record.map_err(|error| invalid(error.to_string()))?;
        columns = record.len();
        if line == 0 && record.iter().all(|field| field.parse::<f64>().is_err()) {
            continue;
        }
        // Twice as much at a time, so that few rows ask.
        if values.capacity() - values.len() < columns {
            let more = columns.max(values.len());
            room::fits(&what, ((values.len() + columns) as u64).saturating_mul(dtype.bytes() as u64))?;
            memory::reserve(&what, &mut values, more)?;
        }
        for (column, field) in record.iter().enumerate() {
            let place = || format!("line {}, column {}: \"{field}\" is not a number", line + 1, column + 1);
            values.push(field.parse::<f64>().map_err(|_| invalid(place()))?);
        }
        rows += 1;
    }
    let shape = if columns == 1 { vec![rows] } else { vec![rows, columns] };
    Array::new(dtype, &shape, encode(&what, dtype, values.len(), values.into_iter())?)
}

/// A picture: red, green, blue and alpha from 0 to 1 where the elements are `vec4<f32>`; four bytes, red first, where they are `u32`; brightness
/// from 0 to 1 where they are floats.
fn picture(path: &Path, binding: &Binding, dtype: DType) -> Result<Array> {
    let parts = if is_vec4(&binding.layout) { 4 } else { 1 };
    if dtype != DType::U32 && !matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
        let reason = format!("a picture is floats, or four bytes in a u32; the shader has {}", binding.layout);
        return Err(Error::file(path.display().to_string(), reason));
    }
    let Pixels { rgba, width, height } = Pixels::read(path, parts * dtype.bytes())?;
    if dtype == DType::U32 {
        return Array::new(dtype, &[height, width], rgba);
    }
    let what = path.display().to_string();
    if parts == 4 {
        let values = rgba.iter().map(|&part| f64::from(part) / 255.0);
        return Array::new(dtype, &[height, width, 4], encode(&what, dtype, rgba.len(), values)?);
    }
    // ITU-R BT.709's weights.
    let brightness =
        |[r, g, b, _]: [u8; 4]| (0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)) / 255.0;
    let values = rgba.as_chunks().0.iter().copied().map(brightness);
    Array::new(dtype, &[height, width], encode(&what, dtype, rgba.len() / 4, values)?)
}

/// A file of an array of numbers: .npy, or a tensor of a .safetensors.
///
/// # Errors
/// As [`npy::read`].
pub fn read_numbers(path: &Path, tensor: Option<&str>, name: &str) -> Result<Array> {
    match output::extension(path).as_str() {
        "safetensors" => from_safetensors(path, tensor.unwrap_or(name)),
        _ => room::npy(path),
    }
}

/// Elements are vectors of four.
fn is_vec4(layout: &Layout) -> bool {
    match layout {
        Layout::Array { element, .. } => is_vec4(element),
        Layout::Vector(size, _) => *size == 4,
        _ => false,
    }
}

/// A file of one tensor.
fn as_safetensors(array: &Array, name: &str, path: &Path) -> Result<Vec<u8>> {
    refuse_complex(array, path)?;
    let (planned, sink) = ([(name, (array.dtype, array.shape.clone()))], Cursor::new(Vec::new()));
    let mut file = Writer::new(sink, FileFormat::Safetensors, path, planned, &BTreeMap::new())?;
    file.write(name, &array.bytes)?;
    Ok(file.finish()?.into_inner())
}

/// One tensor of a file: that of the name, or the only one.
fn from_safetensors(path: &Path, name: &str) -> Result<Array> {
    let file = File::open(path).map_err(|error| Error::unreadable(path, &error))?;
    let file = Archive::read(file, FileFormat::Safetensors, path)?;
    let names: Vec<&str> = file.names().collect();
    let found = match names.as_slice() {
        _ if names.contains(&name) => name,
        [only] => only,
        _ => {
            let hint = parse::closest(name, &names);
            let reason = format!("it has no tensor \"{name}\"{hint} (name one: {}#TENSOR)", path.display());
            return Err(Error::file(path.display().to_string(), reason));
        }
    };
    let what = path.display().to_string();
    if let Some((dtype, shape)) = file.describe(found) {
        room::fits(&what, byte_count(shape, dtype)?)?;
    }
    let array = file.array(found)?;
    let mut bytes = room::vec(&what, array.bytes().len())?;
    bytes.extend_from_slice(array.bytes());
    Array::new(array.dtype(), array.shape(), bytes)
}

/// The formats that results are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Npy,
    /// Bytes in WGSL's layout.
    Bin,
    Csv,
    Png,
    Safetensors,
}

impl Format {
    /// Returns the format of a path; `-` is a `.npy` on standard output.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for another suffix.
    pub fn of(path: &Path) -> Result<Self> {
        match output::extension(path).as_str() {
            "npy" => Ok(Self::Npy),
            "bin" => Ok(Self::Bin),
            "csv" => Ok(Self::Csv),
            "png" => Ok(Self::Png),
            "safetensors" => Ok(Self::Safetensors),
            _ if path == Path::new("-") => Ok(Self::Npy),
            // Devices and pipes have no suffix.
            _ if std::fs::metadata(path).is_ok_and(|place| !place.is_file() && !place.is_dir()) => Ok(Self::Npy),
            _ => Err(Error::file(
                format!("the output {}", path.display()),
                "its name must end in .npy, .safetensors, .csv, .png (a picture) or .bin (bytes in WGSL's layout)",
            )),
        }
    }
}

/// The rule that turns values into colours; without a range, from the least value to the greatest.
#[derive(Debug, Clone, Copy)]
pub struct Colors {
    pub map: Colormap,
    pub range: Option<(f32, f32)>,
}

/// Writes a result, whose name is the tensor's where the format has names, and completes the file.
///
/// # Errors
/// [`Error::InvalidFile`] when the format cannot hold it, [`Error::Io`].
pub fn write(mut file: OutputFile, format: Format, array: &Array, name: &str, colors: Colors) -> Result<()> {
    let shown = file.shown().to_owned();
    let written = match format {
        Format::Npy => {
            npy::write_header(&mut file, array.dtype, &array.shape).and_then(|()| file.write_all(&array.bytes))
        }
        Format::Bin => file.write_all(&array.bytes),
        Format::Csv => file.write_all(lines(array, &shown)?.as_bytes()),
        Format::Safetensors => file.write_all(&as_safetensors(array, name, &shown)?),
        Format::Png => return picture_of(file, array, colors),
    };
    written.map_err(|error| output::fault(&shown, &error))?;
    file.commit()
}

/// The elements as numbers; complex ones as two.
pub fn numbers(array: &Array) -> Vec<f64> {
    numbers_of(array.dtype, &array.bytes)
}

fn numbers_of(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn all<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(bytes: &[u8], to: impl Fn(T) -> f64) -> Vec<f64> {
        bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(to).collect()
    }
    match dtype {
        DType::F16 => all(bytes, half::f16::to_f64),
        DType::BF16 => all(bytes, half::bf16::to_f64),
        DType::F64 => all(bytes, |value: f64| value),
        DType::Bool => all(bytes, |value: u8| f64::from(u8::from(value != 0))),
        DType::I8 => all(bytes, |value: i8| value.into()),
        DType::U8 => all(bytes, |value: u8| value.into()),
        DType::I16 => all(bytes, |value: i16| value.into()),
        DType::U16 => all(bytes, |value: u16| value.into()),
        DType::I32 => all(bytes, |value: i32| value.into()),
        DType::U32 => all(bytes, |value: u32| value.into()),
        DType::I64 => all(bytes, |value: i64| value as f64),
        DType::U64 => all(bytes, |value: u64| value as f64),
        DType::Complex128 => all(bytes, |value: f64| value),
        _ => all(bytes, |value: f32| value.into()),
    }
}

/// Complex numbers have no place in a format of numbers.
fn refuse_complex(array: &Array, path: &Path) -> Result<()> {
    if !matches!(array.dtype, DType::Complex64 | DType::Complex128) {
        return Ok(());
    }
    Err(Error::file(
        format!("the output {}", path.display()),
        format!("{} has two parts, and this format holds numbers of one (write a .npy)", array.dtype),
    ))
}

/// Numbers that a summary shows.
const SHOWN: usize = 8;

/// An array in a line: its first numbers, and the least and the greatest where there are more.
pub fn summary(array: &Array) -> String {
    let count = array.bytes.len() / array.dtype.bytes().max(1);
    let shown = array.bytes.get(..SHOWN.min(count) * array.dtype.bytes()).unwrap_or(&array.bytes);
    let mut text = format!("{}{:?}: {}", array.dtype, array.shape, texts(array.dtype, shown).join(", "));
    if count > SHOWN {
        let values = numbers(array);
        let (least, greatest) = extremes(values.iter().copied());
        text.push_str(", …");
        if least <= greatest {
            text.push_str(&format!("; {least} at least, {greatest} at most"));
        }
        let nans = values.iter().filter(|value| value.is_nan()).count();
        if nans > 0 {
            text.push_str(&format!("; {nans} NaN"));
        }
    }
    text
}

/// Elements, as short as they can be without loss.
fn texts(dtype: DType, bytes: &[u8]) -> Vec<String> {
    match dtype {
        DType::F32 => bytemuck::pod_collect_to_vec::<u8, f32>(bytes).iter().map(f32::to_string).collect(),
        DType::I64 => bytemuck::pod_collect_to_vec::<u8, i64>(bytes).iter().map(i64::to_string).collect(),
        DType::U64 => bytemuck::pod_collect_to_vec::<u8, u64>(bytes).iter().map(u64::to_string).collect(),
        _ => numbers_of(dtype, bytes).iter().map(f64::to_string).collect(),
    }
}

/// A line for each row; the numbers as short as they can be without loss.
fn lines(array: &Array, path: &Path) -> Result<String> {
    refuse_complex(array, path)?;
    let columns = match array.shape.as_slice() {
        [] | [_] => 1,
        [_, columns] => *columns,
        shape => {
            return Err(Error::file(
                format!("the output {}", path.display()),
                format!("a .csv has one or two axes, and the shape is {shape:?} (write a .npy)"),
            ));
        }
    };
    Ok(texts(array.dtype, &array.bytes).chunks(columns.max(1)).map(|row| row.join(",") + "\n").collect())
}

/// A picture: one value for each pixel through a colour map; three or four from 0 to 1 as they are; `u32` as four bytes, red first, unless a
/// range says that they are numbers.
fn picture_of(file: OutputFile, array: &Array, colors: Colors) -> Result<()> {
    let invalid = |reason: String| Error::file(format!("the output {}", file.shown().display()), reason);
    refuse_complex(array, file.shown())?;
    let (height, width, parts) = match *array.shape.as_slice() {
        [height, width] => (height, width, 1),
        [height, width, parts @ (3 | 4)] => (height, width, parts),
        _ => {
            let reason = format!(
                "a picture has rows and columns, and the shape is {:?} (give it one, as in --out y=f32[480,640] or f32[480,640,4])",
                array.shape
            );
            return Err(invalid(reason));
        }
    };
    picture::png_side("height", height)?;
    picture::png_side("width", width)?;
    let values = numbers(array);
    let byte = |value: &f64| (value.clamp(0.0, 1.0) * 255.0).round() as u8;
    match (array.dtype, parts) {
        (DType::U32, 1) if colors.range.is_none() => picture::colored(file, width, height, &array.bytes, 4),
        (DType::U8, 3 | 4) => picture::colored(file, width, height, &array.bytes, parts),
        (DType::F16 | DType::BF16 | DType::F32 | DType::F64, 3 | 4) => {
            picture::colored(file, width, height, &values.iter().map(byte).collect::<Vec<u8>>(), parts)
        }
        (_, 1) => {
            let (low, high) = colors.range.unwrap_or_else(|| spread(values.iter().copied()));
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            let mut indices = room::vec("a picture", values.len())?;
            Shade::new(low, high).indices(&values, &mut indices);
            picture::shaded(file, width, height, colors.map, &indices)
        }
        _ => {
            Err(invalid(format!("{} cannot be colours of three or four channels: use floats from 0 to 1", array.dtype)))
        }
    }
}

/// The least and the greatest of the finite ones; 0 and 1 where all are alike.
pub fn spread(values: impl Iterator<Item = f64>) -> (f32, f32) {
    let (least, greatest) = extremes(values.filter(|value| value.is_finite()));
    if least < greatest { (least as f32, greatest as f32) } else { (0.0, 1.0) }
}

/// The least and the greatest, past NaN; of nothing, infinities the wrong way round.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), value| (least.min(value), greatest.max(value)))
}

/// All of standard input, as text.
///
/// # Errors
/// [`Error::Unreadable`].
pub fn stdin_text() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| Error::Unreadable { path: "standard input".to_owned(), reason: error.to_string() })?;
    Ok(text)
}
