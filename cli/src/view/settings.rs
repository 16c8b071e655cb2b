//! The settings of the window.

use eframe::egui::ThemePreference;

use super::devices::Choice;
use super::source::Mouse;
use crate::colormap::Colormap;
use crate::parse::Size;

/// The controls' values.
#[derive(Debug, Clone)]
pub struct Settings {
    /// In Hz.
    pub frequency: f64,
    /// Seconds of the picture per second.
    pub speed: f64,
    /// In seconds.
    pub time: f64,
    pub mouse: Mouse,
    /// Columns and rows.
    pub size: Size,
    pub map: Colormap,
    /// The values of the first and the last colour.
    pub range: (f32, f32),
    pub playing: bool,
    /// Mix neighbouring values where the picture is enlarged.
    pub smooth: bool,
    /// One value for each pixel, instead of as large as fits.
    pub actual: bool,
    /// Show the panel.
    pub panel: bool,
    pub theme: ThemePreference,
    pub choice: Choice,
}
