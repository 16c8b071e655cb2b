//! The figures that an engine publishes: read twice a second by the publisher's thread.

use std::sync::Arc;

use cantus_publish::{DeviceFigures, EVENTS, Figures, KERNELS, KernelFigures, PublishedEvent};

use super::event::EventKind;
use super::{Shared, Slot};
use cantus_base::listed::{Listed, Ordered};

impl Shared {
    /// Begins to publish.
    pub(super) fn publish(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        if let Some(publisher) = cantus_publish::publish(move || Some(shared.upgrade()?.figures())) {
            drop(self.publisher.set(publisher));
        }
    }

    fn figures(&self) -> Figures {
        let mut rows = self.metric_rows();
        rows.order_by_key(|row| std::cmp::Reverse(row.count));
        let kernels = rows.iter().take(KERNELS).map(|row| {
            let mut kernel = KernelFigures::default();
            (kernel.operation, kernel.device) = (row.operation.clone(), row.device.clone());
            (kernel.count, kernel.timed, kernel.seconds) = (row.count, row.timed, row.total.as_secs_f64());
            kernel
        });
        let events = self.events.list();
        let last = events.iter().skip(events.len().saturating_sub(EVENTS)).map(|event| {
            let mut published = PublishedEvent::default();
            (published.at, published.kind) = (event.at.as_secs_f64(), format!("{:?}", event.kind));
            (published.device, published.message) = (event.device.clone(), event.message.clone());
            published
        });
        let mut figures = Figures::default();
        figures.age = self.events.age().as_secs_f64();
        figures.selected = self.selection.device.name.clone();
        figures.devices = self.open_slots().iter().map(|slot| self.device_figures(slot)).listed();
        figures.kernels = kernels.listed();
        figures.dispatches = rows.iter().map(|row| row.count).sum();
        figures.fallbacks = rows.iter().map(|row| row.fallbacks).sum();
        figures.failures = self.events.total(EventKind::Failed) + self.events.total(EventKind::WrongAnswer);
        figures.losses = self.events.total(EventKind::Lost);
        figures.events = last.listed();
        figures
    }

    fn device_figures(&self, slot: &Slot) -> DeviceFigures {
        let (recorded, in_flight) = slot.queue(&self.events);
        let (info, memory) = (slot.device().info(), slot.device().memory());
        let mut figures = DeviceFigures::default();
        (figures.backend, figures.index, figures.name) = (info.backend.clone(), info.index, info.name.clone());
        (figures.recorded, figures.in_flight) = (recorded as u64, in_flight as u64);
        (figures.in_use, figures.pooled, figures.peak) = (memory.in_use, memory.pooled, memory.peak);
        (figures.limit, figures.lost) = (memory.limit, slot.failure().map(|error| error.to_string()));
        figures
    }
}
