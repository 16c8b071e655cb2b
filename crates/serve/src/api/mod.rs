//! The routes, and what surrounds every one.

mod answer;
mod browser;
mod compute;
mod description;
mod devices;
mod jobs;
mod request;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt as _;

pub use description::description;
pub use devices::Measured;

use crate::keys::Caller;
use crate::problem::Problem;
use crate::service::Service;
use crate::traces::within;

/// The address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The caller of a request, for the access log.
#[derive(Debug, Clone)]
struct Known(Arc<Caller>);

type Shared = State<Arc<Service>>;

/// The routes with what surrounds them.
pub fn router(service: Arc<Service>) -> Router {
    let routes = Router::new()
        .route("/v1/compute", post(compute::compute))
        .route("/v1/jobs", post(jobs::submit).get(jobs::list))
        .route("/v1/jobs/{id}", get(jobs::show).delete(jobs::delete))
        .route("/v1/jobs/{id}/result", get(jobs::result))
        .route("/v1/jobs/{id}/events", get(jobs::events))
        .route("/v1/devices", get(devices::devices))
        .route("/v1/benchmark", post(devices::benchmark))
        .route("/v1/monitor", get(devices::monitor))
        .route("/metrics", get(devices::metrics))
        .route("/health", get(devices::health))
        .route("/ready", get(devices::ready))
        .route("/", get(description::root))
        .route("/openapi.json", get(description::openapi))
        .route("/docs", get(description::docs))
        .route("/docs/page.js", get(description::docs_script))
        .route("/docs/page.css", get(description::docs_style))
        .fallback(async || Problem::not_found("there is no such address; see /docs"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "the address does not take this method", "see /docs")
        });
    let around = axum::middleware::from_fn_with_state(service.clone(), around);
    routes.layer(around).with_state(service)
}

/// Wraps every request: times and counts, the access log, what browsers may send, and a panic that ends no connection.
async fn around(State(service): Shared, request: axum::extract::Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let method = request.method().clone();
    let allowed = browser::is_allowed(&service.settings, request.headers());
    let allowed = request.headers().get(header::ORIGIN).filter(|_| allowed).cloned();
    let span = service.traces.request(request.headers());
    let preflight = method == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if let Err(problem) = coding(&request).and_then(|()| browser::check(&service.settings, &request))
    {
        problem.into_response()
    } else if preflight && allowed.is_some() {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let answered = std::panic::AssertUnwindSafe(within(span.parent(), next.run(request))).catch_unwind().await;
        answered.unwrap_or_else(|_| Problem::internal().into_response())
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        if preflight {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
            let given = "authorization, content-type, accept, idempotency-key";
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(given));
        }
    }
    let (status, time) = (response.status().as_u16(), begun.elapsed());
    service.metrics.answered(&route, status, time);
    span.answered(method.as_str(), &route, status);
    if service.settings.access_log.is_some() {
        let key = response.extensions().get::<Known>().map(|known| known.0.id.clone());
        let line = serde_json::json!({
            "time": crate::keys::now(), "address": peer, "key": key, "method": method.as_str(), "route": route,
            "status": status, "milliseconds": (time.as_secs_f64() * 1e6).round() / 1e3,
        });
        crate::access::write(line.to_string());
    }
    response
}

/// Refuses transfer codings besides `chunked`, which the connection has undone (RFC 9112, 6.1).
fn coding(request: &axum::extract::Request) -> Result<(), Problem> {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    let first = codings.next();
    let plain = first.is_none_or(|first| first.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    if plain && codings.next().is_none() {
        return Ok(());
    }
    let detail = "send the body as it is, in chunks or with its length";
    Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "transfer-coding", "the transfer coding is not supported", detail))
}
