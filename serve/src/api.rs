//! The routes.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, MatchedPath, Path, Query, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, OpenApi, ToSchema};

use crate::body::{self, JSON, NPY, RAW, SAFETENSORS};
use crate::job::Job;
use crate::keys::Caller;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::service::{Request, Service};
use crate::settings::Scope;
use crate::watch::Watched;
use crate::work::Work;
use crate::work::array::{DTypeName, Number, Output, Shown};

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Who made a request, for the access log.
#[derive(Debug, Clone)]
struct Known(Arc<Caller>);

type Shared = State<Arc<Service>>;

/// The routes with what surrounds them.
pub fn router(service: Arc<Service>) -> Router {
    let routes = Router::new()
        .route("/v1/compute", post(compute))
        .route("/v1/jobs", post(submit).get(list))
        .route("/v1/jobs/{id}", get(show).delete(delete))
        .route("/v1/jobs/{id}/result", get(result))
        .route("/v1/jobs/{id}/events", get(events))
        .route("/v1/devices", get(devices))
        .route("/v1/benchmark", post(benchmark))
        .route("/v1/monitor", get(monitor))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .route("/docs/page.js", get(docs_script))
        .route("/docs/page.css", get(docs_style))
        .fallback(async || Problem::not_found("there is no such address; see /docs"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "the address does not take this method", "see /docs")
        });
    let around = axum::middleware::from_fn_with_state(service.clone(), around);
    routes.layer(around).with_state(service)
}

/// What surrounds every request: times and counts, the access log, CORS, and a panic that ends no connection.
async fn around(State(service): Shared, request: axum::extract::Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let method = request.method().clone();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed =
        origin.filter(|origin| service.settings.origins.iter().any(|known| known.as_bytes() == origin.as_bytes()));
    let preflight = method == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if preflight && allowed.is_some() {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let answered = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
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
    if let Some(log) = &service.settings.access_log {
        let key = response.extensions().get::<Known>().map(|known| known.0.id.clone());
        let line = serde_json::json!({
            "time": crate::keys::now(), "address": peer, "key": key, "method": method.as_str(), "route": route,
            "status": status, "milliseconds": (time.as_secs_f64() * 1e6).round() / 1e3,
        });
        crate::access::write(&service.metrics, log, line.to_string());
    }
    response
}

/// Who calls, if it may at all.
async fn caller(service: &Service, headers: &HeaderMap, peer: Peer) -> Result<Arc<Caller>, Problem> {
    let caller = match &service.keys {
        None => service.anybody.clone(),
        Some(keys) => match keys.known(headers)? {
            Ok(caller) => caller,
            Err(text) => {
                // Verifying takes long, so an address has few tries that fail.
                let address = format!("tries {}", peer.0);
                let wait = || Problem::busy("too many keys were tried from this address", 10);
                if !service.rates.has(&address, 0.2) {
                    return Err(wait());
                }
                let verified = keys.verify(text).await;
                if verified.is_err() {
                    service.rates.take(&address, 0.2, 10.0).map_err(|_| wait())?;
                }
                verified?
            }
        },
    };
    let rate = f64::from(caller.rate.unwrap_or(service.settings.rate).max(1));
    let slow = |seconds| Problem::busy("more requests per second than the key may make", seconds);
    service.rates.take(&format!("key {}", caller.id), rate, rate).map_err(slow)?;
    Ok(caller)
}

/// Reads a body: so large, and not slower than so.
async fn whole(service: &Service, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    const SLOWEST: f64 = 16_384.0;
    let most = service.settings.body;
    let large = || Problem::too_large(format!("a body has at most {most} bytes here"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(large());
    }
    let slow =
        || Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body came too slowly", "send it without pauses");
    let (begun, patience) = (Instant::now(), service.settings.patience);
    let (mut body, mut bytes, mut held) = (body, Vec::new(), Vec::new());
    loop {
        let frame = tokio::time::timeout(patience, body.frame()).await.map_err(|_| slow())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Problem::malformed("the body ended early"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() as u64 + data.len() as u64 > most {
            return Err(large());
        }
        // All bodies together take no more memory than the queue may.
        let permits = u32::try_from(data.len().div_ceil(1024)).unwrap_or(u32::MAX);
        let permit = service.bodies.try_acquire_many(permits);
        held.push(permit.map_err(|_| Problem::busy("too many bytes are being sent at once", 1))?);
        bytes.extend_from_slice(&data);
        let longest = patience.as_secs_f64() + bytes.len() as f64 / SLOWEST;
        if begun.elapsed().as_secs_f64() > longest {
            return Err(slow());
        }
    }
    Ok(bytes.into())
}

/// A request that was read and checked.
struct Read {
    caller: Arc<Caller>,
    work: Work,
    content_type: String,
    query: String,
    bytes: Bytes,
}

async fn read(
    service: &Arc<Service>,
    headers: &HeaderMap,
    peer: Peer,
    query: Option<String>,
    body: Body,
) -> Result<Read, Problem> {
    let caller = caller(service, headers, peer).await?;
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or(JSON).to_owned();
    let query = query.unwrap_or_default();
    let bytes = whole(service, headers, body).await?;
    let parse = {
        let (service, content_type, query, bytes) =
            (service.clone(), content_type.clone(), query.clone(), bytes.clone());
        move || {
            let mut work = body::read(&content_type, &query, &bytes)?;
            work.check(&service.limits)?;
            Ok::<_, Problem>(work)
        }
    };
    let work = if bytes.len() <= 16_384 {
        parse()?
    } else {
        let turn = service.parsing.acquire().await.map_err(|_| Problem::internal())?;
        let work = tokio::task::spawn_blocking(parse).await;
        drop(turn);
        work.unwrap_or_else(|_| Err(Problem::internal()))?
    };
    caller.may(if matches!(work, Work::Kernel(_)) { Scope::Kernels } else { Scope::Operations })?;
    Ok(Read { caller, work, content_type, query, bytes })
}

/// A result in JSON.
#[derive(Serialize, ToSchema)]
struct Answer<'a> {
    /// The dtype of the elements, or the field or group that they are elements of.
    #[schema(example = "f32")]
    dtype: &'a str,
    /// Lengths of the axes.
    shape: &'a [usize],
    /// The elements, row-major.
    #[schema(value_type = Vec<AnswerNumber>)]
    data: Shown<'a>,
    /// The device that computed it.
    device: &'a str,
    /// How long the dispatch took that it was part of, in milliseconds.
    milliseconds: f64,
    /// Requests that were computed in that dispatch.
    batch: usize,
}

/// A result as bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it describes")]
struct Binary(Vec<u8>);

/// An element of a result.
struct AnswerNumber;

crate::work::described!(AnswerNumber, "A number; what is no finite number by its name; of bool false or true; of complex numbers the two parts; elements of fields and points as hexadecimal digits after 0x.", {
    "anyOf": [
        { "type": "number" },
        { "type": "string" },
        { "type": "boolean" },
        { "type": "array", "items": { "anyOf": [{ "type": "number" }, { "type": "string" }] }, "minItems": 2, "maxItems": 2 },
    ]
});

fn answer(
    form: &'static str,
    output: &Output,
    devices: &[String],
    milliseconds: f64,
    batch: usize,
) -> Result<Response, Problem> {
    let device = devices.last().map_or("", String::as_str);
    let body = match form {
        NPY => output.npy()?,
        SAFETENSORS => output.safetensors()?,
        RAW => output.raw(),
        _ => {
            let Output { shape, .. } = output;
            let written =
                Answer { dtype: &shape.dtype, shape: &shape.shape, data: Shown(output), device, milliseconds, batch };
            serde_json::to_vec(&written).map_err(|_| Problem::internal())?
        }
    };
    let mut response = ([(header::CONTENT_TYPE, form)], body).into_response();
    if let Ok(value) = HeaderValue::from_str(device) {
        response.headers_mut().insert(HeaderName::from_static("cantus-device"), value);
    }
    response.headers_mut().insert(HeaderName::from_static("cantus-batch"), HeaderValue::from(batch));
    Ok(response)
}

fn known(response: impl IntoResponse, caller: Arc<Caller>) -> Response {
    let mut response = response.into_response();
    response.extensions_mut().insert(Known(caller));
    response
}

/// Compute, and wait for the result
///
/// For what is small. If the caller goes away, the work is cancelled. The body is JSON, or arrays as bytes with the JSON beside them: `.npy` (the JSON in the query's `request`),
/// safetensors (the JSON as `request` in the metadata), or a line of JSON `{"request": …, "arrays": [{"name", "dtype", "shape"}]}` and the bytes.
#[utoipa::path(post, path = "/v1/compute", tag = "compute", operation_id = "compute", request_body(content = Work, examples(
        ("addition" = (summary = "Elements of a field", value = json!({"kind": "field", "field": "bn254-fr", "function": "add", "a": [1, "2"], "b": ["0x10", 5]}))),
        ("expression" = (summary = "An expression", value = json!({"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1, 2, 3]}}, "expression": ["sum", ["mul", "x", 2]]}))),
        ("picture" = (summary = "A picture", value = json!({"kind": "picture", "picture": "phi_pattern", "width": 8, "height": 4}))),
    )),
    responses((status = 200, description = "The result", content(
        (Answer<'static> = "application/json"), (Binary = "application/x-npy"), (Binary = "application/vnd.safetensors"), (Binary = "application/octet-stream")))))]
async fn compute(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Problem> {
    let form = body::accepted(&headers)?;
    let Read { caller, work, bytes, .. } = read(&service, &headers, peer, query, body).await?;
    let finished = service.compute(&caller, work, bytes.len() as u64).await?;
    let output = finished.result?;
    Ok(known(answer(form, &output, &finished.devices, finished.milliseconds, finished.batch)?, caller))
}

/// Submit a job
///
/// It is on the disk when this answers, and survives the end of the service. The body is that of `/v1/compute`. With a header `Idempotency-Key` the same request
/// sent again gives the job that it made.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", operation_id = "submit_job", request_body(content = Work, examples(
        ("addition" = (summary = "Elements of a field", value = json!({"kind": "field", "field": "bn254-fr", "function": "add", "a": [1, "2"], "b": ["0x10", 5]}))),
        ("expression" = (summary = "An expression", value = json!({"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1, 2, 3]}}, "expression": ["sum", ["mul", "x", 2]]}))),
        ("picture" = (summary = "A picture", value = json!({"kind": "picture", "picture": "phi_pattern", "width": 8, "height": 4}))),
    )),
    params(("Idempotency-Key" = Option<String>, Header, description = "Names the request: 1 to 100 visible characters", max_length = 100, min_length = 1, pattern = "^[!-~]{1,100}$")),
    responses((status = 202, description = "The job was accepted; `Location` is its address", body = Job)))]
async fn submit(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Problem> {
    let idempotency = match headers.get("idempotency-key").map(|value| value.to_str()) {
        None => None,
        Some(Ok(key)) if (1..=100).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Some(key.to_owned())
        }
        Some(_) => return Err(Problem::malformed("an Idempotency-Key has 1 to 100 visible characters of ASCII")),
    };
    let Read { caller, work, content_type, query, bytes } = read(&service, &headers, peer, query, body).await?;
    let request = Request { content_type, query, body: bytes[..].into(), idempotency };
    let job = service.accept(&caller, work, request).await?;
    let location = format!("/v1/jobs/{}", job.id);
    let body = serde_json::to_vec(&job).map_err(|_| Problem::internal())?;
    Ok(known((StatusCode::ACCEPTED, [(header::CONTENT_TYPE, JSON), (header::LOCATION, &location)], body), caller))
}

fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(value).map_err(|_| Problem::internal())?;
    Ok(([(header::CONTENT_TYPE, JSON)], body).into_response())
}

/// How a list is cut.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Cut {
    /// The most jobs.
    #[param(minimum = 1, maximum = 1000, value_type = u32, required = false)]
    limit: Option<usize>,
}

/// List your jobs, the newest first
///
/// With a key of the scope `administration`, everybody's.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs", params(Cut), responses((status = 200, description = "The jobs", body = Vec<Job>)))]
async fn list(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    cut: Result<Query<Cut>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    let Query(cut) = cut.map_err(|_| Problem::malformed("the query has a limit from 1 to 1000, or nothing"))?;
    let limit = cut.limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(Problem::malformed("a limit is from 1 to 1000"));
    }
    Ok(known(json(&service.list(&caller, limit))?, caller))
}

/// Look at a job
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "get_job", params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, description = "The job", body = Job)))]
async fn show(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    Ok(known(json(&service.job(&caller, &id)?)?, caller))
}

/// Fetch a job's result
///
/// 409 while there is none. What a job failed with is answered again.
#[utoipa::path(get, path = "/v1/jobs/{id}/result", tag = "jobs", operation_id = "get_result", params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, description = "The result", content(
        (Answer<'static> = "application/json"), (Binary = "application/x-npy"), (Binary = "application/vnd.safetensors"), (Binary = "application/octet-stream")))))]
async fn result(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let form = body::accepted(&headers)?;
    let caller = caller(&service, &headers, peer).await?;
    let (job, output) = service.result(&caller, &id).await?;
    Ok(known(answer(form, &output, &job.devices, job.milliseconds.unwrap_or_default(), 1)?, caller))
}

/// Cancel a job, or delete one that has ended
///
/// 202 while it is being cancelled, 204 when it is gone.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "delete_job", params(("id" = String, Path, description = "The job's id")),
    responses((status = 202, description = "It is being cancelled", body = Job), (status = 204, description = "It is gone")))]
async fn delete(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    match service.delete(&caller, &id).await? {
        None => Ok(known(StatusCode::NO_CONTENT, caller)),
        Some(job) => {
            let mut response = json(&job)?;
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(known(response, caller))
        }
    }
}

/// Follow a job
///
/// Server-sent events: `job`, with the job as it is now and each time that it changes, until it has ended.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", tag = "jobs", operation_id = "follow_job", params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, description = "The events", content_type = "text/event-stream", body = String)))]
async fn events(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    let changes = service.changes(&caller, &id)?;
    let stop = service.stop.subscribe();
    let stream =
        futures_util::stream::unfold((changes, stop, true, false), |(mut changes, mut stop, first, over)| async move {
            if over {
                return None;
            }
            if !first {
                // A comment now and then: both sides see that the other is there.
                let changed = tokio::select! {
                    changed = changes.changed() => changed.is_ok(),
                    () = tokio::time::sleep(Duration::from_secs(10)) => {
                        return Some((Ok::<_, Infallible>(Bytes::from_static(b":\n\n")), (changes, stop, false, false)));
                    }
                    _ = stop.changed() => false,
                };
                if !changed {
                    return None;
                }
            }
            let job = changes.borrow_and_update().clone();
            let data = serde_json::to_string(&job).unwrap_or_default();
            let text = format!("event: job\ndata: {data}\n\n");
            Some((Ok(Bytes::from(text)), (changes, stop, false, job.state.ended())))
        });
    Ok(known(([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)), caller))
}

/// A device of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceShown {
    /// Its name.
    pub name: String,
    /// Its backend.
    pub backend: String,
    /// Bytes that work holds there now.
    pub memory_in_use: u64,
    /// Bytes that work may hold there.
    pub memory_limit: u64,
    /// Requests that wait for it or run on it.
    pub waiting: usize,
}

/// List the devices
#[utoipa::path(get, path = "/v1/devices", tag = "service", operation_id = "list_devices", responses((status = 200, description = "The devices", body = Vec<DeviceShown>)))]
async fn devices(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    let shown: Vec<DeviceShown> = service
        .devices
        .iter()
        .map(|device| DeviceShown {
            name: device.info().name.clone(),
            backend: device.info().backend.to_string(),
            memory_in_use: device.memory(),
            memory_limit: service.settings.memory,
            waiting: device.waiting(),
        })
        .collect();
    Ok(known(json(&shown)?, caller))
}

/// A measurement of a device.
#[derive(Debug, Serialize, ToSchema)]
pub struct Measured {
    /// The device.
    pub device: String,
    /// What was measured.
    pub name: String,
    /// The median of its times, in milliseconds.
    pub milliseconds: f64,
    /// How much it did per second, in the unit.
    pub rate: f64,
    /// The unit of the rate.
    pub unit: String,
}

/// Measure every device
///
/// A picture, a sum and a product of matrices on each. Needs the scope `administration`.
#[utoipa::path(post, path = "/v1/benchmark", tag = "service", operation_id = "benchmark_all", responses((status = 200, description = "The measurements", body = Vec<Measured>)))]
async fn benchmark(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    caller.may(Scope::Administration)?;
    let turn = service.measuring.try_acquire().map_err(|_| Problem::busy("the devices are being measured", 5))?;
    let engines: Vec<_> = service.devices.iter().map(|device| device.engines[1].clone()).collect();
    let measured = tokio::task::spawn_blocking(move || crate::measure::all(&engines)).await;
    drop(turn);
    let measured = measured.map_err(|_| Problem::internal())?.map_err(|error| Problem::of(&error))?;
    Ok(known(json(&measured)?, caller))
}

/// What the machine's devices, and the engines on them, do
///
/// As `cantus top --json`. A figure is an object: `value`, and where that is null `reason`. Engines are those of the service's user that publish.
/// It is looked once a second at most. Needs the scope `administration` where there are keys.
#[utoipa::path(get, path = "/v1/monitor", tag = "service", operation_id = "monitor", responses((status = 200, description = "The figures", body = Watched)))]
async fn monitor(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    caller.may(Scope::Administration)?;
    let watched = tokio::task::spawn_blocking(move || service.watch.look()).await.map_err(|_| Problem::internal())?;
    Ok(known(json(&watched)?, caller))
}

/// Figures for Prometheus
///
/// Needs the scope `administration` where there are keys.
#[utoipa::path(get, path = "/metrics", tag = "service", operation_id = "metrics", responses((status = 200, description = "The figures", content_type = "text/plain", body = String)))]
async fn metrics(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    caller.may(Scope::Administration)?;
    let text = crate::metrics::text(&service);
    Ok(known(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text), caller))
}

/// Whether it is alive or ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// "ok".
    pub status: &'static str,
}

/// Whether the process answers
#[utoipa::path(get, path = "/health", tag = "service", operation_id = "health", security(()), responses((status = 200, description = "It does", body = Status)))]
async fn health() -> Result<Response, Problem> {
    json(&Status { status: "ok" })
}

/// Whether it takes work
#[utoipa::path(get, path = "/ready", tag = "service", operation_id = "ready", security(()), responses((status = 200, description = "It does", body = Status)))]
async fn ready(State(service): Shared) -> Result<Response, Problem> {
    if service.is_stopping() {
        return Err(Problem::unavailable("the service is stopping"));
    }
    json(&Status { status: "ok" })
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cantus",
        description = "A machine's devices as a service: operations on finite fields, curves and tensors, pictures, and kernels of your own. Small requests are answered at once; jobs are queued, kept on disk and survive the end of the service. Problems are answered after RFC 9457.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(compute, submit, list, show, result, delete, events, devices, benchmark, monitor, metrics, health, ready),
    components(schemas(Problem, AnswerNumber, Number, DTypeName)),
    tags(
        (name = "compute", description = "What is answered at once."),
        (name = "jobs", description = "What takes longer, or must not be lost."),
        (name = "service", description = "Devices and the service itself."),
    ),
)]
struct Api;

/// The description of the service.
pub fn description() -> serde_json::Value {
    use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
    use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, SecurityRequirement};
    let mut api = Api::openapi();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let problem = ResponseBuilder::new()
        .description("A problem")
        .content(MEDIA_TYPE, ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build())
        .build();
    for item in api.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem.clone()));
        }
    }
    api.security = Some(vec![SecurityRequirement::new("key", [""; 0])]);
    let mut api = serde_json::to_value(api).unwrap_or_default();
    let events = "/paths/~1v1~1jobs~1{id}~1events/get/responses/200/content/text~1event-stream";
    for (place, value) in [("/components/schemas/Node", crate::work::node_schema()), (events, serde_json::json!({}))] {
        if let Some(schema) = api.pointer_mut(place) {
            *schema = value;
        }
    }
    api
}

async fn openapi() -> Response {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(header::CONTENT_TYPE, JSON)], text.as_str()).into_response()
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

async fn docs() -> Response {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let rows = crate::work::functions();
        let rows = rows.iter().map(|(name, about)| format!("<tr><td><code>{name}</code></td><td>{about}</td></tr>"));
        include_str!("docs/page.html").replace("<!-- functions -->", &rows.collect::<Vec<_>>().join("\n"))
    });
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text.as_str()).into_response()
}

async fn docs_script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("docs/page.js")).into_response()
}

async fn docs_style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("docs/page.css")).into_response()
}
