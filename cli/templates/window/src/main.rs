//! A window whose picture a kernel computes anew for every frame: waves of six sources. `--frames N` ends after N frames.

use std::time::Instant;

use cantus::{Engine, Kernel, Tensor};
use eframe::egui;

const WAVES: &str = include_str!("waves.wgsl");

const SIDE: usize = 512;

struct Waves {
    engine: Engine,
    kernel: Kernel,
    picture: Tensor,
    started: Instant,
    wavelength: f32,
    texture: Option<egui::TextureHandle>,
    frames: u64,
    /// The number of frames after which the window closes.
    last: Option<u64>,
}

impl Waves {
    fn new(last: Option<u64>) -> cantus::Result<Self> {
        let engine = Engine::new()?;
        let kernel = Kernel::from_wgsl(WAVES)?;
        let picture = engine.zeros::<u32>(&[SIDE, SIDE])?;
        Ok(Self { engine, kernel, picture, started: Instant::now(), wavelength: 0.24, texture: None, frames: 0, last })
    }

    /// The picture of this moment: four bytes a pixel, red first.
    fn compute(&self) -> cantus::Result<egui::ColorImage> {
        self.engine
            .dispatch(&self.kernel)
            .bind("picture", &self.picture)
            .set("view.time", self.started.elapsed().as_secs_f32())
            .set("view.side", SIDE)
            .set("view.wavelength", self.wavelength)
            .invocations([SIDE, SIDE])
            .run()?;
        let words = self.picture.to_vec::<u32>()?;
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(egui::ColorImage::from_rgba_unmultiplied([SIDE, SIDE], &bytes))
    }
}

impl eframe::App for Waves {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        ui.horizontal(|ui| {
            ui.label(&self.engine.selected().device.name);
            ui.add(egui::Slider::new(&mut self.wavelength, 0.08..=0.6).text("wavelength"));
        });
        match self.compute() {
            Ok(image) => match &mut self.texture {
                Some(texture) => texture.set(image, egui::TextureOptions::LINEAR),
                None => self.texture = Some(ui.ctx().load_texture("waves", image, egui::TextureOptions::LINEAR)),
            },
            Err(error) => {
                ui.label(error.to_string());
            }
        }
        if let Some(texture) = &self.texture {
            ui.add(egui::Image::new(texture).shrink_to_fit());
        }
        self.frames += 1;
        if self.last.is_some_and(|last| self.frames >= last) {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
        }
        ui.ctx().request_repaint();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let last = arguments.windows(2).find(|pair| pair[0] == "--frames").map(|pair| pair[1].parse()).transpose()?;
    let app = Waves::new(last)?;
    eframe::run_native("{{name}}", eframe::NativeOptions::default(), Box::new(|_| Ok(Box::new(app))))?;
    Ok(())
}
