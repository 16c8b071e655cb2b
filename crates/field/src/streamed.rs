//! The coherence of fields that are larger than memory.

use cantus_stream::{Again, Progress, Source, Stream};

use crate::coherence::{Coherence, Sheet};
use crate::engine::Engine;
use crate::engine::blocking::block_on;
use crate::error::{Error, Result};
use crate::tensor::DType;

/// Computes [`crate::coherence()`] of a field that may be larger than memory: rows of float32 (float16 and float64 are converted), read twice.
/// `memory` is as in [`Stream::memory`]; `progress` counts the rows of both readings.
///
/// ```
/// use cantus::{Engine, ops, stream::{self, Npy}};
///
/// # let engine = Engine::builder().backend("cpu").build()?;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("field.npy");
/// let field = ops::field::field(&engine, &ops::field::FieldParams::new(200, 100))?;
/// field.to_npy(&path)?;
/// let streamed = stream::coherence(&engine, Npy::open(&path)?, None, |_| ())?;
/// assert!((streamed - ops::coherence(&engine, &field)?).abs() < 1e-6);
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// Those of the source, which must know its number of rows and be readable twice, and of the operation.
pub fn coherence(
    engine: &Engine,
    source: impl Source + 'static,
    memory: Option<u64>,
    mut progress: impl FnMut(Progress),
) -> Result<f32> {
    let name = source.name();
    let (dtype, row, rows) = (source.dtype(), source.row().to_vec(), source.rows());
    if !matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
        let reason = format!("its elements are {dtype}; a field is of floats (array.astype(\"float32\"))");
        return Err(Error::dtype(name, reason));
    }
    let (&[width], Some(height)) = (row.as_slice(), rows) else {
        let reason = format!("its rows are {row:?}; a field has two axes, rows and columns, of a known length");
        return Err(Error::shape(name, reason));
    };
    if height == 0 {
        return Err(Error::shape(name, "it has no rows"));
    }
    let mut coherence = Coherence::new(name, [height, width as u64]);
    let row_bytes = (width as u64).saturating_mul(dtype.bytes() as u64);
    let source = Again::new(source);
    let mut reading = 0;
    loop {
        if let Some(value) = coherence.value() {
            return Ok(value);
        }
        // The last reading compares rows with those before them.
        let stream = Stream::new(engine, source.rewound()?).overlap(usize::from(coherence.compares_rows()), 0);
        let stream = match memory {
            Some(bytes) => stream.memory(bytes),
            None => stream,
        };
        for chunk in stream.chunks()? {
            let chunk = chunk?;
            let values = chunk.tensor();
            let values = if dtype == DType::F32 { values.clone() } else { values.cast(DType::F32).eval()? };
            block_on(coherence.add(&Sheet::checked(engine, &values)?))?;
            let rows = reading * height + chunk.first_row() + chunk.rows() as u64;
            progress(Progress { rows, of: Some(2 * height), bytes: rows.saturating_mul(row_bytes) });
        }
        coherence.end_of_reading()?;
        reading += 1;
    }
}
