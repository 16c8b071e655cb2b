//! Files from the window: the picture as PNG or `.npy`, its movement as GIF, each on a thread of its own. The window goes on meanwhile.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};

use cantus::backend::CancelFlag;
use cantus::{Engine, Error, Result};
use eframe::egui;

use super::source::{Made, Moment, Running, Source};
use super::worker::Picture;
use crate::animate::PHASE_SPEED;
use crate::animation::{self, Format, Plan};
use crate::colormap::Shade;
use crate::output::OutputFile;
use crate::picture::Coloring;
use crate::run::contents::{self, Colors};

/// Frames of a GIF, and how many of them make a second: the field's period of 2.884 seconds takes 72.
const FRAMES: u32 = 72;
const FPS: f64 = 25.0;

/// A file in the making. Dropping it lets the file be finished; [`Saving::cancel`] does not.
pub struct Saving {
    /// The file.
    pub path: PathBuf,
    progress: Arc<AtomicU32>,
    frames: u32,
    cancelled: CancelFlag,
    done: Receiver<Result<()>>,
}

impl Saving {
    /// Writes values to `.png` or `.npy`.
    ///
    /// # Errors
    /// [`Error::Io`] when the system has no thread left.
    pub fn values(path: PathBuf, picture: &Picture, coloring: Coloring, wake: egui::Context) -> Result<Self> {
        let (values, size, pixels) = (picture.values.clone(), picture.size(), picture.drawable.pixels);
        Self::start(path, 1, wake, move |path, _, _| {
            let values = pixels.array(values.bytes()?, size)?;
            let colors = Colors { map: coloring.map, range: Some(coloring.range) };
            contents::write(OutputFile::create(path)?, contents::Format::of(path)?, &values, "picture", colors)
        })
    }

    /// Writes the movement from `moment` on: the field's whole period, or as many seconds of a kernel. One that keeps what it wrote starts anew.
    ///
    /// # Errors
    /// [`Error::Io`] when the system has no thread left.
    pub fn movement(
        path: PathBuf,
        engine: Engine,
        source: Source,
        moment: Moment,
        coloring: Coloring,
        wake: egui::Context,
    ) -> Result<Self> {
        Self::start(path, FRAMES, wake, move |path, progress, cancelled| {
            let step = if matches!(source, Source::Field) { TAU / PHASE_SPEED / f64::from(FRAMES) } else { 1.0 / FPS };
            let mut running = Running::new(engine);
            let mut picture = |frame: u32| {
                let moment = Moment { time: moment.time + f64::from(frame) * step, ..moment };
                let Made { tensor, size, pixels } = running.compute(&source, &moment, cancelled)?;
                if pixels.is_colour() {
                    return Err(Error::file(
                        path.display().to_string(),
                        "a GIF has one value a pixel, and this kernel writes colours (save a PNG)",
                    ));
                }
                let values = contents::numbers(&pixels.array(tensor.to_bytes()?, size)?);
                let values = values.into_iter().map(|value| value as f32);
                Ok::<_, Error>((values.collect::<Vec<f32>>(), size))
            };
            let (mut first, size) = picture(0)?;
            let plan = Plan { width: size.width, height: size.height, frames: FRAMES, fps: FPS, map: coloring.map };
            let shade = Shade::new(coloring.range.0, coloring.range.1);
            animation::write(path, Format::Gif, plan, |frame, indices| {
                if cancelled.is_cancelled() {
                    return Err(Error::Cancelled { what: path.display().to_string() });
                }
                let values = if frame == 0 { std::mem::take(&mut first) } else { picture(frame)?.0 };
                shade.indices(&values, indices);
                progress.store(frame + 1, Ordering::Relaxed);
                Ok(())
            })
        })
    }

    fn start(
        path: PathBuf,
        frames: u32,
        wake: egui::Context,
        work: impl FnOnce(&Path, &AtomicU32, &CancelFlag) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let (outbox, done) = mpsc::channel();
        let (progress, cancelled) = (Arc::new(AtomicU32::new(0)), CancelFlag::new());
        let (target, counter, flag) = (path.clone(), progress.clone(), cancelled.clone());
        let thread = std::thread::Builder::new().name("cantus-save".to_owned()).spawn(move || {
            // Nobody listens when the window was closed.
            let _ = outbox.send(work(&target, &counter, &flag));
            wake.request_repaint();
        });
        thread.map_err(|error| Error::Io {
            action: "cannot write".to_owned(),
            path: path.display().to_string(),
            reason: format!("no thread: {error}"),
        })?;
        Ok(Self { path, progress, frames, cancelled, done })
    }

    /// Returns the result, once.
    pub fn outcome(&self) -> Option<Result<()>> {
        self.done.try_recv().ok()
    }

    /// Returns the part that is done, of 1.
    pub fn progress(&self) -> f32 {
        self.progress.load(Ordering::Relaxed) as f32 / self.frames as f32
    }

    /// Gives up; no file is left.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }
}

/// A name in `folder` that nothing has yet: `field.png`, `field-2.png` and so on.
pub fn free_name(folder: &Path, stem: &str, extension: &str) -> PathBuf {
    let name = |number: u32| match number {
        1 => folder.join(format!("{stem}.{extension}")),
        _ => folder.join(format!("{stem}-{number}.{extension}")),
    };
    (1..=u32::MAX).map(name).find(|path| std::fs::symlink_metadata(path).is_err()).unwrap_or_else(|| name(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_taken_twice() {
        let folder = tempfile::tempdir().unwrap();
        let first = free_name(folder.path(), "field", "png");
        assert_eq!(first, folder.path().join("field.png"));
        std::fs::write(&first, "").unwrap();
        let second = free_name(folder.path(), "field", "png");
        assert_eq!(second, folder.path().join("field-2.png"));
        std::fs::write(second, "").unwrap();
        assert_eq!(free_name(folder.path(), "field", "png"), folder.path().join("field-3.png"));
    }
}
