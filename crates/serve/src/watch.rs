//! Figures of the machine, for `/v1/monitor`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cantus_monitor::{Monitor, Sources};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A look at the machine.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Watched {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Devices: `name`, `source`, `pci`, and figures as objects of `value` and `reason`.
    #[schema(value_type = Vec<Object>)]
    pub devices: Vec<Value>,
    /// Engines: process, program, devices with queues and pools, kernels, counts, `dispatches_per_second`.
    #[schema(value_type = Vec<Object>)]
    pub engines: Vec<Value>,
    /// The sources that could not be read, and why.
    pub remarks: Vec<String>,
}

/// The monitor, opened at the first look, with the last look and its time.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Option<(Monitor, Instant, Watched)>>);

/// However many ask: devices are not looked at more often.
const PERIOD: Duration = Duration::from_secs(1);

impl Watch {
    /// Looks, or gives what was seen less than a second ago. It may wait for drivers.
    #[expect(clippy::disallowed_methods, reason = "its caller has a thread for it")]
    pub fn look(&self) -> Watched {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let monitor = match state.take() {
            Some((monitor, then, watched)) if then.elapsed() < PERIOD => {
                *state = Some((monitor, then, watched.clone()));
                return watched;
            }
            Some((monitor, ..)) => monitor,
            None => {
                let mut monitor = Monitor::new(Sources { vulkan: false, ..Sources::default() });
                // Rates take two looks.
                monitor.sample();
                std::thread::sleep(Duration::from_millis(250));
                monitor
            }
        };
        let mut monitor = monitor;
        let watched = seen(&mut monitor);
        *state = Some((monitor, Instant::now(), watched.clone()));
        watched
    }
}

fn seen(monitor: &mut Monitor) -> Watched {
    let mut sample = monitor.sample();
    for figures in sample.engines.iter_mut().map(|engine| &mut engine.figures) {
        // What drivers and the system said stays on the machine.
        figures.events.clear();
        for lost in figures.devices.iter_mut().filter_map(|device| device.lost.as_mut()) {
            "the device is lost".clone_into(lost);
        }
    }
    let value = |value: Result<Value, serde_json::Error>| value.unwrap_or_default();
    Watched {
        time_ms: sample.time_ms,
        devices: sample.devices.iter().map(|device| value(serde_json::to_value(device))).collect(),
        engines: sample.engines.iter().map(|engine| value(serde_json::to_value(engine))).collect(),
        remarks: sample.remarks,
    }
}
