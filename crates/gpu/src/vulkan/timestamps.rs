//! Device times by timestamp queries: two around each dispatch.

use std::sync::Arc;
use std::time::Duration;

use ash::prelude::VkResult;
use ash::vk;

use super::objects::{Owned, Raw};
use crate::backend::KernelTime;
use cantus_base::listed::Listed;

/// The times of one submission.
pub(super) struct Timer {
    raw: Arc<Raw>,
    queries: Owned<vk::QueryPool>,
    labels: Vec<Arc<str>>,
    most: usize,
}

impl Timer {
    /// Dispatches that one timer measures at most.
    pub(super) const MOST: usize = 2048;

    /// A timer for this many dispatches; its queries are reset by `commands`.
    pub(super) fn new(raw: &Arc<Raw>, commands: vk::CommandBuffer, dispatches: usize) -> VkResult<Self> {
        let most = dispatches.min(Self::MOST);
        let count = u32::try_from(most * 2).unwrap_or(0);
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(count);
        // SAFETY: the count is not zero.
        let queries = Owned::new(raw, unsafe { raw.device.create_query_pool(&info, None) }?);
        // SAFETY: the command buffer is being recorded.
        unsafe { raw.device.cmd_reset_query_pool(commands, queries.handle, 0, count) };
        Ok(Self { raw: raw.clone(), queries, labels: Vec::with_capacity(most), most })
    }

    /// Writes the first timestamp of a dispatch.
    pub(super) fn start(&mut self, commands: vk::CommandBuffer, label: &Arc<str>) {
        if self.labels.len() < self.most {
            self.labels.push(label.clone());
            self.stamp(commands, self.labels.len() * 2 - 2);
        }
    }

    /// Writes the second timestamp of the dispatch that was started last.
    pub(super) fn stop(&self, commands: vk::CommandBuffer) {
        self.stamp(commands, self.labels.len() * 2 - 1);
    }

    fn stamp(&self, commands: vk::CommandBuffer, query: usize) {
        let query = u32::try_from(query).unwrap_or(0);
        // SAFETY: the query lies within the pool and was reset by these commands; the family has timestamps.
        unsafe {
            self.raw.device.cmd_write_timestamp(
                commands,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                self.queries.handle,
                query,
            );
        }
    }

    /// The times, once the submission has ended. `period`: nanoseconds of a tick; `bits`: those that count.
    pub(super) fn times(self, period: f64, bits: u32) -> VkResult<Vec<KernelTime>> {
        let mut ticks = vec![0_u64; self.labels.len() * 2];
        if ticks.is_empty() {
            return Ok(Vec::new());
        }
        let device = &self.raw.device;
        // SAFETY: the queries were written by a submission that has ended.
        unsafe { device.get_query_pool_results(self.queries.handle, 0, &mut ticks, vk::QueryResultFlags::TYPE_64) }?;
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let times = self.labels.into_iter().zip(ticks.chunks_exact(2)).map(|(label, pair)| {
            let passed = pair[1].wrapping_sub(pair[0]) & mask;
            KernelTime { label, start: None, time: Duration::from_nanos((passed as f64 * period) as u64) }
        });
        Ok(times.listed())
    }
}
