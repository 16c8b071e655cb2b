//! A profile as a trace: Chrome's format, which Perfetto's viewer reads too.

use std::time::Duration;

use serde_json::{Value, json};
use web_time::Instant;

use super::{Profile, rate};

impl Profile {
    /// Returns the trace as JSON, for chrome://tracing and ui.perfetto.dev: the host's spans (recording, compiling, transfers), each device's
    /// kernels with bytes, GB/s and GFLOP/s, and the engine's events. Times are in microseconds since the profile began.
    #[must_use]
    pub fn to_json(&self) -> String {
        const PROCESS: u32 = 1;
        const HOST: usize = 1;
        let state = &self.state;
        let micros = |time: Duration| (time.as_secs_f64() * 1e9).round() / 1e3;
        let since = |at: Instant| micros(at.saturating_duration_since(state.start));
        let named = |kind: &str, thread: usize, name: &str| json!({ "name": kind, "ph": "M", "pid": PROCESS, "tid": thread, "args": { "name": name } });
        let mut events = vec![named("process_name", HOST, "cantus"), named("thread_name", HOST, "host")];
        for (place, device) in state.devices.iter().enumerate() {
            events.push(named("thread_name", HOST + 1 + place, &device.name));
        }
        // The first thread is the host's row, the others come after the devices'.
        let row = |thread: usize| if thread == 0 { HOST } else { HOST + state.devices.len() + thread };
        for (thread, (_, name)) in state.threads.iter().enumerate().skip(1) {
            events.push(named("thread_name", row(thread), &format!("host: {name}")));
        }
        for span in &state.host {
            let mut args = json!({});
            if span.bytes > 0 {
                args["bytes"] = json!(span.bytes);
                args["gb_per_s"] = json!(rate(span.bytes, span.time));
            }
            events.push(json!({
                "name": span.name, "cat": "host", "ph": "X", "ts": since(span.start), "dur": micros(span.time),
                "pid": PROCESS, "tid": row(span.thread), "args": args,
            }));
        }
        for kernel in &state.kernels {
            let mut args = json!({ "bytes": kernel.bytes });
            let figures = [("gb_per_s", kernel.bytes), ("gflop_per_s", kernel.flops)];
            for (name, rate) in figures.map(|(name, amount)| (name, rate(amount, kernel.time))) {
                if let Some(rate) = rate {
                    args[name] = json!(rate);
                }
            }
            if !kernel.exact {
                args["start"] = json!("estimated: the device has a clock of its own");
            }
            events.push(json!({
                "name": &*kernel.label, "cat": "kernel", "ph": "X", "ts": since(kernel.start), "dur": micros(kernel.time),
                "pid": PROCESS, "tid": HOST + 1 + kernel.device, "args": args,
            }));
        }
        for event in &self.events {
            events.push(json!({
                "name": format!("{:?}", event.kind), "cat": "engine", "ph": "i", "s": "p", "ts": micros(event.at),
                "pid": PROCESS, "tid": HOST, "args": { "device": event.device, "message": event.message },
            }));
        }
        let other = json!({ "cantus": env!("CARGO_PKG_VERSION"), "spans_left_out": state.dropped });
        let trace: Value = json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": other });
        trace.to_string()
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(in crate::engine) use file::reserve;

/// The profile of an engine's whole life, written to a file at its end.
#[cfg(not(target_arch = "wasm32"))]
mod file {
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    use web_time::Instant;

    use crate::engine::Shared;
    use crate::engine::profile::Profile;
    use crate::error::{Error, Result};

    /// The file for the next engine of this process: the first has the name itself, later ones a number in it.
    pub(in crate::engine) fn reserve(path: &Path) -> Result<PathBuf> {
        static ENGINES: AtomicU32 = AtomicU32::new(1);
        let number = ENGINES.fetch_add(1, Ordering::Relaxed);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let path = if number > 1 { path.with_file_name(format!("{stem}-{number}.json")) } else { path.to_owned() };
        // A file that cannot be written is known before the work begins.
        std::fs::write(&path, "{\"traceEvents\":[]}").map_err(|error| Error::Config {
            place: "trace".to_owned(),
            reason: format!("the trace {} cannot be written: {error}", path.display()),
        })?;
        Ok(path)
    }

    impl Shared {
        /// Writes the profile at the end of the engine.
        pub(in crate::engine) fn write_trace(&self) {
            let Some((path, begun)) = self.trace.get() else { return };
            for slot in self.open_slots() {
                slot.flush(&self.events);
                let _ = crate::engine::blocking::block_on(slot.device().finish());
                self.collect_times(&slot);
            }
            let Some(state) = self.profiler.stop() else { return };
            let profile = Profile { state, time: begun.elapsed(), events: self.events.since(*begun) };
            let text = profile.to_json();
            if let Err(error) = crate::files::write_whole(path, |file| file.write_all(text.as_bytes())) {
                tracing::warn!("the trace {} cannot be written: {error}", path.display());
            }
        }

        /// Begins it.
        pub(in crate::engine) fn begin_trace(&self, path: PathBuf) {
            if self.profiler.start() {
                let _ = self.trace.set((path, Instant::now()));
            }
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            self.write_trace();
        }
    }
}
