//! Device times by timestamp queries: two around each dispatch, in a pass of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::shared::Shared;
use crate::backend::KernelTime;
use cantus_base::listed::Listed;

/// The times of one submission.
pub(super) struct Timer {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
    labels: Vec<Arc<str>>,
    /// Nanoseconds of a tick.
    period: f64,
    most: usize,
}

impl Timer {
    /// Dispatches that one timer measures at most (a query set holds 4,096 queries).
    pub(super) const MOST: usize = 2048;

    /// A timer for this many dispatches; `None` where the device has no timestamps.
    pub(super) fn new(shared: &Shared, dispatches: usize) -> Option<Self> {
        if !shared.info.capabilities.timestamps {
            return None;
        }
        let most = dispatches.min(Self::MOST);
        let count = u32::try_from(most * 2).ok()?;
        let bytes = u64::from(count) * 8;
        let buffer = |label, usage| {
            let descriptor =
                wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: false };
            shared.device.create_buffer(&descriptor)
        };
        let queries = shared.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("cantus timestamps"),
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        Some(Self {
            queries,
            resolved: buffer("cantus timestamps", wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            staging: buffer("cantus times", wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            labels: Vec::with_capacity(most),
            period: f64::from(shared.queue.get_timestamp_period()),
            most,
        })
    }

    /// The queries around the next dispatch.
    pub(super) fn next(&mut self, label: &Arc<str>) -> wgpu::ComputePassTimestampWrites<'_> {
        let index = self.labels.len().min(self.most.saturating_sub(1));
        self.labels.push(label.clone());
        let first = u32::try_from(index * 2).unwrap_or(0);
        wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        }
    }

    /// Copies the timestamps to where the host can read them.
    pub(super) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.resolve_query_set(&self.queries, 0..self.queries.count(), &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, Some(self.staging.size()));
    }

    /// After the submission: appends the times to `times` once they are there.
    pub(super) fn collect(self, times: &Arc<Mutex<Vec<KernelTime>>>) {
        let Self { staging, labels, period, .. } = self;
        let times = times.clone();
        let mapped = staging.clone();
        staging.map_async(wgpu::MapMode::Read, .., move |result| {
            if result.is_err() {
                return;
            }
            let Ok(view) = mapped.get_mapped_range(..) else { return };
            let ticks: Vec<u64> = view
                .chunks_exact(8)
                .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
                .listed();
            let measured = labels.into_iter().zip(ticks.chunks_exact(2)).map(|(label, pair)| {
                let nanoseconds = pair[1].saturating_sub(pair[0]) as f64 * period;
                KernelTime { label, start: None, time: Duration::from_nanos(nanoseconds as u64) }
            });
            times.lock().unwrap_or_else(PoisonError::into_inner).extend(measured);
        });
    }
}
