//! Sets of queries: words that the queue's thread writes.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wgpu_hal::QUERY_SIZE;

use crate::memory::Memory;

/// A set of queries.
#[derive(Debug, Clone)]
pub struct QuerySet {
    values: Arc<Mutex<Vec<u64>>>,
}

impl QuerySet {
    pub(crate) fn new(count: u32) -> Self {
        Self { values: Arc::new(Mutex::new(vec![0; count as usize])) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one.
    pub(crate) fn set(&self, index: u32, value: u64) -> Option<()> {
        *self.lock().get_mut(index as usize)? = value;
        Some(())
    }

    /// Sets some to zero.
    pub(crate) fn reset(&self, range: &Range<u32>) -> Option<()> {
        self.lock().get_mut(range.start as usize..range.end as usize)?.fill(0);
        Some(())
    }

    /// Copies some to memory.
    pub(crate) fn copy(&self, range: &Range<u32>, memory: &Memory, offset: u64, stride: u64) -> Option<()> {
        let values = self.lock();
        let values = values.get(range.start as usize..range.end as usize)?;
        let stride = stride.max(QUERY_SIZE);
        (0..).zip(values).try_for_each(|(place, value)| memory.write(offset + place * stride, &value.to_ne_bytes()))
    }
}
