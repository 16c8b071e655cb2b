//! Counts and times per operation and device.

use cantus_base::listed::{Listed, Ordered};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

/// One operation on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricRow {
    /// The kernel's name or the dispatch's label.
    pub operation: String,
    /// The device.
    pub device: String,
    /// Dispatches recorded.
    pub count: u64,
    /// Dispatches timed by the device's own clock (all on the CPU; on a GPU with profiling on and timestamps).
    pub timed: u64,
    /// Sum of those times.
    pub total: Duration,
    /// The last of those times.
    pub last: Duration,
    /// Bytes bound, over all dispatches: what one pass over every binding moves.
    pub bytes: u64,
    /// Dispatches that came here because another device failed.
    pub fallbacks: u64,
}

#[derive(Default)]
pub(crate) struct Metrics {
    rows: Mutex<Rows>,
}

/// Rows by operation, one for each device.
type Rows = FxHashMap<Arc<str>, Vec<MetricRow>>;

impl Metrics {
    pub(crate) fn dispatch(&self, operation: &Arc<str>, device: &Arc<str>, bytes: u64, fell_back: bool) {
        let mut rows = self.lock();
        let row = row(&mut rows, operation, device);
        row.count += 1;
        row.bytes = row.bytes.saturating_add(bytes);
        row.fallbacks += u64::from(fell_back);
    }

    pub(crate) fn time(&self, operation: &Arc<str>, device: &Arc<str>, time: Duration) {
        let mut rows = self.lock();
        let row = row(&mut rows, operation, device);
        row.timed += 1;
        row.total += time;
        row.last = time;
    }

    pub(crate) fn rows(&self) -> Vec<MetricRow> {
        let mut list: Vec<MetricRow> = self.lock().values().flatten().cloned().listed();
        list.order_by(|a, b| (&a.operation, &a.device).cmp(&(&b.operation, &b.device)));
        list
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn row<'a>(rows: &'a mut Rows, operation: &Arc<str>, device: &Arc<str>) -> &'a mut MetricRow {
    let rows = rows.entry(operation.clone()).or_default();
    let place = rows.iter().position(|row| *row.device == **device).unwrap_or(rows.len());
    if place == rows.len() {
        rows.push(MetricRow {
            operation: operation.to_string(),
            device: device.to_string(),
            count: 0,
            timed: 0,
            total: Duration::ZERO,
            last: Duration::ZERO,
            bytes: 0,
            fallbacks: 0,
        });
    }
    &mut rows[place]
}
