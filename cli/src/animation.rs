//! Animated pictures, GIF and APNG: frames of colour indices, one palette, endless repetition.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use cantus::{Error, Result};

use super::colormap::Colormap;
use super::output::{self, OutputFile};
use super::picture::{io_error, png_encoder, png_side};

/// The most frames per second that viewers of GIF keep to: below 2/100 s they slow down to 1/10 s.
const GIF_FPS: f64 = 50.0;

/// The format of an animation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.gif`: delays in whole hundredths of a second.
    Gif,
    /// `.png` or `.apng`: delays are fractions.
    Apng,
}

impl Format {
    /// The format for a path, by its extension.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for another extension.
    pub fn of(path: &Path) -> Result<Self> {
        match output::extension(path).as_str() {
            "gif" => Ok(Self::Gif),
            "png" | "apng" => Ok(Self::Apng),
            _ => Err(Error::file(
                format!("the output {}", path.display()),
                "its name must end in .gif, or in .png or .apng (an animated PNG)",
            )),
        }
    }
}

/// The frames of an animation.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Frames per second: positive.
    pub fps: f64,
    /// The colours.
    pub map: Colormap,
}

impl Plan {
    /// Can the format hold it?
    ///
    /// # Errors
    /// [`Error::Limit`] saying what it cannot hold.
    pub fn check(self, format: Format) -> Result<()> {
        match format {
            Format::Gif => {
                self.gif_sides()?;
                if self.fps > GIF_FPS {
                    return Err(Error::limit(
                        format!("{} frames per second", self.fps),
                        format!("viewers play a GIF at {GIF_FPS} at most (lower --fps, or write a .png)"),
                    ));
                }
            }
            Format::Apng => {
                png_side("width", self.width)?;
                png_side("height", self.height)?;
            }
        }
        Ok(())
    }

    fn gif_sides(self) -> Result<(u16, u16)> {
        let side = |what: &str, side: usize| {
            u16::try_from(side).ok().filter(|&side| side > 0).ok_or_else(|| {
                Error::limit(
                    format!("the {what} {side}"),
                    format!("a GIF has 1 to {} pixels a side (write a .png instead)", u16::MAX),
                )
            })
        };
        Ok((side("width", self.width)?, side("height", self.height)?))
    }
}

/// Writes an animation whole: `frame` fills the colour indices of each frame, row by row, in order.
///
/// # Errors
/// What [`Plan::check`] and `frame` return, and [`Error::Io`] when writing fails.
pub fn write(
    path: &Path,
    format: Format,
    plan: Plan,
    frame: impl FnMut(u32, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    plan.check(format)?;
    let mut file = OutputFile::create(path)?;
    match format {
        Format::Gif => write_gif(&mut file, plan, frame)?,
        Format::Apng => write_apng(&mut file, plan, frame)?,
    }
    file.commit()
}

fn write_gif(file: &mut OutputFile, plan: Plan, mut frame: impl FnMut(u32, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    let shown = file.shown().to_owned();
    let fault = |error: gif::EncodingError| match error {
        gif::EncodingError::Io(error) => output::fault(&shown, &error),
        other => output::fault(&shown, &io::Error::other(other)),
    };
    let (width, height) = plan.gif_sides()?;
    let mut encoder = gif::Encoder::new(file, width, height, &plan.map.palette().concat()).map_err(fault)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(fault)?;
    let mut indices = Vec::new();
    for index in 0..plan.frames {
        indices.clear();
        frame(index, &mut indices)?;
        let image = gif::Frame {
            width,
            height,
            delay: gif_delay(index, plan.fps),
            buffer: Cow::Borrowed(&indices),
            ..gif::Frame::default()
        };
        encoder.write_frame(&image).map_err(fault)?;
    }
    // Writes the trailer.
    encoder.into_inner().map_err(fault)?;
    Ok(())
}

fn write_apng(file: &mut OutputFile, plan: Plan, mut frame: impl FnMut(u32, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    let shown = file.shown().to_owned();
    let fault = |error: png::EncodingError| output::fault(&shown, &io_error(error));
    let mut encoder = png_encoder(file, plan.width, plan.height, plan.map);
    encoder.set_animated(plan.frames, 0).map_err(fault)?;
    let (numerator, denominator) = apng_delay(plan.fps);
    encoder.set_frame_delay(numerator, denominator).map_err(fault)?;
    let mut writer = encoder.write_header().map_err(fault)?;
    let mut indices = Vec::new();
    for index in 0..plan.frames {
        indices.clear();
        frame(index, &mut indices)?;
        writer.write_image_data(&indices).map_err(fault)?;
    }
    writer.finish().map_err(fault)
}

/// The delay of a frame in hundredths of a second: whole ones, spread so that the mean is right.
fn gif_delay(index: u32, fps: f64) -> u16 {
    let start = |index: f64| (100.0 * index / fps).round();
    (start(f64::from(index) + 1.0) - start(f64::from(index))) as u16
}

/// The delays of a GIF at `fps`, when they are not all the same.
pub fn uneven_gif_delays(fps: f64) -> Option<(u16, u16)> {
    let exact = 100.0 / fps;
    (exact.fract() != 0.0).then_some((exact.floor() as u16, exact.ceil() as u16))
}

/// The delay as a fraction of a second, both parts 16 bits wide.
fn apng_delay(fps: f64) -> (u16, u16) {
    let limit = f64::from(u16::MAX);
    let fitting = [1.0, 10.0, 100.0, 1000.0].into_iter().filter(|numerator| (numerator * fps).round() <= limit);
    let exact = fitting.clone().find(|numerator| (numerator * fps).fract() == 0.0);
    let numerator = exact.or(fitting.max_by(f64::total_cmp)).unwrap_or(1.0);
    (numerator as u16, (numerator * fps).round().clamp(1.0, limit) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gif_delays_add_up() {
        for fps in [0.5, 1.0, 7.0, 24.0, 25.0, 29.97, 30.0, 50.0] {
            let total: u32 = (0..3000).map(|index| u32::from(gif_delay(index, fps))).sum();
            assert!((f64::from(total) - 100.0 * 3000.0 / fps).abs() <= 0.5, "{fps}: {total}");
            assert!((0..3000).all(|index| gif_delay(index, fps) >= 2), "{fps}");
        }
    }

    #[test]
    fn apng_delays_are_close_fractions() {
        assert_eq!(apng_delay(30.0), (1, 30));
        assert_eq!(apng_delay(12.5), (10, 125));
        for fps in [0.01, 0.1, 23.976, 29.97, 59.94, 120.0, 1000.0] {
            let (numerator, denominator) = apng_delay(fps);
            let given = f64::from(denominator) / f64::from(numerator);
            assert!((given - fps).abs() / fps < 1e-4, "{fps}: {numerator}/{denominator}");
        }
    }
}
