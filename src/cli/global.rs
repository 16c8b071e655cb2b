//! The flags that every subcommand takes: which device, which limits, how much to say. They win over variables and the file.

use cantus::backend::Registry;
use cantus::config::Fallback;
use cantus::{Config, Engine, Result};
use clap::{ArgAction, Args};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::parse;

/// Flags before or after the subcommand.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device and diagnostics")]
pub struct Global {
    /// Use this backend (see: cantus devices) or fail; by default the best device is chosen
    #[arg(long, global = true, value_name = "NAME")]
    backend: Option<String>,
    /// Use the backend's device of this index
    #[arg(long, global = true, value_name = "N")]
    device: Option<usize>,
    /// Fail when the device fails, instead of going on with the next one
    #[arg(long, global = true)]
    no_fallback: bool,
    /// Hold at most so much on a device: bytes, or with a unit as in 512MB, 16GiB
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse::bytes)]
    memory_limit: Option<u64>,
    /// Give up when one step takes longer: milliseconds, or with a unit as in 500ms, 30s, 2m
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::milliseconds)]
    timeout: Option<u64>,
    /// Say more on stderr: what the engine did; twice for details, three times for drivers too
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Global {
    /// The machine's configuration with the flags on top.
    ///
    /// # Errors
    /// What [`Config::load`] says of the file and the variables.
    pub fn config(&self) -> Result<Config> {
        let mut config = Config::load()?;
        if let Some(backend) = &self.backend {
            // A device of the file or the environment belongs to the backend named there.
            config.device = if config.backend.as_ref() == Some(backend) { config.device } else { None };
            config.backend = Some(backend.clone());
        }
        config.device = self.device.or(config.device);
        config.memory_limit = self.memory_limit.or(config.memory_limit);
        config.timeout_ms = self.timeout.or(config.timeout_ms);
        if self.no_fallback {
            config.fallback = Some(Fallback::Never);
        }
        Ok(config)
    }

    /// An engine as the flags want it.
    ///
    /// # Errors
    /// When no such device opens.
    pub fn engine(&self) -> Result<Engine> {
        Engine::builder().registry(Registry::with_defaults()).config(self.config()?).build()
    }
}

/// Sends the library's log to stderr, one line per record: warnings always, more with `-v`. `CANTUS_LOG` takes a filter instead.
pub fn log_to_stderr(verbose: u8) {
    let chosen = match verbose {
        0 => Targets::new().with_target("cantus", LevelFilter::WARN),
        1 => Targets::new().with_target("cantus", LevelFilter::INFO).with_default(LevelFilter::WARN),
        2 => Targets::new().with_target("cantus", LevelFilter::DEBUG).with_default(LevelFilter::WARN),
        _ => Targets::new().with_default(LevelFilter::DEBUG).with_target("cantus", LevelFilter::TRACE),
    };
    let filter = std::env::var("CANTUS_LOG").ok().and_then(|text| text.parse::<Targets>().ok()).unwrap_or(chosen);
    let lines = tracing_subscriber::fmt::layer().event_format(Lines).with_writer(std::io::stderr);
    // A second subscriber in one process cannot be: nothing to do about an error.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// `warning: message`, as compilers print it.
struct Lines;

impl<S, N> tracing_subscriber::fmt::FormatEvent<S, N> for Lines
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &tracing_subscriber::fmt::FmtContext<'_, S, N>,
        mut writer: tracing_subscriber::fmt::format::Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => "error",
            tracing::Level::WARN => "warning",
            tracing::Level::INFO => "info",
            tracing::Level::DEBUG => "debug",
            tracing::Level::TRACE => "trace",
        };
        write!(writer, "{level}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}
