//! Requests that are answered at once.

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::answer::{Answer, Binary, answer, known};
use super::request::{Read, read};
use super::{Peer, Shared};
use crate::body;
use crate::problem::Problem;
use crate::work::Work;

/// Compute, and wait for the result
///
/// For what is small. If the caller goes away, the work is cancelled. The body is JSON, or arrays as bytes with the JSON beside them: `.npy` (the JSON in the query's `request`),
/// safetensors (the JSON as `request` in the metadata), or a line of JSON `{"request": …, "arrays": [{"name", "dtype", "shape"}]}` and the bytes.
#[utoipa::path(post, path = "/v1/compute", tag = "compute", operation_id = "compute", request_body(content = Work),
    responses((status = 200, description = "The result", content(
        (Answer<'static> = "application/json"), (Binary = "application/x-npy"), (Binary = "application/vnd.safetensors"), (Binary = "application/octet-stream")))))]
pub(super) async fn compute(
    State(service): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, Problem> {
    let form = body::accepted(&headers)?;
    let Read { caller, work, bytes, held, spent, .. } = read(&service, &headers, peer, query, body).await?;
    let length = bytes.len() as u64;
    drop(bytes);
    let finished = service.compute(&caller, work, length, spent, held).await?;
    let (shape, elements) = service.held(&caller, finished.result?)?;
    Ok(known(answer(form, shape, elements, &finished.devices, finished.milliseconds, finished.batch)?, caller))
}
