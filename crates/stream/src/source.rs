//! Sources of rows: files, memory, readers, iterators, functions. `feed` reads them on its thread. A source that can skip must say in its identity what its
//! rows are, since they are not compared when a run continues; of others a running digest is. `read` may give fewer rows than asked for, and none at the
//! end only.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::digest::{WHOLE, digest, told};
use crate::error::{Error, Result};
use crate::npy::Described;
use crate::tensor::{DType, Element};

/// A source of rows, in order: an array whose first axis may be longer than any memory.
pub trait Source: Send {
    /// Element type.
    fn dtype(&self) -> DType;

    /// The shape of one row: that of the array without its first axis, `[]` where the rows are single elements.
    fn row(&self) -> &[usize];

    /// Returns the number of rows, if known.
    fn rows(&self) -> Option<u64>;

    /// Fills whole rows from the beginning of `into`, whose length is a multiple of a row's, and returns how many; 0 at the end only.
    /// Elements are in the machine's byte order, row-major.
    ///
    /// # Errors
    /// Whatever ends the stream.
    fn read(&mut self, into: &mut [u8]) -> Result<u64>;

    /// Skips that many of the next rows and returns true, or skips none and returns false where that takes reading them: then the stream reads them, and
    /// compares them with those that it read before.
    ///
    /// # Errors
    /// As [`Source::read`]; [`Error::Shape`] when there are fewer.
    fn skip(&mut self, rows: u64) -> Result<bool> {
        let _ = rows;
        Ok(false)
    }

    /// Begins anew, for what reads its source several times.
    ///
    /// # Errors
    /// [`Error::InvalidState`] where that cannot be.
    fn rewind(&mut self) -> Result<()> {
        Err(Error::state(
            self.name(),
            "it can be read only once, but this reads several times (give a .npy file, or memory)",
        ))
    }

    /// A name for errors.
    fn name(&self) -> String {
        "the source".to_owned()
    }

    /// Returns its identity among sources, for checkpoints: a stream goes on only where it finds the same again. A source that can skip rows says here
    /// what they are, as a digest does.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn identity(&self) -> Result<String> {
        Ok(format!("{} {}{:?} {:?}", self.name(), self.dtype(), self.row(), self.rows()))
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn dtype(&self) -> DType {
        (**self).dtype()
    }

    fn row(&self) -> &[usize] {
        (**self).row()
    }

    fn rows(&self) -> Option<u64> {
        (**self).rows()
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        (**self).read(into)
    }

    fn skip(&mut self, rows: u64) -> Result<bool> {
        (**self).skip(rows)
    }

    fn rewind(&mut self) -> Result<()> {
        (**self).rewind()
    }

    fn name(&self) -> String {
        (**self).name()
    }

    fn identity(&self) -> Result<String> {
        (**self).identity()
    }
}

/// Bytes of a row.
pub(super) fn row_bytes(dtype: DType, row: &[usize]) -> Result<usize> {
    match crate::tensor::byte_count(row, dtype)? {
        0 => Err(Error::shape(format!("rows of {dtype}{row:?}"), "its rows have no elements")),
        bytes => usize::try_from(bytes).map_err(|_| {
            Error::limit(format!("rows of {dtype}{row:?}"), "one row exceeds what this system can address")
        }),
    }
}

pub(super) fn too_short(name: &str, rows: u64, expected: u64) -> Error {
    Error::shape(name, format!("it ends after {rows} rows, {expected} were expected"))
}

/// The rows of a `.npy` file, along its first axis.
#[derive(Debug)]
pub struct Npy {
    path: PathBuf,
    file: File,
    described: Described,
    /// The offset of the elements.
    start: u64,
    rows: u64,
    row_bytes: usize,
    /// The next row.
    next: u64,
}

impl Npy {
    /// Opens a file. An array in Fortran order must have one axis, because its rows are not contiguous.
    ///
    /// # Errors
    /// As [`crate::npy::read`]; [`Error::InvalidFile`] for Fortran order, [`Error::Shape`] for rows without elements.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let unreadable = |error: std::io::Error| Error::unreadable(&path, &error);
        let mut file = File::open(&path).map_err(unreadable)?;
        let held = file.metadata().map_err(unreadable)?.len();
        let described = Described::read(&mut file, &path)?;
        let start = file.stream_position().map_err(unreadable)?;
        if held.saturating_sub(start) != described.bytes {
            return Err(described.wrong_length(&path, held.saturating_sub(start)));
        }
        if described.fortran && described.shape.len() > 1 {
            return Err(Error::file(
                path.display().to_string(),
                "it is in Fortran order, whose rows are not contiguous (save numpy.ascontiguousarray of it)",
            ));
        }
        let (rows, row) = described.shape.split_first().map_or((1, &[][..]), |(&rows, row)| (rows as u64, row));
        let row_bytes = row_bytes(described.dtype, row)?;
        Ok(Self { rows, row_bytes, start, next: 0, file, described, path })
    }
}

impl Source for Npy {
    fn dtype(&self) -> DType {
        self.described.dtype
    }

    fn row(&self) -> &[usize] {
        self.described.shape.get(1..).unwrap_or_default()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        let rows = (self.rows - self.next).min((into.len() / self.row_bytes) as u64);
        let into = &mut into[..usize::try_from(rows).unwrap_or(0) * self.row_bytes];
        self.file.read_exact(into).map_err(|error| Error::unreadable(&self.path, &error))?;
        self.described.order(into);
        self.next += rows;
        Ok(rows)
    }

    fn skip(&mut self, rows: u64) -> Result<bool> {
        let next = self.next.saturating_add(rows);
        if next > self.rows {
            return Err(too_short(&self.name(), self.rows - self.next, rows));
        }
        let place = SeekFrom::Start(self.start + next * self.row_bytes as u64);
        self.file.seek(place).map_err(|error| Error::unreadable(&self.path, &error))?;
        self.next = next;
        Ok(true)
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = 0;
        self.skip(0).map(drop)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn identity(&self) -> Result<String> {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let told = told(&self.file).map_err(|error| Error::unreadable(&self.path, &error))?;
        Ok(format!("{} {:?} {told}", path.display(), self.described))
    }
}

/// Rows in memory: a slice, a vector, or the app's memory map.
#[derive(Debug)]
pub struct Bytes<B> {
    bytes: B,
    dtype: DType,
    row: Vec<usize>,
    row_bytes: usize,
    /// The next byte.
    next: usize,
}

impl<B: AsRef<[u8]> + Send> Bytes<B> {
    /// Returns the rows of `bytes`: elements in the machine's byte order, row-major.
    ///
    /// ```
    /// use cantus::{DType, Engine, stream::{Bytes, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let values: Vec<f32> = (0..1000).map(|value| value as f32).collect();
    /// let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec(); // or a memory map
    /// let sum = Stream::new(&engine, Bytes::new(bytes, DType::F32, &[10])?).sum()?;
    /// assert_eq!(sum, 499_500.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if they are not a whole number of rows.
    pub fn new(bytes: B, dtype: DType, row: &[usize]) -> Result<Self> {
        let (held, row_bytes) = (bytes.as_ref().len(), row_bytes(dtype, row)?);
        if !held.is_multiple_of(row_bytes) {
            return Err(Error::shape(
                format!("rows of {dtype}{row:?}"),
                format!("{held} bytes are not a multiple of a row's {row_bytes}"),
            ));
        }
        Ok(Self { bytes, dtype, row: row.to_vec(), row_bytes, next: 0 })
    }
}

impl<B: AsRef<[u8]> + Send> Source for Bytes<B> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        Some((self.bytes.as_ref().len() / self.row_bytes) as u64)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        let rest = self.bytes.as_ref().get(self.next..).unwrap_or_default();
        let rows = rest.len().min(into.len()) / self.row_bytes;
        let bytes = rows * self.row_bytes;
        into[..bytes].copy_from_slice(&rest[..bytes]);
        self.next += bytes;
        Ok(rows as u64)
    }

    fn skip(&mut self, rows: u64) -> Result<bool> {
        let left = self.bytes.as_ref().len().saturating_sub(self.next) / self.row_bytes;
        match usize::try_from(rows).ok().filter(|&rows| rows <= left) {
            Some(rows) => self.next += rows * self.row_bytes,
            None => return Err(too_short(&self.name(), left as u64, rows)),
        }
        Ok(true)
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn identity(&self) -> Result<String> {
        let bytes = self.bytes.as_ref();
        let digest = digest(bytes.len() as u64, WHOLE, |from, block| {
            let from = from as usize;
            block.copy_from_slice(&bytes[from..from + block.len()]);
            Ok(())
        });
        let digest = digest.map_err(|error| Error::Unreadable { path: self.name(), reason: error.to_string() })?;
        Ok(format!("{} bytes of {}{:?} {digest:016x}", bytes.len(), self.dtype, self.row))
    }
}

/// Rows from a reader: a pipe, a socket, a decompressor.
#[derive(Debug)]
pub struct Reader<R> {
    reader: R,
    dtype: DType,
    row: Vec<usize>,
    row_bytes: usize,
}

impl<R: Read + Send> Reader<R> {
    /// Returns the rows that `reader` gives until it ends: elements in the machine's byte order, row-major.
    ///
    /// ```
    /// use cantus::{DType, Engine, stream::{Reader, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let pipe = std::io::Read::take(std::io::repeat(1), 4000); // 1,000 elements 0x01010101
    /// assert_eq!(Stream::new(&engine, Reader::new(pipe, DType::U32, &[])?).max()?, 16_843_009.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a row without elements.
    pub fn new(reader: R, dtype: DType, row: &[usize]) -> Result<Self> {
        Ok(Self { reader, dtype, row: row.to_vec(), row_bytes: row_bytes(dtype, row)? })
    }
}

impl<R: Read + Send> Source for Reader<R> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        let mut held = 0;
        while held < into.len() {
            match self.reader.read(&mut into[held..]) {
                Ok(0) => break,
                Ok(read) => held += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::Unreadable { path: self.name(), reason: error.to_string() });
                }
            }
        }
        if !held.is_multiple_of(self.row_bytes) {
            return Err(Error::file(self.name(), format!("it ends within a row of {} bytes", self.row_bytes)));
        }
        Ok((held / self.row_bytes) as u64)
    }

    fn name(&self) -> String {
        "the reader".to_owned()
    }
}

/// Rows from an iterator, each item of whole rows.
#[derive(Debug)]
pub struct Items<T, I> {
    items: I,
    row: Vec<usize>,
    row_bytes: usize,
    /// The item that was begun, and how much of it was read.
    begun: Vec<T>,
    read: usize,
}

impl<T: Element, I: Iterator<Item = Vec<T>> + Send> Items<T, I> {
    /// Returns the rows of `items`, one after the other.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = (0..100).map(|item| vec![item as f32; 7]);
    /// assert_eq!(Stream::new(&engine, Items::new(items.into_iter(), &[])?).sum()?, 34_650.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a row without elements.
    pub fn new(items: I, row: &[usize]) -> Result<Self> {
        Ok(Self { items, row: row.to_vec(), row_bytes: row_bytes(T::DTYPE, row)?, begun: Vec::new(), read: 0 })
    }
}

impl<T: Element + Send, I: Iterator<Item = Vec<T>> + Send> Source for Items<T, I> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        let mut held = 0;
        while held < into.len() {
            let rest = bytemuck::cast_slice(&self.begun).get(self.read..).unwrap_or_default();
            if rest.is_empty() {
                let Some(item) = self.items.next() else { break };
                let bytes = size_of_val(item.as_slice());
                if !bytes.is_multiple_of(self.row_bytes) {
                    return Err(Error::shape(
                        self.name(),
                        format!("an item has {} elements, not a multiple of a row of {:?}", item.len(), self.row),
                    ));
                }
                (self.begun, self.read) = (item, 0);
                continue;
            }
            let bytes = rest.len().min(into.len() - held);
            into[held..held + bytes].copy_from_slice(&rest[..bytes]);
            held += bytes;
            self.read += bytes;
        }
        Ok((held / self.row_bytes) as u64)
    }

    fn name(&self) -> String {
        "the iterator".to_owned()
    }
}

/// Rows that a function generates.
pub struct Generated<T, F> {
    fill: F,
    row: Vec<usize>,
    rows: u64,
    row_bytes: usize,
    next: u64,
    _element: std::marker::PhantomData<fn() -> T>,
}

impl<T, F> std::fmt::Debug for Generated<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generated").field("row", &self.row).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<T: Element + bytemuck::Pod, F: FnMut(u64, &mut [T]) + Send> Generated<T, F> {
    /// Generates `rows` rows with `fill(first, values)`, which writes as many rows as `values` holds, from row `first` on. It is called on another
    /// thread than the stream's, and from the beginning again if the rows are read twice. A checkpoint tells functions apart by the number and the shape of
    /// their rows alone: all else they depend on belongs in the name of the work ([`super::Stream::named`]).
    ///
    /// ```
    /// use cantus::{Engine, stream::{Generated, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let halves = Generated::new(1000, &[], |first, values: &mut [f32]| {
    ///     values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as f32 / 2.0);
    /// })?;
    /// assert_eq!(Stream::new(&engine, halves).sum()?, 249_750.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for a row without elements.
    pub fn new(rows: u64, row: &[usize], fill: F) -> Result<Self> {
        let row_bytes = row_bytes(T::DTYPE, row)?;
        Ok(Self { fill, row: row.to_vec(), rows, row_bytes, next: 0, _element: std::marker::PhantomData })
    }
}

impl<T: Element + bytemuck::Pod, F: FnMut(u64, &mut [T]) + Send> Source for Generated<T, F> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        let rows = (self.rows - self.next).min((into.len() / self.row_bytes) as u64);
        let into = &mut into[..usize::try_from(rows).unwrap_or(0) * self.row_bytes];
        match bytemuck::try_cast_slice_mut(into) {
            Ok(values) => (self.fill)(self.next, values),
            // Memory that is not aligned for elements.
            Err(_) => {
                let mut values = vec![T::zeroed(); into.len() / size_of::<T>()];
                (self.fill)(self.next, &mut values);
                into.copy_from_slice(bytemuck::cast_slice(&values));
            }
        }
        self.next += rows;
        Ok(rows)
    }

    fn skip(&mut self, rows: u64) -> Result<bool> {
        if rows > self.rows - self.next {
            return Err(too_short(&self.name(), self.rows - self.next, rows));
        }
        self.next += rows;
        Ok(true)
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn name(&self) -> String {
        "the function".to_owned()
    }
}

/// A source that is read several times, by one stream after the other.
///
/// ```
/// use cantus::{Engine, stream::{Again, Bytes, Stream}};
///
/// # let engine = Engine::builder().backend("cpu").build()?;
/// let again = Again::new(Bytes::new(vec![1, 2, 3, 6], cantus::DType::U8, &[])?);
/// let mean = Stream::new(&engine, again.rewound()?).mean()?;
/// let far = |chunk: &cantus::stream::Chunk| Ok((chunk.tensor().cast(cantus::DType::F32) - mean).abs());
/// let mut distances = Vec::new();
/// Stream::new(&engine, again.rewound()?)
///     .map(far, |rows: cantus::stream::Rows<'_>| Ok(distances.extend(rows.to_vec::<f32>()?)))?;
/// assert_eq!(distances, [2.0, 1.0, 0.0, 3.0]);
/// # Ok::<_, cantus::Error>(())
/// ```
pub struct Again {
    source: Arc<Mutex<Box<dyn Source>>>,
    dtype: DType,
    row: Vec<usize>,
    rows: Option<u64>,
    name: String,
}

impl Again {
    /// Takes a source that can begin anew ([`Source::rewind`]).
    pub fn new(source: impl Source + 'static) -> Self {
        let (dtype, row, rows) = (source.dtype(), source.row().to_vec(), source.rows());
        let name = source.name();
        Self { source: Arc::new(Mutex::new(Box::new(source))), dtype, row, rows, name }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Source>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the source from its first row on, for the next stream. The one before must have ended: both read the same source.
    ///
    /// # Errors
    /// As [`Source::rewind`].
    pub fn rewound(&self) -> Result<Box<dyn Source>> {
        self.lock().rewind()?;
        let (source, row, name) = (self.source.clone(), self.row.clone(), self.name.clone());
        Ok(Box::new(Self { source, dtype: self.dtype, row, rows: self.rows, name }))
    }
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("name", &self.name).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Source for Again {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn read(&mut self, into: &mut [u8]) -> Result<u64> {
        self.lock().read(into)
    }

    fn skip(&mut self, rows: u64) -> Result<bool> {
        self.lock().skip(rows)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Result<String> {
        self.lock().identity()
    }
}
