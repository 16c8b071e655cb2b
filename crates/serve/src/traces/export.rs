//! Spans by OpenTelemetry's SDK, sent as protobuf over HTTP by the SDK's own thread. With the feature `traces` and a collector's address, `api` and `queue`
//! make spans of requests and work here. Sending never delays an answer: what the collector does not take is counted and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderValue};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use super::Worked;

/// The longest that a batch of spans takes to be sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// A collector of spans.
#[derive(Debug)]
pub struct Collector {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    failed: Arc<AtomicU64>,
}

/// The client, which needs the service's runtime; the SDK's thread has none.
#[derive(Debug)]
struct Client {
    client: HyperClient,
    runtime: tokio::runtime::Handle,
    failed: Arc<AtomicU64>,
}

type Sent<'a> = std::pin::Pin<Box<dyn Future<Output = Result<axum::http::Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Client {
    fn send_bytes<'own, 'sent>(&'own self, request: axum::http::Request<Bytes>) -> Sent<'sent>
    where
        'own: 'sent,
        Self: 'sent,
    {
        let client = self.client.clone();
        let sending = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move {
            let answer = sending.await.unwrap_or_else(|error| Err(Box::new(error)));
            if !answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            answer
        })
    }
}

impl Collector {
    pub fn open(address: &str) -> Result<Self, String> {
        let refused = || format!("--traces {address}: write it as http://127.0.0.1:4318/v1/traces");
        let uri: axum::http::Uri = address.parse().map_err(|_| refused())?;
        if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) {
            return Err(refused());
        }
        let path = if uri.path().len() > 1 { "" } else { "/v1/traces" };
        let failed = Arc::new(AtomicU64::new(0));
        let client = Client {
            client: HyperClient::with_default_connector(PATIENCE, None),
            runtime: tokio::runtime::Handle::current(),
            failed: failed.clone(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{path}", address.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build()
            .map_err(|error| format!("--traces {address}: {error}"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("cantus-serve").with_attribute(version).build();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Self { tracer: provider.tracer("cantus-serve"), provider, failed })
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        if self.provider.shutdown_with_timeout(PATIENCE).is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn request(&self, headers: &HeaderMap) -> Request {
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        Request(
            self.tracer.span_builder("request").with_kind(SpanKind::Server).start_with_context(&self.tracer, &parent),
        )
    }

    pub fn worked(&self, worked: &Worked<'_>) {
        let Worked { parent, kind, job, queued, finished } = *worked;
        let mut headers = HeaderMap::new();
        if let Some(value) = parent.and_then(|parent| HeaderValue::from_str(parent).ok()) {
            headers.insert("traceparent", value);
        }
        let above = TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(&headers));
        let run = Duration::try_from_secs_f64(finished.milliseconds / 1e3).unwrap_or_default();
        let end = finished.began.map_or_else(SystemTime::now, |began| began + run);
        let name = if job.is_some() { "job" } else { "compute" };
        let mut attributes = vec![
            KeyValue::new("cantus.kind", kind.to_owned()),
            KeyValue::new("cantus.devices", finished.devices.join(", ")),
            KeyValue::new("cantus.batch", i64::try_from(finished.batch).unwrap_or(i64::MAX)),
        ];
        attributes.extend(job.map(|job| KeyValue::new("cantus.job", job.to_owned())));
        let builder = self.tracer.span_builder(name).with_start_time(queued).with_attributes(attributes);
        let mut span = builder.start_with_context(&self.tracer, &above);
        for event in &finished.events {
            span.add_event(event.clone(), Vec::new());
        }
        if let Err(problem) = &finished.result {
            span.set_attribute(KeyValue::new("error.type", problem.kind.clone()));
            span.set_status(Status::error(problem.title.clone()));
        }
        let own = Context::new().with_remote_span_context(span.span_context().clone());
        let part = |name, from, to| {
            let builder = self.tracer.span_builder(name).with_start_time(from);
            builder.start_with_context(&self.tracer, &own).end_with_timestamp(to);
        };
        part("queued", queued, finished.began.unwrap_or(end));
        if let Some(began) = finished.began {
            part("run", began, end);
        }
        span.end_with_timestamp(end);
    }
}

/// The span of a request. One that is dropped unanswered, because its client went away, ends too.
#[derive(Debug)]
pub struct Request(Span);

impl Request {
    pub fn parent(&self) -> Option<String> {
        let context: &SpanContext = self.0.span_context();
        let text = || format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8());
        context.is_valid().then(text)
    }

    pub fn answered(mut self, method: &str, route: &str, status: u16) {
        self.0.update_name(format!("{method} {route}"));
        self.0.set_attributes([
            KeyValue::new("http.request.method", method.to_owned()),
            KeyValue::new("http.route", route.to_owned()),
            KeyValue::new("http.response.status_code", i64::from(status)),
        ]);
        if status >= 500 {
            self.0.set_attribute(KeyValue::new("error.type", status.to_string()));
            self.0.set_status(Status::error(""));
        }
        self.0.end();
    }
}
