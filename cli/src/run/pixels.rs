//! Pictures as bytes: sizes from headers first, and one copy in memory.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use cantus::{Error, Result};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::{output, room};

/// Bytes that a pixel of a JPEG takes while it is decoded: three coefficients of two bytes each, where it is progressive.
const COEFFICIENTS: u64 = 6;

/// Red, green, blue and alpha of a picture's pixels, row by row.
pub struct Pixels {
    pub rgba: Vec<u8>,
    pub width: usize,
    pub height: usize,
}

impl Pixels {
    /// Reads a picture whose pixels become `wanted` bytes each.
    ///
    /// # Errors
    /// [`Error::Limit`] if its header states a size above the memory limit or the machine's memory; [`Error::Unreadable`] and
    /// [`Error::InvalidFile`], naming the file.
    pub fn read(path: &Path, wanted: usize) -> Result<Self> {
        let wanted = wanted.max(4) as u64;
        if output::extension(path) == "png" { png(path, wanted) } else { jpeg(path, wanted) }
    }
}

fn invalid(path: &Path, reason: String) -> Error {
    Error::file(path.display().to_string(), reason)
}

/// Compares the memory that a picture needs with what may be taken. Returns the number of its pixels.
fn check(path: &Path, width: usize, height: usize, each: u64) -> Result<usize> {
    let what = format!("{}, {width} x {height} pixels", path.display());
    let pixels = (width as u64).saturating_mul(height as u64);
    room::fits(&what, pixels.saturating_mul(each))?;
    usize::try_from(pixels).map_err(|_| invalid(path, "it is too large".to_owned()))
}

fn png(path: &Path, wanted: u64) -> Result<Pixels> {
    let file = File::open(path).map_err(|error| Error::unreadable(path, &error))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let no_png = |error: png::DecodingError| invalid(path, format!("it is not a PNG picture: {error}"));
    let (width, height) = decoder.read_header_info().map_err(no_png)?.size();
    let (width, height) = (width as usize, height as usize);
    let pixels = check(path, width, height, wanted)?;
    let mut reader = decoder.read_info().map_err(no_png)?;
    let bytes = reader.output_buffer_size().filter(|bytes| *bytes <= pixels.saturating_mul(4));
    let bytes = bytes.ok_or_else(|| invalid(path, "it is too large".to_owned()))?;
    let mut rgba: Vec<u8> = room::vec(&path.display().to_string(), pixels.saturating_mul(4))?;
    rgba.resize(pixels.saturating_mul(4), 0);
    let decoded = rgba.get_mut(..bytes).unwrap_or_default();
    let frame = reader.next_frame(decoded).map_err(|error| invalid(path, error.to_string()))?;
    if frame.color_type == png::ColorType::GrayscaleAlpha {
        // From the last pixel on, each lies before the place that it goes to.
        for pixel in (0..pixels).rev() {
            let Some(&[gray, alpha]) = rgba.get(2 * pixel..2 * pixel + 2) else { continue };
            if let Some(place) = rgba.get_mut(4 * pixel..4 * pixel + 4) {
                place.copy_from_slice(&[gray, gray, gray, alpha]);
            }
        }
    }
    Ok(Pixels { rgba, width, height })
}

fn jpeg(path: &Path, wanted: u64) -> Result<Pixels> {
    let bytes = room::read(path)?;
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGBA);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes), options);
    let no_jpeg = |error| invalid(path, format!("it is not a JPEG picture: {error}"));
    decoder.decode_headers().map_err(no_jpeg)?;
    let (width, height) = decoder.dimensions().ok_or_else(|| invalid(path, "it has no size".to_owned()))?;
    let pixels = check(path, width, height, wanted.max(4 + COEFFICIENTS))?;
    let mut rgba: Vec<u8> = room::vec(&path.display().to_string(), pixels.saturating_mul(4))?;
    rgba.resize(pixels.saturating_mul(4), 0);
    decoder.decode_into(&mut rgba).map_err(no_jpeg)?;
    Ok(Pixels { rgba, width, height })
}
