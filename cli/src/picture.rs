//! Rows of float32 to files: PNG through a colour map, and `.npy`. Rows stream: memory stays bounded whatever the height.

use std::io::{self, Write};
use std::path::Path;

use cantus::tensor::npy;
use cantus::{DType, Error, Result};

use super::colormap::{Colormap, Shade};
use super::output::{self, OutputFile};

/// Size of a picture's data chunks.
const CHUNK_BYTES: usize = 1 << 16;

/// The rule that turns values into colours.
#[derive(Debug, Clone, Copy)]
pub struct Coloring {
    /// The colours.
    pub map: Colormap,
    /// The values of the first and the last colour.
    pub range: (f32, f32),
}

/// A picture or array file that takes rows from the top.
#[derive(Debug)]
pub struct GridFile {
    file: OutputFile,
    format: Format,
    width: usize,
    height: usize,
}

#[derive(Debug)]
enum Format {
    Png(Coloring),
    Npy,
}

impl GridFile {
    /// Starts the file; its extension chooses the format.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for another extension, [`Error::Limit`] for a side that PNG cannot have, [`Error::Io`] when the
    /// place is not writable.
    pub fn create(path: &Path, width: usize, height: usize, coloring: Coloring) -> Result<Self> {
        let format = match output::extension(path).as_str() {
            "png" => {
                png_side("width", width)?;
                png_side("height", height)?;
                Format::Png(coloring)
            }
            "npy" => Format::Npy,
            _ if path == Path::new("-") => Format::Npy,
            _ => {
                return Err(Error::file(
                    format!("the output {}", path.display()),
                    "its name must end in .png (a picture) or .npy (the float32 values), or be - (.npy to standard output)",
                ));
            }
        };
        // Before the disk is asked: what no kernel computes needs no room.
        for (name, side) in [("width", width), ("height", height)] {
            if u32::try_from(side).is_err() {
                return Err(Error::limit(
                    format!("the {name}"),
                    format!("{side} exceeds the largest side, {}", u32::MAX),
                ));
            }
        }
        let file = OutputFile::create(path)?;
        let values = width as u128 * height as u128;
        file.expect(match format {
            Format::Npy => values * 4,
            Format::Png(_) => values / DEFLATE_AT_BEST,
        })?;
        Ok(Self { file, format, width, height })
    }

    /// Writes the rows that `produce` hands over, in order, and completes the file.
    ///
    /// # Errors
    /// What `produce` returns, and [`Error::Io`] when writing fails.
    pub fn write(mut self, produce: impl FnOnce(&mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()>) -> Result<()> {
        let shown = self.file.shown().to_owned();
        let fault = |error: io::Error| output::fault(&shown, &error);
        match self.format {
            Format::Npy => {
                npy::write_header(&mut self.file, DType::F32, &[self.height, self.width]).map_err(fault)?;
                produce(&mut |values| self.file.write_all(bytemuck::cast_slice(values)).map_err(fault))?;
            }
            Format::Png(coloring) => {
                let encoder = png_encoder(&mut self.file, self.width, self.height, coloring.map);
                let mut writer = encoder.write_header().map_err(|error| fault(io_error(error)))?;
                let mut rows = writer.stream_writer_with_size(CHUNK_BYTES).map_err(|error| fault(io_error(error)))?;
                let shade = Shade::new(coloring.range.0, coloring.range.1);
                let mut indices = Vec::new();
                produce(&mut |values| {
                    indices.clear();
                    shade.indices(values, &mut indices);
                    rows.write_all(&indices).map_err(fault)
                })?;
                rows.finish().and_then(|()| writer.finish()).map_err(|error| fault(io_error(error)))?;
            }
        }
        self.file.commit()
    }
}

/// Bytes that one byte of deflate stands for at most.
const DEFLATE_AT_BEST: u128 = 1032;

/// An encoder for a picture of one byte per pixel, the colours in its palette.
pub fn png_encoder<W: Write>(file: W, width: usize, height: usize, map: Colormap) -> png::Encoder<'static, W> {
    // Sides were checked by `png_side`; saturation is for the type alone.
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let mut encoder = png::Encoder::new(file, side(width), side(height));
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(map.palette().concat());
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Up);
    encoder
}

/// Writes a picture of one colour index per pixel, and completes the file.
///
/// # Errors
/// [`Error::Io`].
pub fn shaded(mut file: OutputFile, width: usize, height: usize, map: Colormap, indices: &[u8]) -> Result<()> {
    let shown = file.shown().to_owned();
    finish(&shown, png_encoder(&mut file, width, height, map), indices)?;
    file.commit()
}

/// Writes a picture of three or four bytes per pixel, and completes the file.
///
/// # Errors
/// [`Error::Io`].
pub fn colored(mut file: OutputFile, width: usize, height: usize, bytes: &[u8], parts: usize) -> Result<()> {
    let shown = file.shown().to_owned();
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let mut encoder = png::Encoder::new(&mut file, side(width), side(height));
    encoder.set_color(if parts == 3 { png::ColorType::Rgb } else { png::ColorType::Rgba });
    encoder.set_depth(png::BitDepth::Eight);
    finish(&shown, encoder, bytes)?;
    file.commit()
}

fn finish(shown: &Path, encoder: png::Encoder<'_, impl Write>, bytes: &[u8]) -> Result<()> {
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(bytes)?;
        writer.finish()
    });
    written.map_err(|error| output::fault(shown, &io_error(error)))
}

/// The system's error inside the encoder's, if it is one: it tells a full disk from others.
pub fn io_error(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Refuses a side that PNG cannot have.
///
/// # Errors
/// [`Error::Limit`].
pub fn png_side(what: &str, side: usize) -> Result<()> {
    let limit = i32::MAX as usize;
    if (1..=limit).contains(&side) {
        return Ok(());
    }
    Err(Error::limit(
        format!("the {what} {side}"),
        format!("a PNG picture has 1 to {limit} pixels a side (write a .npy instead)"),
    ))
}
