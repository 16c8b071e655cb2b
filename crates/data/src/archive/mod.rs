//! Files of named arrays: `.safetensors`, `.npz` and `.npy`. The header is read first, and an array when it is asked for. `Archive::open` reads and checks
//! the whole header before any array; sizes and overlaps in it are hostile until checked. Each array gets memory of its own. A mapped file must not be
//! shortened while it is in use, which is why `map` is unsafe.

mod npy;
#[cfg(feature = "npz")]
mod npz;
#[cfg(feature = "safetensors")]
mod safetensors;

#[cfg(feature = "safetensors")]
pub(crate) use safetensors::name as safetensors_name;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cantus::{DType, Engine, Error, Result, Tensor};

use crate::HostArray;

/// The formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.safetensors`, with the feature `safetensors`: every dtype but the complex ones, and pairs of text beside the arrays.
    #[cfg(feature = "safetensors")]
    Safetensors,
    /// NumPy's `.npz`, with the feature `npz`: a ZIP archive of `.npy` files. Other files in it are passed over.
    #[cfg(feature = "npz")]
    Npz,
    /// NumPy's `.npy`: one array, whose name is the file's without the suffix.
    Npy,
}

impl Format {
    /// Returns the format of a file by its suffix.
    ///
    /// ```
    /// use cantus_data::Format;
    ///
    /// assert_eq!(Format::of("model.safetensors")?, Format::Safetensors);
    /// assert!(Format::of("model.pt").is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for another suffix.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        match suffix {
            #[cfg(feature = "safetensors")]
            "safetensors" => Ok(Self::Safetensors),
            #[cfg(feature = "npz")]
            "npz" => Ok(Self::Npz),
            "npy" => Ok(Self::Npy),
            _ => Err(fault(path, format!("\"{suffix}\" is not a known suffix: name it {}", Self::suffixes()))),
        }
    }

    fn suffixes() -> String {
        let known = [
            cfg!(feature = "safetensors").then_some(".safetensors"),
            cfg!(feature = "npz").then_some(".npz"),
            Some(".npy"),
        ];
        known.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A file of named arrays whose header was read: `.safetensors`, `.npz` or `.npy`.
///
/// Arrays are read when they are asked for, each into memory of its own. Any thread may read; one at a time does.
#[derive(Debug)]
pub struct Archive<R = File> {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
    metadata: BTreeMap<String, String>,
    source: Mutex<Source<R>>,
    #[cfg(feature = "map")]
    map: Option<File>,
}

/// An array in a file.
#[derive(Debug)]
struct Entry {
    /// The dtype, or the name of one that has no counterpart here.
    dtype: Result<DType, String>,
    shape: Vec<usize>,
    bytes: u64,
    place: Place,
    /// Where its elements begin in the file, if they lie there as they do in memory.
    #[cfg_attr(not(feature = "map"), expect(dead_code, reason = "only maps need it"))]
    start: Option<u64>,
}

/// The way to an array.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Bytes of the least order first, from there on.
    #[cfg(feature = "safetensors")]
    Bytes(u64),
    /// The file is one `.npy`.
    Whole,
    /// The `.npy` of that number in the ZIP archive.
    #[cfg(feature = "npz")]
    Zipped(usize),
}

/// The source of arrays.
#[derive(Debug)]
enum Source<R> {
    Plain(R),
    #[cfg(feature = "npz")]
    Zip(Box<zip::ZipArchive<R>>),
}

/// The findings of a format's reader.
struct Found<R> {
    entries: BTreeMap<String, Entry>,
    metadata: BTreeMap<String, String>,
    source: Source<R>,
}

impl Archive {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the file cannot be read; [`Error::InvalidFile`], naming the file, if its suffix is unknown, or if it is not such a file,
    /// is truncated, or overlaps itself.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let format = Format::of(path)?;
        let file = File::open(path).map_err(|error| Error::unreadable(path, &error))?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            return Err(Error::unreadable(path, &std::io::ErrorKind::IsADirectory.into()));
        }
        Self::read(file, format, path)
    }

    /// Opens a file whose arrays become memory by being mapped: nothing is read before it is used, and the system may drop what it can read again.
    /// Tensors on the CPU lie in the map where it is aligned to 16 bytes, as [`Writer`](crate::Writer) aligns what it can. Kernels that write such a
    /// tensor change the process's memory, not the file. What is compressed in an `.npz`, of the other byte order, or column-major is read instead; the
    /// checksums of an `.npz` are not compared.
    ///
    /// # Safety
    /// Nobody may write to the file or shorten it while a mapped array lives. On most systems a shortened file ends the process.
    ///
    /// # Errors
    /// As [`Archive::open`].
    #[cfg(feature = "map")]
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut archive = Self::open(path)?;
        archive.map = Some(File::open(path).map_err(|error| Error::unreadable(path, &error))?);
        Ok(archive)
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the header of a file from any reader; `name` is for errors, and the name of a `.npy` file's array.
    ///
    /// ```
    /// use cantus_data::{Archive, Format};
    ///
    /// let body = b"\x02\0\0\0\0\0\0\0{}"; // a .safetensors file without arrays
    /// let archive = Archive::read(std::io::Cursor::new(body), Format::Safetensors, "the body")?;
    /// assert_eq!(archive.names().count(), 0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn read(mut reader: R, format: Format, name: impl AsRef<Path>) -> Result<Self> {
        let path = name.as_ref();
        let length = reader.seek(SeekFrom::End(0)).and_then(|length| reader.rewind().map(|()| length));
        let length = length.map_err(|error| Error::unreadable(path, &error))?;
        let found = match format {
            #[cfg(feature = "safetensors")]
            Format::Safetensors => safetensors::read(reader, length, path)?,
            #[cfg(feature = "npz")]
            Format::Npz => npz::read(reader, length, path)?,
            Format::Npy => npy::read(reader, length, path)?,
        };
        Ok(Self {
            path: path.to_owned(),
            entries: found.entries,
            metadata: found.metadata,
            source: Mutex::new(found.source),
            #[cfg(feature = "map")]
            map: None,
        })
    }

    /// Returns the names of the arrays, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the dtype and the shape of an array; `None` if there is no such array, or it has no dtype here.
    #[must_use]
    pub fn describe(&self, name: &str) -> Option<(DType, &[usize])> {
        let entry = self.entries.get(name)?;
        Some((*entry.dtype.as_ref().ok()?, &entry.shape))
    }

    /// Returns the pairs of text that a `.safetensors` file has beside its arrays.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Reads an array.
    ///
    /// # Errors
    /// [`Error::InvalidFile`], naming the file, if there is no such array, it has no dtype here, or it is damaged; [`Error::Unreadable`].
    pub fn array(&self, name: &str) -> Result<HostArray> {
        let entry = self.entries.get(name).ok_or_else(|| self.missing(name))?;
        let dtype = *entry.dtype.as_ref().map_err(|theirs| {
            fault(
                &self.path,
                format!("its array \"{name}\" is {theirs}, which is not a dtype of Cantus (convert it first)"),
            )
        })?;
        #[cfg(feature = "map")]
        if let (Some(file), Some(start)) = (&self.map, entry.start)
            && entry.bytes > 0
        {
            return self.mapped(file, start, (entry, dtype));
        }
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *source, entry.place) {
            (Source::Plain(reader), Place::Whole) => npy::array(reader, entry.bytes, &self.path),
            #[cfg(feature = "safetensors")]
            (Source::Plain(reader), Place::Bytes(start)) => {
                safetensors::array(reader, start, (dtype, &entry.shape, entry.bytes), &self.path)
            }
            #[cfg(feature = "npz")]
            (Source::Zip(archive), Place::Zipped(index)) => npz::array(archive, index, name, &self.path),
            #[cfg(feature = "npz")]
            _ => Err(self.missing(name)),
        }
    }

    /// A private map of an array's part of the file, so that no two arrays share memory.
    #[cfg(feature = "map")]
    fn mapped(&self, file: &File, start: u64, (entry, dtype): (&Entry, DType)) -> Result<HostArray> {
        let unreadable = |error: std::io::Error| Error::unreadable(&self.path, &error);
        // Between the opening and now it may have become shorter.
        let held = file.metadata().map_err(unreadable)?.len();
        if start.checked_add(entry.bytes).is_none_or(|end| end > held) {
            return Err(fault(&self.path, format!("it has become shorter, and ends within {dtype}{:?}", entry.shape)));
        }
        let bytes = usize::try_from(entry.bytes).map_err(|_| too_large(&self.path, dtype, &entry.shape))?;
        // SAFETY: whoever opened the archive promised that nobody writes to the file or shortens it.
        let map = unsafe { memmap2::MmapOptions::new().offset(start).len(bytes).map_copy(file) };
        let mut map = map.map_err(unreadable)?;
        let memory = std::ptr::NonNull::from(&mut map[..]).cast();
        // SAFETY: the map owns that many bytes and is private. Kernels may write to it.
        let memory = unsafe { cantus::backend::HostMemory::new(memory, entry.bytes, map) };
        HostArray::new(dtype, &entry.shape, memory)
    }

    /// Reads an array into a tensor.
    ///
    /// # Errors
    /// As [`Archive::array`] and [`HostArray::into_tensor`].
    pub fn tensor(&self, engine: &Engine, name: &str) -> Result<Tensor> {
        self.array(name)?.into_tensor(engine)
    }

    /// [`Archive::tensor`], as a future. It reads the file when it is polled first.
    ///
    /// # Errors
    /// As [`Archive::tensor`].
    pub async fn tensor_async(&self, engine: &Engine, name: &str) -> Result<Tensor> {
        self.array(name)?.into_tensor_async(engine).await
    }

    /// Reads all arrays into tensors, by name.
    ///
    /// # Errors
    /// As [`Archive::tensor`].
    pub fn load(&self, engine: &Engine) -> Result<BTreeMap<String, Tensor>> {
        self.names().map(|name| Ok((name.to_owned(), self.tensor(engine, name)?))).collect()
    }

    fn missing(&self, name: &str) -> Error {
        const SHOWN: usize = 8;
        let names: Vec<&str> = self.names().take(SHOWN).collect();
        let reason = match self.entries.len() {
            0 => format!("it has no array \"{name}\", nor any other"),
            count if count > SHOWN => {
                format!("it has no array \"{name}\", but {count} others ({}, …)", names.join(", "))
            }
            _ => format!("it has no array \"{name}\" (it has: {})", names.join(", ")),
        };
        fault(&self.path, reason)
    }
}

fn fault(path: &Path, reason: String) -> Error {
    Error::file(path.display().to_string(), reason)
}

#[cfg(feature = "map")]
fn too_large(path: &Path, dtype: DType, shape: &[usize]) -> Error {
    fault(path, format!("its array {dtype}{shape:?} exceeds the memory of this system"))
}
