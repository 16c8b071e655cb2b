//! Rows read ahead by a thread of their own, into memory that comes back when the device has used it. `run` and `Chunks` take chunks from it. Rows are read
//! on a thread into rooms; the last rows of a chunk are kept where chunks overlap. On the CPU a room becomes the tensor's memory, so whoever keeps chunks
//! keeps rooms.

use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use super::source::{Source, row_bytes, too_short};
use crate::backend::{DeviceKind, HostMemory};
use crate::engine::{Engine, Tensor};
use crate::error::{Bytes, Error, Result};
use crate::fnv::Fnv;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Chunks on the host at a time: one being read, one that waits, one in use and one whose last use has not ended.
const ROOMS: usize = 4;
/// The longest time that reading waits for a free chunk.
const PATIENCE: Duration = Duration::from_millis(50);
/// Chunks that may exist at a time in all: those of the host, as many results, and what is computed between.
const SHARES: u64 = 12;

/// The chunks of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut {
    /// Bytes that the stream may take.
    pub(super) memory: Option<u64>,
    /// Rows of a chunk.
    pub(super) rows: Option<usize>,
    /// Rows before and after those of a chunk that it has as well.
    pub(super) before: usize,
    pub(super) after: usize,
    /// The first row: those before were used in an earlier run.
    pub(super) first: u64,
    /// The digests of the rows that were read, where they are compared later.
    pub(super) digests: Option<Digests>,
}

/// A digest of the rows so far of each source; none of those whose identity says what their rows are.
pub(super) type Digests = Vec<Option<u64>>;

/// 64 bytes where a line of the processor's cache begins.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory for a chunk of one source.
struct Room {
    lines: Vec<Line>,
    home: Sender<Vec<Line>>,
}

impl Room {
    fn bytes(&mut self) -> &mut [u8] {
        let bytes = self.lines.len() * size_of::<Line>();
        // SAFETY: lines are plain bytes, all of them set.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), bytes) }
    }

    /// The first `bytes` bytes, for a device. The buffer returns when the device releases them.
    fn into_memory(mut self, bytes: usize) -> HostMemory {
        debug_assert!(bytes <= self.bytes().len());
        let start = NonNull::new(self.lines.as_mut_ptr()).unwrap_or(NonNull::dangling()).cast();
        // SAFETY: the vector's memory stays where it is as the room moves; only its home gets at it, once the memory is let go.
        unsafe { HostMemory::new(start, bytes as u64, self) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // No matter if nobody reads any more.
        let _ = self.home.send(std::mem::take(&mut self.lines));
    }
}

/// The rooms of a source that are free.
struct Rooms {
    free: Receiver<Vec<Line>>,
    home: Sender<Vec<Line>>,
    made: usize,
    lines: usize,
}

impl Rooms {
    fn new(bytes: usize) -> Self {
        let (home, free) = channel();
        Self { free, home, made: 0, lines: bytes.div_ceil(size_of::<Line>()) }
    }

    /// A free room; waits a little for one where all are in use. Who keeps chunks keeps rooms, and gets more of them.
    fn take(&mut self) -> Result<Room> {
        let free = if self.made < ROOMS { self.free.try_recv().ok() } else { self.free.recv_timeout(PATIENCE).ok() };
        let lines = match free {
            Some(lines) => lines,
            None => {
                let mut lines = Vec::new();
                lines.try_reserve_exact(self.lines).map_err(|_| Error::OutOfMemory {
                    device: "the host".to_owned(),
                    what: "a chunk of a stream".to_owned(),
                    bytes: (self.lines * size_of::<Line>()) as u64,
                })?;
                lines.resize(self.lines, Line([0; 64]));
                self.made += 1;
                lines
            }
        };
        Ok(Room { lines, home: self.home.clone() })
    }
}

/// A chunk on the host: for each source its memory and bytes.
struct Piece {
    parts: Vec<(Room, usize)>,
    first: u64,
    rows: usize,
    before: usize,
    after: usize,
    digests: Digests,
}

/// The sources of a stream, read on a thread.
pub(super) struct Feed {
    engine: Engine,
    pieces: Receiver<Result<Option<Piece>>>,
    /// All was read, or reading failed.
    ended: bool,
    kinds: Vec<(DType, Vec<usize>)>,
    /// All rows, where known.
    pub(super) rows: Option<u64>,
    /// Bytes of a row of all sources together.
    pub(super) row_bytes: usize,
    /// Rows of a chunk, at most.
    pub(super) chunk_rows: usize,
    /// The end of the last chunk that was taken.
    done: u64,
    /// The digests of all rows before it.
    digests: Digests,
}

impl Feed {
    /// Begins to read.
    pub(super) fn new(engine: &Engine, sources: Vec<Box<dyn Source>>, cut: &Cut) -> Result<Self> {
        let mut rows: Option<u64> = None;
        for source in &sources {
            match (rows, source.rows()) {
                (Some(rows), Some(others)) if rows != others => {
                    return Err(Error::shape(
                        format!("the source {}", source.name()),
                        format!("it has {others} rows, but another source of the stream has {rows}"),
                    ));
                }
                (known, others) => rows = known.or(others),
            }
        }
        let sizes = sources.iter().map(|source| row_bytes(source.dtype(), source.row())).try_listed()?;
        let row_bytes = sizes.iter().fold(0_usize, |sum, &bytes| sum.saturating_add(bytes));
        let chunk_rows = chunk_rows(engine, cut, row_bytes)?;
        let kinds = sources.iter().map(|source| (source.dtype(), source.row().to_vec())).listed();
        let (send, pieces) = sync_channel(1);
        let reading = Reading {
            engine: engine.clone(),
            rooms: sizes.iter().map(|bytes| Rooms::new(bytes * (cut.before + chunk_rows + cut.after))).listed(),
            carried: sources.iter().map(|_| Vec::new()).listed(),
            digests: Vec::new(),
            sources,
            sizes,
            cut: cut.clone(),
            chunk_rows,
        };
        let read = move || reading.run(&send);
        cantus_base::threads::spawn("cantus stream".to_owned(), Box::new(read)).map_err(|error| no_thread(&error))?;
        let (digests, done) = (cut.digests.clone().unwrap_or_default(), cut.first);
        Ok(Self { engine: engine.clone(), pieces, ended: false, kinds, rows, row_bytes, chunk_rows, done, digests })
    }

    /// Returns the end of the last chunk that was taken, in rows.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Returns the digests of all rows before that.
    pub(super) fn digests(&self) -> &Digests {
        &self.digests
    }

    /// The next chunk, on the device.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>> {
        if self.ended {
            return Ok(None);
        }
        let piece = self
            .pieces
            .recv()
            .unwrap_or_else(|_| Err(Error::state("a source of a stream", "it panicked during a read")));
        self.ended = !matches!(piece, Ok(Some(_)));
        let Some(Piece { parts, first, rows, before, after, digests }) = piece? else { return Ok(None) };
        self.done = first + rows as u64;
        self.digests = digests;
        let mut tensors = Vec::with_capacity(parts.len());
        for ((room, bytes), (dtype, row)) in parts.into_iter().zip(&self.kinds) {
            let shape: Vec<usize> = std::iter::once(before + rows + after).chain(row.iter().copied()).listed();
            tensors.push(self.engine.tensor_from_host_memory(*dtype, &shape, room.into_memory(bytes))?);
        }
        Ok(Some(Chunk { engine: self.engine.clone(), tensors, first, rows, before, after }))
    }
}

/// The system gives no thread.
pub(super) fn no_thread(error: &std::io::Error) -> Error {
    Error::OutOfMemory { device: "the host".to_owned(), what: format!("a thread of a stream ({error})"), bytes: 0 }
}

/// Rows of a chunk: many enough to be worth a launch, few enough for the memory.
fn chunk_rows(engine: &Engine, cut: &Cut, row_bytes: usize) -> Result<usize> {
    let limit = engine.memory().limit;
    let memory = cut.memory.or(limit).unwrap_or(1 << 30).min(limit.unwrap_or(u64::MAX));
    let device = &engine.selected().device;
    // What lies in a processor's cache when it is computed with; what is worth a transfer.
    let preferred = if device.kind == DeviceKind::Cpu { 4 << 20 } else { 32 << 20 };
    let share = (memory / SHARES).min(device.capabilities.limits.storage_binding_bytes);
    let halo = (cut.before + cut.after) as u64;
    let most = (share / row_bytes as u64).saturating_sub(halo);
    if most == 0 {
        let row = Bytes(row_bytes as u64);
        let reason = if halo == 0 {
            format!("a row takes {row}, and a stream of {} holds {SHARES} at least", Bytes(memory))
        } else {
            format!("{} rows of {row} each take more than a twelfth of {}", halo + 1, Bytes(memory))
        };
        return Err(Error::limit(
            "a stream's chunk",
            format!("{reason} (raise it with Stream::memory, or give rows that are shorter)"),
        ));
    }
    let wanted = cut.rows.map_or(preferred / row_bytes as u64, |rows| rows as u64);
    Ok(usize::try_from(wanted.clamp(1, most)).unwrap_or(usize::MAX))
}

/// The thread's part.
struct Reading {
    engine: Engine,
    sources: Vec<Box<dyn Source>>,
    sizes: Vec<usize>,
    rooms: Vec<Rooms>,
    /// The rows that the next chunk begins with, of each source.
    carried: Vec<Vec<u8>>,
    /// Those of the rows before the next chunk.
    digests: Vec<Option<Fnv>>,
    cut: Cut,
    chunk_rows: usize,
}

impl Reading {
    fn run(mut self, send: &SyncSender<Result<Option<Piece>>>) {
        let core = self.cut.first;
        let begin = core - (self.cut.before as u64).min(core);
        let mut place = Place { core, begin, end: core, ended: false, empty: false };
        for part in 0..self.sources.len() {
            if let Err(error) = self.resume(part, begin, core) {
                let _ = send.send(Err(error));
                return;
            }
        }
        loop {
            let piece = self.piece(&mut place);
            let last = !matches!(piece, Ok(Some(_)));
            // Where nobody takes it, the stream was dropped.
            if send.send(piece).is_err() || last {
                return;
            }
        }
    }

    /// Comes to the row `core` of a source, and carries the rows from `begin` on.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the rows before are not those of the earlier run.
    fn resume(&mut self, part: usize, begin: u64, core: u64) -> Result<()> {
        let (source, bytes, carried) = (&mut *self.sources[part], self.sizes[part], &mut self.carried[part]);
        let overlap = usize::try_from(core - begin).unwrap_or(usize::MAX) * bytes;
        let compared = self.cut.digests.as_ref();
        if core == 0 && compared.is_none() {
            return Ok(());
        }
        if source.skip(begin)? {
            self.digests.push(None);
            carried.resize(overlap, 0);
            let rows = filled(source, carried, bytes)?;
            let short = rows * bytes < overlap;
            return if short { Err(too_short(&source.name(), begin + rows as u64, core)) } else { Ok(()) };
        }
        let (mut hash, mut row) = (Fnv::new(), 0);
        while row < core {
            let rows = usize::try_from(core - row).unwrap_or(usize::MAX).min(self.chunk_rows);
            let mut room = self.rooms[part].take()?;
            let block = &mut room.bytes()[..rows * bytes];
            let read = filled(source, block, bytes)?;
            if read < rows {
                return Err(too_short(&source.name(), row + read as u64, core));
            }
            hash = hash.with_block(block);
            // The last rows of the blocks so far.
            carried.extend_from_slice(&block[block.len().saturating_sub(overlap)..]);
            carried.drain(..carried.len().saturating_sub(overlap));
            row += rows as u64;
        }
        let expected = compared.and_then(|digests| digests.get(part).copied().flatten());
        if core > 0 && compared.is_some() && expected != Some(hash.value()) {
            return Err(Error::file(
                source.name(),
                format!(
                    "its first {core} rows are not those of the earlier run (remove the checkpoint to start again)"
                ),
            ));
        }
        self.digests.push(compared.map(|_| hash));
        Ok(())
    }

    /// The next chunk: what was carried over, and what is read.
    fn piece(&mut self, place: &mut Place) -> Result<Option<Piece>> {
        let wanted = place.core + (self.chunk_rows + self.cut.after) as u64;
        let missing = if place.ended { 0 } else { usize::try_from(wanted - place.end).unwrap_or(usize::MAX) };
        let span = self.engine.span();
        let mut parts = Vec::with_capacity(self.sources.len());
        let mut found: Option<usize> = None;
        let mut total = 0;
        for part in 0..self.sources.len() {
            let (bytes, carried) = (self.sizes[part], &self.carried[part]);
            let mut room = self.rooms[part].take()?;
            let (old, new) = room.bytes().split_at_mut(carried.len());
            old.copy_from_slice(carried);
            let rows = filled(&mut *self.sources[part], &mut new[..missing * bytes], bytes)?;
            total += rows * bytes;
            if let Some(others) = found.replace(rows).filter(|&others| others != rows) {
                let end = place.end;
                let name = self.sources[if rows < others { part } else { part - 1 }].name();
                return Err(too_short(&name, end + rows.min(others) as u64, end + rows.max(others) as u64));
            }
            parts.push(room);
        }
        span.end("stream: read ahead", total as u64);
        let found = found.unwrap_or(0);
        place.end += found as u64;
        place.ended |= found < missing;
        let available = if place.ended { place.end } else { place.end - self.cut.after as u64 };
        let core_end = available.min(place.core + self.chunk_rows as u64);
        // Of no rows at all there is one chunk, whose results say what they would be.
        if core_end == place.core && (place.core > 0 || std::mem::replace(&mut place.empty, true)) {
            return Ok(None);
        }
        let after = (place.end - core_end).min(self.cut.after as u64);
        let next = core_end - (self.cut.before as u64).min(core_end);
        let within = |row: u64| usize::try_from(row - place.begin).unwrap_or(usize::MAX);
        for (part, room) in parts.iter_mut().enumerate() {
            let bytes = self.sizes[part];
            self.carried[part].clear();
            self.carried[part].extend_from_slice(&room.bytes()[within(next) * bytes..within(place.end) * bytes]);
        }
        let held = within(core_end + after);
        for ((digest, room), bytes) in self.digests.iter_mut().zip(&mut parts).zip(&self.sizes) {
            let own = within(place.core) * bytes..within(core_end) * bytes;
            *digest = digest.map(|digest| digest.with_block(&room.bytes()[own]));
        }
        let piece = Piece {
            digests: self.digests.iter().map(|digest| digest.map(Fnv::value)).listed(),
            parts: parts.into_iter().zip(&self.sizes).map(|(room, bytes)| (room, held * bytes)).listed(),
            first: place.core,
            rows: (core_end - place.core) as usize,
            before: within(place.core),
            after: after as usize,
        };
        (place.core, place.begin) = (core_end, next);
        Ok(Some(piece))
    }
}

/// The position of the reader, in rows.
struct Place {
    /// The first row of the next chunk.
    core: u64,
    /// The first row that is carried over, and the row behind the last one.
    begin: u64,
    end: u64,
    /// The sources have no more.
    ended: bool,
    /// The chunk without rows was given.
    empty: bool,
}

/// Fills memory with rows; how many there were.
fn filled(source: &mut dyn Source, into: &mut [u8], row_bytes: usize) -> Result<usize> {
    let most = into.len() / row_bytes;
    let mut rows = 0;
    while rows < most {
        match usize::try_from(source.read(&mut into[rows * row_bytes..])?).unwrap_or(usize::MAX) {
            0 => break,
            read if read > most - rows => {
                return Err(Error::shape(
                    format!("the source {}", source.name()),
                    format!("it reports {read} rows, but there is room for {}", most - rows),
                ));
            }
            read => rows += read,
        }
    }
    Ok(rows)
}

/// Consecutive rows of a stream, on the engine's device.
#[derive(Debug, Clone)]
pub struct Chunk {
    engine: Engine,
    tensors: Vec<Tensor>,
    first: u64,
    rows: usize,
    before: usize,
    after: usize,
}

impl Chunk {
    /// Returns the rows of the first source: `[before + rows + after, ...row]`. A kernel may write to it.
    #[must_use]
    pub fn tensor(&self) -> &Tensor {
        // A stream has one source at least.
        &self.tensors[0]
    }

    /// Returns the same rows of each source, in the order in which they were given.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the index of its first row in the stream, not counting overlapping rows.
    #[must_use]
    pub fn first_row(&self) -> u64 {
        self.first
    }

    /// Returns the number of its rows, not counting overlapping rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows at the start of the tensors that belong to the chunk before ([`super::Stream::overlap`]); fewer at the beginning.
    #[must_use]
    pub fn before(&self) -> usize {
        self.before
    }

    /// Returns the number of rows at the end of the tensors that belong to the chunk after.
    #[must_use]
    pub fn after(&self) -> usize {
        self.after
    }
}
