//! The arguments shared by everything that makes a grid of values: its size and its colours.

use clap::Args;

use super::colormap::Colormap;
use super::parse::{self, Size};
use super::picture::Coloring;

/// Size and colours.
#[derive(Debug, Args)]
pub struct GridArguments {
    /// Columns and rows in one word [default: 512x512]
    #[arg(value_name = "WIDTHxHEIGHT", conflicts_with_all = ["width", "height"])]
    size: Option<Size>,
    /// Number of columns [default: 512]
    #[arg(long, value_name = "COLUMNS", value_parser = parse::side, allow_negative_numbers = true)]
    width: Option<usize>,
    /// Number of rows [default: 512]
    #[arg(long, value_name = "ROWS", value_parser = parse::side, allow_negative_numbers = true)]
    height: Option<usize>,
    /// The colours of a picture
    #[arg(long, value_name = "NAME", default_value_t = Colormap::Viridis, ignore_case = true, hide_possible_values = true)]
    colormap: Colormap,
    /// The values of the first and the last colour; what lies outside takes the nearer of the two
    #[arg(long, value_name = "MIN,MAX", default_value = "-1,1", value_parser = parse::range, allow_hyphen_values = true)]
    range: (f32, f32),
}

impl GridArguments {
    /// Columns and rows.
    pub fn size(&self) -> Size {
        let side = |given: Option<usize>| given.unwrap_or(512);
        self.size.unwrap_or_else(|| Size { width: side(self.width), height: side(self.height) })
    }

    /// How values become colours.
    pub fn coloring(&self) -> Coloring {
        Coloring { map: self.colormap, range: self.range }
    }
}
