//! `.npz` files: ZIP archives of `.npy` files, stored or deflated.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use cantus::{Error, Result};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::npy::Header;
use super::{Found, Place, Source, fault};
use crate::HostArray;

/// Deflate makes no more of a byte, 258 of two bits, and the rest is the start of a stream.
const MOST_OF_A_BYTE: u64 = 1032;
const MOST_OF_A_START: u64 = 1024;

pub(super) fn read<R: Read + Seek>(reader: R, length: u64, path: &Path) -> Result<Found<R>> {
    let mut archive = ZipArchive::new(reader).map_err(|error| of_zip(path, error))?;
    let mut entries = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(|error| of_zip(path, error))?;
        let name = file.name().map_err(|error| of_zip(path, error))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let label = label(path, &name);
        let stored = file.compression() == CompressionMethod::Stored && !file.encrypted();
        let (packed, unpacked, data) = (file.compressed_size(), file.size(), file.data_start());
        let header = Header::read(&mut Compressed(&mut file), &label)?;
        let held = unpacked.saturating_sub(header.length);
        let possible =
            if stored { packed } else { packed.saturating_mul(MOST_OF_A_BYTE).saturating_add(MOST_OF_A_START) };
        if held != header.described.bytes || unpacked > possible {
            return Err(header.described.wrong_length(&label, held.min(possible)));
        }
        let start = data.filter(|_| stored).and_then(|data| data.checked_add(header.length));
        let start = start.filter(|start| start.checked_add(held).is_some_and(|end| end <= length));
        if entries.insert(name, header.entry(Place::Zipped(index), start)).is_some() {
            return Err(fault(&label, "the archive has two arrays of that name".to_owned()));
        }
    }
    Ok(Found { entries, metadata: BTreeMap::new(), source: Source::Zip(Box::new(archive)) })
}

/// Reads an array to its end, where its checksum is compared.
pub(super) fn array<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    index: usize,
    name: &str,
    path: &Path,
) -> Result<HostArray> {
    let file = archive.by_index(index).map_err(|error| of_zip(path, error))?;
    // What that many packed bytes can hold was compared when the archive was opened.
    let held = file.size();
    let array = cantus::tensor::npy::read_where(Compressed(file), &label(path, name), held, |_| Ok(()))?;
    HostArray::from_bytes(array.dtype, &array.shape, array.bytes)
}

fn label(path: &Path, name: &str) -> PathBuf {
    format!("{}, array \"{}\"", path.display(), name.escape_default()).into()
}

fn of_zip(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => Error::unreadable(path, &error),
        error => fault(path, format!("it is not a whole .npz file: {error}")),
    }
}

/// A reader whose faults are the compressed data's.
struct Compressed<R>(R);

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                io::Error::other(format!("its data is damaged ({error})"))
            }
            _ => error,
        })
    }
}
