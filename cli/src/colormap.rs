//! Colour maps: 256 colours each, from dark or negative to bright or positive. A value picks one of them; nothing is mixed or dithered,
//! so that PNG, APNG and GIF show the same pixels.

use clap::ValueEnum;
use colorgrad::{BlendMode, CatmullRomGradient, Color, Gradient, GradientBuilder, preset};

/// The number of colours in a map.
pub const COLORS: usize = 256;

/// A colour map by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colormap {
    /// Dark blue, green, yellow; even to the eye, safe for colour blindness
    Viridis,
    /// Black, purple, pale yellow; even to the eye
    Magma,
    /// Black, red, pale yellow; even to the eye
    Inferno,
    /// Blue, red, yellow; even to the eye
    Plasma,
    /// Blue, grey, yellow; even to the eye, the same with and without colour blindness
    Cividis,
    /// Cyclic: the ends meet in pale grey, blue and red between
    Twilight,
    /// Blue, green, red: much detail, not even to the eye
    Turbo,
    /// Diverging: red, white at the middle, blue
    RdBu,
    /// Diverging: red, yellow at the middle, blue
    Spectral,
    /// Cyclic: the hues, less garish than a plain rainbow
    Rainbow,
    /// Cyclic: the hues, from sine waves
    Sinebow,
    /// Black to white through hues, ever brighter
    Cubehelix,
    /// Black to white
    Gray,
}

impl Colormap {
    /// The colours, red, green and blue, in order.
    pub fn palette(self) -> [[u8; 3]; COLORS] {
        match self {
            Self::Viridis => sample(&preset::viridis()),
            Self::Magma => sample(&preset::magma()),
            Self::Inferno => sample(&preset::inferno()),
            Self::Plasma => sample(&preset::plasma()),
            Self::Cividis => sample(&preset::cividis()),
            Self::Twilight => twilight().as_ref().map_or_else(gray, sample),
            Self::Turbo => sample(&preset::turbo()),
            Self::RdBu => sample(&preset::rd_bu()),
            Self::Spectral => sample(&preset::spectral()),
            Self::Rainbow => sample(&preset::rainbow()),
            Self::Sinebow => sample(&preset::sinebow()),
            Self::Cubehelix => sample(&preset::cubehelix_default()),
            Self::Gray => gray(),
        }
    }
}

impl std::fmt::Display for Colormap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("?", |value| value.get_name()))
    }
}

fn sample(gradient: &impl Gradient) -> [[u8; 3]; COLORS] {
    std::array::from_fn(|index| {
        let [red, green, blue, _] = gradient.at(index as f32 / (COLORS - 1) as f32).to_rgba8();
        [red, green, blue]
    })
}

fn gray() -> [[u8; 3]; COLORS] {
    std::array::from_fn(|index| [index as u8; 3])
}

/// 33 points of `twilight` by Bastian Bechtold (CC0), evenly spaced and the ends made equal, joined by a Catmull-Rom spline. Against
/// the original's 510 colours the error is at most 2 of 255.
const TWILIGHT: [u32; 33] = [
    0xe2d9e2, 0xd6d7dd, 0xc2ced4, 0xaac2cc, 0x94b4c7, 0x81a6c3, 0x7296c1, 0x6886be, 0x6275ba, 0x5f63b5, 0x5e50ac,
    0x5d3da0, 0x592a8f, 0x511b77, 0x45135c, 0x381145, 0x2f1436, 0x3a113a, 0x4b1342, 0x60184a, 0x751e4f, 0x882850,
    0x993550, 0xa74550, 0xb25752, 0xbc6958, 0xc37d63, 0xc89073, 0xcca489, 0xd2b6a3, 0xd9c7bf, 0xdfd4d6, 0xe2d9e2,
];

fn twilight() -> Option<CatmullRomGradient> {
    let colors: Vec<Color> =
        TWILIGHT.iter().map(|rgb| Color::from_rgba8((rgb >> 16) as u8, (rgb >> 8) as u8, *rgb as u8, 255)).collect();
    GradientBuilder::new().colors(&colors).mode(BlendMode::Rgb).build().ok()
}

/// Maps values to colours of a map: `low` and below to the first, `high` and above to the last, evenly between.
#[derive(Debug, Clone, Copy)]
pub struct Shade {
    low: f32,
    scale: f32,
}

impl Shade {
    /// Creates a map for values of `low` to `high`; `low < high`, both finite.
    pub fn new(low: f32, high: f32) -> Self {
        // In float64: `high - low` may overflow float32.
        let scale = COLORS as f64 / (f64::from(high) - f64::from(low));
        Self { low, scale: scale as f32 }
    }

    /// The index of each value's colour, appended to `indices`. NaN takes the first.
    pub fn indices(self, values: &[f32], indices: &mut Vec<u8>) {
        // The conversion saturates, and NaN becomes 0.
        indices.extend(values.iter().map(|value| ((value - self.low) * self.scale) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_even_bins_and_saturate() {
        let mut indices = Vec::new();
        let values = [-2.0, -1.0, -0.9921875, 0.0, 0.999, 1.0, 7.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        Shade::new(-1.0, 1.0).indices(&values, &mut indices);
        assert_eq!(indices, [0, 0, 1, 128, 255, 255, 255, 0, 255, 0]);
    }

    #[test]
    fn maps_have_their_published_ends() {
        // First and last colours as Matplotlib gives them, two levels of play for the preset's spline.
        let ends: [(Colormap, [u8; 3], [u8; 3]); 5] = [
            (Colormap::Viridis, [68, 1, 84], [253, 231, 37]),
            (Colormap::Magma, [0, 0, 4], [252, 253, 191]),
            (Colormap::Inferno, [0, 0, 4], [252, 255, 164]),
            (Colormap::Plasma, [13, 8, 135], [240, 249, 33]),
            (Colormap::Twilight, [226, 217, 226], [226, 217, 226]),
        ];
        for (map, first, last) in ends {
            let palette = map.palette();
            for channel in 0..3 {
                assert!(palette[0][channel].abs_diff(first[channel]) <= 2, "{map}: {:?}", palette[0]);
                assert!(palette[255][channel].abs_diff(last[channel]) <= 2, "{map}: {:?}", palette[255]);
            }
        }
    }

    /// The page draws with the same colours: as hexadecimal digits, written again with `CANTUS_WRITE_COLORMAPS=1`.
    #[test]
    fn the_web_page_has_the_same_maps() {
        let maps = Colormap::value_variants().iter().map(|map| {
            let digits: String = map.palette().concat().iter().map(|byte| format!("{byte:02x}")).collect();
            (map.to_string(), serde_json::Value::from(digits))
        });
        let expected = serde_json::to_string_pretty(&serde_json::Map::from_iter(maps)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/page/colormaps.json");
        if std::env::var_os("CANTUS_WRITE_COLORMAPS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        assert!(std::fs::read_to_string(path).unwrap_or_default() == expected, "{path} is stale");
    }

    #[test]
    fn twilight_follows_the_original() {
        // Colours 102 and 408 of the original's 510.
        let palette = Colormap::Twilight.palette();
        for (index, expected) in [(51, [109, 144, 192]), (204, [192, 117, 94])] {
            for channel in 0..3 {
                assert!(palette[index][channel].abs_diff(expected[channel]) <= 2, "{:?}", palette[index]);
            }
        }
    }
}
