//! The look of the window: the colours of Cantus's web page, light and dark, and the sizes of its text. Lays nothing out.

use eframe::egui::{
    self, Color32, CornerRadius, FontFamily, FontId, Shadow, Stroke, TextStyle, Theme, Vec2, Visuals, vec2,
};

/// The colours that egui's own style has no place for.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    pub paper: Color32,
    pub raised: Color32,
    pub sunk: Color32,
    pub ink: Color32,
    pub quiet: Color32,
    pub line: Color32,
    pub accent: Color32,
    pub on_accent: Color32,
    pub bad: Color32,
    pub good: Color32,
    /// The second line of a graph.
    pub second: Color32,
}

const LIGHT: Palette = Palette {
    paper: rgb(0xfb_faf7),
    raised: rgb(0xff_ffff),
    sunk: rgb(0xf1_efe9),
    ink: rgb(0x1d_1b18),
    quiet: rgb(0x62_5d54),
    line: rgb(0xdc_d8ce),
    accent: rgb(0x8a_4f14),
    on_accent: rgb(0xff_ffff),
    bad: rgb(0xa3_261b),
    good: rgb(0x2b_6a43),
    second: rgb(0x1f_6385),
};

const DARK: Palette = Palette {
    paper: rgb(0x16_1513),
    raised: rgb(0x1e_1c1a),
    sunk: rgb(0x10_0f0e),
    ink: rgb(0xec_e8e1),
    quiet: rgb(0xa8_a197),
    line: rgb(0x34_312d),
    accent: rgb(0xe0_a368),
    on_accent: rgb(0x1a_1206),
    bad: rgb(0xf0_897c),
    good: rgb(0x82_c79b),
    second: rgb(0x7d_b8d8),
};

const fn rgb(value: u32) -> Color32 {
    Color32::from_rgb((value >> 16) as u8, (value >> 8) as u8, value as u8)
}

/// The colours in force.
pub fn palette(visuals: &Visuals) -> &'static Palette {
    if visuals.dark_mode { &DARK } else { &LIGHT }
}

/// Small text: labels over controls, figures, events.
pub const SMALL: f32 = 12.0;

/// Dresses the window.
pub fn dress(context: &egui::Context) {
    for (theme, palette) in [(Theme::Light, &LIGHT), (Theme::Dark, &DARK)] {
        context.style_mut_of(theme, |style| {
            style.visuals = visuals(theme, palette);
            let sizes = [
                (TextStyle::Heading, 20.0, FontFamily::Proportional),
                (TextStyle::Body, 14.0, FontFamily::Proportional),
                (TextStyle::Button, 14.0, FontFamily::Proportional),
                (TextStyle::Small, SMALL, FontFamily::Proportional),
                (TextStyle::Monospace, 12.5, FontFamily::Monospace),
            ];
            style.text_styles = sizes.map(|(text, size, family)| (text, FontId::new(size, family))).into();
            let spacing = &mut style.spacing;
            spacing.item_spacing = vec2(8.0, 6.0);
            spacing.button_padding = vec2(10.0, 4.0);
            spacing.interact_size = vec2(40.0, 26.0);
            spacing.slider_rail_height = 5.0;
            spacing.combo_height = 320.0;
            spacing.scroll.floating = true;
            style.interaction.selectable_labels = false;
        });
    }
}

fn visuals(theme: Theme, palette: &Palette) -> Visuals {
    let mut visuals = if theme == Theme::Dark { Visuals::dark() } else { Visuals::light() };
    let round = CornerRadius::same(5);
    visuals.panel_fill = palette.paper;
    visuals.window_fill = palette.raised;
    visuals.window_stroke = Stroke::new(1.0, palette.line);
    visuals.window_shadow = Shadow { offset: [0, 4], blur: 18, spread: 0, color: Color32::from_black_alpha(48) };
    visuals.popup_shadow = Shadow { offset: [0, 2], blur: 8, spread: 0, color: Color32::from_black_alpha(36) };
    visuals.window_corner_radius = CornerRadius::same(8);
    visuals.menu_corner_radius = CornerRadius::same(6);
    visuals.extreme_bg_color = palette.raised;
    visuals.faint_bg_color = palette.sunk;
    visuals.code_bg_color = palette.sunk;
    visuals.hyperlink_color = palette.accent;
    visuals.error_fg_color = palette.bad;
    visuals.warn_fg_color = palette.accent;
    visuals.weak_text_color = Some(palette.quiet);
    visuals.selection.bg_fill = palette.accent;
    visuals.selection.stroke = Stroke::new(1.0, palette.on_accent);
    visuals.slider_trailing_fill = true;
    let widgets = &mut visuals.widgets;
    for (widget, fill, line, ink) in [
        (&mut widgets.noninteractive, palette.paper, palette.line, palette.ink),
        (&mut widgets.inactive, palette.raised, palette.line, palette.ink),
        (&mut widgets.hovered, palette.raised, palette.accent, palette.ink),
        (&mut widgets.active, palette.sunk, palette.accent, palette.ink),
        (&mut widgets.open, palette.raised, palette.accent, palette.ink),
    ] {
        widget.weak_bg_fill = fill;
        widget.bg_fill = fill;
        widget.bg_stroke = Stroke::new(1.0, line);
        widget.fg_stroke = Stroke::new(1.0, ink);
        widget.corner_radius = round;
        widget.expansion = 0.0;
    }
    // The rail of a slider, and its end.
    widgets.inactive.bg_fill = palette.line;
    widgets.hovered.bg_fill = palette.line;
    widgets.active.bg_fill = palette.line;
    visuals
}

/// The window's icon: the ring and the hook of the web page's.
pub fn icon() -> egui::IconData {
    const SIDE: u32 = 64;
    let [red, green, blue, _] = rgb(0xa2_662a).to_array();
    let place = |pixel: u32| (pixel as f32 + 0.5) / SIDE as f32 * 16.0 - 8.0;
    let rgba = (0..SIDE * SIDE)
        .flat_map(|index| {
            let at: Vec2 = vec2(place(index % SIDE), place(index / SIDE));
            let outer = 1.0 - (at.length() - 6.0).abs();
            // Three quarters of the inner circle: the upper right one is left out.
            let inner = if at.x > 0.0 && at.y < 0.0 { 0.0 } else { 1.0 - (at.length() - 3.0).abs() };
            let cover = (outer.max(inner) * 4.0).clamp(0.0, 1.0);
            [red, green, blue, (cover * 255.0) as u8]
        })
        .collect();
    egui::IconData { rgba, width: SIDE, height: SIDE }
}
