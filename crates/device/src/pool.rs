//! A pool of buffers in size classes, with a limit and figures. Knows nothing of any one API: `B` is the backend's raw buffer. Every backend's `memory`
//! allocates through it. Dropping a buffer returns it to its class; nothing is given back to the system until memory is short or `trim` is called. A reused
//! buffer has stale contents: who asks for zeros clears it. Creation happens outside the lock and may be dropped at any await.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Bytes, Error, Result};
use cantus_base::listed::Listed;

/// Figures of a device's memory, in bytes and counts since the device was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryFigures {
    /// Held by live tensors and work in flight.
    pub in_use: u64,
    /// Kept for reuse.
    pub pooled: u64,
    /// The largest sum of both so far.
    pub peak: u64,
    /// Allocations from the system.
    pub allocations: u64,
    /// Allocations served from the pool.
    pub reuses: u64,
    /// The limit, if one is set.
    pub limit: Option<u64>,
}

/// Keeps raw buffers for reuse, by size class.
#[derive(Debug)]
pub struct Pool<B> {
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    /// Free buffers by class, in a list: classes are few, and a tree would be compiled for each backend.
    free: Vec<(u64, Vec<B>)>,
    figures: MemoryFigures,
}

/// The result of [`Pool::take`].
#[derive(Debug)]
pub enum Taken<B> {
    /// A buffer that was used before: its contents are stale.
    Reused(B),
    /// The caller must allocate this many bytes, and call [`Pool::fail`] if it cannot.
    Fresh,
}

/// The result of [`Pool::request`].
#[derive(Debug)]
pub struct Request<B> {
    /// The size class: a buffer of this many bytes must be created.
    pub class: u64,
    /// A buffer for reuse, if there is one.
    pub taken: Taken<B>,
    /// Buffers that the caller must destroy.
    pub given_up: Vec<B>,
}

/// Takes back what was counted for a buffer that was not made: also when the future that makes it is dropped.
struct Counted<'a, B> {
    pool: &'a Pool<B>,
    class: u64,
    made: bool,
}

impl<B> Drop for Counted<'_, B> {
    fn drop(&mut self) {
        if !self.made {
            self.pool.fail(self.class);
        }
    }
}

impl<B> Request<B> {
    /// Returns the pooled buffer, or one from `make`. If that lacks memory, it is called again after `make_room`, and then once more with `true` as a
    /// last resort, to allow other kinds of memory.
    ///
    /// # Errors
    /// Those of `make`.
    pub async fn buffer<E>(
        self,
        pool: &Pool<B>,
        mut make: impl FnMut(bool) -> Result<B, E>,
        lacks_memory: impl Fn(&E) -> bool,
        make_room: impl Future<Output = ()>,
    ) -> Result<B, E> {
        let Self { class, taken, given_up } = self;
        drop(given_up);
        if let Taken::Reused(buffer) = taken {
            return Ok(buffer);
        }
        let mut counted = Counted { pool, class, made: false };
        let mut made = make(false);
        if made.as_ref().is_err_and(&lacks_memory) {
            make_room.await;
            made = make(false);
        }
        if made.as_ref().is_err_and(&lacks_memory) {
            made = make(true);
        }
        counted.made = made.is_ok();
        made
    }
}

impl<B> Pool<B> {
    /// Creates an empty pool.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        let figures = MemoryFigures { limit, ..MemoryFigures::default() };
        Self { state: Mutex::new(State { free: Vec::new(), figures }) }
    }

    /// Returns the size class of a request: at most an eighth more than asked for (and a multiple of 256).
    #[must_use]
    pub fn class(bytes: u64) -> u64 {
        let step = (bytes.max(1).next_power_of_two() / 16).max(256);
        bytes.max(1).div_ceil(step).saturating_mul(step)
    }

    /// Takes memory for a buffer of a device whose largest buffer has `largest` bytes.
    ///
    /// # Errors
    /// [`Error::Shape`] for no bytes, [`Error::OutOfMemory`] for more than the device allows, else as [`Pool::take`].
    pub fn request(&self, device: &str, bytes: u64, largest: u64, what: &str) -> Result<Request<B>> {
        if bytes == 0 {
            return Err(Error::shape(what, "a buffer cannot be empty"));
        }
        if bytes > largest {
            let what = format!("{what} (one buffer there holds at most {})", Bytes(largest));
            return Err(Error::OutOfMemory { device: device.to_owned(), what, bytes });
        }
        let class = Self::class(bytes).min(largest);
        let (taken, given_up) = self.take(class, what)?;
        Ok(Request { class, taken, given_up })
    }

    /// Reserves a buffer of class `class`. Before the limit is reported, pooled buffers are released: they are returned in the second value, for the
    /// caller to destroy.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] if the limit would be exceeded even with an empty pool.
    pub fn take(&self, class: u64, what: &str) -> Result<(Taken<B>, Vec<B>)> {
        let mut state = self.lock();
        if let Ok(at) = state.place(class)
            && let Some(buffer) = state.free[at].1.pop()
        {
            // Its place stays: the next one of the class comes soon.
            state.figures.pooled -= class;
            state.figures.in_use += class;
            state.figures.reuses += 1;
            return Ok((Taken::Reused(buffer), Vec::new()));
        }
        let mut given_up = Vec::new();
        if let Some(limit) = state.figures.limit {
            let in_use = state.figures.in_use;
            if in_use.saturating_add(class) > limit {
                return Err(Error::MemoryLimit { what: what.to_owned(), requested: class, in_use, limit });
            }
            while in_use + state.figures.pooled + class > limit {
                let Some(buffer) = state.pop_largest() else { break };
                given_up.push(buffer);
            }
        }
        state.figures.in_use += class;
        state.figures.allocations += 1;
        state.figures.peak = state.figures.peak.max(state.figures.in_use + state.figures.pooled);
        Ok((Taken::Fresh, given_up))
    }

    /// Undoes a [`Taken::Fresh`] whose allocation failed.
    pub fn fail(&self, class: u64) {
        let mut state = self.lock();
        state.figures.in_use = state.figures.in_use.saturating_sub(class);
        state.figures.allocations = state.figures.allocations.saturating_sub(1);
    }

    /// Takes a buffer back.
    pub fn give(&self, class: u64, buffer: B) {
        let mut state = self.lock();
        state.figures.in_use = state.figures.in_use.saturating_sub(class);
        state.figures.pooled += class;
        match state.place(class) {
            Ok(at) => state.free[at].1.push(buffer),
            Err(at) => state.free.insert(at, (class, vec![buffer])),
        }
    }

    /// Empties the pool; the caller destroys what it returns.
    #[must_use]
    pub fn drain(&self) -> Vec<B> {
        let mut state = self.lock();
        state.figures.pooled = 0;
        std::mem::take(&mut state.free).into_iter().flat_map(|(_, buffers)| buffers).listed()
    }

    /// Returns the figures now.
    #[must_use]
    pub fn figures(&self) -> MemoryFigures {
        self.lock().figures
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> State<B> {
    /// Returns the index of a class's buffers, or the index at which to insert them.
    fn place(&self, class: u64) -> Result<usize, usize> {
        self.free.binary_search_by_key(&class, |(class, _)| *class)
    }

    fn pop_largest(&mut self) -> Option<B> {
        loop {
            let (class, buffers) = self.free.last_mut()?;
            let Some(buffer) = buffers.pop() else {
                self.free.pop();
                continue;
            };
            let class = *class;
            self.figures.pooled = self.figures.pooled.saturating_sub(class);
            return Some(buffer);
        }
    }
}
