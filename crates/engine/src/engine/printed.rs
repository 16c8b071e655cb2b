//! `Display` of a tensor, as NumPy prints an array: rows in brackets, numbers right-aligned, long axes by their ends. Only the elements that are shown are
//! read from the device.

use std::fmt::{Display, Formatter, Write as _};

use super::tensor::Tensor;
use crate::error::Result;

/// More elements than this are shown by the ends of their axes.
const MOST: usize = 1000;
/// The number of elements at each end.
const ENDS: usize = 3;

impl Tensor {
    /// The elements that are shown: all, or of long axes the ends.
    fn shown(&self) -> Result<Vec<String>> {
        if self.len() <= MOST {
            return Ok(self.dtype().texts(&self.to_bytes()?));
        }
        let mut texts = Vec::new();
        self.read_ends(0, self.shape(), &mut texts)?;
        Ok(texts)
    }

    /// Reads what is shown of the block of this shape that begins at this element.
    fn read_ends(&self, first: usize, shape: &[usize], texts: &mut Vec<String>) -> Result<()> {
        let (side, inner) = shape.split_first().map_or((1, shape), |(&side, inner)| (side, inner));
        let parts = match side > 2 * ENDS {
            true => [0..ENDS, side - ENDS..side],
            false => [0..side, 0..0],
        };
        let block = inner.iter().product::<usize>();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if inner.is_empty() {
                let mut bytes = vec![0; part.len() * self.dtype().bytes()];
                let offset = ((first + part.start) * self.dtype().bytes()) as u64;
                super::blocking::block_on(self.read_bytes(offset, &mut bytes))?;
                texts.extend(self.dtype().texts(&bytes));
            } else {
                part.into_iter().try_for_each(|place| self.read_ends(first + place * block, inner, texts))?;
            }
        }
        Ok(())
    }
}

/// The values, read from the device after all work recorded so far: `[[1, 2], [3, 4]]` in rows. Above 1,000 elements long axes are shown by their first and
/// last three. What cannot be read is said in place of the values.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = engine.tensor_from_array(&ndarray::array![[1.0_f32, 2.5], [-3.0, 40.0]])?;
/// assert_eq!(x.to_string(), "[[  1 2.5]\n [ -3  40]]");
/// # Ok::<(), cantus::Error>(())
/// ```
impl Display for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let texts = match self.shown() {
            Ok(texts) => texts,
            Err(error) => return write!(f, "{} {:?} ({error})", self.dtype(), self.shape()),
        };
        let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let rows = Rows { width, shortened: self.len() > MOST };
        rows.write(f, &mut texts.iter(), self.shape(), 0)
    }
}

/// How rows are written.
struct Rows {
    width: usize,
    shortened: bool,
}

impl Rows {
    fn write<'a>(
        &self,
        f: &mut Formatter<'_>,
        texts: &mut impl Iterator<Item = &'a String>,
        shape: &[usize],
        depth: usize,
    ) -> std::fmt::Result {
        let Some((&side, inner)) = shape.split_first() else {
            return match texts.next() {
                Some(text) => write!(f, "{text:>width$}", width = if depth == 0 { 0 } else { self.width }),
                None => Ok(()),
            };
        };
        f.write_char('[')?;
        let cut = self.shortened && side > 2 * ENDS;
        let count = if cut { 2 * ENDS } else { side };
        // A row to a line, and a line between blocks.
        let between = match inner.len() {
            0 => " ".to_owned(),
            more => format!("{}{}", "\n".repeat(more), " ".repeat(depth + 1)),
        };
        for place in 0..count {
            if place > 0 {
                f.write_str(&between)?;
            }
            if cut && place == ENDS {
                f.write_str("...")?;
                f.write_str(&between)?;
            }
            self.write(f, texts, inner, depth + 1)?;
        }
        f.write_char(']')
    }
}
