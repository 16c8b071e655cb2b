//! Tensors as files, written whole or not at all. `save` writes one tensor at a time, so memory is one tensor's. The header needs all dtypes and shapes
//! before the first byte, hence `Writer::new` takes them ahead. A file appears under its name only when it is complete.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use cantus::files;
use cantus::tensor::{byte_count, npy};
use cantus::{DType, Error, Result, Tensor};
use tempfile::NamedTempFile;

use crate::Format;

/// Saves tensors by name to a `.safetensors` or `.npz` file, or one to a `.npy` file, whole or not at all. One tensor at a time is copied from its
/// device.
///
/// # Errors
/// As [`Writer`]'s functions and [`Tensor::to_bytes`].
pub fn save<'a, N: Into<String>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    let (mut file, tensors) = Writer::of(path.as_ref(), tensors)?;
    for (name, tensor) in &tensors {
        file.write(name, &tensor.to_bytes()?)?;
    }
    file.commit()
}

/// [`save`], as a future. It writes the file when it is polled.
///
/// # Errors
/// As [`save`].
pub async fn save_async<'a, N: Into<String>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    let (mut file, tensors) = Writer::of(path.as_ref(), tensors)?;
    for (name, tensor) in &tensors {
        file.write(name, &tensor.to_bytes_async().await?)?;
    }
    file.commit()
}

/// A file in the making, under a temporary name in the same folder until [`Writer::commit`] renames it. Dropped before, it leaves nothing behind.
///
/// Arrays whose bytes are a multiple of 16 begin at such a multiple, so that [`Archive::map`](crate::Archive::map) needs no copy. Arrays in `.npz` files
/// are not compressed.
#[derive(Debug)]
pub struct Writer<W: Write + Seek = NamedTempFile> {
    path: PathBuf,
    sink: Sink<W>,
    left: BTreeMap<String, Planned>,
}

/// An array to be written.
#[derive(Debug)]
struct Planned {
    dtype: DType,
    shape: Vec<usize>,
    bytes: u64,
    #[cfg(feature = "safetensors")]
    start: u64,
}

#[derive(Debug)]
enum Sink<W: Write + Seek> {
    Plain(W, Format),
    #[cfg(feature = "npz")]
    Zip(Box<zip::ZipWriter<W>>),
}

impl Writer {
    /// Starts a file of these arrays, whose format is that of its suffix.
    ///
    /// # Errors
    /// As [`Writer::new`], and [`Error::InvalidFile`] for another suffix.
    pub fn create<N: Into<String>>(
        path: impl AsRef<Path>,
        arrays: impl IntoIterator<Item = (N, (DType, Vec<usize>))>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let format = Format::of(path)?;
        let file = temporary(path).map_err(|error| cannot_write(path, &error))?;
        Self::new(file, format, path, arrays, metadata)
    }

    /// A file for tensors, and these by name.
    fn of<'a, N: Into<String>>(
        path: &Path,
        tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    ) -> Result<(Self, BTreeMap<String, &'a Tensor>)> {
        let tensors = unique(path, tensors)?;
        let arrays = tensors.iter().map(|(name, tensor)| (name, (tensor.dtype(), tensor.shape().to_vec())));
        Ok((Self::create(path, arrays, &BTreeMap::new())?, tensors))
    }

    /// Completes the file: it takes its name, and an older one is replaced.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn commit(self) -> Result<()> {
        let path = self.path.clone();
        let file = self.finish()?;
        // Renaming over a symbolic link would replace the link, not the file.
        let target = files::target(&path).map_err(|error| cannot_write(&path, &error))?;
        file.persist(target).map(drop).map_err(|error| cannot_write(&path, &error.error))
    }
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file of these arrays in any writer; `name` is for errors. `metadata` is text, which only `.safetensors` holds.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for a name given twice, several arrays in a `.npy`, metadata where the format has none, or a dtype that the format lacks
    /// (complex numbers in `.safetensors`); [`Error::Io`] if it cannot be written.
    pub fn new<N: Into<String>>(
        sink: W,
        format: Format,
        name: impl AsRef<Path>,
        arrays: impl IntoIterator<Item = (N, (DType, Vec<usize>))>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let path = name.as_ref();
        let mut left = BTreeMap::new();
        for (name, (dtype, shape)) in unique(path, arrays)? {
            let bytes = byte_count(&shape, dtype)?;
            let planned = Planned {
                dtype,
                shape,
                bytes,
                #[cfg(feature = "safetensors")]
                start: 0,
            };
            left.insert(name, planned);
        }
        let refused = |reason: &str| Err(Error::file(path.display().to_string(), reason));
        if !metadata.is_empty() && !format.has_metadata() {
            return refused("only .safetensors holds text beside its arrays");
        }
        if format == Format::Npy && left.len() != 1 {
            return refused("a .npy holds one array (name several .npz)");
        }
        let sink = match format {
            Format::Npy => Sink::Plain(sink, format),
            #[cfg(feature = "npz")]
            Format::Npz => Sink::Zip(Box::new(zip::ZipWriter::new(sink))),
            #[cfg(feature = "safetensors")]
            Format::Safetensors => {
                let mut sink = sink;
                let header = header(path, &mut left, metadata)?;
                sink.write_all(&header).map_err(|error| cannot_write(path, &error))?;
                Sink::Plain(sink, format)
            }
        };
        Ok(Self { path: path.to_owned(), sink, left })
    }

    /// Writes an array: its elements in the machine's byte order, row-major. In any order of names.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if no such array is missing from the file, [`Error::Shape`] for another number of bytes than its shape takes,
    /// [`Error::Io`].
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = &self.path;
        let Some(planned) = self.left.get(name) else {
            let reason = format!("an array \"{name}\" is not missing from it");
            return Err(Error::file(path.display().to_string(), reason));
        };
        if planned.bytes != bytes.len() as u64 {
            return Err(Error::shape(
                format!("the array \"{name}\" of {}", path.display()),
                format!(
                    "{}{:?} takes {} bytes, {} were given",
                    planned.dtype,
                    planned.shape,
                    planned.bytes,
                    bytes.len()
                ),
            ));
        }
        let written = match &mut self.sink {
            #[cfg(feature = "safetensors")]
            Sink::Plain(file, Format::Safetensors) => file
                .seek(SeekFrom::Start(planned.start))
                .and_then(|_| file.write_all(&least_first(planned.dtype, bytes))),
            Sink::Plain(file, _) => {
                npy::write_header(file, planned.dtype, &planned.shape).and_then(|()| file.write_all(bytes))
            }
            #[cfg(feature = "npz")]
            Sink::Zip(archive) => zipped(archive, name, planned, bytes),
        };
        written.map_err(|error| cannot_write(path, &error))?;
        self.left.remove(name);
        Ok(())
    }

    /// Completes what was written, and returns the writer.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if an array is missing, [`Error::Io`].
    pub fn finish(self) -> Result<W> {
        let path = &self.path;
        if let Some(name) = self.left.keys().next() {
            let reason = format!("its array \"{name}\" was not written");
            return Err(Error::file(path.display().to_string(), reason));
        }
        match self.sink {
            Sink::Plain(sink, _) => Ok(sink),
            #[cfg(feature = "npz")]
            Sink::Zip(archive) => archive.finish().map_err(|error| cannot_write(path, &error.into())),
        }
    }
}

impl Format {
    fn has_metadata(self) -> bool {
        match self {
            #[cfg(feature = "safetensors")]
            Self::Safetensors => true,
            _ => false,
        }
    }
}

/// The pairs by name.
fn unique<N: Into<String>, V>(path: &Path, pairs: impl IntoIterator<Item = (N, V)>) -> Result<BTreeMap<String, V>> {
    let mut named = BTreeMap::new();
    for (name, value) in pairs {
        let name = name.into();
        if named.contains_key(&name) {
            let reason = format!("two arrays are named \"{name}\"");
            return Err(Error::file(path.display().to_string(), reason));
        }
        named.insert(name, value);
    }
    Ok(named)
}

/// A file to become `path`, in the folder where that is, with the mode of the one that it replaces.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let target = files::target(path)?;
    if target.is_dir() {
        return Err(io::Error::other("it is a folder: name a file in it"));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(io::Error::other(format!("the folder {} does not exist: create it first", folder.display())));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".tmp");
    let old = files::replaced(&target)?;
    // As any file that a program makes: the umask decides, not the caution due to a temporary file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(if old.is_some() { 0o600 } else { 0o666 }));
    let file = builder.tempfile_in(folder)?;
    old.map_or(Ok(()), |old| files::keep(file.as_file(), &old))?;
    Ok(file)
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let reason = error.to_string();
    Error::Io { action: "cannot write".to_owned(), path: path.display().to_string(), reason }
}

/// Where arrays begin, if they can.
#[cfg(any(feature = "npz", feature = "safetensors"))]
const ALIGNMENT: u64 = 64;

/// The header, its length before it. It says where each array will be.
#[cfg(feature = "safetensors")]
fn header(path: &Path, arrays: &mut BTreeMap<String, Planned>, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
    const METADATA: &str = "__metadata__";
    let refused = |reason: String| Error::file(path.display().to_string(), reason);
    if arrays.contains_key(METADATA) {
        return Err(refused(format!("a .safetensors holds no array named \"{METADATA}\"")));
    }
    let mut order: Vec<(&String, &mut Planned)> = arrays.iter_mut().collect();
    // The format has no gaps. What fills whole vectors goes first and leaves the next one aligned, then the wider elements.
    order.sort_by_key(|(_, array)| (!array.bytes.is_multiple_of(16), std::cmp::Reverse(array.dtype.bytes())));
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert(
            METADATA.to_owned(),
            metadata
                .iter()
                .map(|(key, value)| (key.clone(), value.clone().into()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        );
    }
    let mut end = 0_u64;
    for (name, array) in &mut order {
        let dtype = crate::archive::safetensors_name(array.dtype)
            .ok_or_else(|| refused(format!("a .safetensors has no {} for \"{name}\" (write a .npz)", array.dtype)))?;
        let too_large = || refused("its arrays together exceed what this system can address".to_owned());
        array.start = end;
        end = end.checked_add(array.bytes).ok_or_else(too_large)?;
        let about = serde_json::json!({ "dtype": dtype, "shape": array.shape, "data_offsets": [array.start, end] });
        header.insert((*name).clone(), about);
    }
    let mut text = serde_json::to_vec(&header).map_err(|error| refused(error.to_string()))?;
    let length = (8 + text.len() as u64).next_multiple_of(ALIGNMENT) - 8;
    text.resize(usize::try_from(length).unwrap_or(text.len()), b' ');
    order.into_iter().for_each(|(_, array)| array.start += 8 + length);
    let mut file = length.to_le_bytes().to_vec();
    file.append(&mut text);
    Ok(file)
}

/// Elements with the least byte first.
#[cfg(feature = "safetensors")]
fn least_first(dtype: DType, bytes: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return bytes.into();
    }
    bytes.chunks_exact(dtype.bytes()).flat_map(|element| element.iter().rev().copied()).collect::<Vec<_>>().into()
}

#[cfg(feature = "npz")]
fn zipped<W: Write + Seek>(
    archive: &mut zip::ZipWriter<W>,
    name: &str,
    array: &Planned,
    bytes: &[u8],
) -> io::Result<()> {
    // Entries above 4 GiB say so at their start; the header is below a kilobyte.
    let large = array.bytes > u64::from(u32::MAX) - (1 << 16);
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .with_alignment(ALIGNMENT as u16)
        .large_file(large);
    archive.start_file(format!("{name}.npy"), options)?;
    npy::write_header(archive, array.dtype, &array.shape)?;
    archive.write_all(bytes)
}
