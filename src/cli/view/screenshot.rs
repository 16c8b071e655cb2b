//! A picture of the whole window as a PNG file.

use std::path::Path;

use cantus::Result;
use eframe::egui::ColorImage;

use crate::cli::output::{self, OutputFile};
use crate::cli::picture::io_error;

/// Writes the file whole.
///
/// # Errors
/// [`cantus::Error::Io`] when it cannot be written.
pub fn write(path: &Path, image: &ColorImage) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    let fault = |error| output::fault(path, &io_error(error));
    let [width, height] = image.size.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    let pixels: Vec<u8> = image.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(fault)?;
    writer.write_image_data(&pixels).map_err(fault)?;
    writer.finish().map_err(fault)?;
    file.commit()
}
