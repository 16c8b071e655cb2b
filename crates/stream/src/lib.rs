//! Streams: data larger than a device's memory, or the machine's, computed chunk by chunk. Apps use `cantus::stream`, whose page explains them.
//!
//! # How it runs
//! Three threads work, and each waits for the others only when their few chunks are all in use:
//! 1. **Read** (`feed`). A thread reads ahead into host memory and keeps the rows that overlap with the next chunk.
//! 2. **Record** (`run`). The caller's thread uploads a chunk, calls the app's work, and flushes. What the work carries goes on to the next chunk.
//! 3. **Take** (`run`, `sink`). A thread downloads the results, writes them, and saves checkpoints between two chunks (`checkpoint`).
//!
//! # What carries it
//! - `Room`: host memory for a chunk, four for each source (`ROOMS`). It comes back when the device has released it. On the CPU it is the tensor's own
//!   memory (`Engine::tensor_from_host_memory`), so nothing is copied.
//! - Channels of length one between the threads. With the rooms they bound the memory.
//! - `State`: what takes results and can be kept: sinks, moments, a sorted run.
//!
//! # What holds
//! - A chunk is 4 MiB on the CPU, so that it is still in a cache when it is computed, and 32 MiB elsewhere, or less where memory is short.
//! - A checkpoint is written after the results before it have reached the disk. It has a checksum, the sink's `mark` (a checksum of its last rows), and an
//!   `Identity`: sources, the operation and the app's name of the work, overlap, rows of a chunk. No other stream accepts it, and a closure without a name
//!   gets none. A lock beside the file keeps a second process out.
//! - Sources that can skip rows say in their identity what the rows are. Of the others the reading thread keeps a running digest, which is compared when
//!   the rows are read again.
//! - A last checkpoint is written before outputs are renamed, so a run that is killed between that and its removal is found complete.
//!
//! # What is surprising
//! - A run that asks for no chunk size takes the checkpoint's.
//! - Numbers of a whole stream are combined on the host: sums of 4,096 elements in float64, halves of integers exactly, moments by the formula for two
//!   sets.
//! - Whoever keeps chunks keeps rooms. After 50 ms without a free one, another is made.
//!
//! # An example
//! `map` over a file of 10 million rows of 4 floats on a GPU, in chunks of 32 MiB: 2,097,152 rows, five chunks. While the work of chunk 2 runs, chunk 3 is
//! in host memory, chunk 4 is being read, and the results of chunk 1 are being written. The process is killed during chunk 3, and a checkpoint was due
//! after chunk 1. The next run finds it, has the sink continue at row 2,097,152, and reads from there.

mod checkpoint;
mod digest;
mod feed;
mod matmul;
mod measure;
mod run;
mod sink;
mod sort;
mod source;

use std::path::PathBuf;
use std::time::Duration;

pub use self::feed::Chunk;
pub use self::matmul::matmul;
pub use self::measure::Summary;
pub use self::sink::{NpyFile, Rows, Sink};
pub use self::source::{Again, Bytes, Generated, Items, Npy, Reader, Source};

use self::engine::{Engine, Tensor};
use self::error::{Error, Result};
use self::feed::{Cut, Feed};
use self::ops::Expr;
use cantus_base::listed::Listed;
use cantus_base::{error, files, fnv, tensor};
use cantus_device as backend;
use cantus_engine::{engine, ops};
use cantus_npy as npy;

/// The progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows done.
    pub rows: u64,
    /// The total number of rows, if known.
    pub of: Option<u64>,
    /// Bytes of the rows done.
    pub bytes: u64,
}

/// Rows to compute with, chunk by chunk.
///
/// Methods that consume the rows return the first failure of a source, of the device or of a sink. Outputs are written completely or not at all.
#[must_use = "a stream does nothing until something takes its rows"]
pub struct Stream {
    engine: Engine,
    sources: Vec<Box<dyn Source>>,
    cut: Cut,
    checkpoint: Option<(PathBuf, Duration)>,
    /// The app's name of its work.
    name: String,
    progress: Option<Box<dyn FnMut(Progress) + Send>>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sources: Vec<_> = self.sources.iter().map(|source| source.name()).listed();
        f.debug_struct("Stream").field("sources", &sources).field("cut", &self.cut).finish_non_exhaustive()
    }
}

impl Stream {
    /// Returns the rows of a source.
    pub fn new(engine: &Engine, source: impl Source + 'static) -> Self {
        Self {
            engine: engine.clone(),
            sources: vec![Box::new(source)],
            cut: Cut::default(),
            checkpoint: None,
            name: String::new(),
            progress: None,
        }
    }

    /// Adds another source, whose rows are read together with this one's: [`Chunk::tensors`] has the same rows of each.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let x = Items::new((0..10).map(|item| vec![item as f32; 4]), &[])?;
    /// let y = Items::new((0..20).map(|item| vec![item as f32; 2]), &[])?;
    /// let mut sums = Vec::new();
    /// Stream::new(&engine, x).with(y).map(
    ///     |chunk| Ok(&chunk.tensors()[0] + &chunk.tensors()[1]),
    ///     |rows: cantus::stream::Rows<'_>| Ok(sums.extend(rows.to_vec::<f32>()?)),
    /// )?;
    /// assert_eq!(sums[..8], [0.0, 0.0, 1.0, 1.0, 3.0, 3.0, 4.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn with(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Limits the bytes that it takes on the host and the device together, some twelve chunks, not counting what `work` keeps. By default the
    /// engine's limit, or 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.cut.memory = Some(bytes);
        self
    }

    /// Limits the rows of a chunk. By default a chunk has 4 MiB on the CPU and 32 MiB on other devices, or less if memory is short.
    pub fn chunk_rows(mut self, rows: usize) -> Self {
        self.cut.rows = Some(rows);
        self
    }

    /// Adds the last `before` rows of the chunk before and the first `after` rows of the chunk after to each chunk, for stencils. At the ends of the
    /// stream there are fewer.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Generated, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let ramp = Generated::new(100, &[], |first, values: &mut [f32]| {
    ///     values.iter_mut().zip(first..).for_each(|(value, row)| *value = row as f32);
    /// })?;
    /// let mut slopes = Vec::new();
    /// Stream::new(&engine, ramp).overlap(1, 1).chunk_rows(7).map(
    ///     |chunk| {
    ///         // Half the difference of both neighbours; one that is missing counts as the row itself.
    ///         let x = chunk.tensor().expr();
    ///         let rows = x.shape()?[0];
    ///         let (first, last) = (x.slice(&[0..1]), x.slice(&[rows - 1..rows]));
    ///         let wide = first.concat(&[x, last], 0);
    ///         Ok((wide.slice(&[2..rows + 2]) - wide.slice(&[0..rows])) * 0.5)
    ///     },
    ///     |rows: cantus::stream::Rows<'_>| Ok(slopes.extend(rows.to_vec::<f32>()?)),
    /// )?;
    /// assert_eq!((slopes[0], &slopes[1..99], slopes[99]), (0.5, &[1.0; 98][..], 0.5));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn overlap(mut self, before: usize, after: usize) -> Self {
        (self.cut.before, self.cut.after) = (before, after);
        self
    }

    /// Writes the progress to a file every five seconds, and continues from there if the file exists, also in another process. The file is removed at
    /// the end. A run continues only with the same sources, operation, overlap and chunks, and with the name that [`Stream::named`] gives the work; maps,
    /// scans and folds must have one, because Rust cannot compare closures. One process at a time works on a checkpoint.
    ///
    /// A `.npy` file is the same if its path, length, number (inode), time of change and a digest are. Up to 1 GiB all of it is digested at the beginning
    /// of each run, above that 1,024 blocks of 64 KiB, and the time of its last change of status counts too. Rows in memory are digested alike, and rows
    /// that can be read only once are compared with those of the earlier run as they are read again. A [`Generated`] source is known by its shape.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some((path.into(), Duration::from_secs(5)));
        self
    }

    /// Names the work for checkpoints: a run continues only from a checkpoint of that name. It says everything that the result depends on besides the
    /// sources, such as a digest of a kernel, the values of its settings and the first carry of a scan or fold.
    ///
    /// ```no_run
    /// use cantus::{Engine, stream::{Npy, NpyFile, Stream}};
    ///
    /// let engine = Engine::new()?;
    /// let gain = 2.5_f32;
    /// let rows = Stream::new(&engine, Npy::open("large.npy")?);
    /// let rows = rows.checkpoint("scaled.checkpoint").named(format!("scaled by {gain}"));
    /// rows.map(|chunk| Ok(chunk.tensor() * gain), NpyFile::new("scaled.npy"))?;
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn named(mut self, work: impl Into<String>) -> Self {
        self.name = work.into();
        self
    }

    /// Sets the least time between checkpoints; 0 for one after each chunk.
    pub fn checkpoint_every(mut self, time: Duration) -> Self {
        if let Some((_, every)) = &mut self.checkpoint {
            *every = time;
        }
        self
    }

    /// Calls `progress` for each finished chunk, on another thread.
    pub fn on_progress(mut self, progress: impl FnMut(Progress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Returns the chunks, one after the other, while the next one is on its way to the device.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = Items::new((0..10).map(|item| vec![item as f32; 4]), &[4])?;
    /// for chunk in Stream::new(&engine, items).chunk_rows(3).chunks()? {
    ///     let chunk = chunk?;
    ///     println!("rows {} to {}", chunk.first_row(), chunk.first_row() + chunk.rows() as u64);
    /// }
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Limit`] if one row does not fit the memory; [`Error::InvalidInput`] with a checkpoint, because only the caller knows which
    /// chunks are done.
    pub fn chunks(self) -> Result<Chunks> {
        if self.checkpoint.is_some() {
            return Err(Error::invalid("a stream's chunks", "a checkpoint needs a map, a fold or a sort"));
        }
        let mut feed = Feed::new(&self.engine, self.sources, &self.cut)?;
        let ahead = feed.next().transpose();
        Ok(Chunks { feed, ahead })
    }

    /// Passes the result of `work` for each chunk to `sink`. It has as many rows as the chunk, with or without the overlapping ones, which are cut off.
    /// It is an expression, or a tensor that kernels wrote ([`Tensor::expr`]).
    ///
    /// ```
    /// use cantus::{Engine, Kernel, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let double = Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(64)
    ///     fn double(@builtin(global_invocation_id) id: vec3u) {
    ///         if id.x < arrayLength(&x) { x[id.x] *= 2u; }
    ///     }
    /// ")?;
    /// let items = Items::new((0..100_u32).map(|item| vec![item; 10]), &[])?;
    /// let mut largest = 0;
    /// Stream::new(&engine, items).map(
    ///     |chunk| {
    ///         let x = chunk.tensor();
    ///         engine.dispatch(&double).bind("x", x).invocations(x.len()).run()?;
    ///         Ok(x.expr())
    ///     },
    ///     |rows: cantus::stream::Rows<'_>| Ok(largest = largest.max(rows.to_vec::<u32>()?.into_iter().max().unwrap_or(0))),
    /// )?;
    /// assert_eq!(largest, 198);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the sources, of `work`, of the engine and of the sink; [`Error::Shape`] if `work` returns another number of rows.
    pub fn map(self, mut work: impl FnMut(&Chunk) -> Result<Expr>, sink: impl Sink) -> Result<()> {
        self.into_sinks("a map", None, |chunk, _| Ok((vec![work(chunk)?], None)), vec![Box::new(sink)])
    }

    /// Does the same as [`Stream::map`] with several results of each chunk, one for each sink.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Npy, NpyFile, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let [sine, cosine] = ["sine.npy", "cosine.npy"].map(|name| folder.path().join(name));
    /// let items = Items::new((0..10).map(|item| vec![item as f32; 4]), &[])?;
    /// Stream::new(&engine, items).map_each(
    ///     |chunk| Ok(vec![chunk.tensor().sin(), chunk.tensor().cos()]),
    ///     vec![Box::new(NpyFile::new(&sine)), Box::new(NpyFile::new(&cosine))],
    /// )?;
    /// let squares = Stream::new(&engine, Npy::open(&sine)?).with(Npy::open(&cosine)?);
    /// let one = squares.fold(engine.zeros::<f32>(&[1])?, |chunk, sum| {
    ///     let [sine, cosine] = [&chunk.tensors()[0], &chunk.tensors()[1]];
    ///     ((sine * sine + cosine * cosine).sum(&[0], true) + sum).eval()
    /// })?;
    /// assert!((one.item::<f32>()? - 40.0).abs() < 1e-4);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Stream::map`]; [`Error::Shape`] if there are more or fewer results than sinks.
    pub fn map_each(
        self,
        mut work: impl FnMut(&Chunk) -> Result<Vec<Expr>>,
        sinks: Vec<Box<dyn Sink + '_>>,
    ) -> Result<()> {
        self.into_sinks("a map", None, |chunk, _| Ok((work(chunk)?, None)), sinks)
    }

    /// Does the same as [`Stream::map`] with a tensor that passes from chunk to chunk. `work` takes the tensor from the chunk before, beginning with
    /// `carry`, and returns the rows and the next tensor, of the same shape.
    ///
    /// ```
    /// use cantus::{DType, Engine, ops, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = Items::new((0..10).map(|_| vec![1.0_f32; 4]), &[])?;
    /// let mut sums = Vec::new();
    /// Stream::new(&engine, items).chunk_rows(6).scan(
    ///     engine.zeros::<f32>(&[1])?,
    ///     |chunk, carry| {
    ///         let sums = (chunk.tensor().cumsum(0) + carry).eval()?;
    ///         let last = sums.slice(&[sums.len() - 1..sums.len()]).eval()?;
    ///         Ok((sums.expr(), last))
    ///     },
    ///     |rows: cantus::stream::Rows<'_>| Ok(sums.extend(rows.to_vec::<f32>()?)),
    /// )?;
    /// assert_eq!((sums.len(), sums[39]), (40, 40.0));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Stream::map`].
    pub fn scan(
        self,
        carry: Tensor,
        mut work: impl FnMut(&Chunk, &Tensor) -> Result<(Expr, Tensor)>,
        sink: impl Sink,
    ) -> Result<()> {
        let first = carry.clone();
        let work = move |chunk: &Chunk, carry: Option<&Tensor>| {
            let (rows, next) = work(chunk, carry.unwrap_or(&first))?;
            Ok((vec![rows], Some(next)))
        };
        self.into_sinks("a scan", Some(carry), work, vec![Box::new(sink)])
    }
}

/// The chunks of a stream.
#[derive(Debug)]
pub struct Chunks {
    feed: Feed,
    ahead: Option<Result<Chunk>>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("rows", &self.rows).field("chunk_rows", &self.chunk_rows).finish_non_exhaustive()
    }
}

impl Chunks {
    /// Returns the number of all rows, if known.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        self.feed.rows
    }
}

impl Iterator for Chunks {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.ahead.take()?;
        if chunk.is_ok() {
            self.ahead = self.feed.next().transpose();
        }
        Some(chunk)
    }
}
