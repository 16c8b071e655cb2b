//! Devices, figures, and whether the service is well.

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{json, known};
use super::request::caller;
use super::{Peer, Shared};
use crate::problem::Problem;
use crate::settings::Scope;

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
pub(super) async fn benchmark(
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

/// Whether it is alive or ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// "ok".
    pub status: &'static str,
}

/// Whether the process answers
#[utoipa::path(get, path = "/health", tag = "service", operation_id = "health", security(()), responses((status = 200, description = "It does", body = Status)))]
pub(super) async fn health() -> Result<Response, Problem> {
    json(&Status { status: "ok" })
}

/// Whether it takes work
#[utoipa::path(get, path = "/ready", tag = "service", operation_id = "ready", security(()), responses((status = 200, description = "It does", body = Status)))]
pub(super) async fn ready(State(service): Shared) -> Result<Response, Problem> {
    if service.is_stopping() {
        return Err(Problem::unavailable("the service is stopping"));
    }
    json(&Status { status: "ok" })
}
