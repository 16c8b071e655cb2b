//! Destinations of rows: files, functions. `run` hands results to sinks in order, on its results' thread. `settle` must reach the disk before it returns,
//! because a checkpoint then says that the rows are done. A `.npy` file has its final name only when it is whole.

use std::fs::File;
use std::io::{BufWriter, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{DtypeError, Error, Result};
use crate::files::Temporary;
use crate::fnv::Fnv;
use crate::npy;
use crate::tensor::{DType, Element};
use cantus_base::listed::Listed;

/// Rows of a result, on the host.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The index of the first one.
    pub first: u64,
    /// The number of rows.
    pub count: usize,
    /// Element type.
    pub dtype: DType,
    /// The shape of a row.
    pub row: &'a [usize],
    /// Their elements in the machine's byte order, row-major.
    pub bytes: &'a [u8],
}

impl Rows<'_> {
    /// Returns the elements.
    ///
    /// # Errors
    /// [`Error::Dtype`] if they are of another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            let what = "a stream".to_owned();
            return Err(DtypeError::Mismatch { what, found: self.dtype.name(), wanted: T::DTYPE.name() }.into());
        }
        let mut values = vec![T::zeroed(); self.bytes.len() / size_of::<T>()];
        match T::bytes_mut(&mut values) {
            Some(bytes) => bytes.copy_from_slice(self.bytes),
            None => T::decode(&mut values, self.bytes),
        }
        Ok(values)
    }
}

/// A receiver of the rows of a stream's result, in order, on its own thread. Functions of [`Rows`] are sinks.
pub trait Sink: Send {
    /// Takes some rows. All are of one dtype and shape.
    ///
    /// # Errors
    /// Whatever ends the stream.
    fn write(&mut self, rows: Rows<'_>) -> Result<()>;

    /// Brings what was written to where it outlives the machine's power, before a checkpoint says that it is done.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns what tells the rows written so far from others: it is kept in the checkpoint, and compared after [`Sink::resume`].
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn mark(&mut self) -> Result<u64> {
        Ok(0)
    }

    /// Called first, where the stream has a checkpoint: goes on after the first `rows` rows, which an earlier run wrote. What that wrote beyond is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where that cannot be.
    fn resume(&mut self, rows: u64) -> Result<()> {
        let _ = rows;
        Err(Error::invalid("a checkpoint", "the sink does not persist between runs (write to a stream::NpyFile)"))
    }

    /// All rows were written.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Rows<'_>) -> Result<()> + Send> Sink for F {
    fn write(&mut self, rows: Rows<'_>) -> Result<()> {
        self(rows)
    }
}

/// A `.npy` file that appears when it is complete. With a checkpoint, the rows so far are beside it in `.NAME.part`.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    lasting: bool,
    open: Option<Open>,
    /// An earlier run has left the whole file under its own name.
    complete: bool,
}

#[derive(Debug)]
struct Open {
    file: BufWriter<Temporary>,
    dtype: DType,
    row: Vec<usize>,
    rows: u64,
}

impl NpyFile {
    /// Creates a sink for a file. Nothing is written until the first rows come.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), lasting: false, open: None, complete: false }
    }

    /// Beside its place behind links, where it can be renamed to.
    fn part(&self) -> PathBuf {
        let place = crate::files::target(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut name = std::ffi::OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(".part");
        place.with_file_name(name)
    }

    /// Returns whether an earlier run has given the file its own name, and was ended before it removed the checkpoint.
    fn is_complete(&self, rows: u64) -> bool {
        let file = File::open(&self.path).ok();
        let described = file.and_then(|mut file| npy::Described::read(&mut file, &self.path).ok());
        described.is_some_and(|described| described.shape.first().is_some_and(|&own| own as u64 == rows))
    }

    fn fault(&self, error: &std::io::Error) -> Error {
        Error::Io {
            action: "cannot write".to_owned(),
            path: self.path.display().to_string(),
            reason: error.to_string(),
        }
    }

    /// The header for that many rows: as long as that for any other number, as NumPy leaves room for the first length to grow.
    fn header(dtype: DType, row: &[usize], rows: u64) -> std::io::Result<Vec<u8>> {
        let rows = usize::try_from(rows).map_err(std::io::Error::other)?;
        let shape: Vec<usize> = std::iter::once(rows).chain(row.iter().copied()).listed();
        let mut header = Vec::new();
        npy::write_header(&mut header, dtype, &shape)?;
        Ok(header)
    }

    /// The file without rows.
    fn begin(&self, dtype: DType, row: &[usize]) -> std::io::Result<Open> {
        let mut temporary = if self.lasting { Temporary::lasting(self.part())? } else { Temporary::new(&self.path)? };
        let file = temporary.file();
        file.set_len(0)?;
        file.write_all(&Self::header(dtype, row, 0)?)?;
        Ok(Open { file: BufWriter::with_capacity(1 << 16, temporary), dtype, row: row.to_vec(), rows: 0 })
    }

    fn gone(file: PathBuf, rows: u64) -> Error {
        Error::file(
            file.display().to_string(),
            format!(
                "it is not the file of the earlier run, with at least {rows} rows (remove the checkpoint to start again)"
            ),
        )
    }

    /// Opens an earlier run's result, cut off after the first `rows` rows.
    fn again(&self, rows: u64) -> Result<Open> {
        let part = self.part();
        let fault = |error: std::io::Error| Error::unreadable(&part, &error);
        let gone = || Self::gone(part.clone(), rows);
        if !part.exists() {
            return Err(gone());
        }
        let mut temporary = Temporary::lasting(part.clone()).map_err(fault)?;
        let file = temporary.file();
        let described = npy::Described::read(file, &part)?;
        let row = described.shape.get(1..).unwrap_or_default().to_vec();
        let bytes = crate::tensor::byte_count(&row, described.dtype)?;
        let start = file.stream_position().map_err(fault)?;
        let length = rows.checked_mul(bytes).and_then(|bytes| bytes.checked_add(start)).ok_or_else(gone)?;
        if file.metadata().map_err(fault)?.len() < length {
            return Err(gone());
        }
        file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0))).map_err(fault)?;
        let file = BufWriter::with_capacity(1 << 16, temporary);
        Ok(Open { file, dtype: described.dtype, row, rows })
    }

    /// The header for all rows that were written, and the file's own name.
    fn complete(&self, open: Open) -> std::io::Result<()> {
        let header = Self::header(open.dtype, &open.row, open.rows)?;
        let mut temporary = open.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let file = temporary.file();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        temporary.commit(&self.path)
    }
}

impl Sink for NpyFile {
    fn write(&mut self, rows: Rows<'_>) -> Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None if self.complete => return Err(Self::gone(self.path.clone(), rows.first)),
            None => self.begin(rows.dtype, rows.row).map_err(|error| self.fault(&error))?,
        };
        if open.dtype != rows.dtype || open.row != rows.row {
            return Err(Error::shape(
                format!("rows {}{:?} for {}", rows.dtype, rows.row, self.path.display()),
                format!("those before were {}{:?}", open.dtype, open.row),
            ));
        }
        open.file.write_all(rows.bytes).map_err(|error| self.fault(&error))?;
        open.rows += rows.count as u64;
        self.open = Some(open);
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let settled = open.file.flush().and_then(|()| open.file.get_mut().file().sync_data());
        settled.map_err(|error| self.fault(&error))
    }

    fn mark(&mut self) -> Result<u64> {
        let path = self.path.clone();
        let unreadable = |error: std::io::Error| Error::unreadable(&path, &error);
        let mut own = None;
        let file = match &mut self.open {
            Some(open) => {
                open.file.flush().map_err(unreadable)?;
                open.file.get_mut().file()
            }
            None if self.complete => own.insert(File::open(&path).map_err(unreadable)?),
            None => return Ok(0),
        };
        // Not the header, whose count of rows is written last.
        file.rewind().map_err(unreadable)?;
        npy::Described::read(file, &path)?;
        let from = file.stream_position().map_err(unreadable)?;
        mark_of(file, from).map_err(unreadable)
    }

    fn resume(&mut self, rows: u64) -> Result<()> {
        self.lasting = true;
        self.complete = rows > 0 && !self.part().exists() && self.is_complete(rows);
        self.open = if rows > 0 && !self.complete { Some(self.again(rows)?) } else { None };
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match self.open.take() {
            Some(open) => self.complete(open).map_err(|error| self.fault(&error)),
            None => Ok(()),
        }
    }
}

/// Bytes of a file that its mark is made of.
const MARKED: u64 = 1 << 20;

/// Returns a checksum of the length and the last bytes behind `from` of a file that was flushed, and leaves its place at the end.
pub(super) fn mark_of(file: &mut File, from: u64) -> std::io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MARKED).max(from)))?;
    let mut last = Vec::new();
    file.take(MARKED).read_to_end(&mut last)?;
    file.seek(SeekFrom::End(0))?;
    Ok(Fnv::new().with(&length.to_le_bytes()).with(&last).value())
}
