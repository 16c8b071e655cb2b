//! Counters, as Prometheus' text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::job::Job;
use crate::service::{Served, Service};

/// Upper ends of the histogram of answers, in seconds.
const ENDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0];

#[derive(Debug, Default, Clone, Copy)]
struct Times {
    counts: [u64; ENDS.len()],
    count: u64,
    sum: f64,
}

/// The counts.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    times: Mutex<BTreeMap<String, Times>>,
    jobs: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections that were refused.
    pub refused: AtomicU64,
    /// Jobs that were taken up at the start.
    pub resumed: AtomicU64,
    /// Writes that the disk refused.
    pub disk_failures: AtomicU64,
    /// Set if a damaged database was set aside at the start.
    pub set_aside: AtomicU64,
    /// Lines that the access log lost because its file was too slow.
    pub log_lost: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, route: &str, status: u16, time: Duration) {
        *lock(&self.requests).entry((route.to_owned(), status)).or_default() += 1;
        let mut times = lock(&self.times);
        let times = times.entry(route.to_owned()).or_default();
        let seconds = time.as_secs_f64();
        times.count += 1;
        times.sum += seconds;
        for (end, count) in ENDS.iter().zip(&mut times.counts) {
            *count += u64::from(seconds <= *end);
        }
    }

    /// Counts the end of a job.
    pub fn ended(&self, job: &Job) {
        *lock(&self.jobs).entry((job.kind.clone(), job.state.name())).or_default() += 1;
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The figures of a service.
pub fn text(service: &Service) -> String {
    let mut out = String::new();
    let metrics = &service.metrics;
    let head = |out: &mut String, name: &str, kind: &str, about: &str| {
        let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
    };
    head(&mut out, "cantus_requests_total", "counter", "Answers by route and status.");
    for ((route, status), count) in lock(&metrics.requests).iter() {
        let _ = writeln!(out, "cantus_requests_total{{route=\"{}\",status=\"{status}\"}} {count}", escape(route));
    }
    head(&mut out, "cantus_request_seconds", "histogram", "Time from a request's head to its answer's.");
    for (route, times) in lock(&metrics.times).iter() {
        let route = escape(route);
        for (end, count) in ENDS.iter().zip(times.counts) {
            let _ = writeln!(out, "cantus_request_seconds_bucket{{route=\"{route}\",le=\"{end}\"}} {count}");
        }
        let _ = writeln!(out, "cantus_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {}", times.count);
        let _ = writeln!(out, "cantus_request_seconds_sum{{route=\"{route}\"}} {}", times.sum);
        let _ = writeln!(out, "cantus_request_seconds_count{{route=\"{route}\"}} {}", times.count);
    }
    head(&mut out, "cantus_jobs", "gauge", "Jobs by state.");
    for (state, count) in service.states() {
        let _ = writeln!(out, "cantus_jobs{{state=\"{state}\"}} {count}");
    }
    head(&mut out, "cantus_jobs_ended_total", "counter", "Jobs that ended since the start, by kind and state.");
    for ((kind, state), count) in lock(&metrics.jobs).iter() {
        let _ = writeln!(out, "cantus_jobs_ended_total{{kind=\"{kind}\",state=\"{state}\"}} {count}");
    }
    for (name, kind, about, value) in [
        ("cantus_connections", "gauge", "Open connections.", &metrics.connections),
        (
            "cantus_connections_refused_total",
            "counter",
            "Connections refused because there were too many.",
            &metrics.refused,
        ),
        ("cantus_jobs_resumed_total", "counter", "Jobs taken up at the start.", &metrics.resumed),
        ("cantus_disk_failures_total", "counter", "Writes that the disk refused.", &metrics.disk_failures),
        (
            "cantus_database_set_aside",
            "gauge",
            "Whether a damaged database was set aside at the start.",
            &metrics.set_aside,
        ),
        ("cantus_access_log_lost_total", "counter", "Lines that the access log lost.", &metrics.log_lost),
    ] {
        head(&mut out, name, kind, about);
        let _ = writeln!(out, "{name} {}", value.load(Ordering::Relaxed));
    }
    head(&mut out, "cantus_disk_bytes", "gauge", "Bytes on disk that are kept for jobs.");
    let _ = writeln!(out, "cantus_disk_bytes {}", service.disk.held());
    head(&mut out, "cantus_traces_failed_total", "counter", "Batches of spans that the collector did not take.");
    let _ = writeln!(out, "cantus_traces_failed_total {}", service.traces.failed());
    head(&mut out, "cantus_queue_requests", "gauge", "Requests that wait for a lane or run in it.");
    for lane in service.lanes() {
        let _ = writeln!(out, "cantus_queue_requests{{lane=\"{}\"}} {}", escape(&lane.name), lane.load().0);
    }
    head(&mut out, "cantus_queue_bytes", "gauge", "Bytes of those requests.");
    for lane in service.lanes() {
        let _ = writeln!(out, "cantus_queue_bytes{{lane=\"{}\"}} {}", escape(&lane.name), lane.load().1);
    }
    head(&mut out, "cantus_lane_requests_total", "counter", "Requests that a lane computed.");
    for lane in service.lanes() {
        let done = lane.done.load(Ordering::Relaxed);
        let _ = writeln!(out, "cantus_lane_requests_total{{lane=\"{}\"}} {done}", escape(&lane.name));
    }
    head(&mut out, "cantus_lane_dispatches_total", "counter", "Batches in which a lane computed them.");
    for lane in service.lanes() {
        let count = lane.dispatches.load(Ordering::Relaxed);
        let _ = writeln!(out, "cantus_lane_dispatches_total{{lane=\"{}\"}} {count}", escape(&lane.name));
    }
    head(&mut out, "cantus_lane_busy_seconds_total", "counter", "Time that a lane spent computing.");
    for lane in service.lanes() {
        let busy = lane.busy.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "cantus_lane_busy_seconds_total{{lane=\"{}\"}} {busy}", escape(&lane.name));
    }
    head(&mut out, "cantus_device_memory_bytes", "gauge", "Memory that work holds on a device.");
    for device in &service.devices {
        let name = escape(&device.info().name);
        let _ = writeln!(out, "cantus_device_memory_bytes{{device=\"{name}\"}} {}", device.memory());
    }
    head(&mut out, "cantus_kernels_total", "counter", "Dispatches by kernel and device.");
    let mut kernels = BTreeMap::<_, u64>::new();
    for row in service.devices.iter().flat_map(Served::all_engines).flat_map(|engine| engine.metrics()) {
        *kernels.entry((escape(&row.operation), escape(&row.device))).or_default() += row.count;
    }
    for ((kernel, device), count) in kernels {
        let _ = writeln!(out, "cantus_kernels_total{{kernel=\"{kernel}\",device=\"{device}\"}} {count}");
    }
    out
}
