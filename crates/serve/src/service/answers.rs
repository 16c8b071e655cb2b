//! Results that are being answered: in memory whole if they were just computed, or read from the disk piece by piece. What is held counts to the key
//! that computed it until its reader has it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use tokio::task::JoinHandle;

use crate::priority::blocking;
use crate::problem::Problem;
use crate::share::{Part, Shares, Short};

/// A result in memory. Frees its share when it is dropped.
#[derive(Debug)]
struct Whole(Vec<u8>, #[expect(dead_code, reason = "it is dropped with the bytes")] Part);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A result for its reader: what is in memory, and what comes from the disk behind it.
#[derive(Debug)]
pub struct Held {
    /// The first elements.
    pub first: Bytes,
    /// The others.
    pub rest: Option<Pieces>,
}

/// Reads a piece.
type Read = dyn Fn(usize) -> Result<Option<Vec<u8>>, String> + Send + Sync;

/// The pieces of a result that are not read yet.
pub struct Pieces {
    read: Arc<Read>,
    next: usize,
    left: u64,
    reading: Option<JoinHandle<Result<Option<Vec<u8>>, String>>>,
    /// Counts a piece that is read and one that is being sent.
    _part: Part,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("next", &self.next).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Pieces {
    /// All of a result.
    pub(super) fn new(read: Arc<Read>, bytes: u64, part: Part) -> Self {
        Self { read, next: 0, left: bytes, reading: None, _part: part }
    }

    /// Bytes that are not read yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece; nothing behind the last one.
    ///
    /// # Errors
    /// 404 where it was deleted meanwhile, 503 where the disk does not give it; then there are no more.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Problem>>> {
        if self.left == 0 && self.next > 0 {
            return Poll::Ready(None);
        }
        let number = self.next;
        let reading = self.reading.get_or_insert_with(|| {
            let read = self.read.clone();
            blocking(move || read(number))
        });
        let read = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        self.next += 1;
        let left = std::mem::take(&mut self.left);
        let piece = match read {
            // A piece of nothing is the only one.
            Ok(Ok(Some(bytes))) if bytes.len() as u64 <= left && bytes.is_empty() == (left == 0) => Ok(bytes),
            Ok(Ok(_)) => Err(Problem::not_found("there is no such job")),
            Ok(Err(reason)) => {
                crate::log(&format!("a result could not be read: {reason}"));
                Err(Problem::unavailable("the disk does not give the result now"))
            }
            Err(_) => Err(Problem::internal()),
        };
        Poll::Ready(Some(piece.map(|bytes| {
            self.left = left - bytes.len() as u64;
            bytes.into()
        })))
    }

    /// The first piece, and the others if there are any.
    ///
    /// # Errors
    /// As [`Pieces::poll`].
    pub(super) async fn begin(mut self) -> Result<Held, Problem> {
        let first = std::future::poll_fn(|context| self.poll(context)).await;
        let first = first.unwrap_or_else(|| Err(Problem::internal()))?;
        Ok(Held { first, rest: Some(self).filter(|rest| rest.left > 0) })
    }
}

/// The results that are held.
#[derive(Debug)]
pub(super) struct Answers {
    shares: Arc<Shares>,
}

impl Answers {
    pub fn new(shares: Shares) -> Self {
        Self { shares: Arc::new(shares) }
    }

    /// Refuses a result that can never be answered.
    ///
    /// # Errors
    /// 413.
    pub fn fits(&self, bytes: u64) -> Result<(), Problem> {
        let most = self.shares.most();
        if bytes <= most {
            return Ok(());
        }
        Err(Problem::too_large(format!(
            "the result takes {bytes} bytes; answers have at most {most} here (--queue-bytes)"
        )))
    }

    /// Counts a result to its key.
    ///
    /// # Errors
    /// 413; 429 where too much is being read.
    pub fn part(&self, owner: &Arc<str>, bytes: u64) -> Result<Part, Problem> {
        self.fits(bytes)?;
        let mut part = Part::new(&self.shares, owner);
        part.grow(bytes).map_err(|short| {
            let whose = if short == Short::Own { "of this key " } else { "" };
            Problem::busy(format!("too many bytes of answers {whose}are being read: read them first"), 1)
        })?;
        Ok(part)
    }

    /// Holds a result.
    pub fn hold(part: Part, bytes: Vec<u8>) -> Held {
        Held { first: Bytes::from_owner(Whole(bytes, part)), rest: None }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test takes little")]
mod tests {
    use super::*;
    use crate::share::Bound;

    #[test]
    fn a_result_counts_until_its_last_bytes_are_sent() {
        let answers = Answers::new(Shares::new(Bound { most: 100, share: 50 }));
        let owner = Arc::<str>::from("a");
        let held = Answers::hold(answers.part(&owner, 40).unwrap(), vec![1; 40]);
        assert_eq!(answers.shares.held(), 40);
        // A second one exceeds the key's half of what it holds plus what is free; another key has room.
        assert_eq!(answers.part(&owner, 30).unwrap_err().status, 429);
        assert!(answers.part(&"b".into(), 30).is_ok());
        assert_eq!(answers.part(&"b".into(), 101).unwrap_err().status, 413);
        let last = held.first.slice(39..);
        drop(held);
        assert_eq!(answers.shares.held(), 40);
        drop(last);
        assert_eq!(answers.shares.held(), 0);
    }

    #[test]
    fn pieces_end_with_the_result_or_with_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let answers = Answers::new(Shares::new(Bound { most: 100, share: 100 }));
            let begin = |pieces: &'static [&'static [u8]], bytes| {
                let read = move |number: usize| match pieces.get(number) {
                    Some(&b"broken") => Err("the disk".to_owned()),
                    piece => Ok(piece.map(|piece| piece.to_vec())),
                };
                Pieces::new(Arc::new(read), bytes, answers.part(&"a".into(), 10).unwrap()).begin()
            };
            let mut held = begin(&[b"abc", b"de"], 5).await.unwrap();
            let rest = held.rest.as_mut().unwrap();
            assert_eq!((&held.first[..], rest.left(), answers.shares.held()), (&b"abc"[..], 2, 10));
            let mut next = async || std::future::poll_fn(|context| rest.poll(context)).await;
            assert_eq!(next().await.unwrap().unwrap(), "de");
            assert!(next().await.is_none() && next().await.is_none());
            drop(held);
            assert_eq!(answers.shares.held(), 0);
            assert!(begin(&[b"abc"], 3).await.unwrap().rest.is_none());
            assert!(begin(&[b""], 0).await.unwrap().first.is_empty());
            // Deleted before, deleted meanwhile, broken, and another one than was said.
            let wrong: [(&'static [&'static [u8]], u64, u16); 3] =
                [(&[], 3, 404), (&[b"broken"], 3, 503), (&[b"abcd"], 3, 404)];
            for (pieces, bytes, status) in wrong {
                assert_eq!(begin(pieces, bytes).await.unwrap_err().status, status);
            }
            let mut rest = begin(&[b"abc"], 5).await.unwrap().rest.unwrap();
            let mut next = async || std::future::poll_fn(|context| rest.poll(context)).await;
            assert_eq!(next().await.unwrap().unwrap_err().status, 404);
            assert!(next().await.is_none());
        });
    }
}
