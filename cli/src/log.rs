//! The library's log on stderr. With `-v` line by line as it comes; without, only its warnings, each once and at the end, so that an
//! error that ends the program is not told twice.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use cantus::error::without_remedies;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Warnings that wait for the end.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Begins to listen. `verbose` counts the `-v`; `CANTUS_LOG` takes a filter instead (`cantus=debug,wgpu_core=warn`).
pub fn begin(verbose: u8) {
    let wanted = std::env::var("CANTUS_LOG").ok().and_then(|text| Filter::parse(&text));
    let live = verbose > 0 || wanted.is_some();
    let filter = wanted.unwrap_or_else(|| {
        let (ours, others) = match verbose {
            0 => (LevelFilter::WARN, LevelFilter::OFF),
            1 => (LevelFilter::INFO, LevelFilter::WARN),
            2 => (LevelFilter::DEBUG, LevelFilter::WARN),
            _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
        };
        Filter { of: vec![("cantus".to_owned(), ours)], others }
    });
    // A second subscriber in one process cannot be: nothing to do about an error.
    let _ = tracing::subscriber::set_global_default(Log { filter, live });
}

/// The filter of messages: by the beginning of a target's name, the longest of those that fit.
#[derive(Debug, PartialEq)]
struct Filter {
    of: Vec<(String, LevelFilter)>,
    others: LevelFilter,
}

impl Filter {
    /// `cantus=debug,wgpu_core=warn`; a level alone is for all others, a target alone for everything of it. None where it is neither.
    fn parse(text: &str) -> Option<Self> {
        let mut filter = Self { of: Vec::new(), others: LevelFilter::OFF };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match (part.split_once('='), part.parse()) {
                (Some((target, level)), _) => filter.of.push((target.to_owned(), level.parse().ok()?)),
                (None, Ok(level)) => filter.others = level,
                (None, Err(_)) => filter.of.push((part.to_owned(), LevelFilter::TRACE)),
            }
        }
        Some(filter)
    }

    fn level(&self, target: &str) -> LevelFilter {
        let fits = self.of.iter().filter(|(start, _)| target.starts_with(start));
        fits.max_by_key(|(start, _)| start.len()).map_or(self.others, |(_, level)| *level)
    }
}

/// Keeps drivers from writing to stderr by themselves, as far as they can be told. Called before anything else runs.
pub fn hush_drivers() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes nothing and cannot fail.
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

/// Prints what comes, or keeps it for the end.
struct Log {
    filter: Filter,
    live: bool,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.filter.level(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.filter.of.iter().map(|(_, level)| *level).chain([self.filter.others]).max()
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let message = without_remedies(&text.message);
        if !self.live {
            let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
            if !held.contains(&message) {
                held.push(message);
            }
            return;
        }
        // As compilers print it.
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let _ = writeln!(std::io::stderr(), "{level}: {message}{}", text.fields);
    }

    // Spans are not told of.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// An event in words: its message, and its other fields as ` name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_the_longest_beginning() {
        let filter = Filter::parse("cantus=debug, wgpu_core=warn,info,naga").unwrap();
        for (target, level) in [
            ("cantus::engine", LevelFilter::DEBUG),
            ("wgpu_core::device", LevelFilter::WARN),
            ("wgpu_hal", LevelFilter::INFO),
            ("naga::front", LevelFilter::TRACE),
        ] {
            assert_eq!(filter.level(target), level, "{target}");
        }
        let nested = Filter::parse("cantus=warn,cantus::engine=trace").unwrap();
        assert_eq!((nested.level("cantus::engine"), nested.level("cantus")), (LevelFilter::TRACE, LevelFilter::WARN));
        assert_eq!(nested.level("other"), LevelFilter::OFF);
        assert_eq!(Filter::parse("cantus=loud"), None);
    }
}
