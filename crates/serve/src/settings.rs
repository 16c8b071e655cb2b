//! The service's settings at its start. The program's arguments are the settings, with variables of the same names; there is no other source. Limits have
//! safe defaults, and 0 is refused where it would refuse all work. Keys are made by a subcommand and kept as hashes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

/// Serve this machine's devices over HTTP
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

const EXAMPLES: &str = "\
Examples:
  cantus serve --open                                     for this machine alone, without keys; the documentation is at /docs
  cantus serve keys add --name analysis --scope operations
  cantus serve --listen 0.0.0.0:8443 --tls-certificate chain.pem --tls-key key.pem";

/// The actions besides serving.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Action {
    /// Make, list and revoke keys
    Keys {
        #[command(subcommand)]
        action: KeyAction,
    },
    /// Print the service's OpenAPI as JSON
    Openapi,
    /// Run one kernel from stdin, within limits
    #[command(hide = true)]
    KernelWorker {
        /// Bytes that it may hold.
        #[arg(long)]
        memory: u64,
        /// Its device.
        #[arg(long)]
        on: String,
        /// Seconds of the processor's time.
        #[arg(long)]
        seconds: u64,
        /// The process that it ends with.
        #[arg(long)]
        parent: Option<u32>,
    },
}

/// The actions on keys.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum KeyAction {
    /// Make a key and print it: it is kept as a hash, and cannot be shown again
    Add {
        /// Name of the key's owner
        #[arg(long, value_parser = crate::keys::name)]
        name: String,
        /// Scopes of the key: operations, kernels, administration
        #[arg(long = "scope", default_values_t = [Scope::Operations])]
        scopes: Vec<Scope>,
        /// Days until it expires
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
        /// Requests per second, instead of --rate
        #[arg(long, value_name = "REQUESTS")]
        rate: Option<u32>,
        /// The file of keys
        #[arg(long, value_name = "FILE", default_value = "cantus-serve/keys.toml")]
        keys: PathBuf,
    },
    /// List the keys
    List {
        /// The file of keys
        #[arg(long, value_name = "FILE", default_value = "cantus-serve/keys.toml")]
        keys: PathBuf,
    },
    /// Revoke a key; a running service sees it within seconds
    Revoke {
        /// Its id, as `keys list` shows it
        id: String,
        /// The file of keys
        #[arg(long, value_name = "FILE", default_value = "cantus-serve/keys.toml")]
        keys: PathBuf,
    },
}

/// The scopes of a key.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Operations, expressions, pictures; its own jobs.
    Operations,
    /// Kernels of its own.
    Kernels,
    /// Everybody's jobs, queues, devices' measurements.
    Administration,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Operations => "operations",
            Self::Kernels => "kernels",
            Self::Administration => "administration",
        })
    }
}

/// The settings of the service.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Folder of jobs and keys
    #[arg(long, value_name = "FOLDER", default_value = "cantus-serve")]
    pub data: PathBuf,
    /// The file of keys, instead of keys.toml in the folder
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Serve without keys, only to this machine
    #[arg(long)]
    pub open: bool,
    /// TLS: the certificate chain, PEM; reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// TLS: the private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// A device to serve, such as `cpu` or `vulkan:0`; may be repeated [default: the best one]
    #[arg(long = "on", value_name = "BACKEND[:INDEX]")]
    pub devices: Vec<String>,
    /// The most device memory for the work of a request, as in 2GiB
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = some_bytes)]
    pub memory: u64,
    /// The most keys whose large work a device computes at once; one more is tried for a moment
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = at_least_one)]
    pub workers: usize,
    /// The largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes)]
    pub body: u64,
    /// The most requests and jobs that wait
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub queue: usize,
    /// The most bytes that wait
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = bytes)]
    pub queue_bytes: u64,
    /// The share of the queue, of bodies under way, of the disk and of jobs that one key may hold, in percent of what it holds plus what is free
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub queue_share: u32,
    /// The longest time that a request waits in the queue; jobs wait without limit
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub queue_time: Duration,
    /// The longest time that work may take
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = some_seconds)]
    pub time: Duration,
    /// The time for which the first of several similar requests waits for others
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    pub batch_window: u64,
    /// The most requests that become one dispatch; 1 for none
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub batch_size: usize,
    /// The time for which jobs and their results are kept after they end
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    pub keep: Duration,
    /// The most bytes that jobs and results take on disk
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = bytes)]
    pub disk: u64,
    /// The most jobs that are kept, including failed ones
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub jobs: u64,
    /// Requests per second and key
    #[arg(long, value_name = "REQUESTS", default_value_t = 10_000)]
    pub rate: u32,
    /// The most connections, as far as the limit of open files has room for them
    #[arg(long, value_name = "COUNT", default_value_t = 16_384, value_parser = at_least_one)]
    pub connections: usize,
    /// The most connections from one address, and never more than half of what it holds plus what is free
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = at_least_one)]
    pub connections_per_address: usize,
    /// The longest time that a client may be silent: in a head, in a body, or while it reads the answer
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = some_seconds)]
    pub patience: Duration,
    /// The longest time that a connection is idle, or that a head takes
    #[arg(long, value_name = "SECONDS", default_value = "75", value_parser = some_seconds)]
    pub idle: Duration,
    /// The longest time that a stop takes; unfinished work is then saved and resumed, or refused
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub grace: Duration,
    /// Origins of pages that may call the service (CORS) [default: none]
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// Run callers' kernels on this device, each in a process of its own
    #[arg(long, value_name = "BACKEND[:INDEX]", num_args = 0..=1, default_missing_value = "cpu")]
    pub kernels: Option<String>,
    /// The most keys whose kernels run at once
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = at_least_one)]
    pub kernel_processes: usize,
    /// The most memory of a caller's kernel, including its compiler
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = some_bytes)]
    pub kernel_memory: u64,
    /// The longest time that a caller's kernel may take
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = some_seconds)]
    pub kernel_time: Duration,
    /// The longest text of a caller's kernel
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = bytes)]
    pub kernel_text: u64,
    /// File for the access log, as lines of JSON, or - for stdout
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Collector for spans of requests and jobs, by OTLP over HTTP, as in http://127.0.0.1:4318/v1/traces
    #[cfg(feature = "traces")]
    #[arg(long, value_name = "URL")]
    pub traces: Option<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "a number of at least 1".to_owned())
}

fn bytes(text: &str) -> Result<u64, String> {
    cantus::config::parse_bytes(text).ok_or_else(|| "a size, as 64MiB".to_owned())
}

/// A size above nothing: with none, all work would be refused.
fn some_bytes(text: &str) -> Result<u64, String> {
    bytes(text).ok().filter(|&size| size > 0).ok_or_else(|| "a size above 0, as 64MiB".to_owned())
}

/// A time above nothing: with none, all work would be too late.
fn some_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).ok().filter(|time| !time.is_zero()).ok_or_else(|| "seconds above 0, as 2.5".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds: &f64| (0.0..=1e9).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "seconds, as 2.5".to_owned())
}
