//! Errors of requests: problem details after RFC 9457. Their text speaks of the request, never of the machine: what a driver or the system said
//! goes to the log.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cantus::Error;
use cantus::error::{LimitError, without_remedies};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not answered as asked, or a job did not end well (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of problem: a name after `urn:cantus:problem:`, which stays the same.
    #[serde(rename = "type")]
    #[schema(example = "urn:cantus:problem:invalid-input")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The mistake, and what would be right.
    pub detail: String,
    /// The place in the JSON of the request that is at fault, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The place in a kernel's text: line and column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Seconds after which the same request may succeed; also in the header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

/// A place in a kernel's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

impl Problem {
    /// A problem of a kind.
    #[must_use]
    pub fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:cantus:problem:{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            pointer: None,
            place: None,
            retry_after: None,
        }
    }

    /// Adds the place in the request's JSON.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// The seconds after which another try may succeed.
    #[must_use]
    pub fn retry(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 400: the request is not even of the right form.
    #[must_use]
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", "the request cannot be read", detail)
    }

    /// 422: of the right form, with a wrong value.
    #[must_use]
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-input", "a value cannot be used", detail)
    }

    /// 413: more than is taken.
    #[must_use]
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "the request is too large", detail)
    }

    /// 429: the queue is full, or too many requests came.
    #[must_use]
    pub fn busy(detail: impl Into<String>, seconds: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", "too much at once", detail).retry(seconds)
    }

    /// 404. A job of another key is not found either.
    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "there is nothing here", detail)
    }

    /// 503: not now.
    #[must_use]
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the service cannot accept this now", detail).retry(5)
    }

    /// 503: memory was refused.
    #[must_use]
    pub fn no_memory() -> Self {
        Self::unavailable("the service has no memory for this now")
    }

    /// 500: the service is at fault; the log says how.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the service failed",
            "this is a fault of the service; its log says more",
        )
    }

    /// The work was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(StatusCode::CONFLICT, "cancelled", "the work was cancelled", "the caller cancelled it")
    }

    /// The work took longer than its limit.
    #[must_use]
    pub fn time_limit(milliseconds: u128) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "time-limit",
            "the work took too long",
            format!("it was stopped at its limit of {milliseconds} ms"),
        )
    }

    /// Returns whether it is [`Problem::time_limit`].
    pub fn is_time_limit(&self) -> bool {
        self.kind.ends_with(":time-limit")
    }

    /// The work held more memory than it may.
    #[must_use]
    pub fn memory_limit(limit: u64) -> Self {
        let detail = format!("it was stopped when it held more than its {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "memory-limit", "the work needs more memory than it may have", detail)
    }

    /// A caller's kernel ended its own process.
    #[must_use]
    pub fn kernel_ended(detail: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "kernel-ended", "the kernel ended its process", detail)
    }

    /// Returns the problem for an error of the library, as far as it concerns the request. Failures of devices and of the system are
    /// told without their words.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        let mut problem = match error {
            Error::TensorLost { cause, .. } => return Self::of(cause),
            Error::InvalidWgsl { report, .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid-kernel",
                "the kernel does not compile",
                report.chars().take(4000).collect::<String>(),
            ),
            Error::Unsupported { construct, .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "unsupported",
                "no device here can do this",
                construct.chars().take(1000).collect::<String>(),
            ),
            Error::MemoryLimit { requested, limit, .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "memory-limit",
                "the work needs more memory than it may have",
                format!("{requested} bytes are needed at once, and the limit is {limit}"),
            ),
            Error::Cancelled { .. } => Self::cancelled(),
            Error::Timeout { milliseconds, .. } | Error::Stalled { milliseconds, .. } => {
                Self::time_limit(u128::from(*milliseconds))
            }
            Error::OutOfMemory { .. } => Self::unavailable("no device has enough free memory for this now"),
            // The system refused it, and may give it another time.
            Error::Limit(LimitError::Memory { free: None, .. }) => Self::no_memory(),
            Error::EntryPoint { .. }
            | Error::Override { .. }
            | Error::Binding { .. }
            | Error::Dtype(_)
            | Error::Shape(_)
            | Error::Limit(_)
            | Error::Index(_)
            | Error::StoreOutOfRange { .. }
            | Error::InvalidInput { .. }
            | Error::InvalidFile { .. }
            | Error::InvalidState { .. } => {
                Self::invalid(without_remedies(&error.to_string()).chars().take(2000).collect::<String>())
            }
            _ => Self::internal(),
        };
        problem.place = error.place().map(|place| Place { line: place.line, column: place.column });
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
