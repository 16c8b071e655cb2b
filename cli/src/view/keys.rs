//! The keyboard: every control has a key, and a page lists them.

use eframe::egui::{self, Key, Modifiers, RichText, ThemePreference};

use super::app::View;
use super::look;
use super::source::Source;
use crate::colormap::Colormap;
use clap::ValueEnum as _;

/// The keys and what they do, as the page of help lists them.
const KEYS: [(&str, &str); 15] = [
    ("Space", "play or pause"),
    ("→ ←", "a tenth of a second on or back"),
    ("Home", "time to 0; what is kept starts over"),
    ("↑ ↓", "frequency by 1 Hz; with Shift by 10"),
    ("+ −", "speed"),
    ("Z", "the next size; with Shift the one before"),
    ("C", "the next colours; with Shift those before"),
    ("D", "the next device; with Shift the one before"),
    ("A", "a value for each pixel, or as large as fits"),
    ("M", "mix neighbouring values"),
    ("S  G  N", "save PNG, GIF, .npy"),
    ("P", "hide or show the panel"),
    ("T", "light, dark, or as the system has it"),
    ("F1  ?", "this page"),
    ("Ctrl+Q", "close"),
];

/// Sides of the square sizes to choose from, as on the web page.
pub const SIDES: [usize; 6] = [256, 512, 768, 1024, 2048, 4096];

/// The item `steps` behind `current`, round and round.
pub fn step<T: Copy + PartialEq>(items: &[T], current: T, steps: isize) -> T {
    let place = items.iter().position(|item| *item == current).unwrap_or(0) as isize;
    let count = items.len().max(1) as isize;
    usize::try_from((place + steps).rem_euclid(count)).ok().and_then(|next| items.get(next)).copied().unwrap_or(current)
}

impl View {
    /// Does what the pressed keys say, unless something has the focus that takes them itself.
    pub(super) fn keys(&mut self, context: &egui::Context) {
        if context.input_mut(|input| input.consume_key(Modifiers::COMMAND, Key::Q)) {
            context.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if context.egui_wants_keyboard_input() {
            return;
        }
        let events = context.input(|input| input.events.clone());
        // Arrows and space belong to the control that has the focus.
        let free = context.memory(|memory| memory.focused().is_none());
        for event in events {
            if let egui::Event::Key { key, pressed: true, modifiers, .. } = event
                && !modifiers.command
                && !modifiers.alt
            {
                let taken = [Key::Space, Key::ArrowUp, Key::ArrowDown, Key::ArrowLeft, Key::ArrowRight, Key::Home]
                    .contains(&key);
                if free || !taken {
                    self.key(key, modifiers.shift, context);
                }
            }
        }
    }

    fn key(&mut self, key: Key, shift: bool, context: &egui::Context) {
        let direction = if shift { -1 } else { 1 };
        let settings = &mut self.settings;
        match key {
            Key::Space => settings.playing = !settings.playing,
            Key::ArrowRight => settings.time += 0.1,
            Key::ArrowLeft => settings.time -= 0.1,
            Key::Home => {
                settings.time = 0.0;
                if self.source.as_ref().is_some_and(Source::keeps) {
                    self.start_over();
                }
            }
            Key::ArrowUp => settings.frequency += if shift { 10.0 } else { 1.0 },
            Key::ArrowDown => settings.frequency = (settings.frequency - if shift { 10.0 } else { 1.0 }).max(1.0),
            Key::Plus | Key::Equals => settings.speed = (settings.speed + 0.25).min(4.0),
            Key::Minus => settings.speed = (settings.speed - 0.25).max(0.0),
            Key::Z => {
                let side = step(&SIDES, settings.size.width, direction);
                (settings.size.width, settings.size.height) = (side, side);
                self.resize();
            }
            Key::C => settings.map = step(Colormap::value_variants(), settings.map, direction),
            Key::D => self.next_device(direction, context),
            Key::A => settings.actual = !settings.actual,
            Key::M => settings.smooth = !settings.smooth,
            Key::S => self.save("png", context),
            Key::N => self.save("npy", context),
            Key::G => self.save_movement(context),
            Key::P => settings.panel = !settings.panel,
            Key::T => {
                let themes = [ThemePreference::System, ThemePreference::Light, ThemePreference::Dark];
                settings.theme = step(&themes, settings.theme, direction);
                context.set_theme(settings.theme);
            }
            Key::F1 | Key::Questionmark => self.help = !self.help,
            Key::Escape => self.help = false,
            _ => return,
        }
        if matches!(key, Key::ArrowRight | Key::ArrowLeft | Key::Home | Key::ArrowUp | Key::ArrowDown) {
            self.change();
        }
    }

    fn next_device(&mut self, steps: isize, context: &egui::Context) {
        let list = self.devices.list();
        let place = list.iter().position(|choice| choice.is(&self.settings.choice)).unwrap_or(0);
        let places: Vec<usize> = (0..list.len()).collect();
        if let Some(choice) = list.get(step(&places, place, steps)) {
            self.open(choice.clone(), context);
        }
    }
}

/// The page of help. False when it was closed.
pub fn help(context: &egui::Context) -> bool {
    let mut open = true;
    egui::Window::new("Keys")
        .open(&mut open)
        .collapsible(false)
        .resizable(false)
        .anchor(egui::Align2::CENTER_CENTER, [0.0, 0.0])
        .show(context, |ui| {
            egui::Grid::new("keys").num_columns(2).spacing([20.0, 5.0]).show(ui, |ui| {
                let palette = look::palette(ui.visuals());
                for (keys, what) in KEYS {
                    ui.label(RichText::new(keys).monospace().color(palette.accent));
                    ui.label(what);
                    ui.end_row();
                }
            });
        });
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_round() {
        assert_eq!(step(&SIDES, 512, 1), 768);
        assert_eq!(step(&SIDES, 256, -1), 4096);
        assert_eq!(step(&SIDES, 4096, 1), 256);
        // What is not in the list begins at its start.
        assert_eq!(step(&SIDES, 300, 1), 512);
        assert_eq!(step::<usize>(&[], 7, 1), 7);
    }
}
