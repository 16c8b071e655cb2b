//! The library's log on stderr. With `-v` line by line as it comes; without, only its warnings, each once and at the end, so that an
//! error that ends the program is not told twice.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Warnings that wait for the end.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Begins to listen. `verbose` counts the `-v`; `CANTUS_LOG` takes a filter instead (`cantus=debug,wgpu_core=warn`).
pub fn begin(verbose: u8) {
    let filter = match verbose {
        0 => Targets::new().with_target("cantus", LevelFilter::WARN),
        1 => Targets::new().with_default(LevelFilter::WARN).with_target("cantus", LevelFilter::INFO),
        2 => Targets::new().with_default(LevelFilter::WARN).with_target("cantus", LevelFilter::DEBUG),
        _ => Targets::new().with_default(LevelFilter::DEBUG).with_target("cantus", LevelFilter::TRACE),
    };
    let wanted = std::env::var("CANTUS_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    // A second subscriber in one process cannot be: nothing to do about an error.
    let _ = if verbose == 0 && wanted.is_none() {
        tracing_subscriber::registry().with(Hold).with(filter).try_init()
    } else {
        let lines = tracing_subscriber::fmt::layer().event_format(Lines).with_writer(std::io::stderr);
        tracing_subscriber::registry().with(lines).with(wanted.unwrap_or(filter)).try_init()
    };
}

/// Keeps drivers from writing to stderr by themselves, as far as they can be told. Called before anything else runs.
pub fn hush_drivers() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: no preconditions.
        let folder = format!("/run/user/{}", unsafe { libc::getuid() });
        // libwayland complains when the folder is not named, not when it does not exist; Mesa's EGL has levels.
        for (name, value) in [("XDG_RUNTIME_DIR", folder.as_str()), ("EGL_LOG_LEVEL", "fatal")] {
            if std::env::var_os(name).is_none() {
                // SAFETY: the program has one thread so far.
                unsafe { std::env::set_var(name, value) };
            }
        }
    }
}

/// The warnings that waited, except those that say what `error` says.
pub fn warnings(error: Option<&str>) -> Vec<String> {
    let mut held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    let told = |warning: &str, error: &str| error.contains(warning) || warning.contains(error);
    held.retain(|warning| !error.is_some_and(|error| told(warning, error)));
    held
}

/// Keeps the messages of warnings.
struct Hold;

impl<S: Subscriber> Layer<S> for Hold {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.contains(&message.0) {
            held.push(message.0);
        }
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// `warning: message`, as compilers print it.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        write!(writer, "{level}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}
