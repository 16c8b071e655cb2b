//! A machine's devices as a service: `cantus serve`, or the program `cantus-serve`. REST with its description at `/openapi.json` and a page at
//! `/docs`; small requests are answered at once, jobs are queued, kept on disk and taken up again after a restart. The guide has a chapter on it.
//!
//! Everything is behind the feature `service`.
#![cfg(feature = "service")]

mod access;
#[expect(unused_qualifications, reason = "what the description's macros write")]
mod api;
mod body;
mod descriptors;
mod engine;
mod files;
mod folder;
mod job;
mod keys;
mod log;
mod measure;
mod metrics;
mod priority;
mod problem;
mod queue;
mod server;
mod service;
mod settings;
mod share;
mod store;
mod tls;
mod traces;
mod turns;
mod watch;
#[cfg_attr(not(feature = "zk"), expect(dead_code, reason = "what is of fields is read, and refused"))]
mod work;

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use log::log;
pub use settings::Arguments;
use settings::{Action, Settings};

/// Runs the subcommand; `before` are the arguments before its own when the program is called again, as `["serve"]`.
///
/// # Errors
/// In words, for whoever runs it.
pub fn run(arguments: &Arguments, before: &[&str]) -> Result<(), String> {
    let print = |text: &str| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| error.to_string())
    };
    private();
    give_back();
    match &arguments.action {
        Some(Action::Keys { action }) => print(&keys::manage(action)?),
        Some(Action::Openapi) => print(&format!("{:#}\n", api::description())),
        Some(Action::KernelWorker { memory, on, seconds, parent }) => {
            work::kernel::work(*memory, *seconds, on, *parent)
        }
        None => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let command = std::iter::once(program.into_os_string()).chain(before.iter().map(OsString::from)).collect();
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("no threads can be started: {error}"))?;
            let outcome = runtime.block_on(serve(arguments.settings.clone(), command));
            // What still blocks a thread now was given its time.
            runtime.shutdown_timeout(Duration::from_millis(200));
            log::flush();
            outcome
        }
    }
}

/// Makes written files this user's alone, keys and jobs as well as logs; and a file that may not grow further is an error, not this process's
/// end.
#[cfg(unix)]
fn private() {
    // SAFETY: the calls take numbers alone, and ignoring a signal runs no code of this process.
    unsafe {
        libc::umask(0o077);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(not(unix))]
fn private() {}

/// The time between two returns of free memory to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM: Duration = Duration::from_secs(5);

/// Lets memory go back to the system when it is freed. By default the C library soon keeps up to 32 MiB of each large allocation, in heaps of many
/// threads, and of small ones all that lies below one that is still in use: the service would go on holding what its busiest moment took on each thread.
/// So large ones are mapped by themselves, and a thread returns the free pages of all heaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(clippy::disallowed_methods, reason = "a thread of its own sleeps")]
fn give_back() {
    // SAFETY: the call takes numbers alone, before there are other threads.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
    }
    let trim = || loop {
        std::thread::sleep(TRIM);
        // SAFETY: the C library locks its heaps, one after the other.
        unsafe {
            libc::malloc_trim(0);
        }
    };
    // Without the thread memory is held longer.
    let _ = std::thread::Builder::new().name("memory".to_owned()).spawn(trim);
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

async fn serve(mut settings: Settings, command: Vec<OsString>) -> Result<(), String> {
    let stopping = stopping()?;
    settings.connections = descriptors::room(settings.connections);
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
    let listener = bound(listen).await.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let service = service::Service::open(settings, command)?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    for device in &service.devices {
        log(&format!("device: {}", device.info().name));
        for (construct, wrong) in cantus::engine::wrong_answers(device.info()) {
            if cantus::engine::is_refusal(&wrong) {
                continue;
            }
            log(&format!("  it computes wrong results for {construct}, and gets no work that needs it: {wrong}"));
        }
    }
    log(&format!("listening on {scheme}://{address}; the documentation is at {scheme}://{address}/docs"));
    tokio::spawn(reload(service.clone(), certificate.clone()));
    let serving = tokio::spawn(server::serve(service.clone(), listener, certificate));
    stopping.await;
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

/// Listens. A service that was killed here a moment ago may have left the address to a process that it was just beginning: for a moment.
async fn bound(address: std::net::SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    for _ in 0..10 {
        match tokio::net::TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done => return done,
        }
    }
    tokio::net::TcpListener::bind(address).await
}

/// Looks for changed keys and certificates. A lasting error is reported once. Reading may take as long as it takes, on a thread of its own: what is
/// in force stays in force meanwhile.
async fn reload(service: Arc<service::Service>, certificate: Option<Arc<tls::Certificate>>) {
    let mut told = std::collections::HashMap::new();
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (service, certificate) = (service.clone(), certificate.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let keys = service.keys.as_ref().map(|keys| ("keys", keys.reload()));
            let certificate = certificate.as_ref().map(|certificate| ("the certificate", certificate.reload()));
            [keys, certificate]
        });
        for (what, outcome) in looked.await.into_iter().flatten().flatten() {
            let (message, stands) = match outcome {
                Ok(false) => (None, false),
                Ok(true) => (Some(format!("{what}: read again")), false),
                Err(reason) => (Some(format!("{what}: not reloaded: {reason}")), true),
            };
            let before = if stands { told.insert(what, message.clone()) } else { told.remove(what) };
            if let Some(message) = message.filter(|message| before.flatten().as_ref() != Some(message)) {
                log(&message);
            }
        }
    }
}

/// Returns a future that waits until the service shall stop. From this call on, signals stop it in an orderly way; a closed terminal too, unless it was
/// started to outlive it (nohup).
#[cfg(unix)]
fn stopping() -> Result<impl Future<Output = ()>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| error.to_string());
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let mut hangup = if ignores_hangup() { None } else { Some(listen(SignalKind::hangup())?) };
    Ok(async move {
        let closed = async {
            match &mut hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = closed => {}
        }
    })
}

#[cfg(unix)]
fn ignores_hangup() -> bool {
    // SAFETY: the call writes a structure that lives until it returns, for which zeros are a value.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
fn stopping() -> Result<impl Future<Output = ()>, String> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
