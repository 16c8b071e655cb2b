//! A job as it is shown and kept.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for its device.
    Queued,
    /// It is being computed.
    Running,
    /// Its result is there.
    Done,
    /// It ended with a problem.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl State {
    /// It will not change any more.
    pub fn ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A job.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id, part of its address.
    pub id: String,
    /// Its state.
    pub state: State,
    /// The request's `kind`.
    pub kind: String,
    /// Progress in percent: 0 while the job waits, 100 when it is done, never less than before. Null for work in a single step, whose progress
    /// is not known.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100)]
    pub progress: Option<u8>,
    /// Time of acceptance, in seconds since 1970.
    pub created: u64,
    /// Time of its end, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Duration of its computation, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The devices that computed it, in order: more than one where a device failed and the job ended on the next.
    pub devices: Vec<String>,
    /// Events on the way, such as the loss of a device.
    pub events: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Until when the job and its result are kept at least, in seconds since 1970, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// A job with what only the service knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The id, again: it is the key of the tables.
    pub id: String,
    /// The key that it belongs to.
    pub owner: String,
    /// The visible part.
    pub job: Job,
    /// The media type of the request.
    pub content_type: String,
    /// The query of the request.
    pub query: String,
    /// The number of times that it was started and the service ended unexpectedly: a job that ends the process must not do so for ever.
    pub attempts: u32,
    /// Bytes on disk that are kept for it.
    pub bytes: u64,
    /// The request's `Idempotency-Key`, and a digest of the request.
    pub idempotency: Option<String>,
    /// A digest of the request.
    pub digest: String,
    /// The `traceparent` of the request, where traces are kept.
    #[serde(default)]
    pub trace: Option<String>,
    /// The time from which it may be forgotten, once it has ended, in seconds of the service's run with this store: the system's clock may jump.
    #[serde(default)]
    pub due: Option<u64>,
    /// The shape of the answer, without its bytes.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// The limits when it was accepted; jobs of earlier versions have none.
    #[serde(default)]
    pub granted: Option<Granted>,
}

/// The limits of a job's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Bytes.
    pub memory: u64,
    /// Time.
    pub milliseconds: u64,
}

/// The description of a result's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The dtype: of a tensor, or the field or group of its elements.
    pub dtype: String,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// Bytes of an element that is shown as hexadecimal digits.
    pub hex: Option<usize>,
}
