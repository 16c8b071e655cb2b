//! The panel: the controls of the web page's field view, the device, the figures, the events.

use cantus::engine::EventKind;
use cantus::ops::field::Frequency;
use clap::ValueEnum as _;
use eframe::egui::{self, Button, Color32, ComboBox, Mesh, RichText, ScrollArea, Sense, Shape, pos2, vec2};

use super::app::View;
use super::devices::Choice;
use super::graphs;
use super::keys::SIDES;
use super::look;
use super::source::Source;
use crate::colormap::Colormap;
use crate::parse::Size;

const WIDTH: f32 = 284.0;
/// Events shown in the list; the rest scrolls.
const EVENTS_HEIGHT: f32 = 120.0;

impl View {
    /// Lays out the panel and does what is clicked.
    pub(super) fn panel(&mut self, ui: &mut egui::Ui) {
        let frame = egui::Frame::NONE.fill(ui.visuals().panel_fill).inner_margin(egui::Margin {
            left: 20,
            right: 0,
            top: 16,
            bottom: 8,
        });
        egui::Panel::left("controls").exact_size(WIDTH).resizable(false).frame(frame).show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                egui::Frame::NONE.inner_margin(egui::Margin { left: 0, right: 20, top: 0, bottom: 8 }).show(ui, |ui| {
                    ui.set_width(WIDTH - 41.0);
                    self.heading(ui);
                    self.wave(ui);
                    self.grid(ui);
                    self.colors(ui);
                    self.device(ui);
                    self.buttons(ui);
                    self.figures(ui);
                    self.event_list(ui);
                });
            });
        });
    }

    fn heading(&self, ui: &mut egui::Ui) {
        let name = self.kernel.as_ref().and_then(|kernel| kernel.path.file_name());
        let name = name.map_or_else(|| "Field".to_owned(), |name| name.to_string_lossy().into_owned());
        ui.add(egui::Label::new(RichText::new(name).heading()).truncate());
        let lead = match (&self.kernel, self.moves()) {
            (None, _) => "A damped spiral wave, computed for every frame.",
            (Some(_), true) => "Run for every frame, and read again when it is saved.",
            (Some(_), false) => "Run again when it is saved.",
        };
        ui.label(RichText::new(lead).size(13.0).weak());
        ui.add_space(4.0);
    }

    fn wave(&mut self, ui: &mut egui::Ui) {
        let tuned = self.source.as_ref().is_none_or(Source::is_tuned);
        let moves = self.source.is_none() || self.moves();
        if tuned {
            let before = self.settings.frequency;
            let frequency = &mut self.settings.frequency;
            let title = |name: &str, hertz: f64| {
                let mut letters = name.chars();
                let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
                format!("{first}{}, {hertz} Hz", letters.as_str())
            };
            let known = Frequency::names().find(|(_, hertz)| hertz == frequency);
            let shown = known.map_or_else(|| "By hand".to_owned(), |(name, hertz)| title(name, hertz));
            label(ui, "Frequency", "");
            ComboBox::from_id_salt("named").width(ui.available_width()).selected_text(shown).show_ui(ui, |ui| {
                for (name, hertz) in Frequency::names() {
                    ui.selectable_value(frequency, hertz, title(name, hertz));
                }
            });
            label(ui, "Hertz", &format!("{frequency} Hz"));
            slider(ui, frequency, 100.0..=1000.0, 1.0);
            if self.settings.frequency != before {
                self.change();
            }
        }
        if moves {
            label(ui, "Speed", &format!("{:.2} ×", self.settings.speed));
            slider(ui, &mut self.settings.speed, 0.0..=4.0, 0.05);
        }
    }

    fn grid(&mut self, ui: &mut egui::Ui) {
        let mut changed = None;
        ui.columns(2, |columns| {
            if let [left, right] = columns {
                let Size { width, height } = self.settings.size;
                label(left, "Size", "");
                let shown = format!("{width} × {height}");
                ComboBox::from_id_salt("size").width(left.available_width()).selected_text(shown).show_ui(left, |ui| {
                    for side in SIDES {
                        let here = (width, height) == (side, side);
                        if ui.selectable_label(here, format!("{side} × {side}")).clicked() {
                            changed = Some(Size { width: side, height: side });
                        }
                    }
                });
                label(right, "Time, s", "");
                let time = egui::DragValue::new(&mut self.settings.time).speed(0.02).max_decimals(3).min_decimals(1);
                if right.add_sized([right.available_width(), 26.0], time).changed() {
                    self.change();
                }
            }
        });
        if let Some(size) = changed {
            self.settings.size = size;
            self.resize();
        }
    }

    fn colors(&mut self, ui: &mut egui::Ui) {
        label(ui, "Colours", "");
        let map = &mut self.settings.map;
        ComboBox::from_id_salt("map").width(ui.available_width()).selected_text(map.to_string()).show_ui(ui, |ui| {
            for known in Colormap::value_variants() {
                ui.selectable_value(map, *known, known.to_string());
            }
        });
        swatch(ui, *map);
        ui.horizontal(|ui| {
            let (low, high) = &mut self.settings.range;
            let (lowest, highest) = (*low, *high);
            let bound = |value| egui::DragValue::new(value).speed(0.01).max_decimals(3);
            let least = (highest.abs().max(lowest.abs()) * 1e-4).max(f32::MIN_POSITIVE);
            ui.add(bound(low).range(f32::MIN..=highest - least));
            ui.label(RichText::new("to").small().weak());
            ui.add(bound(high).range(lowest + least..=f32::MAX));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.checkbox(&mut self.settings.smooth, "smooth");
            });
        });
    }

    fn device(&mut self, ui: &mut egui::Ui) {
        label(ui, "Runs on", "");
        let current = self.settings.choice.clone();
        let mut chosen: Option<Choice> = None;
        let list = self.devices.list();
        let shown = list.iter().find(|choice| choice.is(&current)).unwrap_or(&current).label();
        let shown = RichText::new(shown);
        ComboBox::from_id_salt("device").width(ui.available_width()).truncate().selected_text(shown).show_ui(
            ui,
            |ui| {
                for choice in &list {
                    if ui.selectable_label(choice.is(&current), choice.label()).clicked() {
                        chosen = Some(choice.clone());
                    }
                }
            },
        );
        if let Some(choice) = chosen {
            self.open(choice, ui.ctx());
        }
        let palette = look::palette(ui.visuals());
        let card = egui::Frame::NONE.fill(palette.sunk).inner_margin(egui::Margin::symmetric(10, 8)).corner_radius(4.0);
        card.show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = 2.0;
            let Some((device, why)) = &self.device else {
                ui.label(RichText::new("Opening…").size(13.0).weak());
                return;
            };
            ui.add(egui::Label::new(RichText::new(&device.name).size(13.0).strong()).wrap());
            let way = match &self.picture {
                Some(picture) if picture.is_shared() => "drawn from its buffer, without a copy",
                Some(_) => "values copied to the window’s device",
                None => "no picture yet",
            };
            ui.add(egui::Label::new(RichText::new(way).small().weak()).wrap())
                .on_hover_text(format!("chosen because: {why}"));
        });
    }

    fn buttons(&mut self, ui: &mut egui::Ui) {
        ui.add_space(4.0);
        let palette = look::palette(ui.visuals());
        let moves = self.moves();
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            let word = if self.settings.playing { "Pause" } else { "Play" };
            let play = Button::new(RichText::new(word).color(palette.on_accent)).fill(palette.accent);
            if ui.add_enabled(moves, play.min_size(vec2(68.0, 28.0))).clicked() {
                self.settings.playing = !self.settings.playing;
            }
            for (name, extension) in [("PNG", "png"), ("GIF", "gif"), (".npy", "npy")] {
                let button = Button::new(name).min_size(vec2(46.0, 28.0));
                let ready = self.saving.is_none() && self.picture.is_some() && (extension != "gif" || moves);
                let hover = format!("Save as {name} in {}", self.folder.display());
                if ui.add_enabled(ready, button).on_hover_text(hover).clicked() {
                    if extension == "gif" {
                        self.save_movement(ui.ctx());
                    } else {
                        self.save(extension, ui.ctx());
                    }
                }
            }
        });
    }

    fn figures(&self, ui: &mut egui::Ui) {
        ui.add_space(6.0);
        let measured = &self.measurements;
        let times =
            |of: fn(&graphs::Sample) -> f32| measured.median(60, of).map_or_else(|| "–".to_owned(), milliseconds);
        let playing = self.settings.playing && self.moves();
        let rate = match measured.median(60, |sample| sample.total) {
            Some(total) if playing && total > 0.0 => {
                let rate = 1e3 / total;
                if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
            }
            _ if playing => "–".to_owned(),
            _ => "paused".to_owned(),
        };
        ui.columns(4, |columns| {
            let figures = [
                ("Frames/s", rate, "Frames in a second"),
                ("Frame", times(|sample| sample.total), "From one frame to the next"),
                ("Kernel", times(|sample| sample.kernel), "From submission until the device is done"),
                ("Own", times(|sample| sample.own), "All that Cantus and the window do beside the kernel"),
            ];
            for (column, (name, value, hover)) in columns.iter_mut().zip(figures) {
                column.spacing_mut().item_spacing.y = 1.0;
                column.label(RichText::new(name).size(11.0).weak());
                column.label(RichText::new(value).size(13.0).strong()).on_hover_text(hover);
            }
        });
        ui.add_space(2.0);
        label(ui, "Frame time", "kernel, whole");
        graphs::frames(ui, measured);
        let latest = measured.latest_coherence().map_or_else(|| "–".to_owned(), |value| format!("{value:.5}"));
        label(ui, "Coherence over time", &latest);
        graphs::coherence(ui, measured);
    }

    fn event_list(&self, ui: &mut egui::Ui) {
        if self.events.is_empty() {
            return;
        }
        let palette = look::palette(ui.visuals());
        label(ui, "Events", "");
        let area = ScrollArea::vertical().id_salt("events").max_height(EVENTS_HEIGHT).stick_to_bottom(true);
        area.show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = 3.0;
            for line in &self.events {
                let bad = matches!(line.kind, Some(EventKind::FellBack | EventKind::Failed | EventKind::Lost));
                let color = if bad { palette.bad } else { palette.quiet };
                let kind = match line.kind {
                    Some(EventKind::FellBack) => "fell back  ",
                    Some(EventKind::Failed) => "failed  ",
                    Some(EventKind::Lost) => "lost  ",
                    Some(EventKind::Opened) => "opened  ",
                    _ => "",
                };
                let text = format!("{:.1} s  {kind}{}", line.at.as_secs_f64(), line.text);
                ui.add(egui::Label::new(RichText::new(&text).size(11.0).color(color)).truncate()).on_hover_text(&text);
            }
        });
    }
}

/// A quiet name over a control, with its value at the right.
fn label(ui: &mut egui::Ui, name: &str, value: &str) {
    let width = ui.available_width();
    ui.allocate_ui_with_layout(vec2(width, 15.0), egui::Layout::left_to_right(egui::Align::Center), |ui| {
        ui.set_width(width);
        ui.spacing_mut().interact_size.y = 15.0;
        ui.label(RichText::new(name).small().weak());
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.label(RichText::new(value).small());
        });
    });
    ui.add_space(-3.0);
}

fn slider(ui: &mut egui::Ui, value: &mut f64, range: std::ops::RangeInclusive<f64>, step: f64) {
    ui.spacing_mut().slider_width = ui.available_width();
    ui.add(
        egui::Slider::new(value, range)
            .step_by(step)
            .show_value(false)
            .clamping(egui::SliderClamping::Never)
            .handle_shape(egui::style::HandleShape::Circle),
    );
}

/// The colours of a map from the first to the last.
fn swatch(ui: &mut egui::Ui, map: Colormap) {
    let (place, _) = ui.allocate_exact_size(vec2(ui.available_width(), 8.0), Sense::hover());
    let mut mesh = Mesh::default();
    let palette = map.palette();
    let steps = (palette.len() - 1) as f32;
    for (index, [red, green, blue]) in (0_u32..).zip(palette) {
        let x = place.left() + index as f32 / steps * place.width();
        for y in [place.top(), place.bottom()] {
            mesh.colored_vertex(pos2(x, y), Color32::from_rgb(red, green, blue));
        }
        if index > 0 {
            let corner = 2 * index;
            mesh.add_triangle(corner - 2, corner - 1, corner);
            mesh.add_triangle(corner - 1, corner, corner + 1);
        }
    }
    ui.painter().add(Shape::mesh(mesh));
}

fn milliseconds(time: f32) -> String {
    match time {
        0.0..10.0 => format!("{time:.2} ms"),
        10.0..100.0 => format!("{time:.1} ms"),
        _ => format!("{time:.0} ms"),
    }
}
