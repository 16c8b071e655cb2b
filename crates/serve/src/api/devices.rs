//! Devices, figures, and whether the service is well. Routes that change nothing, except the benchmark, which takes the device's turn as large work does
//! and needs the scope `administration`. `health` answers while the process lives, `ready` only while it accepts work: load balancers want the second.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{json, known};
use super::request::caller;
use super::{Peer, Shared};
use crate::body::{EVENTS, JSON};
use crate::problem::Problem;
use crate::settings::Scope;
use crate::watch::Watched;

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
    /// The constructs that its driver is known to compute wrong: work that needs it does not run there.
    pub wrong: Vec<Wrong>,
}

/// A construct that a device's driver computes wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct Wrong {
    /// The construct.
    pub construct: String,
    /// The wrong result.
    pub given: String,
}

/// List the devices
#[utoipa::path(get, path = "/v1/devices", tag = "service", operation_id = "list_devices", responses((status = 200, description = "The devices", body = Vec<DeviceShown>)))]
pub(super) async fn devices(
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
            wrong: cantus::engine::wrong_answers(device.info())
                .into_iter()
                .filter(|(_, given)| !cantus::engine::is_refusal(given))
                .map(|(construct, given)| Wrong { construct, given })
                .collect(),
        })
        .collect();
    Ok(known(json(&shown)?, caller))
}

/// A measurement of a device.
#[derive(Debug, Serialize, ToSchema)]
pub struct Measured {
    /// The device.
    pub device: String,
    /// The measured operation.
    pub name: String,
    /// The median of its times, in milliseconds.
    pub milliseconds: f64,
    /// Work per second, in the unit.
    pub rate: f64,
    /// The unit of the rate.
    pub unit: String,
}

/// Measure every device
///
/// A picture, a sum and a product of matrices on each. Needs the scope `administration`. To who accepts `text/event-stream` it tells how far it is:
/// `progress` after each measurement, as `{"progress": 33}` in percent, and then `result` with the measurements, or `problem`.
#[utoipa::path(post, path = "/v1/benchmark", tag = "service", operation_id = "benchmark_all", responses((status = 200, description = "The measurements", content(
    (Vec<Measured> = "application/json"), (String = "text/event-stream")))))]
pub(super) async fn benchmark(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    caller.may(Scope::Administration)?;
    let busy = |_| Problem::busy("the devices are being measured", 5);
    let turn = service.measuring.clone().try_acquire_owned().map_err(busy)?;
    let engines: Vec<_> = service.devices.iter().map(|device| device.engines[1].clone()).collect();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    // Also when the caller goes away the turn ends only with the measurement.
    let measuring = tokio::task::spawn_blocking(move || {
        let measured = crate::measure::all(&engines, &mut |percent| {
            let _ = sender.send(percent);
        });
        drop(turn);
        measured
    });
    let outcome = async {
        let measured = measuring.await.map_err(|_| Problem::internal())?;
        measured.map_err(|error| Problem::of(&error))
    };
    if crate::body::preferred(&headers, &[JSON, EVENTS]) != Some(EVENTS) {
        return Ok(known(json(&outcome.await?)?, caller));
    }
    let steps = futures_util::stream::unfold(receiver, async |mut receiver| {
        let percent: u8 = receiver.recv().await?;
        Some((event("progress", &serde_json::json!({"progress": percent})), receiver))
    });
    let end = futures_util::stream::once(async {
        match outcome.await {
            Ok(measured) => event("result", &measured),
            Err(problem) => event("problem", &problem),
        }
    });
    let stream = futures_util::StreamExt::chain(steps, end);
    Ok(known(([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(stream)), caller))
}

/// A server-sent event.
fn event(name: &str, data: &impl Serialize) -> Result<Bytes, Infallible> {
    let data = serde_json::to_string(data).unwrap_or_default();
    Ok(Bytes::from(format!("event: {name}\ndata: {data}\n\n")))
}

/// Figures of the machine's devices, and of the engines on them
///
/// As `cantus top --json`. A figure is an object: `value`, and where that is null `reason`. Engines are those of the service's user that publish.
/// It is looked once a second at most. Needs the scope `administration` where there are keys.
#[utoipa::path(get, path = "/v1/monitor", tag = "service", operation_id = "monitor", responses((status = 200, description = "The figures", body = Watched)))]
pub(super) async fn monitor(
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
pub(super) async fn metrics(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    caller.may(Scope::Administration)?;
    let text = crate::metrics::text(&service);
    Ok(known(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text), caller))
}

/// The status of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// "ok".
    pub status: &'static str,
}

/// Answers while the process lives
#[utoipa::path(get, path = "/health", tag = "service", operation_id = "health", security(()), responses((status = 200, description = "It does", body = Status)))]
pub(super) async fn health() -> Result<Response, Problem> {
    json(&Status { status: "ok" })
}

/// Answers while it accepts work
#[utoipa::path(get, path = "/ready", tag = "service", operation_id = "ready", security(()), responses((status = 200, description = "It does", body = Status)))]
pub(super) async fn ready(State(service): Shared) -> Result<Response, Problem> {
    if let Some(reason) = service.unready() {
        return Err(Problem::unavailable(reason));
    }
    json(&Status { status: "ok" })
}
