//! Measurements over time, and the two graphs of the panel. Measures nothing itself.

use std::collections::VecDeque;

use eframe::egui::{self, Align2, Color32, FontId, Mesh, Pos2, Rect, Sense, Shape, Stroke, pos2, vec2};

use super::look::{self, Palette};

/// Frames that are kept: at 60 a second, four seconds.
const KEPT: usize = 240;
const HEIGHT: f32 = 64.0;

/// One frame's times in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// Since the frame before it.
    pub total: f32,
    /// Time from submission until the device was done.
    pub kernel: f32,
    /// Everything that Cantus and the window did beside the kernel.
    pub own: f32,
    /// Part of it for copying values to the window's device.
    pub copy: f32,
}

/// The last frames, and the coherence over time.
#[derive(Debug, Default)]
pub struct Measurements {
    frames: VecDeque<Sample>,
    coherence: VecDeque<(f64, f32)>,
}

impl Measurements {
    /// Adds a frame.
    pub fn frame(&mut self, sample: Sample) {
        if self.frames.len() == KEPT {
            self.frames.pop_front();
        }
        self.frames.push_back(sample);
    }

    /// Adds a coherence at a moment of the picture.
    pub fn coherence(&mut self, time: f64, value: f32) {
        // Time that was set back starts over.
        if self.coherence.back().is_some_and(|(last, _)| *last > time) {
            self.coherence.clear();
        }
        if self.coherence.len() == KEPT {
            self.coherence.pop_front();
        }
        self.coherence.push_back((time, value));
    }

    /// Forgets the frames: those of another device or size.
    pub fn forget_frames(&mut self) {
        self.frames.clear();
    }

    /// Forgets the coherence: that of another picture.
    pub fn forget_coherence(&mut self) {
        self.coherence.clear();
    }

    /// The latest coherence.
    pub fn latest_coherence(&self) -> Option<f32> {
        self.coherence.back().map(|(_, value)| *value)
    }

    /// The median of one of the times over the last `count` frames.
    pub fn median(&self, count: usize, of: impl Fn(&Sample) -> f32) -> Option<f32> {
        let mut times: Vec<f32> = self.frames.iter().rev().take(count).map(of).collect();
        times.sort_by(f32::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

/// Frame times: bars for the whole, and within them the kernel's part.
pub fn frames(ui: &mut egui::Ui, measurements: &Measurements) {
    let palette = *look::palette(ui.visuals());
    let frames = &measurements.frames;
    // One slow frame in twenty may leave the graph, so that the others can be seen.
    let mut times: Vec<f32> = frames.iter().map(|frame| frame.total.max(frame.kernel)).collect();
    times.sort_by(f32::total_cmp);
    let top = nice(times.get(times.len() * 19 / 20).copied().unwrap_or(0.0) * 1.1);
    let Some(plot) = area(ui, &palette, &format!("{top} ms")) else { return };
    let width = plot.width() / KEPT as f32;
    // One mesh: as shapes of their own, with soft edges, the bars would cost more than all else in the window.
    let mut bars = Mesh::default();
    for (index, frame) in frames.iter().enumerate() {
        let right = plot.right() - (frames.len() - 1 - index) as f32 * width;
        let mut bar = |milliseconds: f32, color: Color32| {
            let height = (milliseconds / top).min(1.0) * plot.height();
            let bar = Rect::from_min_max(pos2(right - width, plot.bottom() - height), pos2(right, plot.bottom()));
            bars.add_colored_rect(bar, color);
        };
        bar(frame.total, palette.line);
        bar(frame.kernel, palette.accent);
    }
    ui.painter().add(Shape::mesh(bars));
}

/// The coherence as a line, from 0 to 1.
pub fn coherence(ui: &mut egui::Ui, measurements: &Measurements) {
    let palette = *look::palette(ui.visuals());
    let values = &measurements.coherence;
    // Most of what happens is close to 1: the scale begins where the values do.
    let least = values.iter().map(|(_, value)| *value).fold(1.0, f32::min);
    let bottom = if values.is_empty() { 0.0 } else { (1.0 - nice((1.0 - least).max(1e-4) * 1.05)).max(0.0) };
    let Some(plot) = area(ui, &palette, "1") else { return };
    let corner = plot.left_bottom() + vec2(0.0, -1.0);
    let label = format!("{}", (bottom * 1e6).round() / 1e6);
    ui.painter().text(corner, Align2::LEFT_BOTTOM, label, FontId::proportional(10.0), palette.quiet);
    let (Some((first, _)), Some((last, _))) = (values.front(), values.back()) else { return };
    let span = (last - first).max(1e-9);
    let line: Vec<Pos2> = values
        .iter()
        .map(|(time, value)| {
            let x = plot.left() + ((time - first) / span) as f32 * plot.width();
            let y = plot.bottom() - (value - bottom) / (1.0 - bottom) * plot.height();
            pos2(x, y.clamp(plot.top(), plot.bottom()))
        })
        .collect();
    ui.painter().add(Shape::line(line, Stroke::new(1.5, palette.second)));
}

/// The ground of a graph with the value of its upper edge; `None` where it cannot be seen.
fn area(ui: &mut egui::Ui, palette: &Palette, top: &str) -> Option<Rect> {
    let (whole, _) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    if !ui.is_rect_visible(whole) {
        return None;
    }
    let painter = ui.painter();
    painter.rect_filled(whole, 4.0, palette.sunk);
    painter.text(whole.left_top() + vec2(4.0, 2.0), Align2::LEFT_TOP, top, FontId::proportional(10.0), palette.quiet);
    Some(whole.shrink2(vec2(4.0, 2.0)))
}

/// The least of 1, 2 and 5 times a power of ten that is not less than `value`.
fn nice(value: f32) -> f32 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f32.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= value * 0.9999).unwrap_or(10.0);
    // Without the powers' rounding: what is shown are these digits.
    let digits = format!("{:.6}", step * power);
    digits.parse().unwrap_or(step * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_hold_the_value() {
        for (value, expected) in [(0.3, 0.5), (1.0, 1.0), (1.2, 2.0), (16.7, 20.0), (51.0, 100.0), (0.0, 1.0)] {
            assert_eq!(nice(value), expected, "{value}");
        }
    }

    #[test]
    fn medians_are_of_the_last_frames() {
        let mut measurements = Measurements::default();
        assert_eq!(measurements.median(3, |sample| sample.total), None);
        for total in [100.0, 1.0, 3.0, 2.0] {
            measurements.frame(Sample { total, ..Sample::default() });
        }
        assert_eq!(measurements.median(3, |sample| sample.total), Some(2.0));
    }

    #[test]
    fn coherence_begins_anew_when_time_goes_back() {
        let mut measurements = Measurements::default();
        for (time, value) in [(1.0, 0.5), (2.0, 0.6), (0.5, 0.7)] {
            measurements.coherence(time, value);
        }
        assert_eq!(measurements.coherence, [(0.5, 0.7)]);
    }
}
