//! `.safetensors` files: a header of JSON, and bytes without a gap.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use cantus::{DType, Error, Result, memory};
use safetensors::tensor::{Dtype, Metadata};

use super::{Entry, Found, Place, Source, fault};
use crate::HostArray;

/// The header's length, before the header.
const LENGTH_BYTES: u64 = 8;
/// The format's own limit.
const MOST_HEADER: u64 = 100_000_000;

pub(super) fn read<R: Read + Seek>(mut reader: R, length: u64, path: &Path) -> Result<Found<R>> {
    let wrong = |reason: String| fault(path, format!("it is not a whole .safetensors file: {reason}"));
    let unreadable = |error: io::Error| Error::unreadable(path, &error);
    if length < LENGTH_BYTES {
        return Err(wrong(format!("it has {length} bytes, fewer than the length of its header")));
    }
    let mut claimed = [0; 8];
    reader.read_exact(&mut claimed).map_err(unreadable)?;
    let claimed = u64::from_le_bytes(claimed);
    if claimed > MOST_HEADER || claimed > length - LENGTH_BYTES {
        return Err(wrong(format!("its header claims {claimed} bytes, and {} follow", length - LENGTH_BYTES)));
    }
    let mut header = Vec::new();
    reader.by_ref().take(claimed).read_to_end(&mut header).map_err(unreadable)?;
    let described: Metadata = serde_json::from_slice(&header).map_err(|error| wrong(error.to_string()))?;
    let start = LENGTH_BYTES + claimed;
    let (needed, held) = (described.data_len() as u64, length - start);
    if needed != held {
        return Err(wrong(format!("its arrays take {needed} bytes, and it has {held} after its header")));
    }
    let entries = described.tensors().into_iter().map(|(name, info)| {
        let dtype = dtype(info.dtype).ok_or_else(|| info.dtype.to_string());
        let (from, to) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        let (place, bytes) = (Place::Bytes(start + from), to.saturating_sub(from));
        let start = cfg!(target_endian = "little").then_some(start + from);
        (name, Entry { dtype, shape: info.shape.clone(), bytes, place, start })
    });
    let entries = entries.collect();
    let metadata: BTreeMap<_, _> = described.metadata().iter().flatten().map(|(a, b)| (a.clone(), b.clone())).collect();
    Ok(Found { entries, metadata, source: Source::Plain(reader) })
}

pub(super) fn array<R: Read + Seek>(
    reader: &mut R,
    start: u64,
    (dtype, shape, bytes): (DType, &[usize], u64),
    path: &Path,
) -> Result<HostArray> {
    let what = format!("{}, its array {dtype}{shape:?}", path.display());
    let mut room = memory::vec(&what, usize::try_from(bytes).unwrap_or(usize::MAX))?;
    let read = reader.seek(SeekFrom::Start(start)).and_then(|_| reader.take(bytes).read_to_end(&mut room));
    let read = read.map_err(|error| Error::unreadable(path, &error))?;
    if read as u64 != bytes {
        return Err(fault(path, format!("it has become shorter, and ends within {dtype}{shape:?}")));
    }
    if cfg!(target_endian = "big") {
        room.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    HostArray::from_bytes(dtype, shape, room)
}

/// The format's names are ours in capitals.
fn dtype(theirs: Dtype) -> Option<DType> {
    theirs.to_string().to_lowercase().parse().ok()
}

/// Returns the format's name of a dtype, where it has one.
pub(crate) fn name(ours: DType) -> Option<String> {
    let has_one = !matches!(ours, DType::Complex64 | DType::Complex128);
    has_one.then(|| ours.name().to_uppercase())
}
