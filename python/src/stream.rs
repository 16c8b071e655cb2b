//! Data larger than memory: streams over `.npy` files and Python's iterators.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cantus::ops::Expr;
use cantus::stream::{Chunk, Chunks, Npy, NpyFile, Source};
use cantus::{DType, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Lazy;
use crate::engine::{Engine, dtype};
use crate::errors::{exception, guarded};

/// The longest wait before a look for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// Why a stream ended: an interrupt, or what Python raised on another thread.
#[derive(Clone, Default)]
struct End {
    stop: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl End {
    /// Keeps what Python raised; the error that ends the stream.
    fn raise(&self, error: PyErr) -> Error {
        let text = error.to_string();
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        Error::invalid("a stream", text)
    }

    fn check(&self) -> cantus::Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Cancelled { what: "a stream".to_owned() }) } else { Ok(()) }
    }

    /// Returns the exception to raise for an error.
    fn exception(&self, error: Error) -> PyErr {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(|| exception(error))
    }
}

/// A source that ends when the user interrupts it.
struct Ending<S> {
    source: S,
    end: End,
}

impl<S: Source> Source for Ending<S> {
    fn dtype(&self) -> DType {
        self.source.dtype()
    }

    fn row(&self) -> &[usize] {
        self.source.row()
    }

    fn rows(&self) -> Option<u64> {
        self.source.rows()
    }

    fn read(&mut self, into: &mut [u8]) -> cantus::Result<u64> {
        self.end.check()?;
        self.source.read(into)
    }

    fn skip(&mut self, rows: u64) -> cantus::Result<bool> {
        self.source.skip(rows)
    }

    fn name(&self) -> String {
        self.source.name()
    }

    fn identity(&self) -> cantus::Result<String> {
        self.source.identity()
    }
}

/// Rows that a Python iterator gives as bytes.
struct Items {
    items: Py<PyAny>,
    dtype: DType,
    row: Vec<usize>,
    begun: Py<PyBytes>,
    read: usize,
    end: End,
}

impl Source for Items {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn row(&self) -> &[usize] {
        &self.row
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, into: &mut [u8]) -> cantus::Result<u64> {
        let row = self.row.iter().product::<usize>() * self.dtype.bytes();
        let held = Python::attach(|py| -> PyResult<usize> {
            let mut held = 0;
            while held < into.len() {
                let rest = self.begun.as_bytes(py).get(self.read..).unwrap_or_default();
                if rest.is_empty() {
                    match self.items.bind(py).try_iter()?.next() {
                        Some(item) => (self.begun, self.read) = (item?.extract()?, 0),
                        None => break,
                    }
                    continue;
                }
                let bytes = rest.len().min(into.len() - held);
                into[held..held + bytes].copy_from_slice(&rest[..bytes]);
                held += bytes;
                self.read += bytes;
            }
            Ok(held)
        });
        Ok((held.map_err(|error| self.end.raise(error))? / row.max(1)) as u64)
    }

    fn name(&self) -> String {
        "the iterable".to_owned()
    }
}

/// A stream, before anything took its rows, or its chunks.
enum State {
    Fresh(cantus::stream::Stream),
    Chunks(Chunks),
    Taken,
}

/// The first row, how many, how many of the chunks before and after, and the arrays.
type Next = (u64, usize, usize, usize, Vec<Lazy>);

/// Rows to be computed with, chunk by chunk.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Stream {
    engine: cantus::Engine,
    state: Mutex<State>,
    end: End,
}

impl Stream {
    fn take(&self) -> PyResult<cantus::stream::Stream> {
        match std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Taken) {
            State::Fresh(stream) => Ok(stream),
            _ => Err(PyRuntimeError::new_err("the stream was consumed already: create another one")),
        }
    }

    /// Does the work on another thread, so that Ctrl-C is seen meanwhile.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> cantus::Result<T> + Send) -> PyResult<T> {
        guarded(|| self.watched(py, work))
    }

    fn watched<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> cantus::Result<T> + Send) -> PyResult<T> {
        let (result, interrupt) = py.detach(|| {
            std::thread::scope(|scope| {
                let caller = std::thread::current();
                let worker = scope.spawn(move || {
                    let result = work();
                    caller.unpark();
                    result
                });
                let mut interrupt = None;
                while !worker.is_finished() {
                    std::thread::park_timeout(LOOK);
                    if interrupt.is_none()
                        && let Err(error) = Python::attach(|py| py.check_signals())
                    {
                        self.end.stop.store(true, Ordering::Relaxed);
                        interrupt = Some(error);
                    }
                }
                (worker.join(), interrupt)
            })
        });
        match (interrupt, result) {
            (Some(interrupt), _) => Err(interrupt),
            (None, Ok(result)) => result.map_err(|error| self.end.exception(error)),
            (None, Err(panic)) => std::panic::resume_unwind(panic),
        }
    }

    fn arrays(&self, chunk: &Chunk) -> PyResult<(u64, usize, usize, usize, Vec<Lazy>)> {
        let arrays = chunk.tensors().iter().map(|tensor| Lazy::new(self.engine.clone(), Expr::from(tensor)));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        Ok((chunk.first_row(), chunk.rows(), chunk.before(), chunk.after(), arrays))
    }
}

/// A `.npy` file's path, or an iterator of bytes with their dtype and the shape of a row.
#[derive(FromPyObject)]
enum Given {
    Path(PathBuf),
    Items(Py<PyAny>, String, Vec<usize>),
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (engine, sources, memory, chunk_rows, overlap, checkpoint, name))]
    #[expect(clippy::too_many_arguments, reason = "one for each of Python's keywords")]
    fn new(
        py: Python<'_>,
        engine: &Engine,
        sources: Vec<Given>,
        memory: Option<u64>,
        chunk_rows: Option<usize>,
        overlap: (usize, usize),
        checkpoint: Option<PathBuf>,
        name: Option<String>,
    ) -> PyResult<Self> {
        let engine = engine.checked()?.clone();
        let end = End::default();
        let mut stream: Option<cantus::stream::Stream> = None;
        for source in sources {
            let source: Box<dyn Source> = match source {
                Given::Path(path) => {
                    let source = Npy::open(path).map_err(exception)?;
                    Box::new(Ending { source, end: end.clone() })
                }
                Given::Items(items, name, row) => {
                    let begun = PyBytes::new(py, &[]).unbind();
                    let items = Items { items, dtype: dtype(&name)?, row, begun, read: 0, end: end.clone() };
                    Box::new(Ending { source: items, end: end.clone() })
                }
            };
            stream = Some(match stream {
                Some(stream) => stream.with(source),
                None => cantus::stream::Stream::new(&engine, source),
            });
        }
        let Some(mut stream) = stream else {
            return Err(pyo3::exceptions::PyTypeError::new_err("a stream needs at least one source"));
        };
        stream = stream.overlap(overlap.0, overlap.1);
        if let Some(memory) = memory {
            stream = stream.memory(memory);
        }
        if let Some(rows) = chunk_rows {
            stream = stream.chunk_rows(rows);
        }
        if let Some(checkpoint) = checkpoint {
            stream = stream.checkpoint(checkpoint);
        }
        if let Some(name) = name {
            stream = stream.named(name);
        }
        Ok(Self { engine, state: Mutex::new(State::Fresh(stream)), end })
    }

    /// The next chunk.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Next>> {
        let next = self.run(py, || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let State::Fresh(_) = &*state
                && let State::Fresh(stream) = std::mem::replace(&mut *state, State::Taken)
            {
                *state = State::Chunks(stream.chunks()?);
            }
            match &mut *state {
                State::Chunks(chunks) => chunks.next().transpose(),
                _ => Ok(None),
            }
        })?;
        next.map(|chunk| self.arrays(&chunk)).transpose()
    }

    /// Returns the number of elements, their sum, mean, variance, minimum and maximum.
    fn summary(&self, py: Python<'_>) -> PyResult<(u64, f64, f64, f64, f64, f64)> {
        let stream = self.take()?;
        let found = self.run(py, || stream.summary())?;
        Ok((found.count, found.sum, found.mean, found.variance, found.min, found.max))
    }

    /// One of "sum", "mean", "min" and "max" alone.
    fn measure(&self, py: Python<'_>, name: &str) -> PyResult<f64> {
        let stream = self.take()?;
        self.run(py, || match name {
            "sum" => stream.sum(),
            "mean" => stream.mean(),
            "min" => stream.min(),
            _ => stream.max(),
        })
    }

    fn histogram(&self, py: Python<'_>, bins: usize, low: f64, high: f64) -> PyResult<Vec<u64>> {
        let stream = self.take()?;
        self.run(py, || stream.histogram(bins, low, high))
    }

    /// Writes what `work` makes of each chunk to a `.npy` file. It is called with what [`Stream::next`] returns, and returns an array.
    fn map(&self, py: Python<'_>, work: Py<PyAny>, path: PathBuf) -> PyResult<()> {
        let stream = self.take()?;
        self.run(py, || {
            let work = |chunk: &Chunk| {
                self.end.check()?;
                let made = Python::attach(|py| {
                    let result = work.call1(py, self.arrays(chunk)?)?;
                    result.bind(py).cast::<Lazy>()?.get().sound_expr(py)
                });
                made.map_err(|error| self.end.raise(error))
            };
            stream.map(work, NpyFile::new(path))
        })
    }

    /// Writes the elements in ascending order to a `.npy` file.
    fn sort(&self, py: Python<'_>, folder: PathBuf, path: PathBuf) -> PyResult<()> {
        let stream = self.take()?;
        self.run(py, || stream.sort(&folder, NpyFile::new(path)))
    }
}
