//! The shared parts of everything that makes a grid of values: the arguments for its size and its colours, and a
//! progress bar.

use clap::Args;

use super::colormap::Colormap;
use super::parse::{self, Size};
use super::picture::Coloring;
use super::progress::Progress;

/// Size and colours.
#[derive(Debug, Args)]
pub struct GridArguments {
    /// Columns and rows [default: 512x512]
    #[arg(value_name = "WIDTHxHEIGHT", conflicts_with_all = ["width", "height"])]
    size: Option<Size>,
    /// Number of columns [default: 512]
    #[arg(long, value_name = "COLUMNS", value_parser = parse::side, allow_negative_numbers = true)]
    width: Option<usize>,
    /// Number of rows [default: 512]
    #[arg(long, value_name = "ROWS", value_parser = parse::side, allow_negative_numbers = true)]
    height: Option<usize>,
    /// The colours of a picture: viridis, magma, inferno, plasma, cividis, twilight, turbo, rd-bu, spectral, rainbow, sinebow, cubehelix
    /// or gray
    #[arg(long, value_name = "NAME", default_value_t = Colormap::Viridis, ignore_case = true, hide_possible_values = true)]
    colormap: Colormap,
    /// Values of the first and the last colour; values outside are clamped
    #[arg(long, value_name = "MIN,MAX", default_value = "-1,1", value_parser = parse::range, allow_hyphen_values = true)]
    range: (f32, f32),
}

impl GridArguments {
    /// Columns and rows.
    pub fn size(&self) -> Size {
        let side = |given: Option<usize>| given.unwrap_or(512);
        self.size.unwrap_or_else(|| Size { width: side(self.width), height: side(self.height) })
    }

    /// Returns the rule that turns values into colours.
    pub fn coloring(&self) -> Coloring {
        Coloring { map: self.colormap, range: self.range }
    }
}

/// A progress bar for grids that take a while; nothing for others.
#[derive(Debug)]
pub struct GridProgress(Option<Progress>);

impl GridProgress {
    /// The least number of values for which a progress bar is worth a line.
    const LONG: u64 = 1 << 26;

    /// Creates the progress of a grid of that size.
    pub fn new(size: Size) -> Self {
        let values = (size.width as u64).saturating_mul(size.height as u64);
        Self((values >= Self::LONG).then(|| Progress::new(values, "values")))
    }

    /// Notes that this many more values are done.
    pub fn advance(&self, values: usize) {
        if let Some(bar) = &self.0 {
            bar.add(values as u64);
        }
    }
}

impl Drop for GridProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.clear();
        }
    }
}
