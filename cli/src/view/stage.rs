//! The picture's half of the window, and what lies over it: an error with its place, notes, help.

use eframe::egui::{self, Align2, Color32, FontId, RichText, Sense, Stroke, pos2, vec2};
use eframe::egui_wgpu::Callback;

use super::app::View;
use super::keys;
use super::look::{self, Palette};
use super::picture::Drawing;
use super::problem::{Excerpt, Problem};
use super::source::Source;

/// Free space around the picture, in points.
const MARGIN: f32 = 20.0;

impl View {
    /// Draws the picture and what lies over it.
    pub(super) fn stage(&mut self, ui: &mut egui::Ui) {
        let palette = look::palette(ui.visuals());
        let frame = egui::Frame::NONE.fill(palette.sunk);
        egui::CentralPanel::default().frame(frame).show(ui, |ui| {
            let space = ui.max_rect();
            self.draw(ui, palette, space);
            if let Some(problem) = &self.problem {
                over(ui, problem, palette, space);
            }
            self.notes(ui, palette, space);
        });
        if self.help {
            self.help = keys::help(ui.ctx());
        }
    }

    fn draw(&mut self, ui: &egui::Ui, palette: &Palette, space: egui::Rect) {
        let Some(picture) = self.picture.clone() else {
            let text = if self.problem.is_some() { "No picture yet" } else { "Opening a device…" };
            ui.painter().text(space.center(), Align2::CENTER_CENTER, text, FontId::proportional(14.0), palette.quiet);
            return;
        };
        let scale = ui.ctx().pixels_per_point();
        let values = vec2(picture.size().width as f32, picture.size().height as f32);
        let room = space.shrink(MARGIN.min(space.width() / 8.0).min(space.height() / 8.0));
        let side = if self.settings.actual {
            values / scale
        } else {
            values * (room.width() / values.x).min(room.height() / values.y)
        };
        // On whole pixels, so that a value for each pixel is just that.
        let whole = |point: f32| (point * scale).round() / scale;
        let corner = room.center() - side / 2.0;
        let place = egui::Rect::from_min_size(
            pos2(whole(corner.x), whole(corner.y)),
            vec2(whole(side.x).max(1.0 / scale), whole(side.y).max(1.0 / scale)),
        );
        self.place = place;
        let drawing = Drawing {
            values: picture.drawable.clone(),
            map: self.settings.map,
            range: self.settings.range,
            smooth: self.settings.smooth,
            place,
        };
        ui.painter_at(space).add(Callback::new_paint_callback(place, drawing));
        // The last good picture steps back behind an error.
        if self.problem.is_some() {
            ui.painter_at(space).rect_filled(place, 0.0, palette.sunk.gamma_multiply(0.45));
        }
        let response = ui.interact(place.intersect(space), ui.scope_id().with("picture"), Sense::CLICK | Sense::DRAG);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "the picture"));
        self.follow_mouse(&response, place, values);
    }

    /// Tells the kernel where the mouse is. It stays where it left the picture.
    fn follow_mouse(&mut self, response: &egui::Response, place: egui::Rect, values: egui::Vec2) {
        let before = self.settings.mouse;
        if let Some(at) = response.hover_pos().or_else(|| response.interact_pointer_pos()) {
            let on = ((at - place.min) / place.size() * values).clamp(egui::Vec2::ZERO, values);
            self.settings.mouse.at = [on.x, on.y];
        }
        self.settings.mouse.pressed = response.is_pointer_button_down_on();
        if self.settings.mouse != before && self.source.as_ref().is_some_and(Source::follows_mouse) {
            self.change();
        }
    }

    fn notes(&mut self, ui: &mut egui::Ui, palette: &Palette, space: egui::Rect) {
        let progress =
            self.saving.as_ref().map(|saving| (format!("saving {}", saving.path.display()), saving.progress()));
        let note = self.note.as_ref().map(|(text, bad, _)| (text.clone(), *bad));
        let running = self.runs_on().map(|time| format!("The kernel has been computing for {} s.", time.as_secs()));
        if progress.is_none() && note.is_none() && running.is_none() {
            return;
        }
        let mut cancel = false;
        egui::Area::new(ui.scope_id().with("notes"))
            .pivot(Align2::RIGHT_TOP)
            .fixed_pos(space.right_top() + vec2(-12.0, 12.0))
            .constrain_to(space)
            .show(ui.ctx(), |ui| {
                card(palette, palette.line).show(ui, |ui| {
                    ui.set_max_width((space.width() - 48.0).clamp(120.0, 420.0));
                    if let Some((text, done)) = progress {
                        ui.horizontal(|ui| {
                            ui.label(RichText::new(text).size(look::SMALL));
                            cancel = ui.small_button("Cancel").clicked();
                        });
                        ui.add(egui::ProgressBar::new(done).desired_height(4.0));
                    } else if let Some((text, bad)) = note {
                        let color = if bad { palette.bad } else { palette.good };
                        ui.label(RichText::new(text).size(look::SMALL).color(color));
                    } else if let Some(text) = running {
                        ui.label(RichText::new(text).size(look::SMALL));
                    }
                });
            });
        if let Some(saving) = self.saving.as_ref().filter(|_| cancel) {
            saving.cancel();
        }
    }
}

fn card(palette: &Palette, edge: Color32) -> egui::Frame {
    egui::Frame::NONE
        .fill(palette.raised)
        .stroke(Stroke::new(1.0, edge))
        .corner_radius(6.0)
        .inner_margin(egui::Margin::symmetric(14, 10))
}

/// An error at the foot of the picture.
fn over(ui: &egui::Ui, problem: &Problem, palette: &Palette, space: egui::Rect) {
    egui::Area::new(ui.scope_id().with("problem"))
        .pivot(Align2::CENTER_BOTTOM)
        .fixed_pos(space.center_bottom() - vec2(0.0, 16.0))
        .constrain_to(space)
        .show(ui.ctx(), |ui| {
            card(palette, palette.bad).show(ui, |ui| {
                ui.set_width((space.width() - 60.0).clamp(160.0, 720.0));
                ui.label(RichText::new(&problem.title).color(palette.bad).strong());
                if let Some(excerpt) = &problem.excerpt {
                    ui.add_space(2.0);
                    lines(ui, excerpt, palette);
                }
                if !problem.details.is_empty() {
                    ui.add_space(2.0);
                    let most = space.height() * 0.35;
                    egui::ScrollArea::vertical().max_height(most).show(ui, |ui| {
                        let details =
                            RichText::new(&problem.details).monospace().size(look::SMALL).color(palette.quiet);
                        ui.add(egui::Label::new(details).wrap());
                    });
                }
            });
        });
}

/// The lines around the place, which is underlined.
fn lines(ui: &mut egui::Ui, excerpt: &Excerpt, palette: &Palette) {
    let font = FontId::monospace(12.5);
    let (advance, height) = ui.fonts_mut(|fonts| (fonts.glyph_width(&font, '0'), fonts.row_height(&font) + 3.0));
    let marked_line = excerpt.place.line;
    let rows = excerpt.lines.len() as f32 + if excerpt.label.is_empty() { 0.0 } else { 1.0 };
    let (space, _) = ui.allocate_exact_size(vec2(ui.available_width(), rows * height), Sense::hover());
    let painter = ui.painter_at(space.expand(1.0));
    let digits = excerpt.lines.last().map_or(1, |(number, _)| number.to_string().len()) as f32;
    let left = space.left() + (digits + 2.0) * advance;
    // A place far to the right is brought into sight, with what is said about it.
    let (from, count) = excerpt.marked();
    let seen = ((space.right() - left) / advance) as usize;
    let needed = from + count.max(excerpt.label.chars().count()) + 2;
    let skipped = needed.saturating_sub(seen).min(from);
    let mut y = space.top();
    for (number, text) in &excerpt.lines {
        let here = *number == marked_line;
        let number_place = pos2(left - 2.0 * advance, y);
        painter.text(number_place, Align2::RIGHT_TOP, number, font.clone(), palette.quiet);
        let ink = if here { palette.ink } else { palette.quiet };
        let text: String = text.chars().skip(skipped).take(seen).collect();
        painter.text(pos2(left, y), Align2::LEFT_TOP, text, font.clone(), ink);
        y += height;
        if here {
            let from = left + (from - skipped) as f32 * advance;
            let to = from + count as f32 * advance;
            painter.hline(from..=to, y - 1.5, Stroke::new(2.0, palette.bad));
            if !excerpt.label.is_empty() {
                painter.text(pos2(from, y), Align2::LEFT_TOP, &excerpt.label, font.clone(), palette.bad);
                y += height;
            }
        }
    }
}
