//! Sorting what is larger than memory: chunks sorted by the device, and merged from a file on the host. Runs of one chunk are sorted on the device and
//! written one after the other; then a heap merges them on the host from blocks. It needs as much space on disk as the data. With a checkpoint, only the
//! sorting continues; a merge begins anew.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::feed::Chunk;
use super::run::{Contents, Done, State, packed, unpacked};
use super::sink::mark_of;
use super::{Progress, Rows, Sink, Stream};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::files::Temporary;
use crate::tensor::{DType, Kind};

/// The least that is read of a run at a time.
const LEAST_BLOCK: usize = 1 << 16;
/// Elements that a merge hands on at a time.
const MERGED: usize = 1 << 18;

/// The order of a dtype's elements: NaN last, whatever its sign.
#[derive(Clone, Copy)]
struct Order {
    kind: Kind,
    /// The bits of infinity, for floats.
    infinity: u64,
}

impl Order {
    fn of(dtype: DType) -> Self {
        Self { kind: dtype.kind(), infinity: dtype.float_bits(f64::INFINITY).unwrap_or_default() }
    }

    /// An element's place.
    fn key(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        let (start, end) = if cfg!(target_endian = "little") { (0, bytes.len()) } else { (8 - bytes.len(), 8) };
        word[start..end].copy_from_slice(bytes);
        let bits = u64::from_ne_bytes(word);
        let sign = 1_u64 << (8 * bytes.len() - 1);
        match self.kind {
            Kind::Float if bits & !sign > self.infinity => u64::MAX,
            // Zeros of both signs are equal.
            Kind::Float if bits & !sign == 0 => sign,
            Kind::Float if bits & sign != 0 => !bits & (sign | (sign - 1)),
            Kind::Float => bits | sign,
            Kind::Signed => bits ^ sign,
            Kind::Bool => u64::from(bits != 0),
            Kind::Unsigned | Kind::Complex => bits,
        }
    }
}

impl Stream {
    /// Passes the elements to `sink` in ascending order, NaN last. The device sorts runs of a chunk each into a file in `folder`, as large as the
    /// stream, and they are merged from there. With a checkpoint, sorted runs are kept, and the merge starts anew.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Generated, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let rows = Generated::new(10_000, &[], |first, values: &mut [u32]| {
    ///     values.iter_mut().zip(first..).for_each(|(value, row)| *value = (row * 7919 % 10_000) as u32);
    /// })?;
    /// let mut sorted = Vec::new();
    /// let sink = |rows: cantus::stream::Rows<'_>| Ok(sorted.extend(rows.to_vec::<u32>()?));
    /// Stream::new(&engine, rows).chunk_rows(999).sort(&std::env::temp_dir(), sink)?;
    /// assert!(sorted.into_iter().eq(0..10_000));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the source, of the engine and of the sink; [`Error::Dtype`] for rows that are not single elements, for complex elements, and
    /// for several sources; [`Error::Io`] if the folder has no space.
    pub fn sort(mut self, folder: &Path, mut sink: impl Sink) -> Result<()> {
        let source = self.only("sorting")?;
        let dtype = source.dtype();
        if !source.row().is_empty() || dtype.kind() == Kind::Complex {
            return Err(Error::dtype(
                format!("sorting a stream of rows {dtype}{:?}", source.row()),
                "only single, ordered elements can be sorted (read the source with rows of shape [])",
            ));
        }
        let (memory, progress) = (self.cut.memory.unwrap_or(1 << 30), self.progress.take());
        let mut progress = progress;
        let lasting = self.checkpoint.as_ref().map(|(path, _)| {
            let mut name = path.as_os_str().to_owned();
            name.push(".runs");
            PathBuf::from(name)
        });
        let mut runs =
            Runs { dtype, file: None, folder: folder.to_owned(), lasting: lasting.clone(), ends: Vec::new() };
        let work = |chunk: &Chunk, _: Option<&Tensor>| Ok((vec![chunk.tensor().sort(0, false).eval()?], None));
        self.run("sorting", None, work, &mut runs)?;
        let rows = runs.ends.last().copied().unwrap_or(0);
        let mut tell = |done: u64| {
            if let Some(progress) = &mut progress {
                progress(Progress { rows: done, of: Some(rows), bytes: done * dtype.bytes() as u64 });
            }
        };
        runs.merge(memory, &mut sink, &mut tell)?;
        sink.end()?;
        if let Some(path) = lasting {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

/// Sorted runs, one after the other in a file.
struct Runs {
    dtype: DType,
    file: Option<BufWriter<Temporary>>,
    folder: PathBuf,
    /// The file's name, where it outlives the process.
    lasting: Option<PathBuf>,
    /// The end of each run, in elements.
    ends: Vec<u64>,
}

impl Runs {
    fn fault(&self, error: &std::io::Error) -> Error {
        Error::Io {
            action: "cannot keep sorted runs".to_owned(),
            path: self.lasting.as_ref().unwrap_or(&self.folder).display().to_string(),
            reason: error.to_string(),
        }
    }

    fn open(&self) -> std::io::Result<Temporary> {
        match &self.lasting {
            Some(path) => Temporary::lasting(path.clone()),
            None => Temporary::new(&self.folder.join("cantus-runs")),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.open()?),
        };
        file.write_all(bytes)?;
        self.file = Some(file);
        Ok(())
    }

    /// Hands the elements of all runs to a sink, in order.
    fn merge(mut self, memory: u64, sink: &mut impl Sink, tell: &mut dyn FnMut(u64)) -> Result<()> {
        let size = self.dtype.bytes();
        let file = self.file.take().map(|file| file.into_inner().map_err(std::io::IntoInnerError::into_error));
        let mut file = file.transpose().map_err(|error| self.fault(&error))?;
        let share = usize::try_from(memory / 2).unwrap_or(usize::MAX) / self.ends.len().max(1);
        let block = share.clamp(LEAST_BLOCK, 8 << 20) / size * size;
        let source = Mutex::new(file.as_mut().map(|part| part.file()));
        let mut begin = 0;
        let mut runs = Vec::with_capacity(self.ends.len());
        for &end in &self.ends {
            runs.push(Run { next: begin * size as u64, end: end * size as u64, held: Vec::new(), place: 0 });
            begin = end;
        }
        let order = Order::of(self.dtype);
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            run.fill(&source, block).map_err(|error| self.fault(&error))?;
            if let Some(element) = run.element(size) {
                heap.push(Reverse((order.key(element), number)));
            }
        }
        let mut merged = Vec::with_capacity(MERGED * size);
        let mut done = 0_u64;
        let mut hand_on = |merged: &mut Vec<u8>| -> Result<()> {
            let count = merged.len() / size;
            sink.write(Rows { first: done, count, dtype: self.dtype, row: &[], bytes: merged })?;
            done += count as u64;
            merged.clear();
            tell(done);
            Ok(())
        };
        while let Some(mut least) = heap.peek_mut() {
            let Reverse((_, number)) = *least;
            let run = &mut runs[number];
            if let Some(element) = run.element(size) {
                merged.extend_from_slice(element);
            }
            run.place += size;
            if run.place == run.held.len() {
                run.fill(&source, block).map_err(|error| self.fault(&error))?;
            }
            match run.element(size) {
                Some(element) => *least = Reverse((order.key(element), number)),
                None => {
                    PeekMut::pop(least);
                }
            }
            if merged.len() >= MERGED * size {
                hand_on(&mut merged)?;
            }
        }
        // Also of no elements at all: the sink learns their type.
        if !merged.is_empty() || begin == 0 {
            hand_on(&mut merged)?;
        }
        Ok(())
    }
}

/// A run that is merged.
struct Run {
    /// The rows still in the file.
    next: u64,
    end: u64,
    held: Vec<u8>,
    place: usize,
}

impl Run {
    fn fill(&mut self, file: &Mutex<Option<&mut File>>, block: usize) -> std::io::Result<()> {
        let bytes = usize::try_from(self.end - self.next).unwrap_or(usize::MAX).min(block);
        self.held.resize(bytes, 0);
        self.place = 0;
        if bytes == 0 {
            return Ok(());
        }
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return Err(std::io::Error::other("the file of runs is gone")) };
        file.seek(SeekFrom::Start(self.next))?;
        file.read_exact(&mut self.held)?;
        self.next += bytes as u64;
        Ok(())
    }

    fn element(&self, size: usize) -> Option<&[u8]> {
        self.held.get(self.place..self.place + size)
    }
}

impl State for Runs {
    fn take(&mut self, done: &Done) -> Result<()> {
        for output in &done.outputs {
            if done.rows > 0 {
                let contents = Contents::of(output)?;
                self.write(contents.bytes()).map_err(|error| self.fault(&error))?;
                self.ends.push(done.first + done.rows as u64);
            }
        }
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let settled = self.file.as_mut().map_or(Ok(()), |file| {
            file.flush()?;
            file.get_mut().file().sync_data()
        });
        settled.map_err(|error| self.fault(&error))?;
        let mark = self.file.as_mut().map_or(Ok(0), |file| mark_of(file.get_mut().file(), 0));
        packed(&(&self.ends, mark.map_err(|error| self.fault(&error))?))
    }

    fn load(&mut self, saved: Option<&[u8]>) -> Result<()> {
        let saved: Option<(Vec<u64>, u64)> = saved.map(unpacked).transpose()?;
        let mark = saved.as_ref().map(|(_, mark)| *mark).filter(|mark| *mark != 0);
        self.ends = saved.map(|(ends, _)| ends).unwrap_or_default();
        let length = self.ends.last().copied().unwrap_or(0).saturating_mul(self.dtype.bytes() as u64);
        let sorted = self.ends.is_sorted_by(|a, b| a < b);
        let opened = self.open().and_then(|mut temporary| {
            let file = temporary.file();
            if !sorted || file.metadata()?.len() < length {
                return Err(std::io::Error::other(
                    "the sorted runs of the earlier run are missing (remove the checkpoint to start again)",
                ));
            }
            file.set_len(length)?;
            let own = mark_of(file, 0)?;
            if mark.is_some_and(|mark| mark != own) {
                return Err(std::io::Error::other(
                    "the sorted runs are not those of the earlier run (remove the checkpoint to start again)",
                ));
            }
            Ok(BufWriter::new(temporary))
        });
        self.file = Some(opened.map_err(|error| self.fault(&error))?);
        Ok(())
    }
}
