//! Frames of a buffer on their way into an animated picture, which a thread of its own encodes.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use cantus::tensor::npy::Array;
use cantus::{Error, Result};

use crate::animation::{self, Format, Plan};
use crate::colormap::Shade;
use crate::run::contents::{self, Colors};

/// Frames that may wait for the encoder.
const WAITING: usize = 4;
const FPS: f64 = 25.0;

/// A film in the making. Dropped without [`Film::end`], it leaves no file.
pub struct Film {
    format: Format,
    path: PathBuf,
    frames: u32,
    fps: f64,
    running: Option<Running>,
}

struct Running {
    sender: SyncSender<Vec<u8>>,
    encoder: JoinHandle<Result<()>>,
    shape: Vec<usize>,
    shade: Shade,
}

impl Film {
    pub fn new(format: Format, path: PathBuf, frames: u32, fps: Option<f64>) -> Self {
        Self { format, path, frames, fps: fps.unwrap_or(FPS), running: None }
    }

    /// Adds a frame. The first one decides the size, and the range where none is given.
    ///
    /// # Errors
    /// When it is no picture of one value a pixel, or the encoder has failed.
    pub fn frame(&mut self, array: &Array, colors: Colors) -> Result<()> {
        let wrong = |reason: String| Error::file(format!("the output {}", self.path.display()), reason);
        let [height, width] = *array.shape.as_slice() else {
            return Err(wrong(format!(
                "a moving picture has rows and columns of one value each, and the shape is {:?} (numbered pictures, as in frame-{{}}.png, hold colours)",
                array.shape
            )));
        };
        let values: Vec<f32> = contents::numbers(array).into_iter().map(|value| value as f32).collect();
        if self.running.is_none() {
            let (low, high) =
                colors.range.unwrap_or_else(|| contents::spread(values.iter().map(|&value| value.into())));
            let plan = Plan { width, height, frames: self.frames, fps: self.fps, map: colors.map };
            plan.check(self.format)?;
            let (sender, receiver) = sync_channel::<Vec<u8>>(WAITING);
            let (path, format) = (self.path.clone(), self.format);
            let encoder = std::thread::Builder::new().name("film".to_owned()).spawn(move || {
                let shown = path.display().to_string();
                animation::write(&path, format, plan, |_, indices| {
                    *indices = receiver.recv().map_err(|_| {
                        Error::state(format!("the output {shown}"), "its encoder stopped before the last frame")
                    })?;
                    Ok(())
                })
            });
            let encoder = encoder.map_err(|error| wrong(format!("its thread could not be started: {error}")))?;
            self.running = Some(Running { sender, encoder, shape: array.shape.clone(), shade: Shade::new(low, high) });
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        if running.shape != array.shape {
            return Err(wrong(format!("its frames are of {:?}, then of {:?}", running.shape, array.shape)));
        }
        let mut indices = crate::room::vec("a frame", values.len())?;
        running.shade.indices(&values, &mut indices);
        if running.sender.send(indices).is_err() {
            // The encoder has ended before its last frame: it says why.
            return self.join();
        }
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// What the encoder says.
    pub fn end(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        let Some(Running { sender, encoder, .. }) = self.running.take() else { return Ok(()) };
        drop(sender);
        encoder
            .join()
            .unwrap_or_else(|_| Err(Error::state(format!("the output {}", self.path.display()), "its encoder failed")))
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        // The encoder removes its unfinished file.
        let _ = self.join();
    }
}
