//! Counters, as Prometheus' text. Routes and queues count here, and `/metrics` writes the text. Figures are the whole service's and never a key's, so that
//! reading them tells nothing about anybody. Counters are lost with the process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::job::Job;
use crate::queue::Lane;
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

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

/// The figures of a service.
pub fn text(service: &Service) -> String {
    let mut out = String::new();
    requests(&mut out, &service.metrics);
    jobs(&mut out, service);
    figures(&mut out, service);
    lanes(&mut out, service);
    devices(&mut out, service);
    out
}

fn requests(out: &mut String, metrics: &Metrics) {
    head(out, "cantus_requests_total", "counter", "Answers by route and status.");
    for ((route, status), count) in lock(&metrics.requests).iter() {
        let _ = writeln!(out, "cantus_requests_total{{route=\"{}\",status=\"{status}\"}} {count}", escape(route));
    }
    head(out, "cantus_request_seconds", "histogram", "Time from a request's head to its answer's.");
    for (route, times) in lock(&metrics.times).iter() {
        let route = escape(route);
        for (end, count) in ENDS.iter().zip(times.counts) {
            let _ = writeln!(out, "cantus_request_seconds_bucket{{route=\"{route}\",le=\"{end}\"}} {count}");
        }
        let _ = writeln!(out, "cantus_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {}", times.count);
        let _ = writeln!(out, "cantus_request_seconds_sum{{route=\"{route}\"}} {}", times.sum);
        let _ = writeln!(out, "cantus_request_seconds_count{{route=\"{route}\"}} {}", times.count);
    }
}

fn jobs(out: &mut String, service: &Service) {
    head(out, "cantus_jobs", "gauge", "Jobs by state.");
    for (state, count) in service.states() {
        let _ = writeln!(out, "cantus_jobs{{state=\"{state}\"}} {count}");
    }
    head(out, "cantus_jobs_ended_total", "counter", "Jobs that ended since the start, by kind and state.");
    for ((kind, state), count) in lock(&service.metrics.jobs).iter() {
        let _ = writeln!(out, "cantus_jobs_ended_total{{kind=\"{kind}\",state=\"{state}\"}} {count}");
    }
}

/// Single numbers.
fn figures(out: &mut String, service: &Service) {
    let metrics = &service.metrics;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut line = |name: &str, kind: &str, about: &str, value: u64| {
        head(out, name, kind, about);
        let _ = writeln!(out, "{name} {value}");
    };
    line("cantus_connections", "gauge", "Open connections.", load(&metrics.connections));
    let about = "Connections refused because there were too many.";
    line("cantus_connections_refused_total", "counter", about, load(&metrics.refused));
    line("cantus_jobs_resumed_total", "counter", "Jobs taken up at the start.", load(&metrics.resumed));
    line("cantus_disk_failures_total", "counter", "Writes that the disk refused.", load(&metrics.disk_failures));
    let about = "Whether a damaged database was set aside at the start.";
    line("cantus_database_set_aside", "gauge", about, load(&metrics.set_aside));
    line("cantus_access_log_lost_total", "counter", "Lines that the access log lost.", crate::access::lost());
    line("cantus_disk_bytes", "gauge", "Bytes on disk that are kept for jobs.", service.disk.held());
    let about = "Batches of spans that the collector did not take.";
    line("cantus_traces_failed_total", "counter", about, service.traces.failed());
}

fn lanes(out: &mut String, service: &Service) {
    let mut each = |name: &str, kind: &str, about: &str, value: fn(&Lane) -> String| {
        head(out, name, kind, about);
        for lane in service.lanes() {
            let _ = writeln!(out, "{name}{{lane=\"{}\"}} {}", escape(&lane.name), value(lane));
        }
    };
    each("cantus_queue_requests", "gauge", "Requests that wait for a lane or run in it.", |lane| {
        lane.load().0.to_string()
    });
    each("cantus_queue_bytes", "gauge", "Bytes of those requests.", |lane| lane.load().1.to_string());
    each("cantus_lane_requests_total", "counter", "Requests that a lane computed.", |lane| {
        lane.done.load(Ordering::Relaxed).to_string()
    });
    each("cantus_lane_dispatches_total", "counter", "Batches in which a lane computed them.", |lane| {
        lane.dispatches.load(Ordering::Relaxed).to_string()
    });
    each("cantus_lane_busy_seconds_total", "counter", "Time that a lane spent computing.", |lane| {
        (lane.busy.load(Ordering::Relaxed) as f64 / 1e6).to_string()
    });
}

fn devices(out: &mut String, service: &Service) {
    head(out, "cantus_device_memory_bytes", "gauge", "Memory that work holds on a device.");
    for device in &service.devices {
        let name = escape(&device.info().name);
        let _ = writeln!(out, "cantus_device_memory_bytes{{device=\"{name}\"}} {}", device.memory());
    }
    head(out, "cantus_kernels_total", "counter", "Dispatches by kernel and device.");
    let mut kernels = BTreeMap::<_, u64>::new();
    for row in service.devices.iter().flat_map(Served::all_engines).flat_map(|engine| engine.metrics()) {
        *kernels.entry((escape(&row.operation), escape(&row.device))).or_default() += row.count;
    }
    for ((kernel, device), count) in kernels {
        let _ = writeln!(out, "cantus_kernels_total{{kernel=\"{kernel}\",device=\"{device}\"}} {count}");
    }
}
