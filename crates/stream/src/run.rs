//! The loop of a stream: chunks in, work recorded, results taken by a thread of their own, checkpoints between. All consuming methods of `Stream` end in
//! `run` with a `State`. Errors of the results' thread win over those of recording, which may only be their consequence. The last checkpoint is written
//! before outputs take their names.

use std::sync::mpsc::sync_channel;

use super::checkpoint::{Checkpoint, Identity};
use super::feed::{Chunk, Digests, Feed, no_thread};
use super::sink::{Rows, Sink};
use super::{Progress, Stream};
use crate::engine::{HostView, Tensor};
use crate::error::{Error, Result};
use crate::ops::Expr;
use cantus_base::listed::Listed;

/// A receiver of results whose state can be kept between runs.
pub(super) trait State: Send {
    /// Takes what was made of a chunk.
    fn take(&mut self, done: &Done) -> Result<()>;

    /// Returns the state to keep, after everything taken so far is where it survives a loss of power.
    fn save(&mut self) -> Result<Vec<u8>>;

    /// Goes on from what [`State::save`] gave, or anew.
    fn load(&mut self, saved: Option<&[u8]>) -> Result<()>;

    /// All chunks were taken.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A state of plain numbers.
pub(super) fn packed(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(|error| damaged(&error.to_string()))
}

/// Unpacks the bytes of [`packed`].
pub(super) fn unpacked<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| damaged(&error.to_string()))
}

pub(super) fn damaged(reason: &str) -> Error {
    Error::file("the checkpoint", format!("it is damaged: {reason} (remove it to start again)"))
}

/// The result of a chunk.
pub(super) struct Done {
    pub(super) outputs: Vec<Tensor>,
    /// The value for the next chunk.
    carry: Option<Tensor>,
    pub(super) first: u64,
    pub(super) rows: usize,
    /// Of all rows so far.
    digests: Digests,
}

/// The contents of a tensor on the host: where it lies, or copied.
pub(super) enum Contents {
    There(HostView),
    Copied(Vec<u8>),
}

impl Contents {
    pub(super) fn of(tensor: &Tensor) -> Result<Self> {
        Ok(match tensor.host_view()? {
            Some(view) => Self::There(view),
            None => Self::Copied(tensor.to_bytes()?),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: the view keeps the memory, and nothing that writes it is recorded while the results are read.
            Self::There(view) => unsafe { std::slice::from_raw_parts(view.as_ptr(), view.bytes()) },
            Self::Copied(bytes) => bytes,
        }
    }
}

impl Stream {
    /// Runs `work` on each chunk, with what it carried from the one before, and hands its results to `state`. `what` tells the work from
    /// others, for checkpoints. Returns what was carried last.
    pub(super) fn run(
        self,
        what: &str,
        carry: Option<Tensor>,
        mut work: impl FnMut(&Chunk, Option<&Tensor>) -> Result<(Vec<Tensor>, Option<Tensor>)>,
        state: &mut impl State,
    ) -> Result<Option<Tensor>> {
        let Self { engine, sources, mut cut, checkpoint, name, mut progress } = self;
        let mut carry = carry;
        let mut checkpoint = checkpoint.map(Checkpoint::new).transpose()?;
        let saved = checkpoint.as_ref().map(Checkpoint::load).transpose()?.flatten();
        if checkpoint.is_some() {
            cut.digests = Some(saved.as_ref().map(|saved| saved.digests.clone()).unwrap_or_default());
        }
        if let Some(saved) = &saved {
            cut.first = saved.next;
            // On another device, or with another limit, chunks would be others.
            cut.rows = cut.rows.or(usize::try_from(saved.identity.chunk_rows).ok());
        }
        // Without a checkpoint nobody asks, and files are not digested.
        let identified = sources.iter().filter(|_| checkpoint.is_some());
        let names: Vec<String> = identified.map(|source| source.identity()).try_listed()?;
        let mut feed = Feed::new(&engine, sources, &cut)?;
        let identity = Identity {
            sources: names.join(", "),
            work: format!("{what} {name}"),
            overlap: (cut.before as u64, cut.after as u64),
            chunk_rows: feed.chunk_rows as u64,
        };
        if let Some(checkpoint) = &checkpoint {
            if let Some(saved) = &saved {
                checkpoint.compare(&saved.identity, &identity)?;
            }
            state.load(saved.as_ref().map(|saved| saved.state.as_slice()))?;
            if let (Some(like), Some(bytes)) = (&carry, saved.as_ref().and_then(|saved| saved.carry.as_ref())) {
                carry = Some(checkpoint.restore(&engine, like, bytes)?);
            }
        }
        let (of, row_bytes) = (feed.rows, feed.row_bytes as u64);
        let (send, results) = sync_channel::<Done>(1);
        let take = |checkpoint: &mut Option<Checkpoint>, state: &mut dyn State| -> Result<()> {
            for done in results {
                let span = engine.span();
                state.take(&done)?;
                span.end("stream: write", done.rows as u64 * row_bytes);
                let rows = done.first + done.rows as u64;
                if let Some(checkpoint) = checkpoint.as_mut().filter(|checkpoint| checkpoint.is_due()) {
                    checkpoint.save(&identity, (rows, done.digests), state.save()?, done.carry.as_ref())?;
                }
                if let Some(progress) = &mut progress {
                    progress(Progress { rows, of, bytes: rows.saturating_mul(row_bytes) });
                }
            }
            Ok(())
        };
        let (recorded, taken) = std::thread::scope(|scope| {
            let taker = std::thread::Builder::new().name("cantus stream results".to_owned());
            let taker = match taker.spawn_scoped(scope, || take(&mut checkpoint, state)) {
                Ok(taker) => taker,
                Err(error) => return (Err(no_thread(&error)), Ok(())),
            };
            let recorded = (|| -> Result<()> {
                while let Some(chunk) = feed.next()? {
                    let (outputs, next) = work(&chunk, carry.as_ref())?;
                    engine.flush();
                    let (first, rows) = (chunk.first_row(), chunk.rows());
                    let done = Done { outputs, carry: next.clone(), first, rows, digests: feed.digests().clone() };
                    carry = next.or(carry.take());
                    // Nobody takes it: the results' thread ended, with the error that counts.
                    if send.send(done).is_err() {
                        break;
                    }
                }
                Ok(())
            })();
            drop(send);
            (recorded, taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        taken?;
        recorded?;
        // Killed between the next two, a run finds that all is done.
        if let Some(checkpoint) = &mut checkpoint {
            let place = (feed.done(), feed.digests().clone());
            checkpoint.save(&identity, place, state.save()?, carry.as_ref())?;
        }
        state.end()?;
        if let Some(checkpoint) = checkpoint {
            checkpoint.remove();
        }
        Ok(carry)
    }

    /// Refuses a checkpoint of work that is the app's own and has no name: nothing else tells it from other work.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] with the remedy.
    pub(super) fn is_named(&self, what: &str) -> Result<()> {
        match &self.checkpoint {
            Some((path, _)) if self.name.is_empty() => Err(Error::file(
                format!("the checkpoint {}", path.display()),
                format!(
                    "{what} calls the app's own function, which has no name to know it by (give the work a name that says its settings: \
                     Stream::named, in Python name=)"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Hands the rows that `work` makes to sinks, one for each of its results.
    pub(super) fn into_sinks(
        self,
        what: &str,
        carry: Option<Tensor>,
        mut work: impl FnMut(&Chunk, Option<&Tensor>) -> Result<(Vec<Expr>, Option<Tensor>)>,
        sinks: Vec<Box<dyn Sink + '_>>,
    ) -> Result<()> {
        self.is_named(what)?;
        let count = sinks.len();
        let work = |chunk: &Chunk, carry: Option<&Tensor>| {
            let (results, carry) = work(chunk, carry)?;
            if results.len() != count {
                return Err(Error::shape(
                    "a stream's work",
                    format!("it made {} results for {count} sinks", results.len()),
                ));
            }
            let rows = results.iter().map(|rows| core(rows, chunk)?.eval()).try_listed()?;
            Ok((rows, carry))
        };
        self.run(what, carry, work, &mut Sinking { sinks, rows: 0 })?;
        Ok(())
    }
}

/// The rows of the chunk, without those that overlap.
fn core(rows: &Expr, chunk: &Chunk) -> Result<Expr> {
    let shape = rows.shape()?;
    let all = chunk.before() + chunk.rows() + chunk.after();
    let wrong =
        |found: String| Error::shape("a stream's work", format!("it made {found} of a chunk of {} rows", chunk.rows()));
    match shape.split_first() {
        Some((&length, _)) if length == chunk.rows() => Ok(rows.clone()),
        Some((&length, row)) if length == all => {
            let core = chunk.before()..chunk.before() + chunk.rows();
            let ranges: Vec<_> = std::iter::once(core).chain(row.iter().map(|&side| 0..side)).listed();
            Ok(rows.slice(&ranges))
        }
        Some((length, _)) => Err(wrong(format!("{length} rows"))),
        None => Err(wrong("a single value".to_owned())),
    }
}

/// The rows go to sinks.
struct Sinking<'a> {
    sinks: Vec<Box<dyn Sink + 'a>>,
    rows: u64,
}

impl Sinking<'_> {
    fn marks(&mut self) -> Result<Vec<u64>> {
        self.sinks.iter_mut().map(|sink| sink.mark()).try_listed()
    }
}

impl State for Sinking<'_> {
    fn take(&mut self, done: &Done) -> Result<()> {
        for (output, sink) in done.outputs.iter().zip(&mut self.sinks) {
            let contents = Contents::of(output)?;
            let row = output.shape().get(1..).unwrap_or_default();
            let rows =
                Rows { first: done.first, count: done.rows, dtype: output.dtype(), row, bytes: contents.bytes() };
            sink.write(rows)?;
        }
        self.rows += done.rows as u64;
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        self.sinks.iter_mut().try_for_each(|sink| sink.settle())?;
        packed(&(self.rows, self.marks()?))
    }

    fn load(&mut self, saved: Option<&[u8]>) -> Result<()> {
        let (rows, marks): (u64, Option<Vec<u64>>) =
            saved.map(unpacked).transpose()?.map_or((0, None), |(rows, marks)| (rows, Some(marks)));
        self.rows = rows;
        self.sinks.iter_mut().try_for_each(|sink| sink.resume(rows))?;
        match marks {
            Some(marks) if marks != self.marks()? => Err(damaged("the rows written so far are not those of that run")),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.sinks.iter_mut().try_for_each(|sink| sink.end())
    }
}
