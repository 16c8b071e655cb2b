//! `.npy` files as archives of one array.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use cantus::tensor::npy::{self, Described};
use cantus::{Error, Result};

use super::{Entry, Found, Place, Source};
use crate::HostArray;

/// A header that was read.
pub(super) struct Header {
    pub described: Described,
    /// Its bytes: the elements begin behind it.
    pub length: u64,
}

impl Header {
    /// Reads the header that the reader is at.
    pub fn read(reader: impl Read, path: &Path) -> Result<Self> {
        let mut counted = Counted { reader, count: 0 };
        let described = Described::read(&mut counted, path)?;
        Ok(Self { described, length: counted.count })
    }

    /// Returns the entry of elements that are whole; they lie in the file as in memory from `start` on, where that is known.
    pub fn entry(self, place: Place, start: Option<u64>) -> Entry {
        let Described { dtype, swapped, fortran, bytes, .. } = self.described;
        let plain = !swapped && (!fortran || self.described.shape.len() < 2);
        Entry { dtype: Ok(dtype), shape: self.described.shape, bytes, place, start: start.filter(|_| plain) }
    }
}

struct Counted<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(into)?;
        self.count += read as u64;
        Ok(read)
    }
}

pub(super) fn read<R: Read + Seek>(mut reader: R, length: u64, path: &Path) -> Result<Found<R>> {
    let header = Header::read(&mut reader, path)?;
    let held = length.saturating_sub(header.length);
    if held != header.described.bytes {
        return Err(header.described.wrong_length(path, held));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let start = header.length;
    let entries = BTreeMap::from([(name, header.entry(Place::Whole, Some(start)))]);
    Ok(Found { entries, metadata: BTreeMap::new(), source: Source::Plain(reader) })
}

pub(super) fn array<R: Read + Seek>(reader: &mut R, bytes: u64, path: &Path) -> Result<HostArray> {
    reader.rewind().map_err(|error| Error::unreadable(path, &error))?;
    let array = npy::read_where(BufReader::new(reader), path, bytes, |_| Ok(()))?;
    HostArray::from_bytes(array.dtype, &array.shape, array.bytes)
}
