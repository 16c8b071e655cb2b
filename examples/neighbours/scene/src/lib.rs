//! A picture that a kernel computes anew for each frame, and the check that a drawn picture contains it.

use std::path::Path;

use cantus::{Engine, Kernel, Result, Tensor, Texture};

/// The pixels of a row: a multiple of 64, so that a row is a multiple of the 256 bytes that copies to textures take.
pub const WIDTH: u32 = 256;
pub const HEIGHT: u32 = 192;

pub struct Scene {
    engine: Engine,
    kernel: Kernel,
    painter: Kernel,
    /// RGBA bytes, a pixel in each word.
    pub pixels: Tensor,
}

impl Scene {
    pub fn new(engine: &Engine) -> Result<Self> {
        let both = Kernel::from_named_wgsl("rings.wgsl", include_str!("rings.wgsl"))?;
        let (kernel, painter) = (both.with_entry_point("rings")?, both.with_entry_point("painted")?);
        let pixels = engine.zeros::<u32>(&[HEIGHT as usize, WIDTH as usize])?;
        Ok(Self { engine: engine.clone(), kernel, painter, pixels })
    }

    /// Records the picture of a moment.
    pub fn draw(&self, seconds: f32) -> Result<()> {
        self.engine
            .dispatch(&self.kernel)
            .bind("pixels", &self.pixels)
            .set("params.width", WIDTH)
            .set("params.height", HEIGHT)
            .set("params.seconds", seconds)
            .invocations((WIDTH * HEIGHT) as usize)
            .run()
    }

    /// Records the picture of a moment in a texture of `rgba8unorm`.
    pub fn paint(&self, picture: &Texture, seconds: f32) -> Result<()> {
        self.engine
            .dispatch(&self.painter)
            .bind("picture", picture)
            .set("params.width", WIDTH)
            .set("params.height", HEIGHT)
            .set("params.seconds", seconds)
            .invocations((WIDTH, HEIGHT))
            .run()
    }
}

/// A drawn picture of RGBA bytes.
pub struct Picture {
    pub width: u32,
    pub bytes: Vec<u8>,
}

impl Picture {
    /// The largest difference of a byte from the pixels of a scene, whose upper left corner is at `x` and `y`.
    pub fn difference(&self, pixels: &[u32], (x, y): (u32, u32)) -> u8 {
        let byte = |row: u32, column: usize| {
            self.bytes.get(4 * ((y + row) * self.width + x) as usize + column).copied().unwrap_or_default()
        };
        let row = |row: u32, expected: &[u32]| {
            let expected = expected.iter().flat_map(|pixel| pixel.to_le_bytes());
            expected.enumerate().map(|(column, expected)| byte(row, column).abs_diff(expected)).max()
        };
        let rows = pixels.chunks(WIDTH as usize).zip(0..).filter_map(|(expected, place)| row(place, expected));
        rows.max().unwrap_or(u8::MAX)
    }

    pub fn save(&self, path: &Path) -> Result<(), png::EncodingError> {
        let height = self.bytes.len() as u32 / 4 / self.width.max(1);
        let mut encoder = png::Encoder::new(std::fs::File::create(path)?, self.width, height);
        encoder.set_color(png::ColorType::Rgba);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.bytes)?;
        writer.finish()
    }
}
