//! Traces for OpenTelemetry (feature `traces`): a span for each request, and one for each piece of work with the time that it waited and the time that
//! it ran. The trace goes on from a request's `traceparent` (W3C Trace Context). Without the feature, or without `--traces`, nothing of it is done.

use std::time::SystemTime;

#[cfg(feature = "traces")]
mod export;

use axum::http::HeaderMap;

use crate::queue::Finished;

tokio::task_local! {
    /// The `traceparent` of the request that a task answers.
    static PARENT: Option<String>;
}

/// The `traceparent` of the request that is being answered.
pub fn parent() -> Option<String> {
    PARENT.try_with(Clone::clone).ok().flatten()
}

/// Answers within the span of a request.
pub async fn within<T>(parent: Option<String>, answer: impl Future<Output = T>) -> T {
    PARENT.scope(parent, answer).await
}

/// Work that has ended.
#[derive(Debug)]
#[cfg_attr(not(feature = "traces"), expect(dead_code, reason = "a span is made of it"))]
pub struct Worked<'a> {
    /// The `traceparent` of the request that asked for it.
    pub parent: Option<&'a str>,
    /// The request's `kind`.
    pub kind: &'a str,
    /// The job, unless the caller waited.
    pub job: Option<&'a str>,
    /// The time when it was queued.
    pub queued: SystemTime,
    /// Its end.
    pub finished: &'a Finished,
}

/// The destination of spans.
#[derive(Debug, Default)]
pub struct Traces(#[cfg(feature = "traces")] Option<export::Collector>);

/// The span of a request, which ends with it.
#[derive(Debug, Default)]
pub struct Request(#[cfg(feature = "traces")] Option<export::Request>);

#[cfg(feature = "traces")]
impl Traces {
    /// Sends spans to a collector; nowhere without its address.
    ///
    /// # Errors
    /// In words, for what is not an address.
    pub fn open(settings: &crate::settings::Settings) -> Result<Self, String> {
        settings.traces.as_deref().map(export::Collector::open).transpose().map(Self)
    }

    /// A request begins.
    pub fn request(&self, headers: &HeaderMap) -> Request {
        Request(self.0.as_ref().map(|collector| collector.request(headers)))
    }

    /// Work ended.
    pub fn worked(&self, worked: &Worked<'_>) {
        if let Some(collector) = &self.0 {
            collector.worked(worked);
        }
    }

    /// Batches of spans that the collector did not take.
    pub fn failed(&self) -> u64 {
        self.0.as_ref().map_or(0, export::Collector::failed)
    }

    /// Sends what was not sent yet. Blocks for a few seconds at most.
    pub fn end(&self) {
        if let Some(collector) = &self.0 {
            collector.end();
        }
    }
}

#[cfg(feature = "traces")]
impl Request {
    /// Its `traceparent`, for what belongs to it.
    pub fn parent(&self) -> Option<String> {
        self.0.as_ref().and_then(export::Request::parent)
    }

    /// It was answered.
    pub fn answered(self, method: &str, route: &str, status: u16) {
        if let Some(request) = self.0 {
            request.answered(method, route, status);
        }
    }
}

#[cfg(not(feature = "traces"))]
impl Traces {
    /// Nothing is sent.
    ///
    /// # Errors
    /// Never.
    #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub fn open(_: &crate::settings::Settings) -> Result<Self, String> {
        Ok(Self())
    }

    pub fn request(&self, _: &HeaderMap) -> Request {
        Request()
    }

    pub fn worked(&self, _: &Worked<'_>) {}

    pub fn failed(&self) -> u64 {
        0
    }

    pub fn end(&self) {}
}

#[cfg(not(feature = "traces"))]
impl Request {
    pub fn parent(&self) -> Option<String> {
        None
    }

    pub fn answered(self, _: &str, _: &str, _: u16) {}
}
