//! Requests and results in pieces. The database allocates each of its values whole, and neither it nor who reads one needs memory by the size of a result.

use redb::{ReadableTable, StorageError, Table};

/// Bytes of a piece, at most.
pub const PIECE: usize = 1 << 18;

/// The key of a piece. The first has the job's id, as whole values of before do; ids have no spaces.
fn key(id: &str, piece: usize) -> String {
    if piece == 0 { id.to_owned() } else { format!("{id} {piece}") }
}

/// Writes pieces of a multiple of `each` bytes. Of nothing there is one.
pub(super) fn put(
    table: &mut Table<'_, &'static str, &'static [u8]>,
    id: &str,
    bytes: &[u8],
    each: usize,
) -> Result<(), StorageError> {
    let each = each.clamp(1, PIECE);
    let first = if bytes.is_empty() { Some(bytes) } else { None };
    let pieces = first.into_iter().chain(bytes.chunks(PIECE / each * each));
    for (number, piece) in pieces.enumerate() {
        table.insert(key(id, number).as_str(), piece)?;
    }
    Ok(())
}

/// Removes all pieces.
pub(super) fn remove(table: &mut Table<'_, &'static str, &'static [u8]>, id: &str) -> Result<(), StorageError> {
    let mut piece = 0;
    while table.remove(key(id, piece).as_str())?.is_some() {
        piece += 1;
    }
    Ok(())
}

/// A value, or why there is no memory for it.
type Held = Result<Vec<u8>, String>;

/// A piece, if there is one.
pub(super) fn get(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    id: &str,
    piece: usize,
) -> Result<Option<Held>, redb::Error> {
    let Some(found) = table.get(key(id, piece).as_str())? else { return Ok(None) };
    let mut bytes = Vec::new();
    Ok(Some(add(&mut bytes, found.value()).map(|()| bytes)))
}

/// All pieces together, if there are any.
pub(super) fn whole(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    id: &str,
) -> Result<Option<Held>, redb::Error> {
    let mut bytes = Vec::new();
    for piece in 0.. {
        let Some(found) = table.get(key(id, piece).as_str())? else {
            return Ok((piece > 0).then_some(Ok(bytes)));
        };
        if let Err(reason) = add(&mut bytes, found.value()) {
            return Ok(Some(Err(reason)));
        }
    }
    Ok(None)
}

fn add(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    cantus::memory::reserve("a job on disk", to, bytes.len()).map_err(|error| error.to_string())?;
    to.extend_from_slice(bytes);
    Ok(())
}
