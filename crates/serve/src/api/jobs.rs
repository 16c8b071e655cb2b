//! The routes of jobs. The routes only read requests and write answers; `service/jobs.rs` does the work. Somebody else's job is 404 and not 403, so ids
//! tell nothing. A result that failed is answered again with its problem, as often as asked.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, FromRequestParts, Path, Query, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::{Answer, Binary, answer, json, known};
use super::browser::one;
use super::request::{Read, caller, read};
use super::{Peer, Shared};
use crate::body::{self, EVENTS, JSON};
use crate::job::Job;
use crate::priority::blocking;
use crate::problem::Problem;
use crate::service::Request;
use crate::work::Work;

/// Submit a job
///
/// It is on the disk when this answers, and survives the end of the service. The body is that of `/v1/compute`. With a header `Idempotency-Key` the same request
/// sent again gives the job that it made.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", operation_id = "submit_job", request_body(content = Work),
    params(("Idempotency-Key" = Option<String>, Header, description = "Names the request: 1 to 100 visible characters", max_length = 100, min_length = 1, pattern = "^[!-~]{1,100}$")),
    responses((status = 202, description = "The job was accepted; `Location` is its address", body = Job)))]
pub(super) async fn submit(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Problem> {
    let idempotency = match one(&headers, &HeaderName::from_static("idempotency-key"))? {
        None => None,
        Some(key) if (1..=100).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Some(key.to_owned())
        }
        Some(_) => return Err(Problem::malformed("an Idempotency-Key has 1 to 100 visible characters of ASCII")),
    };
    let read = read(&service, &headers, peer, query, body).await?;
    let Read { caller, work, content_type, query, bytes, held, spent } = read;
    let request = Request { content_type, query, body: bytes, idempotency, spent };
    let job = service.accept(&caller, work, request).await?;
    drop(held);
    let location = format!("/v1/jobs/{}", job.id);
    let body = serde_json::to_vec(&job).map_err(|_| Problem::internal())?;
    Ok(known((StatusCode::ACCEPTED, [(header::CONTENT_TYPE, JSON), (header::LOCATION, &location)], body), caller))
}

/// The page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Cut {
    /// The most jobs.
    #[param(minimum = 1, maximum = 1000, value_type = u32, required = false)]
    limit: Option<usize>,
}

/// The number of jobs that are listed while other requests wait.
const FEW: usize = 100;

/// List your jobs, the newest first
///
/// With a key of the scope `administration`, everybody's.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs", params(Cut), responses((status = 200, description = "The jobs", body = Vec<Job>)))]
pub(super) async fn list(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    cut: Result<Query<Cut>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    let Query(cut) = cut.map_err(|_| Problem::malformed("the query may only have a limit from 1 to 1000"))?;
    let limit = cut.limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(Problem::malformed("a limit is from 1 to 1000"));
    }
    let (listed, owner) = (service.clone(), caller.clone());
    let list = move || json(&listed.list(&owner, limit));
    let shown = if limit <= FEW { list()? } else { blocking(list).await.map_err(|_| Problem::internal())?? };
    Ok(known(shown, caller))
}

/// The id in an address; anything but text names no job.
pub(super) struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id)).map_err(|_| Problem::not_found("there is no such job"))
    }
}

/// Look at a job
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "get_job", params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, description = "The job", body = Job)))]
pub(super) async fn show(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, Problem> {
    let caller = caller(&service, &headers, peer).await?;
    Ok(known(json(&service.job(&caller, &id)?)?, caller))
}

/// Fetch a job's result
///
/// 409 until it has one. What a job failed with is answered again.
#[utoipa::path(get, path = "/v1/jobs/{id}/result", tag = "jobs", operation_id = "get_result", params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, description = "The result", content(
        (Answer<'static> = "application/json"), (Binary = "application/x-npy"), (Binary = "application/vnd.safetensors"), (Binary = "application/octet-stream")))))]
pub(super) async fn result(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, Problem> {
    let form = body::accepted(&headers)?;
    let caller = caller(&service, &headers, peer).await?;
    let (job, shape, elements) = service.result(&caller, &id).await?;
    Ok(known(answer(form, shape, elements, &job.devices, job.milliseconds.unwrap_or_default(), 1)?, caller))
}

/// Cancel a job, or delete one that has ended
///
/// 202 while it is being cancelled, 204 when it is gone.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "delete_job", params(("id" = String, Path, description = "The job's id")),
    responses((status = 202, description = "It is being cancelled", body = Job), (status = 204, description = "It is gone")))]
pub(super) async fn delete(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Id(id): Id,
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
pub(super) async fn events(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Id(id): Id,
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
    Ok(known(([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(stream)), caller))
}
