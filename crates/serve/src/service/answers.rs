//! Results that are being answered. Each is held once, and counts to the key that computed it until the last of its readers has it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::body::Bytes;

use crate::problem::Problem;
use crate::share::{Part, Shares, Short};

/// A result in memory.
#[derive(Debug)]
struct Whole {
    bytes: Vec<u8>,
    /// Frees its share when it is dropped.
    _part: Part,
}

/// A result in memory, for one of its readers.
#[derive(Debug, Clone)]
pub struct Held(Arc<Whole>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl From<Held> for Bytes {
    fn from(held: Held) -> Self {
        Self::from_owner(held)
    }
}

/// The results that are held.
#[derive(Debug)]
pub(super) struct Answers {
    shares: Arc<Shares>,
    /// Those of jobs, which several may read.
    jobs: Mutex<HashMap<String, Weak<Whole>>>,
}

impl Answers {
    pub fn new(shares: Shares) -> Self {
        Self { shares: Arc::new(shares), jobs: Mutex::default() }
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
        Held(Arc::new(Whole { bytes, _part: part }))
    }

    /// A job's result, if somebody reads it.
    pub fn read(&self, id: &str) -> Option<Held> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).get(id).and_then(Weak::upgrade).map(Held)
    }

    /// Holds a job's result for all who read it.
    pub fn share(&self, id: &str, held: Held) -> Held {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|_, held| held.strong_count() > 0);
        if let Some(first) = jobs.get(id).and_then(Weak::upgrade) {
            return Held(first);
        }
        jobs.insert(id.to_owned(), Arc::downgrade(&held.0));
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Bound;

    #[test]
    fn a_result_counts_once_however_many_read_it() {
        let answers = Answers::new(Shares::new(Bound { most: 100, share: 50 }));
        let owner = Arc::<str>::from("a");
        let load = || answers.share("job", Answers::hold(answers.part(&owner, 40).unwrap(), vec![1; 40]));
        let readers: Vec<Bytes> =
            std::iter::repeat_with(|| answers.read("job").unwrap_or_else(load).into()).take(20).collect();
        assert_eq!(answers.shares.held(), 40);
        // A second one exceeds the key's half of what it holds plus what is free; another key has room.
        assert_eq!(answers.part(&owner, 30).unwrap_err().status, 429);
        assert!(answers.part(&"b".into(), 30).is_ok());
        assert_eq!(answers.part(&"b".into(), 101).unwrap_err().status, 413);
        let last = readers[0].slice(39..);
        drop(readers);
        assert_eq!(answers.shares.held(), 40);
        drop(last);
        assert_eq!((answers.shares.held(), answers.read("job").is_none()), (0, true));
    }
}
