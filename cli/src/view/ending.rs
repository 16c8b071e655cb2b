//! Ends a window by itself: when its device is lost, or after a number of frames, with a report and a picture of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use cantus::Result;
use eframe::{egui, wgpu};
use serde_json::json;

use super::app::View;
use super::graphs::Sample;
use super::worker::Picture;
use crate::output::{self, OutputFile};
use crate::picture::io_error;

/// The summary of a window, for runs with `--frames`.
#[derive(Debug, Clone)]
pub struct Summary {
    pub frames: u32,
    pub device: String,
    pub shared: bool,
    /// Medians in milliseconds.
    pub total: f32,
    pub kernel: f32,
    pub own: f32,
    pub copy: f32,
    /// The picture's place in the window, in pixels: left, top, width, height.
    pub place: [f32; 4],
}

impl Summary {
    /// For people.
    pub fn text(&self) -> String {
        let Self { frames, device, shared, total, kernel, own, copy, .. } = self;
        let way = if *shared { "drawn from its buffer".to_owned() } else { format!("copied in {copy:.3} ms") };
        format!(
            "{frames} frames on {device}, {way}; medians: frame {total:.2} ms, kernel {kernel:.2} ms, own {own:.3} ms"
        )
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> serde_json::Value {
        let Self { frames, device, shared, total, kernel, own, copy, place } = self;
        let [left, top, width, height] = place;
        json!({
            "frames": frames,
            "device": device,
            "shared": shared,
            "median_ms": { "frame": total, "kernel": kernel, "own": own, "copy": copy },
            "picture": { "left": left, "top": top, "width": width, "height": height },
        })
    }
}

/// The conditions under which the window closes by itself.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    pub frames: Option<u32>,
    pub screenshot: Option<PathBuf>,
    pub lose_device: Option<u32>,
}

impl View {
    /// Closes the window when its device is lost, or when it has drawn what was asked for.
    pub(super) fn end(&mut self, context: &egui::Context) {
        if self.ended {
            return;
        }
        if self.is_lost() {
            self.ended = true;
            context.send_viewport_cmd(egui::ViewportCommand::Close);
            return;
        }
        if self.ending.lose_device.is_some_and(|frames| self.drawn >= frames) {
            self.ending.lose_device = None;
            let device = &self.devices.window().device;
            device.destroy();
            // Its loss is told when it is looked after next.
            let _ = device.poll(wgpu::PollType::Poll);
        }
        if self.ending.frames.is_none_or(|frames| self.drawn < frames) {
            return;
        }
        self.ended = true;
        let scale = context.pixels_per_point();
        let place = self.place * scale;
        let median = |of: fn(&Sample) -> f32| self.measurements.median(usize::MAX, of).unwrap_or(0.0);
        let summary = Summary {
            frames: self.drawn,
            device: self.device_name().unwrap_or_default(),
            shared: self.picture.as_ref().is_some_and(Picture::is_shared),
            total: median(|sample| sample.total),
            kernel: median(|sample| sample.kernel),
            own: median(|sample| sample.own),
            copy: median(|sample| sample.copy),
            place: [place.left(), place.top(), place.width(), place.height()],
        };
        self.legacy().summary = Some(summary);
        match self.ending.screenshot.take() {
            Some(path) => self.screenshot(path, context),
            None => context.send_viewport_cmd(egui::ViewportCommand::Close),
        }
    }

    /// Takes a picture of the whole window, then closes it.
    fn screenshot(&self, path: PathBuf, context: &egui::Context) {
        let (legacy, wake) = (self.legacy.clone(), context.clone());
        let done = egui::ScreenshotCallback::new(move |image: Arc<egui::ColorImage>| {
            if let Err(error) = write(&path, &image) {
                legacy.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(error);
            }
            wake.send_viewport_cmd(egui::ViewportCommand::Close);
            wake.request_repaint();
        });
        context.send_viewport_cmd(egui::ViewportCommand::Screenshot(done));
        context.request_repaint();
    }
}

/// Writes a picture of the whole window as a PNG file, whole or not at all.
///
/// # Errors
/// [`cantus::Error::Io`] when it cannot be written.
fn write(path: &Path, image: &egui::ColorImage) -> Result<()> {
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
