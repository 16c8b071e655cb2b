//! A machine's devices as a service: `cantus serve`, or the program `cantus-serve`. REST with its description at `/openapi.json` and a page at
//! `/docs`; small requests are answered at once, jobs are queued, kept on disk and taken up again after a restart. The guide has a chapter on it.
//!
//! Everything is behind the feature `service`.
#![cfg(feature = "service")]

mod access;
#[expect(unused_qualifications, reason = "what the description's macros write")]
mod api;
mod body;
mod engine;
mod job;
mod keys;
mod measure;
mod metrics;
mod problem;
mod queue;
mod server;
mod service;
mod settings;
mod store;
mod tls;
mod traces;
mod watch;
#[cfg_attr(not(feature = "zk"), expect(dead_code, reason = "what is of fields is read, and refused"))]
mod work;

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

pub use settings::Arguments;
use settings::{Action, Settings};

/// Runs the subcommand; `before` is what stands before its arguments when the program is called again, as `["serve"]`.
///
/// # Errors
/// In words, for whoever runs it.
pub fn run(arguments: &Arguments, before: &[&str]) -> Result<(), String> {
    let print = |text: &str| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| error.to_string())
    };
    match &arguments.action {
        Some(Action::Keys { action }) => print(&keys::manage(action)?),
        Some(Action::Openapi) => print(&format!("{:#}\n", api::description())),
        Some(Action::KernelWorker { memory, on, seconds }) => work::kernel::work(*memory, *seconds, on),
        None => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let command = std::iter::once(program.into_os_string()).chain(before.iter().map(OsString::from)).collect();
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("no threads can be started: {error}"))?;
            let outcome = runtime.block_on(serve(arguments.settings.clone(), command));
            // What still blocks a thread now was given its time.
            runtime.shutdown_timeout(Duration::from_millis(200));
            outcome
        }
    }
}

/// A line to whoever runs the service.
pub(crate) fn log(message: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{message}");
}

async fn serve(settings: Settings, command: Vec<OsString>) -> Result<(), String> {
    descriptors(settings.connections);
    if let Some(path) = &settings.access_log {
        access::open(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let certificate = match (&settings.tls_certificate, &settings.tls_key) {
        (Some(chain), Some(key)) => Some(tls::Certificate::open(chain, key)?),
        _ => None,
    };
    if certificate.is_none() && !settings.listen.ip().is_loopback() {
        log(
            "warning: keys and data cross the network in plain text (--tls-certificate and --tls-key, or a proxy with TLS)",
        );
    }
    let (listen, grace) = (settings.listen, settings.grace);
    let listener = tokio::net::TcpListener::bind(listen).await;
    let listener = listener.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let service = service::Service::open(settings, command)?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    for device in &service.devices {
        log(&format!("device: {}", device.info().name));
    }
    log(&format!("listening on {scheme}://{address}; the documentation is at {scheme}://{address}/docs"));
    tokio::spawn(reload(service.clone(), certificate.clone()));
    let serving = tokio::spawn(server::serve(service.clone(), listener, certificate));
    stopped().await?;
    log("stopping");
    service.stop(grace).await;
    serving.await.map_err(|error| error.to_string())??;
    // Answers that are on their way get there.
    let until = tokio::time::Instant::now() + Duration::from_secs(2);
    while service.metrics.connections.load(std::sync::atomic::Ordering::Relaxed) > 0
        && tokio::time::Instant::now() < until
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The last spans: the collector has a few seconds.
    let _ = tokio::task::spawn_blocking(move || service.traces.end()).await;
    log("stopped");
    Ok(())
}

/// Looks for changed keys and certificates.
async fn reload(service: Arc<service::Service>, certificate: Option<Arc<tls::Certificate>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let keys = service.keys.as_ref().map(|keys| ("keys", keys.reload()));
        let certificate = certificate.as_ref().map(|certificate| ("the certificate", certificate.reload()));
        for (what, outcome) in keys.into_iter().chain(certificate) {
            match outcome {
                Ok(true) => log(&format!("{what}: read again")),
                Ok(false) => {}
                Err(reason) => log(&format!("{what}: not read again: {reason}")),
            }
        }
    }
}

/// Returns when the service shall stop.
async fn stopped() -> Result<(), String> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(|error| error.to_string()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
}

/// Asks for descriptors for so many connections.
#[cfg(unix)]
fn descriptors(connections: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes a structure that lives until it returns.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return;
    }
    let wanted = (connections as libc::rlim_t + 256).min(limit.rlim_max);
    if wanted > limit.rlim_cur {
        limit.rlim_cur = wanted;
        // SAFETY: the call reads a structure that lives until it returns.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        if set != 0 || wanted < connections as libc::rlim_t {
            log("warning: the system gives fewer files than connections were asked for (ulimit -n)");
        }
    }
}

#[cfg(not(unix))]
fn descriptors(_connections: usize) {}
